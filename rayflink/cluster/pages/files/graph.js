// The job graph: boxes with load, lag and skew, and edges with their rates.

import { s } from "./dom.js";
import { duration, percent, rate } from "./format.js";
import { layered } from "./layout.js";

const BOX = { width: 212, height: 108 }, GAP = { x: 96, y: 22 }, MARGIN = 10;
const NEAR = 0.45;
export const PRESSED = 100, HIGHLY_PRESSED = 500, BUSY = 800, SKEWED = 1.5;

/** Return how strongly a vertex waits for its consumers, in a word. */
export function pressure(vertex) {
  const waited = vertex.back_pressured_ms_per_second || 0;
  return waited >= HIGHLY_PRESSED ? "high" : waited >= PRESSED ? "low" : "ok";
}

/** Return what is remarkable about a vertex: [sign, word, class]. */
export function remarks(vertex, figures) {
  if (vertex.remarks) return vertex.remarks;
  const signs = [];
  const waits = pressure(vertex);
  if (waits !== "ok") signs.push(["‖", `back-pressured ${percent(vertex.back_pressured_ms_per_second)}`, "pressed"]);
  if (isBottleneck(vertex, figures)) signs.push(["▲", "bottleneck", "bottleneck"]);
  else if ((vertex.busy_ms_per_second || 0) >= BUSY) signs.push(["▲", "busy", "busy"]);
  if (vertex.skew && vertex.skew.ratio >= SKEWED) signs.push(["◢", `skew ${vertex.skew.ratio.toFixed(1)}×`, "skew"]);
  if (vertex.late_records) signs.push(["◷", `${rate(vertex.late_records)} late`, "late"]);
  if (vertex.dropped_records) signs.push(["⌫", `${rate(vertex.dropped_records)} dropped`, "late"]);
  if (vertex.stalled_subtasks) signs.push(["⏸", "stalled", "bottleneck"]);
  return signs;
}

function isBottleneck(vertex, figures) {
  if (pressure(vertex) !== "ok") return false;
  const byId = new Map(figures.vertices.map((other) => [other.id, other]));
  return figures.edges.some((edge) => edge.to === vertex.id && byId.get(edge.from) && pressure(byId.get(edge.from)) !== "ok");
}

function lines(name, most, count) {
  const words = name.split(/(?<=\s|->)/), shown = [""];
  for (const word of words) {
    if ((shown[shown.length - 1] + word).trim().length > most && shown[shown.length - 1]) shown.push("");
    shown[shown.length - 1] += word;
  }
  const cut = shown.slice(0, count).map((line) => [...line.trim()]);
  return cut.map((line, index) => {
    const more = line.length > most || (index === count - 1 && shown.length > count);
    return more ? `${line.slice(0, most - 1).join("")}…` : line.join("");
  });
}

/** Return a sentence on a vertex, for those who do not see the graph. */
export function vertexText(vertex, figures) {
  const parts = [
    vertex.name, `${vertex.parallelism} subtasks`,
    `${rate(vertex.records_in_per_second)} records in and ${rate(vertex.records_out_per_second)} out a second`,
    `busy ${percent(vertex.busy_ms_per_second)}`,
  ];
  if (vertex.watermark_lag_ms !== null) parts.push(`watermark lag ${duration(vertex.watermark_lag_ms)}`);
  return [...parts, ...remarks(vertex, figures).map(([, word]) => word)].join(", ");
}

/** Return what a box contains that is seen from afar: its name in large letters, its load, and its first sign. */
function farParts(vertex, busy, pressed, signs, zoom) {
  const inner = BOX.width - 20, [sign] = signs, size = Math.round(Math.min(Math.max(9 / zoom, 24), 42)), rows = size > 30 ? 1 : 2;
  return [
    lines(vertex.name, Math.floor(inner / (0.62 * size)), rows).map((line, index) =>
      s("text", { class: "vertex-far", "font-size": size, x: 12, y: (rows === 1 ? 52 : 30) + index * 30 }, line)),
    s("text", { class: "vertex-far", "font-size": 30, x: BOX.width - 6, y: 97, "text-anchor": "end" }, sign ? sign[0] : ""),
    loadRects(inner - 30, 78, 16, busy, pressed),
  ];
}

function loadRects(width, y, height, busy, pressed) {
  return [
    s("rect", { class: "load-idle", x: 12, y, width, height, rx: 2 }), s("rect", { class: "load-busy", x: 12, y, width: width * busy, height }),
    s("rect", { class: "load-pressed", x: 12 + width * busy, y, width: width * Math.max(pressed, 0), height }),
  ];
}

function nearParts(vertex, states, state, busy, pressed, signs) {
  const title = lines(vertex.name, 27, 2), inner = BOX.width - 20;
  return [
    title.map((line, index) => s("text", { class: "vertex-name", x: 12, y: (title.length === 1 ? 26 : 19) + index * 15 }, line)),
    s("text", { class: "vertex-figure", x: 12, y: 54 },
      `in ${rate(vertex.records_in_per_second)}/s   out ${rate(vertex.records_out_per_second)}/s`),
    s("text", { class: "vertex-parallelism", x: BOX.width - 10, y: 54, "text-anchor": "end" }, `×${vertex.parallelism}`),
    loadRects(inner, 62, 7, busy, pressed),
    s("text", { class: "vertex-figure", x: 12, y: 83 },
      states.length === 1 && state === "RUNNING"
        ? `busy ${percent(vertex.busy_ms_per_second)}`
        : Object.entries(vertex.states).map(([name, number]) => `${number} ${name}`).join(" ")),
    vertex.watermark_lag_ms === null ? null
      : s("text", { class: "vertex-figure", x: BOX.width - 10, y: 83, "text-anchor": "end" }, `lag ${duration(vertex.watermark_lag_ms)}`),
    s("text", { class: "vertex-sign", x: 12, y: 101 }, signs.map(([sign, word]) => `${sign} ${word}`).join("   ")),
  ];
}

