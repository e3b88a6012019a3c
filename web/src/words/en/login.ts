export default {
  title: "Log in",
  key: "API key",
  submit: "Log in",
  hint: "The command line prints a link that logs you in:",
  wrong: "This key is not valid.",
  expired: "Your session has ended. Log in, and go on where you were.",
  link: "This login link was used or is too old. Ask for a new one.",
};
