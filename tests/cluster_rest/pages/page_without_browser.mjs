// Runs the scripts of the dashboard without a browser: a document of elements that have attributes, children and text.
// It has no layout, style or input. `node page_without_browser.mjs FOLDER URL '[[HASH, STRING...]...]'` opens pages of
// the cluster at URL one after the other, each until all its strings are on it, and prints what they show.

import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

class Node {
  static TEXT_NODE = 3;
  parentNode = null;

  get nextSibling() {
    const siblings = this.parentNode ? this.parentNode.childNodes : [];
    return siblings[siblings.indexOf(this) + 1] || null;
  }

  remove() {
    if (!this.parentNode) return;
    const siblings = this.parentNode.childNodes;
    siblings.splice(siblings.indexOf(this), 1);
    this.parentNode = null;
  }

  replaceWith(other) {
    this.parentNode.insertBefore(other, this);
    this.remove();
  }
}

class Text extends Node {
  nodeType = Node.TEXT_NODE;
  nodeName = "#text";

  constructor(data) {
    super();
    this.data = data;
  }

  get textContent() {
    return this.data;
  }
}

class Element extends Node {
  nodeType = 1;
  childNodes = [];
  dataset = {};
  hidden = false;
  classList = { toggle: () => false };
  #attributes = new Map();

  constructor(name) {
    super();
    this.nodeName = name.toUpperCase();
  }

  get attributes() {
    return [...this.#attributes].map(([name, value]) => ({ name, value }));
  }

  get id() {
    return this.getAttribute("id") || "";
  }

  get firstChild() {
    return this.childNodes[0] || null;
  }

  get textContent() {
    return this.childNodes.map((child) => child.textContent).join(" ");
  }

  set textContent(text) {
    this.replaceChildren(new Text(String(text)));
  }

  getAttribute(name) {
    return this.#attributes.has(name) ? this.#attributes.get(name) : null;
  }

  setAttribute(name, value) {
    this.#attributes.set(name, String(value));
  }

  hasAttribute(name) {
    return this.#attributes.has(name);
  }

  removeAttribute(name) {
    this.#attributes.delete(name);
  }

  insertBefore(child, place) {
    child.remove();
    child.parentNode = this;
    this.childNodes.splice(place ? this.childNodes.indexOf(place) : this.childNodes.length, 0, child);
  }

  append(...children) {
    for (const child of children) this.insertBefore(child instanceof Node ? child : new Text(String(child)), null);
  }

  replaceChildren(...children) {
    for (const child of [...this.childNodes]) child.remove();
    this.append(...children);
  }

  find(isWanted) {
    for (const child of this.childNodes) {
      const found = child instanceof Element && (isWanted(child) ? child : child.find(isWanted));
      if (found) return found;
    }
    return null;
  }

  querySelector() {
    return null;
  }

  querySelectorAll() {
    return [];
  }

  getBoundingClientRect() {
    return { x: 0, y: 0, top: 0, left: 0, bottom: 0, right: 0, width: 0, height: 0 };
  }

  addEventListener() {}
  focus() {}
  scrollIntoView() {}
}

function storage() {
  const values = new Map();
  return {
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => values.set(name, value),
    removeItem: (name) => values.delete(name),
  };
}

const WITHIN_MS = 60_000;
const [folder, url, pages] = process.argv.slice(2);
const body = new Element("body");
for (const [, name, id] of readFileSync(`${folder}/index.html`, "utf8").matchAll(/<(\w+)\b[^>]*\bid="([\w-]+)"/g)) {
  const element = new Element(name);
  element.setAttribute("id", id);
  body.append(element);
}
const ask = globalThis.fetch;
const complaints = [], handlers = {};
console.error = (error) => complaints.push(String(error?.stack || error));
Object.assign(globalThis, {
  Node, body,
  document: {
    body, documentElement: new Element("html"), hidden: false, title: "", activeElement: null,
    createElement: (name) => new Element(name), createElementNS: (_, name) => new Element(name),
    createTextNode: (data) => new Text(data), getElementById: (id) => body.find((element) => element.id === id),
    querySelector: () => null, querySelectorAll: () => [], addEventListener: () => undefined,
  },
  location: { hash: "" }, scrollTo: () => undefined, requestAnimationFrame: setImmediate,
  addEventListener: (name, handler) => { handlers[name] = handler; },
  fetch: (path, options) => ask(new URL(path, `${url}/`), options),
});
for (const name of ["sessionStorage", "localStorage"]) {
  Object.defineProperty(globalThis, name, { value: storage(), configurable: true });
}
await import(pathToFileURL(`${folder}/main.js`));
const main = document.getElementById("main");
const until = Date.now() + WITHIN_MS;
for (const [hash, ...wanted] of JSON.parse(pages)) {
  const lacking = () => wanted.filter((text) => !main.textContent.includes(text));
  location.hash = hash;
  handlers.hashchange?.();
  do await new Promise((done) => setTimeout(done, 20));
  while (lacking().length && !complaints.length && Date.now() < until);
  console.log(main.textContent);
  if (lacking().length) complaints.push(`${hash} lacks ${JSON.stringify(lacking())}`);
}
console.log(complaints.join("\n"));
process.exit(complaints.length ? 1 : 0);
