export default {
  title: "登录",
  key: "API 密钥",
  submit: "登录",
  hint: "用命令行可得到一次性登录链接:",
  wrong: "密钥无效。",
  expired: "登录已失效。重新登录后会回到原来的页面。",
  link: "登录链接已使用或已过期, 请重新获取。",
};
