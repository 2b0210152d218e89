// The graph of a job with its figures, why it is slow, and what is beside it: one vertex with its subtasks.

import { path } from "./api.js";
import { badge, facts, h, loadBar, named } from "./dom.js";
import { bytes, count, duration, moment, NONE, percent, rate, watermark } from "./format.js";
import { foldRuns, runsOf } from "./folding.js";
import { drawGraph, graphSize, remarks } from "./graph.js";
import { hotGroups } from "./hot_keys.js";
import { flameGraph } from "./flame.js";
import { remedy } from "./operations.js";
import { firstOf, moreOf, reorder, sorted } from "./parts.js";
import { table } from "./table.js";

const SIGNS = { problem: "✕", warning: "▲", note: "ℹ" };
const ENDS = { FINISHED: "✓ it has finished: by the end of its input, or stopped with a savepoint", CANCELED: "■ it was cancelled, and has taken no savepoint" };
const look = { zoom: null, sections: "subtasks", shown: "", job: "", unfolded: new Set() };
const LEAST_ZOOM = 0.1, READABLE_ZOOM = 0.62, MOST_FINDINGS = 6, MOST_HEIGHT = 420;
const subtaskOrder = { name: "", down: true }, vertexOrder = { name: "", down: true };

function reasons(findings, figures, hash, context) {
  const list = `findings ${figures.jid}`;
  return h("section", { key: "reasons", class: "reasons", "aria-labelledby": "reasons-title" },
    h("h2", { id: "reasons-title" }, figures.has_ended ? "How did it end?" : "Why is it slow? Why is there no output?"),
    findings.length
      ? h("ul", {}, firstOf(findings, list, MOST_FINDINGS).map((finding) => h("li", { class: `finding ${finding.severity}` },
        h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[finding.severity] || "ℹ"),
        h("span", { class: "unseen" }, `${finding.severity}: `),
        h("strong", {}, finding.vertex ? h("a", { href: `${hash}/graph/${encodeURIComponent(finding.vertex)}` }, finding.title) : finding.title),
        " ", h("span", {}, finding.detail), remedy(finding, figures, context))))
      : h("p", { class: "small" }, figures.has_ended ? ENDS[figures.state] || "" : "✓ nothing holds it up: no vertex is saturated, nothing waits, the watermark moves"),
    moreOf(findings, list, MOST_FINDINGS));
}

function vertexColumns(figures, hash) {
  return [
    { name: "Vertex", sort: (vertex) => vertex.name.toLowerCase(), value: (vertex) => h("a", { href: `${hash}/graph/${encodeURIComponent(vertex.id)}` }, named(vertex.name)) },
    { name: "State", value: (vertex) => Object.entries(vertex.states).map(([state, number]) => [badge(state, `${number} ${state}`), " "]) },
    { name: "×", sort: (vertex) => vertex.parallelism, value: (vertex) => count(vertex.parallelism), number: true, title: "subtasks" },
    { name: "In/s", sort: (vertex) => vertex.records_in_per_second, value: (vertex) => rate(vertex.records_in_per_second), number: true },
    { name: "Out/s", sort: (vertex) => vertex.records_out_per_second, value: (vertex) => rate(vertex.records_out_per_second), number: true },
    { name: "In", sort: (vertex) => vertex.records_in, value: (vertex) => count(vertex.records_in), number: true, title: "records" },
    { name: "Out", sort: (vertex) => vertex.records_out, value: (vertex) => count(vertex.records_out), number: true, title: "records" },
    { name: "Busy", sort: (vertex) => vertex.busy_ms_per_second, value: (vertex) => h("span", { class: "load-cell" }, loadBar(vertex.busy_ms_per_second, vertex.back_pressured_ms_per_second), ` ${percent(vertex.busy_ms_per_second)}`), title: "the busiest subtask" },
    { name: "Back-pressure", sort: (vertex) => vertex.back_pressured_ms_per_second, value: (vertex) => percent(vertex.back_pressured_ms_per_second), number: true },
    { name: "Lag", sort: (vertex) => vertex.watermark_lag_ms, value: (vertex) => duration(vertex.watermark_lag_ms), number: true, title: "watermark behind the clock" },
    { name: "Skew", sort: (vertex) => vertex.skew?.ratio, value: (vertex) => vertex.skew ? `${vertex.skew.ratio.toFixed(2)}×` : NONE, number: true, title: "records of the busiest subtask, over the mean" },
    { name: "Late", sort: (vertex) => vertex.late_records, value: (vertex) => count(vertex.late_records), number: true },
    { name: "Dropped", sort: (vertex) => vertex.dropped_records, value: (vertex) => count(vertex.dropped_records), number: true },
    { name: "Remarks", value: (vertex) => remarks(vertex, figures).map(([sign, word]) => h("span", { class: "remark" }, `${sign} ${word} `)) },
  ];
}

