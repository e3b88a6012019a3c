// What every page shows in the same words.
export default {
  state: { loading: "Loading", slow: "This takes longer than usual.", failed: "This could not be loaded.", requestId: "Request {id}", none: "none" },
  eta: { left: "{span} left", range: "{low} to {high} left", unknown: "end not known", at: "ends about {at}" },
  health: { ok: "healthy", warning: "warning", error: "error", critical: "critical", unknown: "nothing known yet" },
  ago: "{span} ago",
  attemptOf: "attempt {number}",
  priority: { high: "high", medium: "medium", low: "low" },
};
