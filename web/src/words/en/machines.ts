export default { title: "Machines" };
