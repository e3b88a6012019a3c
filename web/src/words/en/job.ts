export default { title: "Job" };
