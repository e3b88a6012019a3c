export default { title: "机器" };
