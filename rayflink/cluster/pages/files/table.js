// Tables, of which the first rows are shown until more are wanted.

import { h } from "./dom.js";
import { firstOf, moreOf } from "./parts.js";

const MOST_ROWS = 100;

/** Return a table. Columns are {name, value(row), number, sort}; rows have keys, and the first hundred are shown. */
export function table({ caption, columns, rows, key, empty, sorted, onsort, rowClass }) {
  const list = `${location.hash.split("?")[0]} ${caption}`, more = moreOf(rows, list, MOST_ROWS);
  const heads = columns.map((column) => {
    const direction = sorted && sorted.name === column.name ? (sorted.down ? "descending" : "ascending") : null;
    const label = onsort && column.sort
      ? h("button", { type: "button", class: "sort", onclick: () => onsort(column.name) }, column.name,
        h("span", { "aria-hidden": "true" }, direction === null ? "" : direction === "descending" ? " ▾" : " ▴"))
      : column.name;
    return h("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": direction, title: column.title },
      label);
  });
  const body = firstOf(rows, list, MOST_ROWS).map((row, index) =>
    h("tr", { key: key ? key(row) : String(index), class: rowClass ? rowClass(row) : null },
      columns.map((column, position) =>
        h(position === 0 ? "th" : "td", { scope: position === 0 ? "row" : null, class: column.number ? "number" : null },
          column.value(row)))));
  const nothing = h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, empty || "nothing"));
  const whole = h("div", { key: `table ${caption}`, class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, heads)),
      h("tbody", {}, body.length ? body : nothing)));
  return more ? h("div", { key: `long ${caption}`, class: "long" }, whole, more) : whole;
}
