// One file a page, so that each page's words are found where they are used.
import alerts from "./en/alerts";
import charts from "./en/charts";
import common from "./en/common";
import job from "./en/job";
import jobs from "./en/jobs";
import log from "./en/log";
import machines from "./en/machines";
import now from "./en/now";
import queue from "./en/queue";
import settings from "./en/settings";

export default { ...common, alerts, charts, job, jobs, log, machines, now, queue, settings };