function subtaskColumns(places) {
  const place = (subtask) => places.get(subtask.subtask);
  return [
    { name: "Subtask", sort: (subtask) => subtask.subtask, value: (subtask) => String(subtask.subtask), number: true },
    { name: "State", sort: (subtask) => subtask.state, value: (subtask) => badge(subtask.state) },
    { name: "Attempt", sort: (subtask) => subtask.attempt, value: (subtask) => String(subtask.attempt), number: true },
    { name: "In/s", sort: (subtask) => subtask.records_in_per_second, value: (subtask) => rate(subtask.records_in_per_second), number: true },
    { name: "Out/s", sort: (subtask) => subtask.records_out_per_second, value: (subtask) => rate(subtask.records_out_per_second), number: true },
    { name: "In", sort: (subtask) => subtask.records_in, value: (subtask) => count(subtask.records_in), number: true },
    { name: "Out", sort: (subtask) => subtask.records_out, value: (subtask) => count(subtask.records_out), number: true },
    { name: "Bytes in", sort: (subtask) => subtask.bytes_in, value: (subtask) => bytes(subtask.bytes_in), number: true },
    { name: "Busy", sort: (subtask) => subtask.busy_ms_per_second, value: (subtask) => h("span", { class: "load-cell" }, loadBar(subtask.busy_ms_per_second, subtask.back_pressured_ms_per_second), ` ${percent(subtask.busy_ms_per_second)}`) },
    { name: "Back-pressure", sort: (subtask) => subtask.back_pressured_ms_per_second, value: (subtask) => percent(subtask.back_pressured_ms_per_second), number: true },
    { name: "Watermark", value: (subtask) => watermark(subtask.watermark_ms) },
    { name: "Began", value: (subtask) => moment(subtask.begin_ms) },
    {
      name: "Process", value: (subtask) => place(subtask)
        ? h("a", { href: path`#/taskmanagers/${place(subtask).id}/log` }, place(subtask).text)
        : subtask.host ? `${subtask.host}:${subtask.pid}` : NONE,
    },
    {
      name: "Waits for", value: (subtask) => subtask.stalled
        ? h("span", { class: "bad" }, `⏸ ${subtask.stalled.operator} for ${duration(subtask.stalled.ms)} ${subtask.stalled.at || ""}`)
        : subtask.waits.map((wait) => `${wait.for} ${duration(wait.ms)}`).join(", "),
    },
  ];
}

function operatorParts(part) {
  return part.operators.map((operator) => h("div", { key: operator.id },
    h("h4", {}, named(operator.name)),
    table({
      caption: `Watermarks of ${operator.name}`, key: (subtask) => String(subtask.subtask), rows: operator.subtasks, columns: [
        { name: "Subtask", value: (subtask) => String(subtask.subtask), number: true },
        { name: "In", value: (subtask) => count(subtask.records_in), number: true },
        { name: "Out", value: (subtask) => count(subtask.records_out), number: true },
        { name: "Watermark in", value: (subtask) => watermark(subtask.input_watermark_ms) },
        { name: "Watermark out", value: (subtask) => watermark(subtask.output_watermark_ms) },
      ],
    }),
    operator.splits.length ? table({
      caption: `Splits of ${operator.name}`, key: (split) => `${split.subtask} ${split.split}`, rows: operator.splits, columns: [
        { name: "Split", value: (split) => named(split.split) }, { name: "Subtask", value: (split) => String(split.subtask), number: true },
        { name: "Watermark", value: (split) => watermark(split.watermark_ms) }, { name: "Idle", value: (split) => split.is_idle ? "idle" : "no" },
      ],
    }) : null,
    h("details", {}, h("summary", {}, `${operator.metrics.length} metrics`), table({
      caption: `Metrics of ${operator.name}`, key: (metric) => metric.name, rows: operator.metrics, columns: [
        { name: "Metric", value: (metric) => named(metric.name) },
        { name: "Sum", value: (metric) => metric.sum === null ? text(metric.value) : figure(metric.sum), number: true },
        { name: "Min", value: (metric) => figure(metric.min), number: true }, { name: "Max", value: (metric) => figure(metric.max), number: true },
      ],
    }))));
}

