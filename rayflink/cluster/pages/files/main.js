// The frame of all pages: addresses, refreshing, theme, token, keyboard.

import { Problem, read, setToken, token } from "./api.js";
import { h, morphChildren } from "./dom.js";
import { clock, duration } from "./format.js";
import { jobsPage, historyPage } from "./jobs.js";
import { jobPage } from "./job.js";
import { managerPage, processPage, processesPage } from "./processes.js";

const PAGES = [["jobs", "Jobs", "j"], ["history", "History", "h"], ["taskmanagers", "Task managers", "t"], ["jobmanager", "Job manager", "m"]];
const SLOWEST_MS = 30_000, TICK_MS = 500;
const main = document.getElementById("main"), banner = document.getElementById("banner");
const freshness = document.getElementById("freshness"), announcer = document.getElementById("announcer");
let intervalMs = 3000, page = null, data = null, problem = null, failures = 0;
let lastMs = 0, dueMs = 0, isAsking = false, epoch = 0;

/** Say something to those who do not see that it has changed. */
export function announce(text) {
  announcer.textContent = text;
}

function find(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const context = { redraw, refresh, announce, query: new URLSearchParams(query || ""), go };
  const [kind = "jobs", id, ...rest] = parts;
  if (kind === "jobs" && id) return jobPage(id, rest[0] || "graph", rest[1] || "", context);
  if (kind === "history") return historyPage(context);
  if (kind === "taskmanagers" && id) return processPage(id, rest[0] || "log", rest[1] || "", context);
  if (kind === "taskmanagers") return processesPage(context);
  if (kind === "jobmanager") return managerPage(id || "log", rest[0] || "", context);
  return jobsPage(context);
}

function go(hash) {
  location.hash = hash;
}

function navigate() {
  const following = find(location.hash);
  const stays = page && following.key === page.key;
  if (!stays) {
    data = null;
    lastMs = 0;
  }
  page = following;
  if (stays && data && page.carry) data = page.carry(data);
  epoch += 1;
  document.title = `${page.title} · rayflink`;
  drawMenu();
  if (!stays || !data) {
    main.replaceChildren(h("p", { class: "loading" }, "loading"));
    if (page && epoch > 1) main.focus({ preventScroll: true });
    scrollTo(0, 0);
  } else {
    redraw();
  }
  refresh();
}

function drawMenu() {
  const menu = document.getElementById("pages");
  morphChildren(menu, PAGES.map(([name, label]) => h("a", {
    key: name, href: `#/${name}`, "aria-current": page.menu === name ? "page" : null,
  }, label)));
}

function redraw() {
  if (!data) return;
  const focused = document.activeElement?.id;
  morphChildren(main, [page.render(data)].flat(Infinity).filter(Boolean));
  if (page.title) document.title = `${page.title} · rayflink`;
  if (focused && !document.activeElement?.id) document.getElementById(focused)?.focus();
}

function refresh() {
  dueMs = 0;
  tick();
}

async function tick() {
  drawFreshness();
  if (document.hidden || Date.now() < dueMs || !page) return;
  if (isAsking === epoch) return;
  const mine = isAsking = epoch, asked = page;
  try {
    const answer = await asked.load();
    if (mine !== epoch) return;
    data = answer;
    [problem, failures, lastMs] = [null, 0, Date.now()];
    redraw();
  } catch (error) {
    if (mine !== epoch) return;
    if (!(error instanceof Problem)) console.error(error);
    problem = error;
    failures += 1;
    if (error.status === 401) askToken(true);
    if (!data) main.replaceChildren(h("h1", {}, page.title), h("p", { class: "empty" }, error.message));
  } finally {
    if (isAsking === mine) isAsking = null;
  }
  dueMs = Date.now() + Math.min(intervalMs * 2 ** Math.min(failures, 6), Math.max(SLOWEST_MS, intervalMs));
  drawFreshness();
}

function drawFreshness() {
  const age = lastMs ? Date.now() - lastMs : 0;
  const isStale = Boolean(problem) || (lastMs > 0 && age > 3 * intervalMs && !document.hidden);
  document.body.classList.toggle("stale", isStale && Boolean(data));
  freshness.textContent = lastMs ? (isStale ? `as of ${clock(lastMs)}` : `● live, every ${duration(intervalMs).replace(".0", "")}`) : "";
  banner.hidden = !problem;
  if (!problem) return;
  const seconds = Math.max(0, Math.ceil((dueMs - Date.now()) / 1000));
  const since = lastMs ? `The figures are those of ${clock(lastMs)}. ` : "";
  morphChildren(banner, [
    h("span", {}, h("strong", {}, problem.message), ` ${since}`),
    h("span", { "aria-hidden": "true" }, `Next try in ${seconds} s. `),
    h("button", { type: "button", onclick: refresh }, "Try now"),
    problem.status === 401 || problem.status === 403 ? h("button", { type: "button", onclick: () => askToken(false) }, "Enter a token") : null,
  ].filter(Boolean));
}

