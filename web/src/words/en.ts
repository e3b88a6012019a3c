// One file a page, so that each page's words are found where they are used; page, actions and
// values are on all of them.
import actions from "./en/actions";
import alerts from "./en/alerts";
import charts from "./en/charts";
import job from "./en/job";
import jobs from "./en/jobs";
import log from "./en/log";
import login from "./en/login";
import machines from "./en/machines";
import now from "./en/now";
import page from "./en/page";
import queue from "./en/queue";
import settings from "./en/settings";
import values from "./en/values";

export default { ...page, ...actions, ...values, login, alerts, charts, job, jobs, log, machines, now, queue, settings };
