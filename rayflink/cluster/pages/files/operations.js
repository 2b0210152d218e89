// What can be done to a job: each is confirmed, and its outcome is shown.

import { failureOf, operate, outcome, path, read } from "./api.js";
import { ask, field } from "./dialog.js";
import { h, named } from "./dom.js";
import { duration } from "./format.js";
import { restart } from "./restart.js";

const outcomes = new Map();

/** Show a sentence on the page of a job, until it is dismissed. */
function say(job, text, kind, context) {
  outcomes.set(job, { text, kind });
  context.announce(text);
  context.redraw();
}

async function follow(figures, what, url, context) {
  say(figures.jid, `${what} is under way`, "busy", context);
  try {
    const result = await outcome(url);
    const failure = failureOf(result);
    if (failure) say(figures.jid, `${what} failed: ${failure}`, "bad", context);
    else say(figures.jid, `${what} is done${result.location ? `: ${result.location}` : ""}`, "good", context);
  } catch (problem) {
    say(figures.jid, `the outcome of ${what.toLowerCase()} is not known: ${problem.message}`, "bad", context);
  }
  context.refresh();
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

async function rescale(figures, context, chosen = "") {
  let bounds = {};
  try {
    bounds = await read(path`jobs/${figures.jid}/resource-requirements`);
  } catch {
    // the present numbers stand for them
  }
  const of = (vertex) => bounds[vertex.id]?.parallelism || { lowerBound: 1, upperBound: vertex.parallelism };
  const rows = figures.vertices.map((vertex) => {
    const now = of(vertex), most = vertex.max_parallelism || 32768, isChosen = vertex.id === chosen;
    const input = (which, value, label) => h("input", {
      type: "number", min: 1, max: most, value, required: true, name: `${which} ${vertex.id}`, "aria-label": `${label} of ${vertex.name}`,
    });
    const wanted = isChosen ? Math.min(2 * vertex.parallelism, most) : now.upperBound;
    return h("tr", { class: isChosen ? "chosen" : null }, h("th", { scope: "row" }, named(vertex.name)), h("td", { class: "number" }, String(vertex.parallelism)),
      h("td", {}, input("lower", now.lowerBound, "least subtasks")), h("td", {}, input("upper", wanted, "most subtasks")),
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

const ACTIONS = { restart: ["Start again…", restartWith], rescale: ["Rescale…", rescale] };
const PLACES = {
  exceptions: ["Exceptions", () => "exceptions"], checkpoints: ["Checkpoints", () => "checkpoints"], processes: ["Processes and logs", () => "processes"],
  flame: ["Flame graph", (vertex) => path`graph/${vertex}?show=flame`], splits: ["Splits and watermarks", (vertex) => path`graph/${vertex}?show=operators`],
};

function restartWith(figures, context) {
  restart(figures, context, say);
}

/** Return the button or the link that belongs to a finding; null: nothing can be done by click. */
export function remedy(finding, figures, context) {
  const { action, vertex } = finding;
  if (action in PLACES) {
    const [label, place] = PLACES[action];
    return h("a", { class: "button remedy", href: `#/jobs/${encodeURIComponent(figures.jid)}/${place(vertex)}` }, label);
  }
  if (!(action in ACTIONS) || (action === "restart" && (!figures.can_restart || figures.restarted_as.length))) return null;
  const [label, act] = ACTIONS[action];
  return h("button", { type: "button", class: "remedy primary", onclick: () => act(figures, context, vertex) }, label);
}

/** Return the buttons of a job, and what became of the last. */
export function operations(figures, context) {
  const last = outcomes.get(figures.jid);
  const result = last ? h("p", { class: `outcome ${last.kind}` }, last.kind === "bad" ? "✕ " : last.kind === "good" ? "✓ " : "◔ ", last.text,
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: () => { outcomes.delete(figures.jid); context.redraw(); } }, "✕")) : null;
  const button = (label, act, kind) => h("button", { type: "button", class: kind || null, onclick: () => act(figures, context) }, label);
  if (figures.has_ended) {
    return h("div", { class: "operations" }, figures.can_restart ? h("div", { class: "buttons" }, button("Start again…", restartWith)) : null, result);
  }
  return h("div", { class: "operations" },
    h("div", { class: "buttons" },
      button("Savepoint…", savepoint), button("Rescale…", rescale), figures.can_restart ? button("Stop and start again…", restartWith) : null,
      button("Stop…", stop), button("Cancel…", cancel, "danger")),
    result);
}