/* theme */

const THEMES = ["auto", "light", "dark"], THEME = "rayflink.theme";

function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // a browser that stores nothing forgets it
  }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme-button");
  button.textContent = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" }[theme];
  button.setAttribute("aria-label", `Theme: ${theme}`);
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  store(THEME, theme);
  showTheme(theme);
}

/* token */

function askToken(isForced) {
  if (document.querySelector("dialog[open]") || (isForced && token() === "" && askToken.dismissed)) return;
  const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", value: "" });
  const dialog = h("dialog", { "aria-labelledby": "token-title" },
    h("form", {
      method: "dialog", onsubmit: () => {
        setToken(field.value.trim());
        refresh();
      },
    },
    h("h2", { id: "token-title" }, "Token"),
    h("p", {}, "The cluster wants a token for this. It was written into a file when the cluster started; see ",
      h("code", {}, "rayflink cluster status"), ". It is forgotten with this tab."),
    h("label", { for: "token" }, "Token"), field,
    h("p", { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      token() ? h("button", { type: "button", onclick: () => { setToken(""); dialog.close(); } }, "Forget it") : null,
      h("button", { type: "submit", class: "primary" }, "Use it"))));
  dialog.onclose = () => {
    askToken.dismissed = token() === "";
    dialog.remove();
  };
  document.body.append(dialog);
  dialog.showModal();
}

function showToken() {
  document.getElementById("token-button").textContent = token() ? "✓ Token" : "Token";
}

/* keyboard */

const SHORTCUTS = "rayflink.shortcuts";
const KEYS = [
  ["g then j, h, t, m", "go to jobs, history, task managers, job manager"], ["/", "find in the list"],
  ["[ and ]", "previous and next tab of a job"], ["r", "refresh now"], ["Esc", "close what is open beside the graph"],
  ["Enter", "on a vertex: show its subtasks"], ["?", "this help"],
];
let prefix = "";

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || stored(SHORTCUTS) === "off" && event.key !== "Escape") return;
  const isLeft = event.target.closest("dialog:not([open])"); // it is closed, and has the focus until it is removed
  if (!isLeft && event.target.closest("input, select, textarea, dialog")) return;
  const page_ = prefix === "g" && PAGES.find(([, , key]) => key === event.key);
  prefix = event.key === "g" ? "g" : "";
  if (page_) go(`#/${page_[0]}`);
  else if (event.key === "/") {
    const field = document.getElementById("find");
    if (!field) return;
    event.preventDefault();
    field.focus();
  } else if (event.key === "r") refresh();
  else if (event.key === "?") help();
  else if (event.key === "Escape") page.escape?.();
  else if (event.key === "[" || event.key === "]") page.step?.(event.key === "]" ? 1 : -1);
}

function help() {
  const box = h("input", { type: "checkbox", id: "shortcuts", checked: stored(SHORTCUTS) !== "off" });
  box.onchange = () => store(SHORTCUTS, box.checked ? "on" : "off");
  const dialog = h("dialog", { "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keyboard"),
    h("dl", { class: "keys" }, KEYS.map(([keys, text]) => h("div", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, text)))),
    h("p", {}, box, " ", h("label", { for: "shortcuts" }, "Single keys do this")),
    h("p", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close")));
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

async function begin() {
  showTheme(THEMES.includes(stored(THEME)) ? stored(THEME) : "auto");
  showToken();
  document.getElementById("theme-button").onclick = nextTheme;
  document.getElementById("token-button").onclick = () => askToken(false);
  document.getElementById("help-button").onclick = help;
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  addEventListener("hashchange", navigate);
  addEventListener("token", showToken);
  addEventListener("redraw", redraw);
  try {
    const asked = (await read("config"))["refresh-interval"];
    if (asked > 0) intervalMs = Math.max(asked, 500);
  } catch {
    // the first page says what is wrong
  }
  navigate();
  setInterval(tick, TICK_MS);
}

begin();
