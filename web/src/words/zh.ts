// One file a page, so that each page's words are found where they are used.
import alerts from "./zh/alerts";
import charts from "./zh/charts";
import common from "./zh/common";
import job from "./zh/job";
import jobs from "./zh/jobs";
import log from "./zh/log";
import machines from "./zh/machines";
import now from "./zh/now";
import queue from "./zh/queue";
import settings from "./zh/settings";

export default { ...common, alerts, charts, job, jobs, log, machines, now, queue, settings };
