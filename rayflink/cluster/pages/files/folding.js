// Straight runs of vertices in a large graph: each is drawn as one box until it is opened.

import { remarks } from "./graph.js";

const LARGE = 24, LEAST_RUN = 3;
const GRAVITY = ["bottleneck", "pressed", "busy", "skew", "late"];

function grouped(edges, side) {
  const groups = new Map();
  for (const edge of edges) groups.set(edge[side], [...(groups.get(edge[side]) || []), edge]);
  return groups;
}

/** Return the runs of a large graph, as lists of ids: vertices with one input and one output, one after the other. */
export function runsOf({ vertices, edges }) {
  if (vertices.length <= LARGE) return [];
  const inputs = grouped(edges, "to"), outputs = grouped(edges, "from");
  const isStep = (id) => inputs.get(id)?.length === 1 && outputs.get(id)?.length === 1;
  const nextOf = (id) => outputs.get(id)[0].to, beforeOf = (id) => inputs.get(id)[0].from;
  return vertices.map(({ id }) => id).filter((id) => isStep(id) && !isStep(beforeOf(id))).map((id) => {
    const run = [id];
    while (isStep(nextOf(run[run.length - 1]))) run.push(nextOf(run[run.length - 1]));
    return run;
  }).filter((run) => run.length >= LEAST_RUN);
}

function most(members, name) {
  return members.reduce((value, member) => (member[name] === null || member[name] === undefined ? value : Math.max(value ?? member[name], member[name])), null);
}

function boxOf(members) {
  const first = members[0], last = members[members.length - 1], states = {}, said = new Map();
  for (const member of members) {
    for (const [state, number] of Object.entries(member.states)) states[state] = (states[state] || 0) + number;
    for (const remark of member.remarks) if (!said.has(remark[2])) said.set(remark[2], remark);
  }
  return {
    ...first, id: `run ${first.id}`, name: `${members.length} vertices: ${first.name} … ${last.name}`, members, states,
    remarks: [...said.values()].sort((left, right) => GRAVITY.indexOf(left[2]) - GRAVITY.indexOf(right[2])),
    parallelism: most(members, "parallelism"), records_out_per_second: last.records_out_per_second, watermark_lag_ms: most(members, "watermark_lag_ms"),
    busy_ms_per_second: most(members, "busy_ms_per_second"), back_pressured_ms_per_second: most(members, "back_pressured_ms_per_second"),
  };
}

/** Return the figures of a job for its drawing, with one vertex for each run; `isOpen` says of which not. */
export function foldRuns(figures, isOpen = () => false) {
  const runs = runsOf(figures).filter((run) => !isOpen(run));
  if (!runs.length) return figures;
  const judged = new Map(figures.vertices.map((vertex) => [vertex.id, { ...vertex, remarks: remarks(vertex, figures) }]));
  const boxes = new Map(runs.map((run) => [run[0], boxOf(run.map((id) => judged.get(id)))]));
  const shownAs = new Map(runs.flatMap((run) => run.map((id) => [id, `run ${run[0]}`])));
  const shown = (id) => shownAs.get(id) || id;
  return {
    ...figures,
    vertices: figures.vertices.filter(({ id }) => !shownAs.has(id) || boxes.has(id)).map(({ id }) => boxes.get(id) || judged.get(id)),
    edges: figures.edges.map((edge) => ({ ...edge, from: shown(edge.from), to: shown(edge.to) })).filter((edge) => edge.from !== edge.to),
  };
}
