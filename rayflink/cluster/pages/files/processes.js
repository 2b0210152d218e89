// Task managers, their nodes, and the job manager: metrics, logs, output, threads.

import { path, readIfAny, readText } from "./api.js";
import { facts, h, named } from "./dom.js";
import { bytes, count, duration, moment, NONE, plural } from "./format.js";
import { logView } from "./logs.js";
import { table } from "./table.js";
import { askUsage, usageColumns } from "./usage.js";

function hostOf(process) {
  const match = /@([^:/]+)[:/]/.exec(process.path || "");
  return match ? match[1] : String(process.id).replace(/:\d+(-\d+)?$/, "");
}

const COLUMNS = [
  { name: "Task manager", value: (process) => h("a", { href: path`#/taskmanagers/${process.id}/log` }, named(process.id)) },
  { name: "Slots", value: (process) => `${process.slotsNumber - process.freeSlots}/${process.slotsNumber}`, number: true, title: "in use of all" },
  ...usageColumns((process) => process),
  { name: "CPUs", value: (process) => count(process.hardware?.cpuCores), number: true },
  { name: "Memory", value: (process) => bytes(process.hardware?.freeMemory), number: true, title: "that its tasks may use" },
  { name: "Managed", value: (process) => bytes(process.hardware?.managedMemory), number: true },
  { name: "Of the machine", value: (process) => bytes(process.hardware?.physicalMemory), number: true },
  { name: "Heard", value: (process) => process.timeSinceLastHeartbeat > 0 ? moment(process.timeSinceLastHeartbeat) : NONE },
];

export function processesPage() {
  return {
    key: "taskmanagers", menu: "taskmanagers", title: "Task managers",
    load: async () => {
      const [known, overview] = await Promise.all([readIfAny("taskmanagers"), readIfAny("overview")]);
      askUsage(known?.taskmanagers || []);
      return { processes: known?.taskmanagers || [], overview, hasAny: known !== null };
    },
    render: ({ processes, overview, hasAny }) => {
      const nodes = new Map();
      processes.forEach((process) => nodes.set(hostOf(process), [...(nodes.get(hostOf(process)) || []), process]));
      return [
        h("h1", { key: "title" }, "Task managers"),
        facts([["Nodes", count(nodes.size)], ["Task managers", count(processes.length)],
          overview ? ["Slots", `${count(overview["slots-total"] - overview["slots-available"])} of ${count(overview["slots-total"])} in use`] : null]),
        h("p", { key: "about", class: "small" }, "A task manager is a process that runs tasks: on Ray, a slot of one job."),
        nodes.size ? [...nodes].map(([host, own]) => h("section", { key: `node ${host}` },
          h("h2", {}, named(host), h("span", { class: "small" }, ` ${plural(own.length, "process").replace("processs", "processes")}, ${count(own.reduce((sum, process) => sum + process.slotsNumber, 0))} slots`)),
          table({ caption: `Task managers on ${host}`, columns: COLUMNS, rows: own, key: (process) => process.id })))
          : h("p", { class: "empty" }, hasAny ? "no process runs tasks now" : "this server shows jobs that have ended; it has no processes"),
      ];
    },
  };
}

function tabs(hash, parts, current) {
  return h("nav", { key: "tabs", class: "tabs", "aria-label": "Parts of the process" }, parts.map(([name, label]) =>
    h("a", { href: `${hash}/${name}`, "aria-current": name === current ? "page" : null }, label)));
}

function threads(dump) {
  const isWorker = (thread) => /^AnyIO|^asyncio/.test(thread.threadName);
  const known = [...(dump?.threadInfos || [])].sort((left, right) => isWorker(left) - isWorker(right));
  return known.length ? known.map((thread, index) => h("details", { key: `thread ${index} ${thread.threadName}`, class: "thread" },
    h("summary", {}, named(thread.threadName)), h("pre", {}, thread.stringifiedThreadInfo))) : h("p", { class: "empty" }, "no thread is known");
}

function files(logs, hash) {
  return table({
    caption: "Files", key: (file) => file.name, rows: logs?.logs || [], empty: "it writes no file", columns: [
      { name: "File", value: (file) => h("a", { href: `${hash}/files/${encodeURIComponent(file.name)}` }, named(file.name)) },
      { name: "Size", value: (file) => bytes(file.size), number: true }, { name: "Changed", value: (file) => moment(file.mtime) },
    ],
  });
}

