// One job: its head, its operations and its tabs.

import { path, read, readIfAny } from "./api.js";
import { badge, h, named, sparkline } from "./dom.js";
import { bytes, count, duration, moment, NONE, percent, rate } from "./format.js";
import { checkpointsTab } from "./checkpoints.js";
import { configurationTab, exceptionsTab, processesTab } from "./job_tabs.js";
import { graphTab } from "./graph_tab.js";
import { operations } from "./operations.js";
import { stateTab } from "./state.js";
import { timelineTab } from "./timeline.js";
import { history, recall, remember } from "./trends.js";

const TABS = [
  ["graph", "Graph", graphTab], ["checkpoints", "Checkpoints", checkpointsTab], ["exceptions", "Exceptions", exceptionsTab],
  ["timeline", "Timeline", timelineTab], ["state", "State", stateTab], ["processes", "Processes and logs", processesTab], ["configuration", "Configuration", configurationTab],
];

function head(figures, context) {
  const known = figures.checkpoints;
  const age = known.last_ms ? `${duration(Math.max(figures.now_ms - known.last_ms, 0)).replace(/\.\d/, "")} ago` : NONE;
  const points = figures.has_ended ? [] : history(figures.jid);
  const spanMs = points.length > 1 ? points[points.length - 1].at - points[0].at : 0;
  const trend = (name, value) => spanMs === 0 || points.every((point) => !Number.isFinite(point[name])) ? null : [
    sparkline(points.map((point) => point[name]), `${name} of the last ${duration(spanMs)}, now ${value}`, points.map((point) => point.at)),
    h("small", { class: "span", "aria-hidden": "true" }, `last ${duration(spanMs).replace(/\.\d/, "")}`)];
  return h("div", { key: "head", class: "job-head" },
    h("div", { class: "head" },
      h("h1", {}, named(figures.name || "(no name)"), " ", badge(figures.state)),
      operations(figures, context)),
    h("p", { class: "small" }, h("code", { class: "id" }, figures.jid),
      ` · ${(figures.mode || "").toLowerCase()} · began ${moment(figures.begin_ms)}`,
      figures.has_ended ? ` · ended ${moment(figures.end_ms)} after ${duration(figures.duration_ms)}` : ` · up ${duration(figures.uptime_ms)}`,
      figures.waiting ? ` · ${figures.waiting}` : "",
      figures.restarted_from ? [" · started again, was ", jobLink(figures.restarted_from)] : null),
    figures.restarted_as.length ? h("p", { class: "finding note", key: "successors" }, h("span", { class: "sign", "aria-hidden": "true" }, "↻"),
      "It was started again as ", figures.restarted_as.map((id, index) => [index ? ", " : "", jobLink(id)])) : null,
    h("dl", { class: "tiles" },
      tile("Read", figures.read_per_second === null ? NONE : `${rate(figures.read_per_second)}/s`, trend("read", rate(figures.read_per_second))),
      tile("Watermark lag", duration(figures.lag_ms), trend("lag", duration(figures.lag_ms))),
      tile("Busiest subtask", percent(figures.busy_ms_per_second), trend("busy", percent(figures.busy_ms_per_second))),
      tile("Back-pressure", percent(figures.back_pressured_ms_per_second), trend("pressed", percent(figures.back_pressured_ms_per_second))),
      tile("Restarts", count(figures.restarts), figures.recovery ? h("small", {}, ` last took ${duration(figures.recovery.total_ms)}`) : null),
      tile("Last checkpoint", age, h("small", {}, known.completed ? ` ${duration(known.last_duration_ms)}, ${bytes(known.last_bytes)}` : ""),
        known.failed ? h("small", { class: "bad" }, ` ✕ ${count(known.failed)} failed`) : null),
      tile("Late records", figures.late_records ? h("span", { class: "warn" }, `◷ ${count(figures.late_records)}`) : "0")));
}

function jobLink(id) {
  return h("a", { href: path`#/jobs/${id}/graph` }, h("code", {}, id.slice(0, 8)));
}

function tile(label, value, ...more) {
  return h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value, more));
}

export function jobPage(id, tabName, rest, context) {
  const known = TABS.find(([name]) => name === tabName) || TABS[0];
  const base = path`rayflink/jobs/${id}/`, flink = path`jobs/${id}/`, hash = path`#/jobs/${id}`;
  const tab = known[2]({ id, rest, base, flink, hash, ...context });
  let before = null;
  const page = {
    key: `job:${id}`, menu: "jobs", title: "Job",
    load: async () => {
      const [figures, part] = await Promise.all([
        read(`${base}live${known[0] === "graph" && rest ? `?vertex=${encodeURIComponent(rest)}` : ""}`), tab.load({ read, readIfAny }),
        recall(id.toLowerCase()).catch(() => null), // lines are shorter without it
      ]);
      remember(figures);
      if (before && before !== figures.state) context.announce(`${figures.name} is ${figures.state}`);
      before = figures.state;
      page.title = figures.name;
      return { figures, part };
    },
    carry: (data) => {
      before = data.figures.state;
      page.title = data.figures.name;
      return { figures: data.figures, part: data.tab === known[0] ? data.part : null };
    },
    render: (data) => [
      head(data.figures, context),
      h("nav", { key: "tabs", class: "tabs", "aria-label": "Parts of the job" }, TABS.map(([name, label]) => h("a", {
        href: `${hash}/${name}`, "aria-current": name === known[0] ? "page" : null,
      }, label, name === "exceptions" && data.figures.failures.length
        ? h("span", { class: "pill" }, count(data.figures.failures.reduce((sum, failure) => sum + failure.times, 0))) : null))),
      h("section", { key: `tab-${known[0]}`, class: "tab", "aria-label": known[1] },
        data.part === null ? h("p", { class: "loading" }, "loading") : tab.render(data.figures, data.part)),
    ],
    escape: () => { if (rest) context.go(`${hash}/${known[0]}`); },
    step: (by) => {
      const next = TABS[(TABS.indexOf(known) + by + TABS.length) % TABS.length];
      context.go(`${hash}/${next[0]}`);
    },
  };
  return page;
}
