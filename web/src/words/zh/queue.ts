export default { title: "队列" };
