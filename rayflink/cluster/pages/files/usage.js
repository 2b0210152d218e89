// What processes use: asked for beside the pages, so that one that does not answer holds up none.

import { path, readIfAny } from "./api.js";
import { h, loadBar } from "./dom.js";
import { bytes, NONE } from "./format.js";

const MOST_ASKED = 40, CPU = "Status.JVM.CPU.Load", MEMORY = "Status.JVM.Memory.Heap.Used";
const known = new Map(), asked = new Set();

async function ask(id) {
  asked.add(id);
  try {
    const metrics = await readIfAny(path`taskmanagers/${id}/metrics?get=${CPU},${MEMORY}`) || [];
    const values = Object.fromEntries(metrics.map((metric) => [metric.id, Number(metric.value)]));
    known.set(id, { cpu: values[CPU], memory: values[MEMORY] });
    dispatchEvent(new Event("redraw"));
  } catch {
    known.delete(id); // it is shown as not known, and asked again with the next refresh
  } finally {
    asked.delete(id);
  }
}

/** Ask what the first of some processes use; the page is drawn again with each answer. */
export function askUsage(processes) {
  const living = new Set(processes.map((process) => process.id));
  for (const id of known.keys()) if (!living.has(id)) known.delete(id);
  for (const { id } of processes.slice(0, MOST_ASKED)) if (!asked.has(id)) ask(id);
}

function bar(share, text) {
  return h("span", { class: "load-cell" }, loadBar(Math.min(share, 1) * 1000, 0), ` ${text}`);
}

/** Return the columns with what a process uses; `of` gives its entry in the list of task managers. */
export function usageColumns(of) {
  const entry = (row) => known.get(of(row)?.id);
  return [
    {
      name: "CPU in use", title: "in use now, of all CPUs of its machine",
      value: (row) => Number.isFinite(entry(row)?.cpu) ? bar(entry(row).cpu, `${Math.round(entry(row).cpu * 100)} %`) : NONE,
    },
    {
      name: "Memory in use", title: "of what its tasks may use",
      value: (row) => Number.isFinite(entry(row)?.memory) ? bar(entry(row).memory / (of(row).hardware?.freeMemory || Infinity), bytes(entry(row).memory)) : NONE,
    },
  ];
}
