// What is remarkable about a job in a list, so that the one that needs a look is found among many.

import { duration, percent } from "./format.js";
import { HIGHLY_PRESSED, BUSY } from "./graph.js";

const RECENT_MS = 600_000, LAG_MS = 60_000, HISTORICAL_MS = 30 * 86_400_000, FEW_CHECKPOINTS = 3;
const PROBLEM = 3, WARNING = 2, NOTE = 1;

/** Return [[sign, words, weight]], the worst first; a weight above 1 wants a look. */
export function jobRemarks(job) {
  if (job.has_ended) return [];
  const { completed, failed } = job.checkpoints, failure = job.last_failure, remarks = [];
  const ageMs = failure ? Math.max(job.now_ms - failure.last_ms, 0) : Infinity;
  if (["RESTARTING", "FAILING"].includes(job.state)) remarks.push(["✕", "restarts after a failure", PROBLEM]);
  else if (ageMs < RECENT_MS) remarks.push(["↻", `restarted ${duration(ageMs).replace(/\.\d/, "")} ago`, WARNING]);
  if (job.waiting) remarks.push(["◔", "waits for slots", PROBLEM]);
  if (failed && !completed) remarks.push(["✕", "no checkpoint was completed", PROBLEM]);
  else if (failed > FEW_CHECKPOINTS && failed * 4 > completed) remarks.push(["✕", `checkpoints fail (${failed} of ${failed + completed})`, WARNING]);
  if ((job.back_pressured_ms_per_second || 0) >= HIGHLY_PRESSED) remarks.push(["‖", `back-pressured ${percent(job.back_pressured_ms_per_second)}`, WARNING]);
  else if ((job.busy_ms_per_second || 0) >= BUSY) remarks.push(["▲", "busy", NOTE]);
  if (job.lag_ms > LAG_MS && job.lag_ms < HISTORICAL_MS) remarks.push(["◷", `${duration(job.lag_ms)} behind`, WARNING]);
  if (job.late_records) remarks.push(["◷", "late records", NOTE]);
  return remarks.sort((left, right) => right[2] - left[2]);
}

/** Return the weight of the worst remark; 0: there is none. */
export function weightOf(job) {
  return jobRemarks(job)[0]?.[2] || 0;
}

/** Return whether somebody should look at a job. */
export function wantsLook(job) {
  return weightOf(job) >= WARNING;
}
