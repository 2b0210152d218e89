// What has happened to a job, and when: failures, changes of parallelism, savepoints and checkpoints that failed.

import { readIfAny } from "./api.js";
import { h, linePath, named, s } from "./dom.js";
import { clock, count, duration, moment, NONE, percent, plural, rate } from "./format.js";
import { firstOf, moreOf } from "./parts.js";
import { history } from "./trends.js";

const MOST_EVENTS = 50, MOST_LANES = 40, MOST_MARKS = 400, NAME = 230, WIDTH = 1000, LANE = 18, TREND = 34, MARKS = 26;
const SPANS = [["all", "All of it", Infinity], ["hour", "Last hour", 3_600_000], ["minutes", "Last 10 minutes", 600_000]];
const SIGNS = { failure: "✕", checkpoint: "✕", rescale: "⇅", savepoint: "◆", autoscaler: "◇", began: "▶", ended: "■" };
const TRENDS = [["read", "read", (value) => `${rate(value)}/s`], ["busy", "busiest subtask", percent], ["pressed", "back-pressure", percent], ["lag", "watermark lag", duration]];
const GAP_MS = 60_000;
let span = "all";

function rescaled(change, figures) {
  const names = new Map(figures.vertices.map((vertex) => [vertex.id, vertex.name]));
  return Object.entries(change.after).filter(([id, after]) => change.before[id] !== after)
    .map(([id, after]) => `${names.get(id) || id}: ${change.before[id]} → ${after}`).join(", ");
}

function rescaleEvent(change, figures) {
  const how = change.state === "COMPLETED" ? "" : `, ${change.state.toLowerCase().replace("_", " ")}${change.reason ? `: ${change.reason}` : ""}`;
  return {
    at: change.began, kind: "rescale", isBad: change.state === "FAILED", text: `Parallelism changed${how}`, detail: rescaled(change, figures),
    tookMs: change.ended === null ? null : change.ended - change.began, tab: "graph",
  };
}

function failureEvents(failure) {
  const detail = [failure.operator || failure.task, failure.raised_at].filter(Boolean).join(", ");
  const last = { at: failure.last_ms, kind: "failure", isBad: true, text: failure.error, detail: failure.outcome ? `${detail}; ${failure.outcome}` : detail, tab: "exceptions" };
  if (failure.times === 1) return [last];
  return [{ ...last, detail: `${detail}; ${failure.times} times, the first at ${moment(failure.first_ms)}${failure.outcome ? `; ${failure.outcome}` : ""}` },
    { ...last, at: failure.first_ms, detail: `${detail}; for the first time` }];
}

/** Return the checkpoints that a job remembers, the oldest first: the last ones, and the newest savepoint and failure before them. */
function checkpointsOf(phases) {
  const { savepoint, failed } = phases?.latest || {};
  const known = [savepoint, failed, ...(phases?.history || [])].filter(Boolean);
  return [...new Map(known.map((entry) => [entry.id, entry])).values()].sort((left, right) => left.id - right.id);
}

/** Return checkpoints that failed for one reason, one after the other, as one event, and savepoints one by one. */
function checkpointEvents(checkpoints) {
  const events = [];
  let run = null;
  for (const entry of checkpoints) {
    if (entry.status !== "FAILED") {
      if (entry.status === "COMPLETED") run = null;
      if (entry.is_savepoint && entry.status === "COMPLETED") {
        events.push({
          at: entry.trigger_timestamp, kind: "savepoint", text: `Savepoint ${entry.id}`, detail: entry.external_path || "",
          tookMs: entry.end_to_end_duration, tab: "checkpoints",
        });
      }
    } else if (run && run.reason === entry.failure_message) {
      run.last = entry;
      run.times += 1;
    } else {
      run = { reason: entry.failure_message, first: entry, last: entry, times: 1 };
      events.push({ run });
    }
  }
  return events.map((event) => (event.run ? failedRun(event.run) : event));
}

function failedRun({ reason, first, last, times }) {
  const since = times > 1 ? `${plural(times, "checkpoint")} in a row, ${first.id} to ${last.id}, since ${moment(first.trigger_timestamp)}` : "";
  return {
    at: last.trigger_timestamp, kind: "checkpoint", isBad: true, text: times > 1 ? "Checkpoints failed" : `Checkpoint ${last.id} failed`,
    detail: [since, reason].filter(Boolean).join("; "), tab: "checkpoints",
  };
}

