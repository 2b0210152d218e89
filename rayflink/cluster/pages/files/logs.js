// The end of a log: its records by words and by level, its newest lines in view, and all that is given as a file.

import { readText } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";

const STAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}(?: \[[^\]]*\])? ?/;
const GOES_ON = /^(?:\s|$|Traceback \(most recent|During handling of|The above exception)/, LEVEL = /^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|^\{"/;
const TROUBLE = /^(?:WARNING|ERROR|CRITICAL)\b|"level(?:name)?": ?"(?:WARN|ERROR|CRIT)|^Traceback \(most recent/;
const look = { text: "", onlyTroubles: false, opened: "" };

/** Return the records of a log: each a line, with the lines of its traceback. */
export function recordsOf(text) {
  const records = [];
  let isWithin = false;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const said = line.replace(STAMP, ""), goesOn = GOES_ON.test(said);
    if (records.length && (goesOn || (isWithin && !LEVEL.test(said)))) records[records.length - 1] += `\n${line}`;
    else records.push(line);
    isWithin = goesOn && /^\s/.test(said);
  }
  return records;
}

/** Return the records that contain a text; of these, where it is asked for, warnings and errors alone. */
export function matching(records, text, onlyTroubles) {
  const wanted = text.toLowerCase(), isTrouble = (record) => record.split("\n").some((line) => TROUBLE.test(line.replace(STAMP, "")));
  return records.filter((record) => record.toLowerCase().includes(wanted) && (!onlyTroubles || isTrouble(record)));
}

async function download(address, button) {
  const name = decodeURIComponent(address.split("/").pop());
  button.disabled = true;
  try {
    const url = URL.createObjectURL(new Blob([await readText(address, Infinity)], { type: "text/plain" }));
    h("a", { href: url, download: name.includes(".") ? name : `${name}.txt` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } finally {
    button.disabled = false;
  }
}

function showEnd() {
  const shown = document.querySelector("pre.output");
  if (shown) shown.scrollTop = shown.scrollHeight;
}

/** Return a log with what finds things in it; `address` is where the whole of it is. */
export function logView(text, label, address) {
  if (!text) return h("p", { class: "empty" }, "nothing was written");
  const redraw = () => dispatchEvent(new Event("redraw"));
  if (look.opened !== address) {
    [look.opened, look.text, look.onlyTroubles] = [address, "", false];
    requestAnimationFrame(showEnd);
  }
  const records = recordsOf(text), shown = matching(records, look.text, look.onlyTroubles);
  return [
    h("div", { key: "log tools", class: "log-tools" },
      h("label", { class: "find" }, h("span", { class: "unseen" }, `Find in the ${label}`),
        h("input", { id: "find", type: "search", placeholder: "Find  ( / )", value: look.text, oninput: (event) => { look.text = event.target.value; redraw(); } })),
      h("button", { type: "button", "aria-pressed": String(look.onlyTroubles), onclick: () => { look.onlyTroubles = !look.onlyTroubles; redraw(); } }, "Warnings and errors"),
      h("button", { type: "button", onclick: (event) => download(address, event.currentTarget) }, "Download"),
      h("span", { class: "small", role: "status" }, shown.length < records.length ? `${count(shown.length)} of the last ${count(records.length)} records` : `the last ${count(records.length)} records`)),
    h("pre", { key: `log ${address}`, class: "output", tabindex: "0", role: "region", "aria-label": label }, shown.join("\n")),
  ];
}
