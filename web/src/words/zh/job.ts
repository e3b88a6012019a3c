export default { title: "任务" };
