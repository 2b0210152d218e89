// What can be done to a job: each is confirmed, and its outcome is shown.

import { operate, outcome, path, Problem, read } from "./api.js";
import { h } from "./dom.js";
import { duration } from "./format.js";

const outcomes = new Map();

function say(job, text, kind, context) {
  outcomes.set(job, { text, kind });
  context.announce(text);
  context.redraw();
}

function field(id, label, properties, note) {
  return h("p", { class: "field" }, h("label", { for: id }, label), h("input", { id, ...properties }),
    note ? h("span", { class: "small" }, note) : null);
}

function ask({ title, text, fields, verb, isDangerous, run }) {
  const refusal = h("p", { class: "bad", role: "alert" });
  const button = h("button", { type: "submit", class: isDangerous ? "danger" : "primary" }, verb);
  const dialog = h("dialog", { "aria-labelledby": "ask-title" });
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      refusal.textContent = "";
      try {
        await run(form);
        dialog.close();
      } catch (problem) {
        refusal.textContent = problem instanceof Problem && [401, 403].includes(problem.status)
          ? `${problem.message}. Close this and enter a token that may do it (button Token).` : problem.message;
        button.disabled = false;
      }
    },
  }, h("h2", { id: "ask-title" }, title), text.map((line) => h("p", {}, line)), fields || [], refusal,
  h("p", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Back"), button));
  dialog.append(form);
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

async function follow(figures, what, url, context) {
  say(figures.jid, `${what} is under way`, "busy", context);
  try {
    const result = await outcome(url);
    const failure = result["failure-cause"];
    if (failure) say(figures.jid, `${what} failed: ${cause(failure)}`, "bad", context);
    else say(figures.jid, `${what} is done${result.location ? `: ${result.location}` : ""}`, "good", context);
  } catch (problem) {
    say(figures.jid, `the outcome of ${what.toLowerCase()} is not known: ${problem.message}`, "bad", context);
  }
  context.refresh();
}

function cause(failure) {
  const lines = String(failure["stack-trace"] || failure.class || failure).split("\n");
  return (lines.filter((line) => line.startsWith("Caused by")).pop() || lines[0]).replace(/^Caused by: /, "");
}

function savepoint(figures, context) {
  ask({
    title: "Take a savepoint", verb: "Take it", text: [`${figures.name} goes on running meanwhile.`],
    fields: [field("directory", "Folder", { placeholder: "as execution.checkpointing.savepoint-dir says", autocomplete: "off" }, "a path or URL that the cluster reaches")],
    run: async (form) => {
      const url = path`jobs/${figures.jid}/savepoints`;
      const answer = await operate("POST", url, { "target-directory": form.elements.directory.value.trim() || null, "cancel-job": false });
      follow(figures, "The savepoint", url + path`/${answer["request-id"]}`, context);
    },
  });
}

function stop(figures, context) {
  ask({
    title: "Stop the job with a savepoint", verb: "Stop it", isDangerous: true,
    text: [`${figures.name} takes a savepoint and ends. It can be started again from there.`],
    fields: [
      field("directory", "Folder", { placeholder: "as execution.checkpointing.savepoint-dir says", autocomplete: "off" }),
      h("p", {}, h("input", { type: "checkbox", id: "drain" }), " ", h("label", { for: "drain" }, "Drain: fire all timers and windows first, as at the end of the input")),
    ],
    run: async (form) => {
      const answer = await operate("POST", path`jobs/${figures.jid}/stop`, {
        targetDirectory: form.elements.directory.value.trim() || null, drain: form.elements.drain.checked,
      });
      follow(figures, "Stopping with a savepoint", path`jobs/${figures.jid}/savepoints/${answer["request-id"]}`, context);
    },
  });
}

function cancel(figures, context) {
  ask({
    title: "Cancel the job", verb: "Cancel it", isDangerous: true,
    text: [`${figures.name} ends at once and takes no savepoint. What came after its last checkpoint is processed again if it is started from there.`],
    run: async () => {
      await operate("PATCH", path`jobs/${figures.jid}?mode=cancel`);
      say(figures.jid, "cancellation was asked for", "busy", context);
      context.refresh();
    },
  });
}

async function rescale(figures, context) {
  let bounds = {};
  try {
    bounds = await read(path`jobs/${figures.jid}/resource-requirements`);
  } catch {
    // the present numbers stand for them
  }
  const of = (vertex) => bounds[vertex.id]?.parallelism || { lowerBound: 1, upperBound: vertex.parallelism };
  const rows = figures.vertices.map((vertex) => {
    const now = of(vertex), most = vertex.max_parallelism || 32768;
    const input = (which, value, label) => h("input", {
      type: "number", min: 1, max: most, value, required: true, name: `${which} ${vertex.id}`, "aria-label": `${label} of ${vertex.name}`,
    });
    return h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, vertex.name)), h("td", { class: "number" }, String(vertex.parallelism)),
      h("td", {}, input("lower", now.lowerBound, "least subtasks")), h("td", {}, input("upper", now.upperBound, "most subtasks")),
      h("td", { class: "small" }, `at most ${most}`));
  });
  ask({
    title: "Change the parallelism", verb: "Rescale", text: [`${figures.name} pauses for a moment, and goes on from a checkpoint. Each vertex gets as many subtasks as its upper bound; vertices that hand records on one to one change together.`],
    fields: [h("table", { class: "bounds" }, h("thead", {}, h("tr", {}, ["Vertex", "Now", "At least", "At most", ""].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))],
    run: async (form) => {
      const wanted = {};
      for (const vertex of figures.vertices) {
        const lowerBound = Number(form.elements[`lower ${vertex.id}`].value), upperBound = Number(form.elements[`upper ${vertex.id}`].value);
        if (lowerBound > upperBound) throw new Error(`${vertex.name}: found at least ${lowerBound} and at most ${upperBound}; the first must not be above the second`);
        wanted[vertex.id] = { parallelism: { lowerBound, upperBound } };
      }
      await operate("PUT", path`jobs/${figures.jid}/resource-requirements`, wanted);
      const changed = figures.vertices.filter((vertex) => wanted[vertex.id].parallelism.upperBound !== vertex.parallelism);
      say(figures.jid, changed.length ? "rescaling was asked for" : "every vertex has as many subtasks already", "busy", context);
      if (changed.length) watchRescale(figures, wanted, changed.map((vertex) => vertex.id), context);
    },
  });
}

