export default { title: "Jobs" };
