export default { title: "Queue" };
