export default { title: "Log" };
