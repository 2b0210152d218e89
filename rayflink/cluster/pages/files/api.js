// Requests to the dispatcher. A token is entered once and lives as long as the tab.

const TOKEN = "rayflink.token";
const READ_MS = 15_000, OPERATE_MS = 60_000;

/** An answer that is an error; status 0: there was none. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function token() {
  return sessionStorage.getItem(TOKEN) || "";
}

export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
  dispatchEvent(new Event("token"));
}

async function send(path, method, body, ms) {
  const headers = {};
  if (token()) headers.authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(ms), cache: "no-store", redirect: "error",
    });
  } catch (error) {
    throw new Problem(0, error.name === "TimeoutError" ? `no answer within ${ms / 1000} s` : "the cluster does not answer");
  }
  if (!answer.ok) throw new Problem(answer.status, await reason(answer));
  return answer;
}

async function reason(answer) {
  try {
    const { errors } = await answer.json();
    return errors.map((error) => String(error).split("\n")[0]).join(" ");
  } catch {
    return `HTTP ${answer.status}`;
  }
}

/** Return the JSON at a path. */
export async function read(path) {
  return (await send(path, "GET", undefined, READ_MS)).json();
}

/** Return the JSON at a path; null where the cluster has nothing there. */
export async function readIfAny(path) {
  try {
    return await read(path);
  } catch (problem) {
    if ([404, 405, 501, 503].includes(problem.status)) return null;
    throw problem;
  }
}

/** Return the text at a path, of which no more is read than `most` characters. */
export async function readText(path, most = 400_000) {
  const text = await (await send(path, "GET", undefined, READ_MS)).text();
  return text.length > most ? text.slice(-most) : text;
}

/** Ask for a change, and return what is answered. */
export async function operate(method, path, body = {}) {
  const answer = await send(path, method, body, OPERATE_MS);
  const text = await answer.text();
  return text ? JSON.parse(text) : {};
}

/** Return an operation's outcome, once it is known. */
export async function outcome(path, everyMs = 500) {
  for (;;) {
    const answer = await read(path);
    if (answer.status?.id !== "IN_PROGRESS") return answer.operation || {};
    await new Promise((done) => setTimeout(done, everyMs));
  }
}

/** Return why an operation has failed, in words; "" where it has not. */
export function failureOf(result) {
  const failure = result["failure-cause"];
  if (!failure) return "";
  const lines = String(failure["stack-trace"] || failure.class || failure).split("\n");
  const line = lines.filter((candidate) => candidate.startsWith("Caused by")).pop() || lines[0];
  return line.replace(/^Caused by: /, "").replace(`${failure.class}: `, "");
}

/** Return a path of parts that may contain anything. */
export function path(parts, ...values) {
  return parts.reduce((whole, part, index) => whole + part + (index < values.length ? encodeURIComponent(values[index]) : ""), "");
}
