// Dialogs: each asks before something changes, and shows why it was refused.

import { Problem, setToken } from "./api.js";
import { h } from "./dom.js";

/** Return a labelled field. */
export function field(id, label, properties, note) {
  return h("p", { class: "field" }, h("label", { for: id }, label), h("input", { id, ...properties }),
    note ? h("span", { class: "small" }, note) : null);
}

/** Ask for a confirmation. `run` takes the form; what it raises is shown, and the dialog stays. */
export function ask({ title, text, fields, verb, busy, isDangerous, run }) {
  const refusal = h("p", { class: "bad", role: "alert" }), progress = h("p", { class: "small", role: "status" });
  const secret = h("input", { id: "own-token", type: "password", autocomplete: "off", spellcheck: "false" });
  const pass = h("p", { class: "field", hidden: true }, h("label", { for: "own-token" }, "Token"), secret,
    h("span", { class: "small" }, "it was written into a file when the cluster started, and is forgotten with this tab"));
  const button = h("button", { type: "submit", class: isDangerous ? "danger" : "primary" }, verb);
  const dialog = h("dialog", { "aria-labelledby": "ask-title" });
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      refusal.textContent = "";
      progress.textContent = busy ? `◔ ${busy}…` : "";
      if (secret.value.trim()) setToken(secret.value.trim());
      try {
        await run(form);
        dialog.close();
      } catch (problem) {
        refusal.textContent = problem.message;
        if (problem instanceof Problem && [401, 403].includes(problem.status)) {
          pass.hidden = false;
          secret.value = "";
          secret.focus();
        }
        button.disabled = false;
        progress.textContent = "";
        refusal.scrollIntoView({ block: "nearest" });
      }
    },
  }, h("h2", { id: "ask-title" }, title), text.map((line) => h("p", {}, line)), (fields || []).filter(Boolean), progress, refusal, pass,
  h("p", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Back"), button));
  dialog.append(form);
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
