export default { title: "现况" };
