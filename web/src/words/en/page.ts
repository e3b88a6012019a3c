// What is around every page.
export default {
  nav: { now: "Now", jobs: "Jobs", queue: "Queue", alerts: "Alerts", machines: "Machines", settings: "Settings", main: "Main pages", skip: "Skip to content" },
  link: { connecting: "connecting", live: "live", lost: "reconnecting", paused: "paused", staleSince: "stale since {at}" },
  top: { search: "Find a job", language: "中文", theme: "Theme: {theme}", system: "system", light: "light", dark: "dark", logOut: "Log out", newJob: "New job" },
  shortcuts: {
    title: "Keyboard shortcuts",
    help: "this help",
    search: "find a job",
    go: "go to {page}",
    next: "next row",
    previous: "previous row",
    open: "open the row",
    logs: "its logs",
    charts: "its charts",
    select: "select the row",
    new: "new job",
    cancel: "cancel (asks first)",
    neighbour: "previous or next job of the list",
    palette: "Find a job or a page",
    off: "Use shortcuts",
  },
  notFound: { title: "There is no such page", text: "The address may be mistyped, or the job deleted.", home: "What runs now" },
};
