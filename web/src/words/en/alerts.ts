export default { title: "Alerts" };
