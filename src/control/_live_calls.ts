/**
 * Reports when calls begin, ask and end. It uses the records that PML makes for the journal.
 *
 * @module
 */

import type { JournalRecord } from "../audit/journal.ts";
import type { CallPath } from "../app/call_path.ts";
import { withoutUndefined } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import type { CallRow } from "./api.ts";
import { rowOf, type ShownApp } from "./process_state.ts";

/** Receives the calls. */
export interface LiveCallsHost {
  onCall(row: CallRow): void;
  /** Is called after each change of a call or a question. */
  onChange(): void;
}

/** The maximum number of running calls that are kept. */
const ROWS_MAX = 10_000;

/** Follows the calls of PMLs until it is disposed. */
export class LiveCalls implements Disposable {
  readonly #process: string;
  readonly #host: LiveCallsHost;
  readonly #rows = new Map<string, CallRow>();
  readonly #watched = new Map<CallPath, Disposable>();
  readonly #apps = new Set<ShownApp["app"]>();

  /** Follows nothing yet. */
  constructor(id: string, host: LiveCallsHost) {
    this.#process = id;
    this.#host = host;
  }

  /** Follows these PMLs in addition to those of earlier calls. */
  watch(apps: readonly ShownApp[]): void {
    for (const shown of apps) {
      const { app, callPath } = shown;
      if (!this.#watched.has(callPath)) {
        this.#watched.set(
          callPath,
          callPath.watchRecords((record) => this.#takeRecord(record, shown)),
        );
        for (const call of callPath.running.all()) {
          this.#keep(rowOf(call, this.#process, shown));
        }
      }
      if (app.openGateway === undefined || this.#apps.has(app)) continue;
      this.#apps.add(app);
      app.openGateway.followQuestions(() => this.#host.onChange());
    }
  }

  /** Stops following all PMLs. */
  [Symbol.dispose](): void {
    for (const watching of this.#watched.values()) watching[Symbol.dispose]();
    for (const { openGateway } of this.#apps) openGateway?.followQuestions(undefined);
    this.#watched.clear();
    this.#rows.clear();
  }

  #keep(row: CallRow): void {
    this.#rows.set(row.id, row);
    dropOldest(this.#rows, ROWS_MAX);
  }

  #takeRecord(record: JournalRecord, { app, callPath }: ShownApp): void {
    switch (record.kind) {
      case "start": {
        const call = callPath.running.find(record.callId);
        const row = call && rowOf(call, this.#process, { app });
        if (row === undefined) return;
        this.#keep(row);
        return this.#report(row);
      }
      case "end": {
        const row = this.#rows.get(record.callId);
        if (row === undefined) return;
        this.#rows.delete(record.callId);
        return this.#report({ ...row, ...endOf(record) });
      }
      case "event":
        return this.#host.onChange();
    }
  }

  #report(row: CallRow): void {
    this.#host.onCall(row);
    this.#host.onChange();
  }
}

/** Returns the members of a row that the end of its call sets. */
export function endOf(
  { outcome, code, ms, size }: Extract<JournalRecord, { readonly kind: "end" }>,
): Pick<CallRow, "state" | "ms" | "resultBytes" | "code"> {
  return { state: stateFor(outcome, code), ms, ...withoutUndefined({ code, resultBytes: size }) };
}

function stateFor(outcome: string, code: string | undefined): CallRow["state"] {
  if (outcome === "ask") return "asking";
  if (outcome === "result") return "done";
  if (code === "CANCELLED") return "cancelled";
  return code !== undefined && REFUSALS.has(code) ? "refused" : "failed";
}

/** The codes of calls that did not run because of the user's rules or answers. */
const REFUSALS: ReadonlySet<string> = new Set([
  "PERMISSION_DENIED",
  "APPROVAL_REQUIRED",
  "APPROVAL_DECLINED",
  "APPROVAL_STALE",
  "WORKSPACE_UNTRUSTED",
  "PAUSED",
]);
