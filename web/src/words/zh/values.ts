// What every page shows in the same words.
export default {
  state: { loading: "加载中", slow: "比平时慢。", failed: "加载失败。", requestId: "请求 {id}", none: "无" },
  eta: { left: "还需 {span}", range: "还需 {low} 至 {high}", unknown: "结束时间未知", at: "约 {at} 结束" },
  health: { ok: "正常", warning: "警告", error: "错误", critical: "严重", unknown: "尚无信息" },
  ago: "{span}前",
  attemptOf: "第 {number} 次尝试",
  priority: { high: "高", medium: "中", low: "低" },
};
