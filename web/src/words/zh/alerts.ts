export default { title: "告警" };
