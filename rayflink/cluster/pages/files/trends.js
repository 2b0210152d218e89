// What this page has seen of each job since it was opened, for the lines beside the figures.

const MOST_POINTS = 120, MOST_JOBS = 200;
const seen = new Map();

/** Note the figures of a job. */
export function remember(figures) {
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

/** Return the values of one figure of a job, the oldest first. */
export function series(job, name) {
  return (seen.get(job) || []).map((point) => point[name]);
}
