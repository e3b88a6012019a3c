// Before the first paint, so that a dark page does not flash white. See src/composables/useTheme.ts.
(function () {
  var wanted = "system";
  try {
    wanted = localStorage.getItem("runyard.theme") || "system";
  } catch (error) {
    // Storage may be forbidden; the system's choice is good enough.
  }
  var dark = wanted === "dark" || (wanted === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();
