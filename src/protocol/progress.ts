/**
 * Reports of progress: of servers, and of PML itself.
 *
 * @module
 */

import type { ExactProgress, OwnReport, ProgressReport } from "./call.ts";
import { type JsonNumber, numberOf } from "../core/exact_number.ts";
import { defined } from "../core/json.ts";
import { safeText } from "./safe_text.ts";

/** Receives reports of progress. */
export type ProgressListener = (progress: ProgressReport) => void;

/** The first value of PML's own reports. It is far below the first value of a server, mostly 0. */
const FIRST_OWN = -1_000_000;
/** The least difference of two values, absolute and relative, that a JSON number can carry. */
const [LEAST_STEP, LEAST_PART] = [1e-9, 2 ** -50];

/** Parses a report, with a limit for its characters. Returns undefined if it is not valid. */
export function progressOf(
  { progress, total, message }: Readonly<Record<string, unknown>>,
  most = Infinity,
): ExactProgress | undefined {
  // The values of a request must rise, and no value is above one such as `1e400`.
  if (!isFinite(progress)) return undefined;
  return defined({
    progress,
    total: isFinite(total) ? total : undefined,
    message: typeof message === "string" ? safeText(message.slice(0, most)) : undefined,
  });
}

function isFinite(value: unknown): value is JsonNumber {
  return Number.isFinite(numberOf(value));
}

/** Returns a report of PML itself. */
export function ownProgress(own: OwnReport, message: string): ProgressReport {
  return { progress: FIRST_OWN, message, own };
}

/** Returns whether a report shows that the work continues, which extends the call's deadline. */
export function showsWork({ own }: ProgressReport): boolean {
  return own === undefined || own === "working";
}

/** Returns a listener that passes on only the reports of PML itself. */
export function ownOnly(listener: ProgressListener | undefined): ProgressListener | undefined {
  return listener && ((progress) => {
    if (progress.own !== undefined) listener(progress);
  });
}

/**
 * Returns a listener that sets the values of PML's own reports, because the values of one request
 * must rise: below those of the server before its first report, then just above the last one. Values
 * of the server keep their text.
 */
export function withRisingValues(
  listener: (progress: Omit<ProgressReport, "own">) => void,
): ProgressListener {
  let sent = FIRST_OWN;
  let last: number | undefined;
  let total: JsonNumber | undefined;
  return ({ own, ...report }) => {
    if (own === undefined) {
      const value = numberOf(report.progress);
      // A server may repeat a value. An own report in between must not make it fall.
      const isRepeated = value < sent && value >= (last ?? sent);
      last = value;
      total = report.total;
      if (isRepeated) return listener({ ...report, progress: sent });
      sent = value;
      return listener(report);
    }
    sent += last === undefined ? 1 : Math.max(LEAST_STEP, Math.abs(sent) * LEAST_PART);
    listener(defined({ ...report, progress: sent, total }));
  };
}
