export default { title: "Settings" };