async function watchRescale(figures, wanted, changed, context) {
  const began = Date.now(), url = path`rayflink/jobs/${figures.jid}/live`;
  while (Date.now() - began < 60_000) {
    await new Promise((done) => setTimeout(done, 1000));
    try {
      const now = await read(url);
      const fits = now.vertices.every((vertex) =>
        !changed.includes(vertex.id) || vertex.parallelism === wanted[vertex.id].parallelism.upperBound);
      if (fits && now.state === "RUNNING") {
        const sizes = now.vertices.map((vertex) => vertex.parallelism).join(", ");
        say(figures.jid, `rescaled within ${duration(Date.now() - began)}; subtasks are ${sizes} now`, "good", context);
        context.refresh();
        return;
      }
    } catch {
      // the next look may succeed
    }
  }
  say(figures.jid, "rescaling was asked for and is not done after a minute; the exceptions may say why", "bad", context);
}

/** Return the buttons of a job, and what became of the last. */
export function operations(figures, context) {
  const last = outcomes.get(figures.jid);
  const result = last ? h("p", { class: `outcome ${last.kind}` }, last.kind === "bad" ? "✕ " : last.kind === "good" ? "✓ " : "◔ ", last.text,
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => { outcomes.delete(figures.jid); context.redraw(); } }, "✕")) : null;
  if (figures.has_ended) return h("div", { class: "operations" }, result);
  return h("div", { class: "operations" },
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => savepoint(figures, context) }, "Savepoint…"),
      h("button", { type: "button", onclick: () => rescale(figures, context) }, "Rescale…"),
      h("button", { type: "button", onclick: () => stop(figures, context) }, "Stop…"),
      h("button", { type: "button", class: "danger", onclick: () => cancel(figures, context) }, "Cancel…")),
    result);
}