function figure(value) {
  return value === null || value === undefined ? "" : Number.isInteger(value) ? count(value) : rate(value);
}

function text(value) {
  return value === null || value === undefined ? NONE : typeof value === "object" ? JSON.stringify(value) : String(value);
}

function accumulatorRows(accumulators) {
  return accumulators?.["user-accumulators"] || [];
}

function vertexPanel(vertex, figures, part, hash, redraw) {
  const places = new Map((part.subtasks?.subtasks || []).map((subtask) => [subtask.subtask, {
    id: subtask["taskmanager-id"], text: subtask.endpoint || subtask.host || subtask["taskmanager-id"],
  }]).filter(([, place]) => place.id && place.id !== "(unassigned)"));
  const own = accumulatorRows(part.accumulators), columns = subtaskColumns(places);
  const choose = (name) => () => {
    look.sections = name;
    redraw();
  };
  const sections = [["subtasks", `Subtasks (${vertex.parallelism})`], ["operators", "Operators, watermarks, metrics"], ["accumulators", `Accumulators (${own.length})`], ["flame", "Flame graph"]];
  return h("section", { key: `panel-${vertex.id}`, class: "panel", "aria-labelledby": "panel-title" },
    h("div", { class: "head" }, h("h3", { id: "panel-title" }, named(vertex.name)),
      h("a", { class: "button", href: `${hash}/graph` }, "Close", h("span", { "aria-hidden": "true" }, " ✕"))),
    facts([
      ["Subtasks", `${vertex.parallelism} of at most ${vertex.max_parallelism ?? NONE}`], ["Slot group", vertex.slot_sharing_group || NONE],
      ["Records", `${count(vertex.records_in)} in, ${count(vertex.records_out)} out`], ["Late", count(vertex.late_records)], ["Dropped", count(vertex.dropped_records)],
      ["Skew", vertex.skew ? `subtask ${vertex.skew.subtask} has ${Math.round(vertex.skew.share * 100)} % (${vertex.skew.ratio.toFixed(2)}× the mean)` : NONE],
      ["Key groups", hotGroups(vertex.hot)],
      ["Watermark", watermark(vertex.watermark_ms)],
    ]),
    h("ul", { class: "lines" }, vertex.operators.map((operator) => h("li", {}, named(operator.name),
      operator.uid ? h("span", { class: "small" }, ` uid ${operator.uid}`) : null,
      operator.line ? h("code", { class: "line" }, operator.line) : null))),
    h("div", { class: "switches", role: "group", "aria-label": "Parts of the vertex" }, sections.map(([name, label]) => h("button", {
      type: "button", "aria-pressed": String(look.sections === name), onclick: choose(name),
    }, label))),
    look.sections === "subtasks" ? table({
      caption: `Subtasks of ${vertex.name}`, key: (subtask) => String(subtask.subtask), columns, rows: sorted(vertex.subtasks, columns, subtaskOrder),
      sorted: subtaskOrder, onsort: (name) => reorder(subtaskOrder, name, redraw),
      rowClass: (subtask) => vertex.skew && vertex.skew.ratio >= 1.5 && vertex.skew.subtask === subtask.subtask ? "hot" : null,
    }) : null,
    look.sections === "operators" ? operatorParts(part.vertex || { operators: [] }) : null,
    look.sections === "accumulators" ? table({
      caption: "Accumulators", key: (row) => row.name, rows: own, empty: "no subtask has given a value yet",
      columns: [{ name: "Name", value: (row) => named(row.name) }, { name: "Type", value: (row) => row.type }, { name: "Value", value: (row) => row.value }],
    }) : null,
    look.sections === "flame" ? flameGraph(part.flame, redraw) : null);
}

