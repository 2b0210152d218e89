// The checkpoints of a job: a line for each, with the phases of its slowest vertex, down to subtasks.

import { path, readIfAny } from "./api.js";
import { badge, facts, h, s } from "./dom.js";
import { bytes, clock, count, duration, moment, NONE } from "./format.js";
import { firstOf, moreOf } from "./parts.js";
import { table } from "./table.js";

const PHASES = [["start_delay", "start delay"], ["alignment", "alignment"], ["sync", "sync"], ["async", "async"], ["rest", "acknowledge and publish"]];
const MOST_LISTED = 50, MOST_DRAWN = 100;
const open = new Map();

function phasesOf(slowest, total) {
  if (!slowest) return null;
  const parts = { start_delay: slowest.start_delay, alignment: slowest.alignment, sync: slowest.sync, async: slowest.async };
  const known = Object.values(parts).reduce((sum, value) => sum + value, 0);
  return { ...parts, rest: Math.max(total - known, 0) };
}

function text(parts) {
  return PHASES.filter(([name]) => parts[name]).map(([name, label]) => `${label} ${duration(parts[name])}`).join(", ");
}

function phaseBar(parts, scale, label) {
  if (!parts) return h("span", { class: "small" }, NONE);
  const width = 320;
  let at = 0;
  const bars = PHASES.map(([name]) => {
    const length = (parts[name] / scale) * width, bar = s("rect", { class: `phase ${name}`, x: at, width: Math.max(length, 0), height: 14, y: 1 });
    at += length;
    return bar;
  });
  return s("svg", { class: "phases", viewBox: `0 0 ${width} 16`, width, height: 16, role: "img", "aria-label": `${label}: ${text(parts)}` },
    s("title", {}, text(parts) || "0 ms"), bars);
}

function legend() {
  return h("ul", { class: "legend small" }, PHASES.map(([name, label]) => h("li", {}, h("span", { class: `swatch ${name}` }), label)));
}

function slowestOf(entry) {
  return entry.vertices.reduce((worst, vertex) =>
    vertex.slowest && (!worst || vertex.slowest.end_to_end_duration > worst.slowest.end_to_end_duration) ? vertex : worst, null);
}

function kind(entry) {
  const words = entry.is_savepoint ? (entry.checkpoint_type === "SYNC_SAVEPOINT" ? "savepoint, at a stop" : "savepoint") : "checkpoint";
  return entry.unaligned ? `${words}, unaligned` : words;
}

function subtaskTable(id, vertex, details) {
  if (!details) return h("p", { class: "loading" }, "loading");
  const rows = details.subtasks || [];
  return table({
    caption: `Subtasks at checkpoint ${id}`, key: (row) => String(row.index), rows, columns: [
      { name: "Subtask", value: (row) => String(row.index), number: true }, { name: "State", value: (row) => badge(String(row.status).toUpperCase()) },
      { name: "Acknowledged", value: (row) => row.ack_timestamp ? clock(row.ack_timestamp) : NONE },
      { name: "End to end", value: (row) => duration(row.end_to_end_duration), number: true },
      { name: "Start delay", value: (row) => duration(row.start_delay), number: true },
      { name: "Alignment", value: (row) => duration(row.alignment?.duration), number: true },
      { name: "Sync", value: (row) => duration(row.checkpoint?.sync), number: true }, { name: "Async", value: (row) => duration(row.checkpoint?.async), number: true },
      { name: "Written", value: (row) => bytes(row.checkpointed_size), number: true }, { name: "State", value: (row) => bytes(row.state_size), number: true },
      { name: "In flight", value: (row) => bytes(row.alignment?.persisted), number: true },
    ],
  });
}

