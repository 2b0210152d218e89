// The lists of jobs: those that run, and those that have ended.

import { read, readIfAny } from "./api.js";
import { badge, facts, h, loadBar, named, sparkline } from "./dom.js";
import { bytes, count, duration, moment, NONE, percent, plural, rate } from "./format.js";
import { jobRemarks, wantsLook, weightOf } from "./job_remarks.js";
import { reorder, sorted } from "./parts.js";
import { table } from "./table.js";
import { remember, series } from "./trends.js";

const view = { text: "", isNarrowed: false, sort: { name: "", down: true } };
const ENDED = { name: "", down: true };

function matches(job, text) {
  return !text || `${job.name} ${job.jid} ${job.state}`.toLowerCase().includes(text.toLowerCase());
}

function link(job) {
  return h("a", { href: `#/jobs/${encodeURIComponent(job.jid)}` }, named(job.name || "(no name)"));
}

function subtasks(job) {
  const total = Object.values(job.states).reduce((sum, number) => sum + number, 0), running = job.states.RUNNING || 0;
  const others = Object.entries(job.states).filter(([state]) => state !== "RUNNING").map(([state, number]) => `${number} ${state}`);
  return h("span", { title: others.join(", ") }, `${running}/${total}`);
}

function lastCheckpoint(job) {
  const known = job.checkpoints;
  if (!known.completed) return known.failed ? h("span", { class: "bad" }, `✕ ${known.failed} failed`) : NONE;
  const age = known.last_ms ? `${duration(Math.max(job.now_ms - known.last_ms, 0)).replace(/\.\d/, "")} ago, ` : "";
  return [`${age}${duration(known.last_duration_ms)}, ${bytes(known.last_bytes)}`,
    known.failed ? h("span", { class: "bad" }, ` ✕ ${known.failed}`) : null];
}

function remarks(job) {
  return jobRemarks(job).map(([sign, words]) => h("span", { class: `remark ${wantsLook(job) ? "warn" : ""}` }, h("span", { "aria-hidden": "true" }, `${sign} `), `${words} `));
}

const COLUMNS = [
  { name: "Job", value: (job) => link(job), sort: (job) => job.name.toLowerCase() },
  { name: "State", value: (job) => [badge(job.state), job.waiting ? h("div", { class: "small" }, job.waiting) : null], sort: (job) => job.state },
  { name: "Uptime", value: (job) => duration(job.uptime_ms > 0 ? job.uptime_ms : job.duration_ms), number: true, sort: (job) => job.uptime_ms },
  { name: "Subtasks", value: subtasks, number: true, title: "running of all" },
  { name: "Records/s", value: (job) => rate(job.read_per_second), number: true, sort: (job) => job.read_per_second, title: "that its sources read" },
  { name: "Trend", value: (job) => sparkline(series(job.jid, "read"), `records a second, now ${rate(job.read_per_second)}`) },
  { name: "Lag", value: (job) => duration(job.lag_ms), number: true, sort: (job) => job.lag_ms, title: "watermark behind the clock, the worst vertex" },
  {
    name: "Load", title: "the busiest subtask; hatched: the one that waits most for room", sort: (job) => job.busy_ms_per_second,
    value: (job) => h("span", { class: "load-cell" }, loadBar(job.busy_ms_per_second, job.back_pressured_ms_per_second),
      ` ${percent(job.busy_ms_per_second)}`, (job.back_pressured_ms_per_second || 0) >= 100 ? ` ‖ ${percent(job.back_pressured_ms_per_second)}` : ""),
  },
  { name: "Restarts", value: (job) => count(job.restarts), number: true, sort: (job) => job.restarts },
  { name: "Late", value: (job) => count(job.late_records), number: true, sort: (job) => job.late_records, title: "records that were dropped as late" },
  { name: "Last checkpoint", value: lastCheckpoint, sort: (job) => job.checkpoints.last_ms },
  { name: "Remarks", value: remarks, sort: weightOf, title: "the worst first" },
];

const ENDED_COLUMNS = [
  { name: "Job", value: (job) => link(job), sort: (job) => job.name.toLowerCase() },
  { name: "State", value: (job) => badge(job.state), sort: (job) => job.state },
  { name: "Began", value: (job) => h("span", { class: "moment" }, moment(job.begin_ms)), sort: (job) => job.begin_ms },
  { name: "Ended", value: (job) => h("span", { class: "moment" }, moment(job.end_ms)), sort: (job) => job.end_ms },
  { name: "Took", value: (job) => duration(job.duration_ms), number: true, sort: (job) => job.duration_ms },
  { name: "Restarts", value: (job) => count(job.restarts), number: true, sort: (job) => job.restarts },
  { name: "Checkpoints", value: (job) => count(job.checkpoints.completed), number: true, sort: (job) => job.checkpoints.completed },
  {
    name: "Failure", value: (job) => job.state === "FAILED" && job.last_failure
      ? h("span", { class: "cut failure-text", title: job.last_failure.text }, job.last_failure.operator ? `${job.last_failure.operator}: ` : "", job.last_failure.error) : "",
  },
  {
    name: "Started again", value: (job) => job.restarted_as.map((id) => h("a", { class: "moment", href: `#/jobs/${encodeURIComponent(id)}` }, `↻ ${id.slice(0, 8)}`)),
  },
];