const ZOOMS = [0.12, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 1.25, 1.6];

/** Return the button that opens all runs of vertices that are drawn as one, or draws them so again; null: there are none. */
function foldButton(figures, isFolded, redraw) {
  const runs = runsOf(figures);
  if (!runs.length) return null;
  const turn = () => {
    look.unfolded = new Set(isFolded ? runs.map((run) => run[0]) : []);
    redraw();
  };
  return h("button", { type: "button", onclick: turn }, isFolded ? "Unfold" : "Fold");
}

function zoomButtons(zoom, fold, redraw) {
  const set = (value) => () => {
    look.zoom = value;
    redraw();
  };
  const nearest = ZOOMS.reduce((best, step, index) => (Math.abs(step - zoom) < Math.abs(ZOOMS[best] - zoom) ? index : best), 0);
  return h("div", { class: "zoom", role: "group", "aria-label": "Size of the graph" }, fold,
    h("button", { type: "button", "aria-label": "Smaller", onclick: set(ZOOMS[Math.max(nearest - 1, 0)]) }, "−"),
    h("button", { type: "button", onclick: set("all") }, "Fit"),
    h("button", { type: "button", "aria-label": "Larger", onclick: set(ZOOMS[Math.min(nearest + 1, ZOOMS.length - 1)]) }, "+"));
}

/** Scroll a drawing that has not room enough to the vertex that is open, or to the first source. */
function showVertex() {
  const room = document.querySelector(".graph-scroll"), shown = room?.querySelector(".vertex.selected") || room?.querySelector(".vertex");
  if (!shown) return;
  const inside = room.getBoundingClientRect(), box = shown.getBoundingClientRect();
  if (box.bottom > inside.bottom || box.top < inside.top) room.scrollTop += box.top - inside.top - inside.height / 2;
  if (box.right > inside.right || box.left < inside.left) room.scrollLeft += box.left - inside.left - inside.width / 2;
}

function legend() {
  return h("ul", { class: "legend small" },
    h("li", {}, h("span", { class: "swatch busy" }), "busy"), h("li", {}, h("span", { class: "swatch pressed" }), "‖ waits for room (back-pressure)"),
    h("li", {}, h("span", { class: "swatch idle" }), "idle"), h("li", {}, "▲ bottleneck"), h("li", {}, "◢ skew of keys"), h("li", {}, "◷ late records"),
    h("li", {}, "line: thicker is more records, dashed is held up"));
}

