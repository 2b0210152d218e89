// Exceptions and configuration of a job.

import { path, readIfAny } from "./api.js";
import { facts, h, named } from "./dom.js";
import { count, moment, NONE, plural } from "./format.js";
import { firstOf, moreOf } from "./parts.js";
import { table } from "./table.js";
import { askUsage, usageColumns } from "./usage.js";

const MOST_FAILURES = 20;

function failurePart(failure, index) {
  return h("article", { key: `failure ${failure.last_ms} ${index}`, class: "failure" },
    h("h3", {}, h("span", { class: "bad", "aria-hidden": "true" }, "✕ "), failure.error),
    facts([
      ["Last", moment(failure.last_ms)], failure.times > 1 ? ["Times", `${count(failure.times)}, first ${moment(failure.first_ms)}`] : null,
      failure.operator ? ["Operator", named(failure.operator)] : null,
      ["Task", named(failure.task || NONE)],
    ]),
    failure.outcome ? h("p", { class: "outcome bad" }, failure.outcome) : null,
    failure.raised_at ? h("p", { class: "user-line" }, h("span", { class: "small" }, "Raised at "), h("code", { class: "line" }, failure.raised_at),
      failure.code ? h("pre", { class: "code" }, failure.code) : null) : null,
    failure.record ? h("p", { class: "user-line" }, h("span", { class: "small" }, "On record "), h("code", { class: "line" }, failure.record)) : null,
    failure.line ? h("p", { class: "user-line" }, h("span", { class: "small" }, "Operator made at "), h("code", { class: "line" }, failure.line)) : null,
    h("details", {}, h("summary", {}, "All of it"), h("pre", {}, failure.traceback ? `${failure.text}\n\n${failure.traceback}` : failure.text)));
}

function entryPart(entry, index) {
  return h("article", { key: `entry ${entry.timestamp} ${index}`, class: "failure" },
    h("p", {}, h("strong", {}, moment(entry.timestamp)), " ", named(entry.taskName || "the job"), entry.endpoint ? ` on ${entry.endpoint}` : "",
      entry.taskManagerId ? [" ", h("a", { href: path`#/taskmanagers/${entry.taskManagerId}/log` }, "its process")] : null),
    h("details", {}, h("summary", {}, entry.exceptionName || "exception"), h("pre", {}, entry.stacktrace || "")),
    (entry.concurrentExceptions || []).map((other, number) => h("details", { key: `concurrent ${number}` },
      h("summary", {}, "at the same time: ", named(other.taskName || other.exceptionName || "")), h("pre", {}, other.stacktrace || ""))));
}

export function exceptionsTab({ flink }) {
  return {
    load: async () => ({ exceptions: await readIfAny(`${flink}exceptions?maxExceptions=20`) }),
    render: (figures, { exceptions }) => {
      const history = exceptions?.exceptionHistory;
      const times = figures.failures.reduce((sum, failure) => sum + failure.times, 0);
      return [
        h("p", { key: "sum" }, times ? `${plural(times, "failure")} of ${plural(figures.failures.length, "kind")}, the newest first.` : "✓ nothing has failed"),
        firstOf(figures.failures, `failures ${figures.jid}`, MOST_FAILURES).map(failurePart),
        moreOf(figures.failures, `failures ${figures.jid}`, MOST_FAILURES),
        history?.entries?.length ? h("details", { key: "history" },
          h("summary", {}, `One by one, with their processes (${count(history.entries.length)}${history.truncated ? ", older ones are left out" : ""})`),
          history.entries.map(entryPart)) : null,
      ];
    },
  };
}

export function processesTab() {
  return {
    load: async () => ({ processes: await readIfAny("taskmanagers") }),
    render: (figures, { processes }) => {
      const known = processes?.taskmanagers || [];
      const entryOf = (place) => known.find((process) => process.id === `${place.host}:${place.pid}` || process.id.startsWith(`${place.host}:${place.pid}-`));
      const idOf = (place) => entryOf(place)?.id;
      if (!figures.has_ended) askUsage(figures.processes.map(entryOf).filter(Boolean));
      const link = (place, part, label) => idOf(place) ? h("a", { href: path`#/taskmanagers/${idOf(place)}/${part}` }, label) : NONE;
      return [
        h("p", { key: "about", class: "small" }, "The processes that run its tasks; those of attempts that have ended are among its exceptions."),
        table({
          caption: "Processes of the job", rows: figures.processes, key: (place) => `${place.host}:${place.pid}`, empty: "no process runs a task of it now", columns: [
            { name: "Process", value: (place) => named(`${place.host}:${place.pid}`) },
            { name: "Subtasks", value: (place) => count(place.subtasks), number: true },
            ...usageColumns(entryOf),
            { name: "Reported", value: (place) => place.reported_ms ? moment(place.reported_ms) : NONE },
            { name: "Log", value: (place) => link(place, "log", "log") }, { name: "Output", value: (place) => link(place, "stdout", "output") },
            { name: "Files", value: (place) => link(place, "files", "files") }, { name: "Threads", value: (place) => link(place, "threads", "threads") },
            { name: "Metrics", value: (place) => link(place, "metrics", "metrics") },
          ],
        }),
        h("p", { key: "manager", class: "small" }, "The dispatcher has a ", h("a", { href: "#/jobmanager/log" }, "log"), " of its own."),
      ];
    },
  };
}

function strategy(text) {
  if (!text) return NONE;
  const name = text.split(/RestartBackoffTimeStrategy|[\s(]/)[0].replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return h("span", { title: text }, name || text);
}

let wanted = "";

export function configurationTab({ base, flink, redraw }) {
  return {
    load: async () => {
      const [own, config, plan] = await Promise.all([
        readIfAny(`${base}configuration`), readIfAny(`${flink}config`), readIfAny(`${flink}plan`),
      ]);
      return { own, config, plan };
    },
    render: (figures, { own, config, plan }) => {
      const execution = config?.["execution-config"] || {};
      const options = { ...(execution["user-config"] || {}), ...(own?.configuration || {}) };
      const rows = Object.entries(options).filter(([key, value]) => `${key} ${value}`.toLowerCase().includes(wanted.toLowerCase())).sort();
      return [
        facts([
          ["Restarts", strategy(execution["restart-strategy"])], ["Parallelism", count(execution["job-parallelism"] ?? figures.parallelism)],
          ["Objects reused", String(execution["object-reuse-mode"] ?? NONE)], ["Mode", (figures.mode || NONE).toLowerCase()],
        ]),
        h("label", { key: "find", class: "find" }, h("span", { class: "unseen" }, "Find options"),
          h("input", { id: "find", type: "search", placeholder: "Find options  ( / )", oninput: (event) => { wanted = event.target.value; redraw(); } })),
        table({
          caption: "Options of the job", rows, key: ([key]) => key, empty: "no option was set",
          columns: [{ name: "Option", value: ([key]) => h("code", {}, key) }, { name: "Value", value: ([, value]) => h("code", {}, String(value)) }],
        }),
        plan ? h("details", { key: "plan" }, h("summary", {}, "Plan as JSON"), h("pre", {}, JSON.stringify(plan.plan ?? plan, null, 2))) : null,
      ];
    },
  };
}
