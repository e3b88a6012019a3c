export default { title: "日志" };
