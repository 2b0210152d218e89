// The state of a job by operator, name and key group, as its newest checkpoint has it.

import { readIfAny } from "./api.js";
import { facts, h, named, s } from "./dom.js";
import { bytes, count, moment, NONE, percent } from "./format.js";
import { table } from "./table.js";

const WIDTH = 512, ROW = 14;

function groupText(part) {
  return part.end - part.first === 1 ? `key group ${part.first}` : `key groups ${part.first} to ${part.end - 1}`;
}

function density(part) {
  return part.bytes / (part.end - part.first);
}

// A row of the heat map: the darker, the more bytes a key group has, beside the one with most of this state.
function heatRow(parts, top, scale) {
  const most = Math.max(...parts.map(density), 1);
  return parts.map((part) => s("rect", {
    class: "group", x: part.first * scale, width: Math.max((part.end - part.first) * scale - 0.3, 0.6), y: top, height: ROW - 2,
    "fill-opacity": (0.08 + 0.92 * density(part) / most).toFixed(3),
  }, s("title", {}, `${groupText(part)}: ${bytes(part.bytes)}`)));
}

function largestText(operator) {
  const parts = operator.key_groups, largest = operator.largest_group;
  if (largest) return `key group ${largest.group} has the most, ${bytes(largest.bytes)}, ${percent(largest.share * 1000)}`;
  const best = parts.reduce((left, right) => (density(right) > density(left) ? right : left), parts[0]);
  return `${groupText(best)} ${best.end - best.first === 1 ? "has" : "have"} the most, ${bytes(best.bytes)}`;
}

function keyGroups(operator) {
  if (!operator.key_groups.length) return null;
  const states = operator.states.filter((state) => state.key_groups?.length);
  const rows = states.length > 1 ? [["all", operator.key_groups], ...states.map((state) => [state.name, state.key_groups])] : [["all", operator.key_groups]];
  const height = rows.length * ROW, scale = WIDTH / Math.max(operator.max_parallelism, 1), said = largestText(operator);
  return h("figure", { class: "groups" },
    h("div", { class: "heat" },
      s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, preserveAspectRatio: "none", role: "img", "aria-label": `State by key group, 0 to ${operator.max_parallelism - 1}: ${said}` },
        s("rect", { class: "ground", width: WIDTH, height }), rows.map(([, parts], index) => heatRow(parts, index * ROW + 1, scale))),
      rows.length > 1 ? h("ol", { class: "small" }, rows.map(([name]) => h("li", {}, named(name)))) : null),
    h("figcaption", { class: "small" }, `by key group, 0 to ${operator.max_parallelism - 1}; ${said}`));
}

function entries(state) {
  if (state.entries === null || state.entries === undefined) return NONE;
  return `${state.is_estimate ? "about " : ""}${count(state.entries)}`;
}

function operatorPart(operator, total) {
  const share = total ? operator.bytes / total : 0;
  return h("article", { key: operator.id, class: "operator" },
    h("h3", {}, named(operator.name), operator.uid ? h("span", { class: "small" }, ` uid ${operator.uid}`) : null,
      h("span", { class: "amount" }, `${bytes(operator.bytes)}${total ? `, ${Math.round(share * 100)} %` : ""}`)),
    s("svg", { class: "share", viewBox: "0 0 100 3", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect", { class: "ground", width: 100, height: 3 }), s("rect", { class: "group", width: share * 100, height: 3 })),
    table({
      caption: `States of ${operator.name}`, rows: operator.states, key: (state) => `${state.kind} ${state.name}`, empty: "it declares no state by name", columns: [
        { name: "State", value: (state) => named(state.name) }, { name: "Kind", value: (state) => state.kind }, { name: "Values", value: (state) => state.values ? h("code", {}, state.values) : NONE },
        { name: "TTL", value: (state) => state.ttl || "" },
        { name: "Entries", value: entries, number: true, title: "values, elements of lists, entries of maps, timers; about: a database counts old versions too" },
        { name: "Bytes", value: (state) => state.bytes === null ? "with the others" : bytes(state.bytes), number: true, title: "in the checkpoint, what it shares with earlier ones included" },
        { name: "Written", value: (state) => bytes(state.written_bytes), number: true, title: "new in this checkpoint" },
        { name: "Largest key group", value: (state) => state.largest_group ? `${state.largest_group.group} (${percent(state.largest_group.share * 1000)})` : NONE, number: true },
      ],
    }),
    keyGroups(operator),
    h("p", { class: "small" }, `subtasks: ${operator.subtasks.map((size) => bytes(size)).join(" · ")}`));
}

export function stateTab({ base }) {
  return {
    load: async () => ({ state: await readIfAny(`${base}state`) }),
    render: (figures, { state }) => {
      if (!state || state.reason) return h("p", { key: "none", class: "empty" }, state?.reason || "nothing is known of the state");
      const operators = [...state.operators].sort((left, right) => right.bytes - left.bytes);
      const own = operators.filter((operator) => operator.bytes || operator.states.length);
      return [
        facts([["Checkpoint", `${state.checkpoint_id} (${state.kind}), ${moment(state.timestamp_ms)}`], ["State", bytes(state.bytes)], ["Written for it", bytes(state.written_bytes)], ["Operators with state", count(own.length)]]),
        state.path ? h("p", { key: "path", class: "small" }, "Rows of it: ", h("code", {}, `rayflink state show ${state.path}`)) : null,
        own.map((operator) => operatorPart(operator, state.bytes)),
        own.length ? null : h("p", { class: "empty" }, "no operator has any"),
      ];
    },
  };
}
