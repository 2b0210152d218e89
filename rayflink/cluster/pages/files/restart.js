// A job is started again: from which checkpoint, with which subtasks and options.

import { failureOf, operate, outcome, path, Problem, read } from "./api.js";
import { ask, field } from "./dialog.js";
import { h, named } from "./dom.js";
import { bytes, moment } from "./format.js";

const MOST_ASKED = 5;

function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function pointText(point) {
  const what = point.kind === "start" ? "what the job itself has started from" : `${point.kind} ${point.checkpoint_id}`;
  const parts = [what, point.taken_ms ? moment(point.taken_ms) : "", point.state_bytes === null ? "" : bytes(point.state_bytes)];
  return parts.filter(Boolean).join(", ");
}

function choice(value, isChosen, label, ...more) {
  const id = `start-${value}`;
  return h("div", { class: "choice" }, h("input", { type: "radio", name: "start", id, value, checked: isChosen }),
    h("label", { for: id }, label), more);
}

function startFields(offer) {
  const [newest] = offer.points;
  const select = h("select", { id: "point", name: "point", "aria-label": "Checkpoint or savepoint", onchange: () => { document.getElementById("start-POINT").checked = true; } },
    offer.points.map((point) => h("option", { value: point.path }, `${pointText(point)}: ${point.path}`)));
  const other = h("input", { id: "path", name: "path", autocomplete: "off", "aria-label": "Path or URL", placeholder: "path or URL that the cluster reaches", oninput: () => { document.getElementById("start-PATH").checked = true; } });
  return h("fieldset", {}, h("legend", {}, "Start from"),
    newest ? choice("NEWEST", true, `the newest: ${pointText(newest)}`, h("code", { class: "small" }, newest.path)) : null,
    offer.remark ? h("p", { class: "warn" }, "▲ ", offer.remark) : null,
    offer.points.length > 1 ? choice("POINT", false, "another one of the job", select) : null,
    choice("PATH", false, "another checkpoint or savepoint", other),
    choice("NOTHING", !newest, "nothing: it reads its input from the beginning, and writes again what it has written"));
}

function subtaskFields(figures) {
  if (!figures.vertices.length) return null;
  const rows = figures.vertices.map((vertex) => {
    const most = vertex.max_parallelism || 32768;
    return h("tr", {}, h("th", { scope: "row" }, named(vertex.name)), h("td", { class: "number" }, String(vertex.parallelism)),
      h("td", {}, h("input", { type: "number", min: 1, max: most, value: vertex.parallelism, required: true, name: `subtasks ${vertex.id}`, "aria-label": `subtasks of ${vertex.name}` })),
      h("td", { class: "small" }, `at most ${most}`));
  });
  return h("details", {}, h("summary", {}, "Other numbers of subtasks"), h("table", { class: "bounds" },
    h("thead", {}, h("tr", {}, ["Vertex", "Had", "Subtasks", ""].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
}

function optionFields() {
  return h("details", {}, h("summary", {}, "Other options"),
    h("p", { class: "field" }, h("label", { for: "options" }, "Options of the job, a line each"),
      h("textarea", { id: "options", name: "options", rows: 4, spellcheck: "false", placeholder: "execution.checkpointing.interval: 30 s" })),
    h("p", {}, h("input", { type: "checkbox", id: "non-restored", name: "dropped" }), " ", h("label", { for: "non-restored" }, "Leave behind state that belongs to no operator of the job")));
}

function optionsOf(text) {
  const options = {};
  for (const line of text.split("\n").map((part) => part.trim()).filter((part) => part && !part.startsWith("#"))) {
    const [, key, value] = /^([^:=\s]+)\s*[:=]\s*(.*)$/.exec(line) || [];
    if (!key) throw new Error(`found ${line}, wanted key: value`);
    options[key] = value;
  }
  return options;
}

function bodyOf(form, figures, jobId) {
  const { elements } = form, start = elements.start ? form.querySelector("[name=start]:checked").value : "NEWEST";
  const savepointPath = start === "POINT" ? elements.point.value : start === "PATH" ? elements.path.value.trim() : "";
  if (start === "PATH" && !savepointPath) throw new Error("the path of the checkpoint or savepoint is missing");
  const parallelism = {};
  for (const vertex of figures.vertices) {
    const wanted = Number(elements[`subtasks ${vertex.id}`].value);
    if (wanted !== vertex.parallelism) parallelism[vertex.id] = wanted;
  }
  return {
    jobId, startFrom: start === "POINT" ? "PATH" : start, savepointPath, parallelism,
    allowNonRestoredState: elements.dropped.checked, configuration: optionsOf(elements.options.value),
  };
}

/** Ask for a new start and return its outcome; a dispatcher that has come meanwhile is asked for the same. */
async function started(url, body) {
  for (let asked = 1; ; asked += 1) {
    const answer = await operate("POST", url, body);
    try {
      return await outcome(`${url}/${encodeURIComponent(answer["request-id"])}`);
    } catch (problem) {
      if (!(problem instanceof Problem) || ![0, 404].includes(problem.status) || asked >= MOST_ASKED) throw problem;
    }
  }
}

/** Show how a job can be started again, and do it. */
export async function restart(figures, context, say) {
  const url = path`rayflink/jobs/${figures.jid}/restart`, jobId = newId();
  let offer;
  try {
    offer = await read(url);
  } catch (problem) {
    say(figures.jid, `how it can be started again is not known: ${problem.message}`, "bad", context);
    return;
  }
  if (offer.refusal) {
    say(figures.jid, `it cannot be started again here: ${offer.refusal}`, "bad", context);
    return;
  }
  const about = figures.has_ended
    ? "It starts as a new job, by the program that the cluster has stored; this one stays in the list as it is."
    : "It takes a savepoint and ends. A new job of the same program goes on from there, once everything has been written.";
  const dialog = ask({
    title: figures.has_ended ? "Start the job again" : "Stop the job, and start it again", verb: figures.has_ended ? "Start it" : "Stop and start it",
    busy: figures.has_ended ? "it starts" : "it takes a savepoint, ends, and starts", text: [h("bdi", { class: "subject" }, figures.name), about],
    fields: [figures.has_ended ? startFields(offer) : null, subtaskFields(figures), optionFields()],
    run: async (form) => {
      const result = await started(url, bodyOf(form, figures, jobId)), failure = failureOf(result);
      if (failure) throw new Error(failure);
      const from = result["start-from"] ? `started again from ${result["start-from"]}` : "started again from nothing";
      say(result.jobid, from, "good", context);
      if (dialog.open) context.go(path`#/jobs/${result.jobid}/graph`);
      else say(figures.jid, `${from}, as ${result.jobid}`, "good", context);
    },
  });
}