function decisionEvent(decision) {
  const changes = Object.entries(decision.changes).map(([vertex, change]) => `${vertex}: ${change}`).join(", ");
  return {
    at: decision.timestamp, kind: "autoscaler", text: `Autoscaler: ${decision.outcome}`, detail: [changes, decision.detail].filter(Boolean).join("; "),
    tookMs: decision.pauseMs || null, tab: "graph",
  };
}

/** Return what has happened to a job, the newest first. */
export function eventsOf(figures, phases) {
  const restored = phases?.latest?.restored;
  const events = [
    { at: figures.begin_ms, kind: "began", text: "The job began", detail: "", tab: "configuration" },
    restored ? { at: restored.restore_timestamp, kind: "began", text: `It went on from ${restored.is_savepoint ? "savepoint" : "checkpoint"} ${restored.id}`, detail: restored.external_path || "", tab: "checkpoints" } : null,
    figures.failures.flatMap(failureEvents),
    figures.rescales.map((change) => rescaleEvent(change, figures)),
    checkpointEvents(checkpointsOf(phases)),
    (figures.autoscaler?.decisions || []).map(decisionEvent),
    figures.has_ended ? { at: figures.end_ms, kind: "ended", isBad: figures.state === "FAILED", text: `The job is ${figures.state}`, detail: "", tab: figures.state === "FAILED" ? "exceptions" : "graph" } : null,
  ];
  return events.flat().filter((event) => event && event.at > 0).sort((left, right) => right.at - left.at);
}

function lanesOf(details, endMs) {
  return (details?.vertices || []).slice(0, MOST_LANES).map((vertex) => ({
    name: vertex.name, state: vertex.status, from: vertex["start-time"], to: vertex["end-time"] > 0 ? vertex["end-time"] : endMs,
  })).filter((lane) => lane.from > 0);
}

/** Return the figures of which at least two points are known within a time, with these points. */
function knownTrends(points, from, to) {
  const within = points.filter((point) => point.at >= from && point.at <= to);
  return TRENDS.map(([name, label, shown]) => ({ name, label, shown, known: within.filter((point) => Number.isFinite(point[name])) }))
    .filter(({ known }) => known.length > 1);
}

/** Return the lines of figures over time, each from 0 to its largest value, below one another. */
function trendLines(trends, place, top) {
  return trends.map(({ name, label, shown, known }, index) => {
    const most = Math.max(...known.map((point) => point[name]), 0), bottom = top + (index + 1) * TREND - 6;
    const broken = known.flatMap((point, at) => (at && point.at - known[at - 1].at > GAP_MS ? [{ at: point.at, [name]: null }, point] : [point]));
    return s("g", {}, s("text", { class: "lane-name", x: 0, y: bottom - 4 }, `${label}, at most ${shown(most)}`),
      s("path", { class: `trend ${name}`, d: linePath(broken.map((point) => point[name]), (at) => place(broken[at].at), (value) => bottom - (value / (most || 1)) * (TREND - 10)) },
        s("title", {}, `${label}: ${shown(known[known.length - 1][name])} at the end, at most ${shown(most)}`)));
  });
}