function vertexBox(vertex, place, figures, selected, onselect, zoom) {
  const states = Object.keys(vertex.states);
  const state = states.length === 1 ? states[0] : states.includes("FAILED") ? "FAILED" : states.includes("RUNNING") ? "RUNNING" : states[0];
  const busy = Math.min((vertex.busy_ms_per_second || 0) / 1000, 1);
  const pressed = Math.min((vertex.back_pressured_ms_per_second || 0) / 1000, 1 - busy);
  const open = () => onselect(vertex.id);
  const signs = remarks(vertex, figures).slice(0, 2);
  const classes = ["vertex", `state-${String(state).toLowerCase()}`];
  if (signs.length) classes.push(`is-${signs[0][2]}`);
  if (selected) classes.push("selected");
  if (vertex.members) classes.push("folded");
  return s("g", {
    key: vertex.id, class: classes.join(" "), transform: `translate(${place.x},${place.y})`, tabindex: 0, role: "button",
    "aria-label": vertexText(vertex, figures), "aria-pressed": String(Boolean(selected)), onclick: open,
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open();
      }
    },
  },
  s("title", {}, vertex.name),
  vertex.members ? s("rect", { class: "box", x: 5, y: 5, width: BOX.width, height: BOX.height, rx: 6 }) : null,
  s("rect", { class: "box", width: BOX.width, height: BOX.height, rx: 6 }),
  s("rect", { class: "edge-mark", width: 4, height: BOX.height - 12, y: 6, x: 0, rx: 2 }),
  zoom >= NEAR ? nearParts(vertex, states, state, busy, pressed, signs) : farParts(vertex, busy, pressed, signs, zoom));
}

function curve(points) {
  let path = `M${points[0].x},${points[0].y}`;
  for (let index = 1; index < points.length; index += 1) {
    const from = points[index - 1], to = points[index], bend = (to.x - from.x) / 2;
    path += `C${from.x + bend},${from.y} ${to.x - bend},${to.y} ${to.x},${to.y}`;
  }
  return path;
}

let laid = { shape: "", plan: null };

/** Return the edges of a job's graph, and the places of its vertices, which stay as long as its shape does. */
function planOf(figures) {
  const index = new Map(figures.vertices.map((vertex, number) => [vertex.id, number]));
  const edges = figures.edges.filter((edge) => index.has(edge.from) && index.has(edge.to));
  const pairs = edges.map((edge) => [index.get(edge.from), index.get(edge.to)]);
  const shape = `${figures.vertices.length} ${pairs.join(" ")}`;
  if (laid.shape !== shape) laid = { shape, plan: layered(figures.vertices.length, pairs, BOX, GAP) };
  return { index, edges, plan: laid.plan };
}

/** Return the drawing of a job's graph; `zoom` is 1 where it has its own size. */
export function drawGraph(figures, { selected, onselect, zoom }) {
  const { index, edges, plan } = planOf(figures), isNear = zoom >= NEAR;
  const width = plan.width + 2 * MARGIN, height = plan.height + 2 * MARGIN;
  const most = Math.max(...edges.map((edge) => edge.records_per_second || 0), 1);
  const drawn = edges.map((edge, number) => {
    const points = plan.paths[number], last = points[points.length - 1], before = points[points.length - 2];
    const producer = figures.vertices[index.get(edge.from)], level = pressure(producer.members ? producer.members.at(-1) : producer);
    const thickness = 1.2 + 4 * Math.sqrt((edge.records_per_second || 0) / most);
    return s("g", { key: `${edge.from}-${edge.to}-${number}`, class: `flow pressure-${level}` },
      s("path", { d: curve(points), "stroke-width": thickness.toFixed(2) }),
      s("path", { class: "arrow", d: `M${last.x - 7},${last.y - 5}L${last.x},${last.y}L${last.x - 7},${last.y + 5}` }),
      isNear && s("text", { class: "flow-rate", x: (before.x + last.x) / 2, y: (before.y + last.y) / 2 - 7, "text-anchor": "middle" },
        edge.records_per_second === null ? "" : `${rate(edge.records_per_second)}/s`),
      isNear && s("text", { class: "flow-way", x: (before.x + last.x) / 2, y: (before.y + last.y) / 2 + 15, "text-anchor": "middle" },
        (edge.ship_strategy || "").toLowerCase()));
  });
  const boxes = figures.vertices.map((vertex, number) =>
    vertexBox(vertex, plan.places[number], figures, vertex.id === selected, onselect, zoom));
  return s("svg", {
    class: "graph", viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, width: width * zoom, height: height * zoom,
    role: "group", "aria-label": "Job graph; the table below has the same figures",
  },
  drawn, boxes);
}

/** Return the size of the drawing of a graph before it is zoomed. */
export function graphSize(figures) {
  const { plan } = planOf(figures);
  return { width: plan.width + 2 * MARGIN, height: plan.height + 2 * MARGIN };
}
