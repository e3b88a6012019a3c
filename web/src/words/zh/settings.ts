export default { title: "设置" };