export function graphTab(context) {
  const { rest, base, flink, hash, redraw, go, announce, query } = context;
  if (query.get("show")) look.sections = query.get("show");
  return {
    load: async ({ read, readIfAny }) => {
      const [found, vertex, subtasks, accumulators, flame] = await Promise.all([
        read(`${base}findings`),
        rest && look.sections === "operators" ? readIfAny(base + path`live/vertices/${rest}`) : null,
        rest && look.sections === "subtasks" ? readIfAny(flink + path`vertices/${rest}`) : null,
        rest ? readIfAny(flink + path`vertices/${rest}/accumulators`) : null,
        rest && look.sections === "flame" ? readIfAny(flink + path`vertices/${rest}/flamegraph?type=FULL`) : null,
      ]);
      return { ...found, vertex, subtasks, accumulators, flame };
    },
    render: (figures, part) => {
      const vertex = figures.vertices.find((candidate) => candidate.id === rest && candidate.subtasks);
      if (look.shown !== rest) {
        look.shown = rest;
        if (vertex) {
          requestAnimationFrame(showVertex);
          announce(`subtasks of ${vertex.name} are shown below the graph`);
          requestAnimationFrame(() => document.getElementById("panel-title")?.scrollIntoView({ block: "nearest" }));
        }
      }
      const room = document.getElementById("main").clientWidth - 60;
      if (look.job !== figures.jid) {
        [look.job, look.zoom, look.unfolded] = [figures.jid, null, new Set()];
        requestAnimationFrame(showVertex);
      }
      const drawn = foldRuns(figures, (run) => look.unfolded.has(run[0]) || run.includes(rest)), isFolded = drawn !== figures;
      const size = graphSize(drawn), fitting = Math.min(1, room / size.width), whole = Math.min(fitting, MOST_HEIGHT / size.height);
      const zoom = look.zoom === "all" ? Math.max(whole, LEAST_ZOOM) : look.zoom || Math.max(fitting, READABLE_ZOOM);
      const unfold = (run) => {
        look.unfolded.add(run.slice("run ".length));
        redraw();
      };
      const toggle = (vertexId) => vertexId.startsWith("run ") ? unfold(vertexId) : go(vertexId === rest ? `${hash}/graph` : `${hash}/graph/${encodeURIComponent(vertexId)}`);
      const columns = vertexColumns(figures, hash);
      return [
        reasons(part.findings, figures, hash, context),
        h("div", { key: "drawing", class: "drawing" },
          zoomButtons(zoom, foldButton(figures, isFolded, redraw), redraw),
          h("div", { class: "scroll graph-scroll", tabindex: "0", role: "region", "aria-label": "Job graph" },
            drawGraph(drawn, { selected: rest, onselect: toggle, zoom })),
          legend()),
        vertex ? vertexPanel(vertex, figures, part, hash, () => { redraw(); }) : null,
        table({
          caption: "Vertices of the job", columns, rows: sorted(figures.vertices, columns, vertexOrder), key: (row) => row.id,
          sorted: vertexOrder, onsort: (name) => reorder(vertexOrder, name, redraw),
          rowClass: (row) => row.id === rest ? "chosen" : null,
        }),
        figures.autoscaler ? autoscalerPart(figures.autoscaler) : null,
      ];
    },
  };
}

function autoscalerPart(autoscaler) {
  const changes = (decision) => Object.entries(decision.changes).map(([vertex, change]) => `${vertex}: ${change}`).join("; ");
  return h("section", { key: "autoscaler", "aria-labelledby": "autoscaler-title" },
    h("h2", { id: "autoscaler-title" }, "Autoscaler ", h("span", { class: "small" }, autoscaler.acts ? "it acts" : "it only says what it would do")),
    facts([
      autoscaler.reason ? ["Now", autoscaler.reason] : null, ["Backlog", autoscaler.backlog ? "yes" : "no"],
      ["Restart", duration(autoscaler.restartMs)], ["Rescaled", count(autoscaler.scalings)],
    ]),
    autoscaler.vertices.length ? table({
      caption: "What the autoscaler wants", rows: autoscaler.vertices, key: (vertex) => vertex.id, columns: [
        { name: "Vertex", value: (vertex) => named(vertex.name) }, { name: "Now", value: (vertex) => count(vertex.parallelism), number: true },
        { name: "Wanted", value: (vertex) => vertex.wanted === vertex.parallelism ? count(vertex.wanted) : h("strong", {}, `→ ${vertex.wanted}`), number: true },
        { name: "Load", value: (vertex) => vertex.load === null ? NONE : `${Math.round(vertex.load * 100)} %`, number: true },
        { name: "True rate", value: (vertex) => rate(vertex.trueProcessingRate), number: true, title: "records a second that it could process" },
        { name: "Target rate", value: (vertex) => rate(vertex.targetDataRate), number: true }, { name: "Lag", value: (vertex) => rate(vertex.lag), number: true, title: "records that wait at its source" },
        { name: "Reason", value: (vertex) => vertex.reason },
      ],
    }) : null,
    autoscaler.decisions.length ? table({
      caption: "Decisions of the autoscaler", rows: [...autoscaler.decisions].reverse().slice(0, 20), key: (decision) => `${decision.timestamp} ${decision.outcome}`, columns: [
        { name: "When", value: (decision) => moment(decision.timestamp) }, { name: "Change", value: changes }, { name: "Outcome", value: (decision) => decision.outcome },
        { name: "Pause", value: (decision) => duration(decision.pauseMs), number: true }, { name: "Detail", value: (decision) => decision.detail },
      ],
    }) : null);
}
