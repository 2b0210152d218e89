// The key groups, and keys, with most of a vertex's records.

import { h } from "./dom.js";
import { NONE, percent } from "./format.js";

export function hotGroups(hot) {
  if (!hot || !hot.key_groups.length) return NONE;
  const groups = hot.key_groups.map((part) => `${part.group} has ${percent(part.share * 1000)}`).join(", ");
  const keys = hot.keys.map((part) => `${part.key} ${percent(part.share * 1000)}`).join(", ");
  const title = `of ${hot.sampled} sampled records`;
  return h("span", { title }, keys ? `${groups}; keys ${keys}` : groups);
}