function vertexRows(entry, figures, scale, own, toggle) {
  const names = new Map(figures.vertices.map((vertex) => [vertex.id, vertex.name]));
  return entry.vertices.map((vertex) => {
    const name = names.get(vertex.id) || vertex.id, isOpen = own.vertex === vertex.id;
    return [h("tr", { key: `${entry.id} ${vertex.id}`, class: "inner" },
      h("th", { scope: "row" }, h("button", { type: "button", class: "expander", "aria-expanded": String(isOpen), onclick: () => toggle(vertex.id) },
        h("span", { "aria-hidden": "true" }, isOpen ? "▾ " : "▸ "), h("bdi", {}, name))),
      h("td", {}, badge(vertex.status)), h("td", {}, vertex.pending.length ? `waits for subtask ${vertex.pending.slice(0, 8).join(", ")}` : ""),
      h("td", { class: "number" }, `${vertex.acknowledged}/${vertex.subtasks}`), h("td", { class: "number" }, vertex.end_to_end_duration >= 0 ? duration(vertex.end_to_end_duration) : NONE),
      h("td", {}, phaseBar(phasesOf(vertex.slowest, vertex.slowest?.end_to_end_duration ?? 0), scale, name)),
      h("td", { class: "number" }, bytes(vertex.checkpointed_size)), h("td", { class: "number" }, bytes(vertex.state_size)), h("td", { class: "number" }, bytes(vertex.persisted_data))),
    isOpen ? h("tr", { key: `${entry.id} ${vertex.id} subtasks`, class: "inner" }, h("td", { colspan: 9 }, subtaskTable(entry.id, vertex, own.details))) : null];
  });
}

function row(entry, figures, scale, flink, redraw) {
  const own = open.get(entry.id), worst = slowestOf(entry);
  const toggle = () => {
    if (own) open.delete(entry.id);
    else open.set(entry.id, { vertex: null, details: null });
    redraw();
  };
  const toggleVertex = async (vertexId) => {
    const state = open.get(entry.id);
    state.vertex = state.vertex === vertexId ? null : vertexId;
    state.details = null;
    redraw();
    if (state.vertex) {
      state.details = await readIfAny(flink + path`checkpoints/details/${entry.id}/subtasks/${vertexId}`) || { subtasks: [] };
      redraw();
    }
  };
  return [h("tr", { key: `checkpoint ${entry.id}`, class: entry.status === "FAILED" ? "failed" : null },
    h("th", { scope: "row" }, h("button", { type: "button", class: "expander", "aria-expanded": String(Boolean(own)), onclick: toggle },
      h("span", { "aria-hidden": "true" }, own ? "▾ " : "▸ "), `${entry.id}`)),
    h("td", {}, badge(entry.status)),
    h("td", {}, `${moment(entry.trigger_timestamp)} `, h("span", { class: "small" }, kind(entry))),
    h("td", { class: "number" }, `${entry.num_acknowledged_subtasks}/${entry.num_subtasks}`),
    h("td", { class: "number" }, duration(entry.end_to_end_duration)),
    h("td", {}, entry.status === "FAILED" && !worst ? "" : phaseBar(worst && phasesOf(worst.slowest, Math.max(entry.end_to_end_duration, 0)), scale, `Checkpoint ${entry.id}`)),
    h("td", { class: "number" }, bytes(entry.checkpointed_size)), h("td", { class: "number" }, bytes(entry.state_size)), h("td", { class: "number" }, bytes(entry.persisted_data))),
  entry.failure_message ? h("tr", { key: `reason ${entry.id}`, class: "failed" }, h("td", { colspan: 9 }, h("span", { class: "bad" }, "✕ "), entry.failure_message)) : null,
  own ? vertexRows(entry, figures, scale, own, toggleVertex) : null,
  own && entry.external_path ? h("tr", { key: `path ${entry.id}`, class: "inner" }, h("td", { colspan: 9 }, h("code", {}, entry.external_path), entry.discarded ? " (deleted since)" : "")) : null];
}

const SPREAD = [["end_to_end_duration", "Duration", duration], ["checkpointed_size", "Written", bytes], ["state_size", "State size", bytes], ["persisted_data", "In flight", bytes]];
const QUANTILES = [["min", "Min"], ["avg", "Mean"], ["p50", "p50"], ["p90", "p90"], ["p99", "p99"], ["max", "Max"]];

function spread(summary) {
  return h("details", { key: "spread" }, h("summary", {}, "All completed checkpoints"), table({
    caption: "Figures of all completed checkpoints", rows: SPREAD.filter(([name]) => summary[name]), key: ([name]) => name, columns: [
      { name: "Figure", value: ([, label]) => label },
      ...QUANTILES.map(([name, label]) => ({ name: label, value: ([of, , shown]) => shown(summary[of][name]), number: true })),
    ],
  }));
}