/** Return the columns of jobs that have ended; that of new starts is left out where there is none. */
function endedColumns(jobs) {
  return jobs.some((job) => job.restarted_as.length) ? ENDED_COLUMNS : ENDED_COLUMNS.slice(0, -1);
}

function findField(redraw) {
  return h("label", { class: "find" }, h("span", { class: "unseen" }, "Find jobs"),
    h("input", {
      id: "find", type: "search", placeholder: "Find by name, id or state  ( / )", oninput: (event) => {
        view.text = event.target.value;
        redraw();
      },
    }));
}

function tile(label, value, note) {
  return h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, ` ${note}`) : null));
}

let states = new Map();

function announceChanges(jobs, announce) {
  const changed = jobs.filter((job) => states.has(job.jid) && states.get(job.jid) !== job.state);
  if (changed.length) announce(changed.map((job) => `${job.name} is ${job.state}`).join(". "));
  states = new Map(jobs.map((job) => [job.jid, job.state]));
}

export function jobsPage({ redraw, announce }) {
  return {
    key: "jobs", menu: "jobs", title: "Jobs",
    load: async () => {
      const [live, overview] = await Promise.all([read("rayflink/live"), readIfAny("overview")]);
      live.jobs.forEach(remember);
      announceChanges(live.jobs, announce);
      return { ...live, overview };
    },
    render: ({ jobs, overview }) => {
      const running = jobs.filter((job) => !job.has_ended), ended = jobs.filter((job) => job.has_ended);
      const failed = ended.filter((job) => job.state === "FAILED" && !job.restarted_as.length).length;
      const wanted = running.filter(wantsLook).length;
      const shown = sorted(running.filter((job) => matches(job, view.text) && (!view.isNarrowed || wantsLook(job))), COLUMNS, view.sort);
      const narrow = () => { view.isNarrowed = !view.isNarrowed; redraw(); };
      const past = ended.filter((job) => matches(job, view.text)).sort((left, right) => right.end_ms - left.end_ms).slice(0, 8);
      const read_ = running.reduce((sum, job) => sum + (job.read_per_second || 0), 0);
      return [
        h("div", { key: "head", class: "head" }, h("h1", {}, "Jobs"), findField(redraw)),
        h("dl", { key: "tiles", class: "tiles" },
          tile("Running", count(running.filter((job) => job.state === "RUNNING").length)),
          tile("Not running yet", count(running.filter((job) => job.state !== "RUNNING").length)),
          tile("Want a look", wanted || view.isNarrowed
            ? h("button", { type: "button", class: "narrow", "aria-pressed": String(view.isNarrowed), onclick: narrow }, `▲ ${count(wanted)}`, h("small", {}, view.isNarrowed ? " show all" : " show them")) : "0"),
          tile("Failed", failed ? h("a", { class: "bad", href: "#/history" }, `✕ ${failed}`) : "0"),
          tile("Read", `${rate(read_)}/s`, "records"),
          overview && "slots-total" in overview ? tile("Slots", `${count(overview["slots-total"] - overview["slots-available"])} / ${count(overview["slots-total"])}`, "in use") : null,
          overview && "taskmanagers" in overview ? tile("Task managers", h("a", { href: "#/taskmanagers" }, count(overview.taskmanagers))) : null),
        table({
          caption: "Running jobs", columns: COLUMNS, rows: shown, key: (job) => job.jid, sorted: view.sort,
          onsort: (name) => reorder(view.sort, name, redraw),
          empty: view.text || view.isNarrowed ? "no running job matches" : "no job runs; `rayflink run` starts one",
        }),
        past.length ? h("div", { key: "past" },
          h("h2", {}, "Ended last"),
          table({
            caption: "Jobs that ended last", columns: endedColumns(past), rows: past, key: (job) => job.jid,
          }),
          ended.length > past.length ? h("p", {}, h("a", { href: "#/history" }, `all ${plural(ended.length, "job")} that ended`)) : null) : null,
      ];
    },
  };
}

export function historyPage({ redraw }) {
  return {
    key: "history", menu: "history", title: "History",
    load: async () => read("rayflink/live"),
    render: ({ jobs }) => {
      const ended = jobs.filter((job) => job.has_ended);
      const shown = sorted(ended.filter((job) => matches(job, view.text)), ENDED_COLUMNS, ENDED);
      const counts = {};
      ended.forEach((job) => { counts[job.state] = (counts[job.state] || 0) + 1; });
      return [
        h("div", { key: "head", class: "head" }, h("h1", {}, "Jobs that have ended"), findField(redraw)),
        facts(Object.entries(counts).map(([state, number]) => [badge(state), count(number)])),
        table({
          caption: "Jobs that have ended", columns: endedColumns(shown), rows: shown, key: (job) => job.jid, sorted: ENDED,
          onsort: (name) => reorder(ENDED, name, redraw), empty: view.text ? "no job that has ended matches" : "no job has ended yet",
        }),
      ];
    },
  };
}
