// One file a page, so that each page's words are found where they are used; page, actions and
// values are on all of them.
import actions from "./zh/actions";
import alerts from "./zh/alerts";
import charts from "./zh/charts";
import job from "./zh/job";
import jobs from "./zh/jobs";
import log from "./zh/log";
import login from "./zh/login";
import machines from "./zh/machines";
import now from "./zh/now";
import page from "./zh/page";
import queue from "./zh/queue";
import settings from "./zh/settings";
import values from "./zh/values";

export default { ...page, ...actions, ...values, login, alerts, charts, job, jobs, log, machines, now, queue, settings };
