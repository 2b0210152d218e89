// Figures as people read them; "–" stands for one that is not known.

export const NONE = "–";
const MIN_TIMESTAMP = -9223372036854775808, MAX_TIMESTAMP = 9223372036854775807;

function isKnown(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Return a number with separators. */
export function count(value) {
  return isKnown(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

function scaled(value, units, base) {
  let index = 0, rest = Math.abs(value);
  while (rest >= base && index < units.length - 1) {
    rest /= base;
    index += 1;
  }
  const digits = index === 0 ? (Number.isInteger(rest) ? 0 : 1) : rest < 10 ? 2 : rest < 100 ? 1 : 0;
  return `${value < 0 ? "-" : ""}${rest.toFixed(digits)}${units[index]}`;
}

/** Return a rate in three digits. */
export function rate(value) {
  if (!isKnown(value)) return NONE;
  return scaled(Math.abs(value) >= 100 ? Math.round(value) : value, ["", " k", " M", " G", " T"], 1000);
}

export function bytes(value) {
  return isKnown(value) && value >= 0 ? scaled(value, [" B", " KiB", " MiB", " GiB", " TiB"], 1024) : NONE;
}

export function percent(perMille) {
  return isKnown(perMille) ? `${Math.round(perMille / 10)} %` : NONE;
}

/** Return milliseconds in the two largest units. */
export function duration(ms) {
  if (!isKnown(ms)) return NONE;
  const sign = ms < 0 ? "-" : "", whole = Math.abs(ms);
  if (whole < 1000) return `${sign}${Math.round(whole)} ms`;
  if (whole < 60_000) return `${sign}${(whole / 1000).toFixed(1)} s`;
  const units = [[31_557_600_000, "y"], [86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];
  const first = units.findIndex(([size]) => whole >= size);
  const [size, unit] = units[first], [next, nextUnit] = units[first + 1];
  const rest = Math.floor((whole % size) / next);
  return `${sign}${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${nextUnit}` : ""}`;
}

function pad(value, digits = 2) {
  return String(value).padStart(digits, "0");
}

/** Return epoch milliseconds as the local time of the browser. */
export function moment(ms) {
  if (!isKnown(ms) || ms <= 0) return NONE;
  const at = new Date(ms);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${clock(ms)}`;
}

export function clock(ms) {
  const at = new Date(ms);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

/** Return a watermark: a time, none yet, or the end of the stream. */
export function watermark(ms) {
  if (!isKnown(ms) || ms <= MIN_TIMESTAMP) return "none yet";
  if (ms >= MAX_TIMESTAMP) return "end";
  return Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString().replace("T", " ").replace("Z", "") : String(ms);
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