function process({ key, menu, title, base, hash, parts, part, rest, about }) {
  const load = async () => {
    const head = await about();
    if (part === "stdout") return { head, text: await readIfAny_(`${base}/stdout`) };
    if (part === "threads") return { head, dump: await readIfAny(`${base}/thread-dump`) };
    if (part === "files") return { head, logs: await readIfAny(`${base}/logs`), text: rest ? await readIfAny_(base + path`/logs/${rest}`) : null };
    if (part === "metrics") return { head, metrics: await metrics(base) };
    if (part === "configuration") return { head, config: await readIfAny(`${base}/config`) };
    if (part === "environment") return { head, environment: await readIfAny(`${base}/environment`) };
    return { head, text: await readIfAny_(`${base}/log`) };
  };
  const pairs = (rows, caption) => table({
    caption, rows: rows || [], key: (row) => row.key ?? row.id, empty: "nothing",
    columns: [{ name: "Name", value: (row) => h("code", {}, row.key ?? row.id) }, { name: "Value", value: (row) => h("code", {}, String(row.value)) }],
  });
  return {
    key, menu, title, load, carry: (data) => data.part === part ? data : null,
    render: (data) => [
      h("h1", { key: "title" }, title), data.head, tabs(hash, parts, part),
      h("section", { key: `part ${part}`, class: "tab" },
        part === "threads" ? threads(data.dump)
          : part === "files" ? [files(data.logs, hash), rest ? [h("h2", {}, named(rest)), logView(data.text, rest, base + path`/logs/${rest}`)] : null]
            : part === "metrics" ? pairs(data.metrics, "Metrics") : part === "configuration" ? pairs(data.config, "Options of the cluster")
              : part === "environment" ? h("pre", { class: "output" }, JSON.stringify(data.environment, null, 2))
                : logView(data.text, part === "stdout" ? "output" : "log", `${base}/${part === "stdout" ? part : "log"}`)),
    ],
  };
}

async function readIfAny_(address) {
  try {
    return await readText(address);
  } catch (problem) {
    if ([404, 500, 501].includes(problem.status)) return "";
    throw problem;
  }
}

async function metrics(base) {
  const known = await readIfAny(`${base}/metrics`);
  if (!known?.length) return [];
  const names = known.map((metric) => metric.id).slice(0, 200);
  return await readIfAny(`${base}/metrics?get=${names.map(encodeURIComponent).join(",")}`) || [];
}

export function processPage(id, part, rest) {
  const base = path`taskmanagers/${id}`;
  return process({
    key: `taskmanager:${id}:${part}:${rest}`, menu: "taskmanagers", title: id, base, hash: path`#/taskmanagers/${id}`, part, rest,
    parts: [["log", "Log"], ["stdout", "Output"], ["files", "Files"], ["threads", "Threads"], ["metrics", "Metrics"]],
    about: async () => {
      const known = await readIfAny(base);
      if (!known) return h("p", { key: "about", class: "finding warning" }, "This process does not live any more.");
      return facts([["Slots", `${known.slotsNumber - known.freeSlots} of ${known.slotsNumber} in use`], ["CPUs", count(known.hardware?.cpuCores)],
        ["Memory", bytes(known.hardware?.freeMemory)], ["Managed", bytes(known.hardware?.managedMemory)]]);
    },
  });
}

export function managerPage(part, rest) {
  return process({
    key: `jobmanager:${part}:${rest}`, menu: "jobmanager", title: "Job manager", base: "jobmanager", hash: "#/jobmanager", part, rest,
    parts: [["log", "Log"], ["stdout", "Output"], ["files", "Files"], ["threads", "Threads"], ["metrics", "Metrics"], ["configuration", "Configuration"], ["environment", "Environment"]],
    about: async () => {
      const [overview, config] = await Promise.all([readIfAny("overview"), readIfAny("config")]);
      return facts([["Version", overview?.["flink-version"] || config?.["flink-version"] || NONE],
        ["Refreshes", config ? `every ${duration(config["refresh-interval"])}` : NONE], ["Time zone", config?.["timezone-name"] || NONE]]);
    },
  });
}