function drawing(events, lanes, points, from, to) {
  const place = (ms) => NAME + Math.min(Math.max((ms - from) / Math.max(to - from, 1), 0), 1) * (WIDTH - NAME - 10);
  const trends = knownTrends(points, from, to);
  const top = MARKS + lanes.length * LANE, height = top + trends.length * TREND + 20, within = events.filter((event) => event.at >= from && event.at <= to);
  const ticks = [0, 1, 2, 3, 4].map((part) => from + (part * (to - from)) / 4);
  const bad = within.filter((event) => event.isBad).length;
  return s("svg", {
    class: "timeline-drawing", viewBox: `0 0 ${WIDTH} ${height}`, role: "img",
    "aria-label": `From ${moment(from)} to ${moment(to)}: ${plural(within.length, "event")}, of them ${count(bad)} failed; the table has them`,
  },
  ticks.map((at) => s("line", { class: "axis", x1: place(at), x2: place(at), y1: 0, y2: height - 16 })),
  ticks.map((at, index) => s("text", { class: "tick", x: place(at), y: height - 4, "text-anchor": index === 4 ? "end" : index ? "middle" : "start" },
    to - from > 86_400_000 ? moment(at).slice(5, 16) : clock(at))),
  s("text", { class: "lane-name", x: 0, y: MARKS - 9 }, "the job"),
  within.slice(0, MOST_MARKS).map((event) => s("text", { class: `event-mark ${event.isBad ? "bad" : ""}`, x: place(event.at), y: MARKS - 8, "text-anchor": "middle" },
    s("title", {}, `${clock(event.at)} ${event.text}`), SIGNS[event.kind])),
  lanes.map((lane, index) => s("g", { class: `lane state-${String(lane.state).toLowerCase()}` },
    s("text", { class: "lane-name", x: 0, y: MARKS + index * LANE + 12 }, [...lane.name].length > 32 ? `${[...lane.name].slice(0, 31).join("")}…` : lane.name),
    lane.to < from ? null : s("rect", { x: place(lane.from), y: MARKS + index * LANE + 2, width: Math.max(place(lane.to) - place(lane.from), 2), height: LANE - 5, rx: 2 },
      s("title", {}, `${lane.name}: ${lane.state}, its tasks since ${moment(lane.from)}`)))),
  trendLines(trends, place, top));
}

function eventRow(event, index, hash) {
  return h("tr", { key: `event ${event.at} ${event.kind} ${index}`, class: event.isBad ? "failed" : null },
    h("th", { scope: "row", class: "moment" }, moment(event.at)),
    h("td", {}, h("span", { class: event.isBad ? "bad" : null, "aria-hidden": "true" }, `${SIGNS[event.kind]} `), h("a", { href: `${hash}/${event.tab}` }, named(event.text))),
    h("td", { class: "event-detail" }, event.detail),
    h("td", { class: "number" }, event.tookMs === null || event.tookMs === undefined ? NONE : duration(event.tookMs)));
}

export function timelineTab({ base, flink, hash, redraw }) {
  return {
    load: async () => {
      const [phases, details] = await Promise.all([readIfAny(`${base}phases`), readIfAny(flink.slice(0, -1))]);
      return { phases, details };
    },
    render: (figures, { phases, details }) => {
      const endMs = figures.has_ended ? figures.end_ms : figures.now_ms, all = eventsOf(figures, phases);
      const [, , longest] = SPANS.find(([name]) => name === span), from = Math.max(figures.begin_ms, endMs - longest);
      const shown = all.filter((event) => event.at >= from), list = `events ${figures.jid}`;
      const lanes = lanesOf(details, endMs), left = (details?.vertices || []).length - lanes.length;
      const choose = (name) => () => { span = name; redraw(); };
      return [
        h("div", { key: "spans", class: "switches", role: "group", "aria-label": "Time that is shown" }, SPANS.map(([name, label]) =>
          h("button", { type: "button", "aria-pressed": String(name === span), onclick: choose(name) }, label))),
        h("figure", { key: "drawing", class: "timeline events" },
          h("div", { class: "events-scroll", tabindex: "0", role: "region", "aria-label": "Time line" }, drawing(all, lanes, history(figures.jid), from, endMs)),
          h("figcaption", { class: "small" }, "✕ failure, ⇅ change of parallelism, ◆ savepoint, ◇ autoscaler, ▶ begin, ■ end. A bar is the time of a vertex's present tasks: each restart begins it anew. Lines are of the last hour.",
            left > 0 ? ` ${count(left)} more vertices are not drawn.` : "")),
        h("div", { key: "list", class: "scroll", tabindex: "0", role: "region", "aria-label": "Events, the newest first" },
          h("table", {}, h("caption", { class: "unseen" }, "Events, the newest first"),
            h("thead", {}, h("tr", {}, ["When", "What", "More", "Took"].map((name, index) => h("th", { scope: "col", class: index === 3 ? "number" : null }, name)))),
            h("tbody", {}, shown.length ? firstOf(shown, list, MOST_EVENTS).map((event, index) => eventRow(event, index, hash))
              : h("tr", {}, h("td", { colspan: 4, class: "empty" }, "nothing has happened in this time"))))),
        moreOf(shown, list, MOST_EVENTS),
        h("p", { key: "about", class: "small" }, "Checkpoints and failures are those that the job remembers; older ones are in the logs of ",
          h("a", { href: `${hash}/processes` }, "its processes"), "."),
      ];
    },
  };
}
