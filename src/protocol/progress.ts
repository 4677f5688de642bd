/**
 * Reports of progress: of servers, and of PML itself.
 *
 * @module
 */

import type { ExactProgress, OwnReport, ProgressReport } from "./call.ts";
import { type JsonNumber, numberOf } from "../core/exact_number.ts";
import { withoutUndefined } from "../core/json.ts";
import { safeText } from "./safe_text.ts";

/** Receives reports of progress. */
export type ProgressListener = (progress: ProgressReport) => void;

/**
 * The first value of PML's own reports: far below the first value of a server, which is mostly 0.
 */
const FIRST_OWN_VALUE = -1_000_000;
/** The minimum steps between values, absolute and relative, so that a JSON number changes. */
const [MIN_STEP, MIN_RELATIVE_STEP] = [1e-9, 2 ** -50];

/** Parses a report. Cuts its message at `maxLength` characters. Returns undefined if it is invalid. */
export function parseProgress(
  { progress, total, message }: Readonly<Record<string, unknown>>,
  maxLength = Infinity,
): ExactProgress | undefined {
  // Values must rise, and after an infinite value such as `1e400` no higher one is possible.
  if (!isFinite(progress)) return undefined;
  return withoutUndefined({
    progress,
    total: isFinite(total) ? total : undefined,
    message: typeof message === "string" ? safeText(message.slice(0, maxLength)) : undefined,
  });
}

function isFinite(value: unknown): value is JsonNumber {
  return Number.isFinite(numberOf(value));
}

/** Returns a report of PML itself. */
export function ownProgress(ownReport: OwnReport, message: string): ProgressReport {
  return { progress: FIRST_OWN_VALUE, message, ownReport };
}

/** Returns whether a report shows that the work continues, which extends the call's deadline. */
export function showsWork({ ownReport }: ProgressReport): boolean {
  return ownReport === undefined || ownReport === "working";
}

/** Returns a listener that forwards only the reports of PML itself. */
export function keepOwnReports(
  listener: ProgressListener | undefined,
): ProgressListener | undefined {
  return listener && ((progress) => {
    if (progress.ownReport !== undefined) listener(progress);
  });
}

/**
 * Returns a listener that sets the values of PML's own reports, because the values of one request
 * must rise. Before the server's first report, PML's values are below the server's values. Later they
 * are just above the server's last value. Values of the server keep their digits.
 */
export function withRisingValues(
  listener: (progress: Omit<ProgressReport, "ownReport">) => void,
): ProgressListener {
  let lastSent = FIRST_OWN_VALUE;
  let lastOfServer: number | undefined;
  let total: JsonNumber | undefined;
  return ({ ownReport, ...report }) => {
    if (ownReport === undefined) {
      const value = numberOf(report.progress);
      // A server may repeat a value. If PML has sent a higher value since, send the higher value again.
      const isRepeated = value < lastSent && value >= (lastOfServer ?? lastSent);
      lastOfServer = value;
      total = report.total;
      if (isRepeated) return listener({ ...report, progress: lastSent });
      lastSent = value;
      return listener(report);
    }
    lastSent += lastOfServer === undefined
      ? 1
      : Math.max(MIN_STEP, Math.abs(lastSent) * MIN_RELATIVE_STEP);
    listener(withoutUndefined({ ...report, progress: lastSent, total }));
  };
}
