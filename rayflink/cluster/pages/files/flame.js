// A flame graph as nested bars; widths are shares of the samples.

import { h } from "./dom.js";
import { count, NONE } from "./format.js";

const MOST_DEPTH = 60, LEAST_SHARE = 0.003;
let zoomed = null;

function find(node, trail) {
  return trail.reduce((current, name) => current?.children?.find((child) => child.name === name), node);
}

function rows(node, redraw) {
  const levels = [];
  const visit = (part, depth, left, width, trail) => {
    if (depth >= MOST_DEPTH || width < LEAST_SHARE) return;
    (levels[depth] ||= []).push({ part, left, width, trail });
    let at = left;
    for (const child of part.children || []) {
      const share = part.value ? (width * child.value) / part.value : 0;
      visit(child, depth + 1, at, share, [...trail, child.name]);
      at += share;
    }
  };
  visit(node, 0, 0, 1, zoomed || []);
  return levels.map((level, depth) => h("div", { class: "flame-row" }, level.map(({ part, left, width, trail }) => {
    const button = h("button", {
      type: "button", class: `flame shade-${shade(part.name)}`, title: `${part.name}: ${count(part.value)} samples`, tabindex: depth > 4 ? -1 : 0,
      onclick: () => {
        zoomed = trail.length ? trail : null;
        redraw();
      },
    }, part.name);
    button.dataset.left = (left * 100).toFixed(3);
    button.dataset.width = (width * 100).toFixed(3);
    button.setAttribute("data-place", `${button.dataset.left} ${button.dataset.width}`);
    return button;
  })));
}

const FRAMEWORK = /\((rayflink\/|threading\.py|<)|^root$/;

/** Return the shade of a frame: those of the program stand out from those of rayflink and of Python's threads. */
function shade(name) {
  if (FRAMEWORK.test(name)) return "framework";
  let sum = 0;
  for (const letter of name.split(":")[0]) sum = (sum * 31 + letter.charCodeAt(0)) % 5;
  return sum;
}

/** Return the flame graph of Flink's {data: {name, value, children}}; null: there is none. */
export function flameGraph(answer, redraw) {
  if (!answer) return h("p", { class: "empty" }, "no samples; install py-spy where the tasks run: pip install 'rayflink[profile]'");
  if (!answer.data?.value) return h("p", { class: "loading" }, "samples are being taken; they come with one of the next answers");
  const node = zoomed ? find(answer.data, zoomed) || answer.data : answer.data;
  if (node === answer.data) zoomed = null;
  const drawn = h("div", { class: "flames", role: "group", "aria-label": `Flame graph of ${answer.data.value} samples` }, rows(node, redraw));
  for (const button of drawn.querySelectorAll("button")) {
    const [left, width] = button.dataset.place.split(" ");
    button.style.left = `${left}%`;
    button.style.width = `${width}%`;
  }
  return h("div", {}, h("p", { class: "small" }, `${count(answer.data.value) || NONE} samples; a bar's width is its share of the time; orange is the program and its libraries. `,
    zoomed ? h("button", { type: "button", onclick: () => { zoomed = null; redraw(); } }, "Show all") : "Click a bar to see it alone."), drawn);
}
