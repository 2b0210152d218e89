// Long lists are shown in parts, and a list by the order that a reader has chosen.

import { h } from "./dom.js";
import { count } from "./format.js";

const shown = new Map();

/** Return the first rows of a list: `most`, and as many more as the reader has asked for. */
export function firstOf(rows, name, most) {
  const wanted = shown.get(name) || most;
  return rows.length > wanted ? rows.slice(0, wanted) : rows;
}

/** Return the buttons that show more rows of a list; null: all are shown. */
export function moreOf(rows, name, most) {
  const now = firstOf(rows, name, most).length, next = Math.min(now + most, rows.length);
  if (now === rows.length) return null;
  const show = (wanted) => () => {
    shown.set(name, wanted);
    dispatchEvent(new Event("redraw"));
  };
  return h("p", { class: "more-rows small" }, `${count(now)} of ${count(rows.length)} are shown. `,
    h("button", { type: "button", onclick: show(next) }, `Show ${count(next - now)} more`), " ",
    next < rows.length ? h("button", { type: "button", onclick: show(Infinity) }, `Show all ${count(rows.length)}`) : null);
}

/** Return rows by the order of a column; those without a value are last. */
export function sorted(rows, columns, order) {
  const column = columns.find((candidate) => candidate.name === order.name);
  if (!column?.sort) return rows;
  const sign = order.down ? -1 : 1;
  const of = (row) => column.sort(row);
  return [...rows].sort((left, right) => {
    const [a, b] = [of(left), of(right)];
    if (a === b) return 0;
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return (a < b ? -1 : 1) * sign;
  });
}

/** Choose a column, or turn its order. */
export function reorder(order, name, redraw) {
  order.down = order.name === name ? !order.down : true;
  order.name = name;
  redraw();
}
