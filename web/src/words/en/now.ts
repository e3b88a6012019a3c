export default { title: "Now" };
