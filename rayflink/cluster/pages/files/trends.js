// The figures of jobs over time: those of the last hour that the cluster remembers, then what this page has seen itself.

import { path, readIfAny } from "./api.js";

const MOST_POINTS = 120, MOST_JOBS = 200, ASK_EVERY_MS = 30_000, NEAR_MS = 8_000;
const seen = new Map(), remembered = new Map();

/** Note the figures of a job that runs. */
export function remember(figures) {
  if (figures.has_ended) return;
  let points = seen.get(figures.jid);
  if (!points) {
    if (seen.size >= MOST_JOBS) seen.delete(seen.keys().next().value);
    points = [];
    seen.set(figures.jid, points);
  }
  if (points.length && points[points.length - 1].at === figures.now_ms) return;
  points.push({
    at: figures.now_ms, read: figures.read_per_second, lag: figures.lag_ms,
    busy: figures.busy_ms_per_second, pressed: figures.back_pressured_ms_per_second,
  });
  if (points.length > MOST_POINTS) points.shift();
}

/** Return the values of one figure of a job that this page has seen, the oldest first. */
export function series(job, name) {
  return (seen.get(job) || []).map((point) => point[name]);
}

/** Ask for what the cluster remembers of a job, now and then. */
export async function recall(job) {
  const known = remembered.get(job);
  if (known && Date.now() - known.askedMs < ASK_EVERY_MS) return;
  const entry = { askedMs: Date.now(), points: known?.points || [] };
  remembered.set(job, entry);
  if (remembered.size > MOST_JOBS) remembered.delete(remembered.keys().next().value);
  const answer = await readIfAny(path`rayflink/jobs/${job}/trends`);
  entry.points = pointsOf(answer);
}

/** Return the points of an answer of the cluster. */
export function pointsOf(answer) {
  return (answer?.points || []).map(([at, read, lag, busy, pressed]) => ({ at, read, lag, busy, pressed }));
}

/** Return two rows of points as one: the second, and of the first what is far from all of it, such as while the page was hidden. */
export function joined(first, second) {
  const far = first.filter((point) => !second.some((other) => Math.abs(other.at - point.at) < NEAR_MS));
  return [...far, ...second].sort((left, right) => left.at - right.at);
}

/** Return all that is known of a job, the oldest first. */
export function history(job) {
  return joined(remembered.get(job)?.points || [], seen.get(job) || []);
}
