// Elements from values. Strings become text nodes, never markup, so a name is shown as it is, whatever it contains.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown", "onclose", "ontoggle"];
const OWNED_BY_USER = new Set(["open"]);

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Return a text in which the characters that turn the direction of others are seen and turn nothing. */
function plain(text) {
  return String(text).replace(TURNING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element[name] = value;
    else if (name === "key") element.dataset.key = value;
    else element.setAttribute(name, value === true ? "" : name === "href" ? String(value) : plain(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
  return element;
}

/** Return an element of HTML. Properties that begin with "on" are handlers, `key` is what an element is known by. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Return an element of SVG. */
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function sameKind(before, after) {
  return before.nodeType === after.nodeType && before.nodeName === after.nodeName &&
    (before.dataset?.key) === (after.dataset?.key);
}

/** Make an element look as another, and keep what is equal: focus, selection and scroll positions stay. */
export function morph(before, after) {
  if (!sameKind(before, after)) {
    before.replaceWith(after);
    return;
  }
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return;
  }
  for (const { name, value } of [...after.attributes]) {
    if (before.getAttribute(name) !== value && !OWNED_BY_USER.has(name)) before.setAttribute(name, value);
  }
  for (const { name } of [...before.attributes]) {
    if (!after.hasAttribute(name) && !OWNED_BY_USER.has(name)) before.removeAttribute(name);
  }
  for (const name of HANDLERS) {
    if (before[name] !== after[name]) before[name] = after[name];
  }
  morphChildren(before, [...after.childNodes]);
}

/** Give an element these children, in place of those that it has. */
export function morphChildren(parent, children) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    if (child.dataset?.key) keyed.set(child.dataset.key, child);
  }
  let place = parent.firstChild;
  for (const child of children) {
    const known = child.dataset?.key ? keyed.get(child.dataset.key) : undefined;
    if (known && known !== place && sameKind(known, child)) {
      parent.insertBefore(known, place);
      morph(known, child);
    } else if (place && sameKind(place, child)) {
      const following = place.nextSibling;
      morph(place, child);
      place = following;
    } else {
      parent.insertBefore(child, place);
    }
  }
  while (place) {
    const following = place.nextSibling;
    place.remove();
    place = following;
  }
}

/** Return a list of names and values. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter((pair) => pair).map(([name, ...value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Return a name that a user gave, apart from the direction of the text around it. */
export function named(name, properties = {}) {
  return h("bdi", { class: "name", title: name, ...properties }, name);
}

const STATES = {
  RUNNING: "▶", FINISHED: "✓", FAILED: "✕", FAILING: "✕", RESTARTING: "↻", CANCELED: "■", CANCELLING: "■",
  CANCELING: "■", CREATED: "○", SCHEDULED: "○", DEPLOYING: "◔", INITIALIZING: "◑", COMPLETED: "✓", IN_PROGRESS: "◔",
  SUSPENDED: "‖", RECONCILING: "↻",
};

/** Return a state with its sign and its colour. */
export function badge(state, text) {
  const kind = String(state).toLowerCase().replaceAll("_", "-");
  return h("span", { class: `badge state-${kind}` },
    h("span", { "aria-hidden": "true" }, `${STATES[state] || "?"} `), text || state);
}

/** Return a bar of the parts of the time: at work, waiting for room, idle. */
export function loadBar(busy, pressed) {
  const work = Math.min(Math.max((busy || 0) / 10, 0), 100);
  const wait = Math.min(Math.max((pressed || 0) / 10, 0), 100 - work);
  return s("svg", { class: "load", width: 64, height: 8, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "load-idle", width: 100, height: 10 }),
    s("rect", { class: "load-busy", width: work, height: 10 }),
    s("rect", { class: "load-pressed", x: work, width: wait, height: 10 }));
}

/** Return a line of figures; the last is the newest. `moments` are their times; without them they are at even distances. */
export function sparkline(values, label, moments) {
  const width = 120, height = 26, known = values.filter((value) => value !== null && Number.isFinite(value));
  const most = Math.max(...known, 0), least = Math.min(...known, 0), range = most - least || 1;
  const first = moments?.[0] ?? 0, span = (moments ? moments[moments.length - 1] - first : values.length - 1) || 1;
  return s("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    s("path", { d: linePath(values, (index) => (((moments ? moments[index] - first : index) / span) * width), (value) => height - 2 - ((value - least) / range) * (height - 4)) || "M0,0" }));
}

/** Return the path of a line through values, with a gap where one is not known. */
export function linePath(values, x, y) {
  let path = "", pen = "M";
  values.forEach((value, index) => {
    if (value === null || !Number.isFinite(value)) {
      pen = "M";
      return;
    }
    path += `${pen}${x(index).toFixed(1)},${y(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}
