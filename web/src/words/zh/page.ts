// What is around every page.
export default {
  nav: { now: "现况", jobs: "任务", queue: "队列", alerts: "告警", machines: "机器", settings: "设置", main: "主要页面", skip: "跳到正文" },
  link: { connecting: "连接中", live: "实时", lost: "正在重新连接", paused: "已暂停", staleSince: "数据截至 {at}" },
  top: { search: "查找任务", language: "English", theme: "主题: {theme}", system: "跟随系统", light: "浅色", dark: "深色", logOut: "退出登录", newJob: "新建任务" },
  shortcuts: {
    title: "键盘快捷键",
    help: "本帮助",
    search: "查找任务",
    go: "转到{page}",
    next: "下一行",
    previous: "上一行",
    open: "打开该行",
    logs: "查看日志",
    charts: "查看图表",
    select: "选中该行",
    new: "新建任务",
    cancel: "取消 (会先询问)",
    neighbour: "列表中的上一个/下一个作业",
    palette: "查找作业或页面",
    off: "启用快捷键",
  },
  notFound: { title: "没有这个页面", text: "地址可能有误, 或任务已被删除。", home: "当前运行情况" },
};