function timeline(history) {
  const known = history.filter((entry) => entry.trigger_timestamp > 0).slice(0, MOST_DRAWN);
  if (known.length < 2) return null;
  const first = Math.min(...known.map((entry) => entry.trigger_timestamp)), last = Math.max(...known.map((entry) => entry.trigger_timestamp + Math.max(entry.end_to_end_duration, 0)));
  const width = 1000, height = 54, span = last - first || 1, most = Math.max(...known.map((entry) => entry.end_to_end_duration), 1);
  const place = (ms) => 4 + ((ms - first) / span) * (width - 24);
  return h("figure", { class: "timeline" }, s("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", preserveAspectRatio: "none",
    "aria-label": `Checkpoints from ${clock(first)} to ${clock(last)}; the longest took ${duration(most)}`,
  },
  s("line", { class: "axis", x1: 0, x2: width, y1: height - 6, y2: height - 6 }),
  known.map((entry) => {
    const x = place(entry.trigger_timestamp), tall = Math.max(4, (Math.max(entry.end_to_end_duration, 0) / most) * (height - 14));
    return s("g", { class: `mark state-${entry.status.toLowerCase().replace("_", "-")}${entry.is_savepoint ? " savepoint" : ""}` },
      s("title", {}, `${entry.id}: ${entry.status}, ${duration(entry.end_to_end_duration)}`),
      s("rect", { x, y: height - 6 - tall, width: 10, height: tall, rx: 1 }));
  })),
  h("figcaption", { class: "small" }, h("span", {}, clock(first)), h("span", {}, known.length < history.length ? `the newest ${count(known.length)}; ` : "", "height: duration; filled: completed, hatched: failed, outlined: under way"), h("span", {}, clock(last))));
}

export function checkpointsTab({ base, flink, redraw }) {
  return {
    load: async () => {
      const [phases, config] = await Promise.all([readIfAny(`${base}phases`), readIfAny(`${flink}checkpoints/config`)]);
      return { phases: phases || { history: [] }, config };
    },
    render: (figures, { phases, config }) => {
      const counts = phases.counts || {}, latest = phases.latest || {}, summary = phases.summary || {};
      const scale = Math.max(...phases.history.map((entry) => Math.max(entry.end_to_end_duration, 0)), 1);
      const list = `checkpoints ${figures.jid}`;
      const names = ["Checkpoint", "State", "Triggered", "Acknowledged", "Duration", "Phases of the slowest subtask", "Written", "State size", "In flight"];
      return [
        phases.not_triggered ? h("p", { key: "due", class: "finding warning" }, h("span", { class: "sign", "aria-hidden": "true" }, "▲"), `The checkpoint that is due cannot be triggered: ${phases.not_triggered}`) : null,
        facts([
          ["Triggered", count(counts.total)], ["Completed", count(counts.completed)], ["Under way", count(counts.in_progress)],
          ["Failed", counts.failed ? h("span", { class: "bad" }, `✕ ${count(counts.failed)}`) : "0"], ["Restored", count(counts.restored)],
          config ? ["Interval", config.interval > 0 && config.interval < 1e15 ? duration(config.interval) : "none"] : null, config ? ["Timeout", duration(config.timeout)] : null,
          config ? ["Mode", `${String(config.mode).replaceAll("_", " ")}${config.unaligned_checkpoints ? ", unaligned" : ""}`] : null,
          config ? ["Backend", config.state_backend || NONE] : null,
          summary.end_to_end_duration ? ["Duration", `p50 ${duration(summary.end_to_end_duration.p50)}, p99 ${duration(summary.end_to_end_duration.p99)}`] : null,
          latest.restored ? ["Began from", `${latest.restored.is_savepoint ? "savepoint" : "checkpoint"} ${latest.restored.id}, ${moment(latest.restored.restore_timestamp)}`] : null,
          latest.savepoint ? ["Last savepoint", h("code", {}, latest.savepoint.external_path || String(latest.savepoint.id))] : null,
        ]),
        timeline(phases.history),
        legend(),
        h("div", { key: "list", class: "scroll", tabindex: "0", role: "region", "aria-label": "Checkpoints, the newest first" },
          h("table", {}, h("caption", { class: "unseen" }, "Checkpoints, the newest first"),
            h("thead", {}, h("tr", {}, names.map((name, index) => h("th", { scope: "col", class: [3, 4, 6, 7, 8].includes(index) ? "number" : null }, name)))),
            h("tbody", {}, phases.history.length ? firstOf(phases.history, list, MOST_LISTED).map((entry) => row(entry, figures, scale, flink, redraw))
              : h("tr", {}, h("td", { colspan: 9, class: "empty" }, "no checkpoint was triggered yet; set execution.checkpointing.interval"))))),
        moreOf(phases.history, list, MOST_LISTED),
        summary.end_to_end_duration ? spread(summary) : null,
      ];
    },
  };
}
