// The state of a job by operator, name and key group, as its newest checkpoint has it.

import { readIfAny } from "./api.js";
import { facts, h, named, s, table } from "./dom.js";
import { bytes, count, moment, NONE } from "./format.js";

function keyGroups(operator) {
  const parts = operator.key_groups;
  if (!parts.length) return null;
  const most = Math.max(...parts.map((part) => part.bytes / (part.end - part.first)), 1), width = 512, height = 34;
  const scale = width / Math.max(operator.max_parallelism, 1);
  const largest = parts.reduce((best, part) => (part.bytes > best.bytes ? part : best), parts[0]);
  const group = (part) => part.end - part.first === 1 ? `key group ${part.first}` : `key groups ${part.first} to ${part.end - 1}`;
  return h("figure", { class: "groups" },
    s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: "none", role: "img", "aria-label": `State by key group of ${operator.max_parallelism}; the most is in ${group(largest)}: ${bytes(largest.bytes)}` },
      s("rect", { class: "ground", width, height }),
      parts.map((part) => {
        const tall = Math.max(1.5, (part.bytes / (part.end - part.first) / most) * height);
        return s("rect", { class: "group", x: part.first * scale, width: Math.max((part.end - part.first) * scale - 0.4, 0.6), y: height - tall, height: tall },
          s("title", {}, `${group(part)}: ${bytes(part.bytes)}`));
      })),
    h("figcaption", { class: "small" }, `by key group, 0 to ${operator.max_parallelism - 1}; ${group(largest)} has the most, ${bytes(largest.bytes)}`));
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
        { name: "Bytes", value: (state) => state.bytes === null ? "with the others" : bytes(state.bytes), number: true, title: "states of one backend share their files" },
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
        facts([["Checkpoint", `${state.checkpoint_id} (${state.kind}), ${moment(state.timestamp_ms)}`], ["State", bytes(state.bytes)], ["Operators with state", count(own.length)]]),
        h("p", { key: "path", class: "small" }, "Rows of it: ", h("code", {}, `rayflink state show ${state.path}`)),
        own.map((operator) => operatorPart(operator, state.bytes)),
        own.length ? null : h("p", { class: "empty" }, "no operator has any"),
      ];
    },
  };
}
