/**
 * Calls in the pipeline, and pipelines of a few parts, for tests.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Journal, JournalRecord } from "../audit/journal.ts";
import { Records } from "../audit/records.ts";
import { serverDouble } from "../servers/_server_double_test.ts";
import { type Call, type CallTool, NO_CLIENT, type Outcome, textResult } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { Cancellation } from "../core/cancellation.ts";
import type { PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import { Capacity } from "./capacity.ts";
import type { Check } from "./checks/check.ts";
import { CallContext, type CallServices } from "./context.ts";
import { Deadlines } from "./deadline.ts";
import { CallPipeline, type CallRunner, type PipelineHost } from "./pipeline.ts";

/** The outcome of a call that ran. */
export const DONE: Outcome = { kind: "result", result: textResult("done") };
/** The decisions of rules. */
export const ALLOW: Verdict = { kind: "allow", rule: "fs:*", source: "file" };
export const ASK: Verdict = { kind: "ask", rule: "*", source: "defaults" };
export const DENY: Verdict = { kind: "deny", rule: "fs:*", source: "/w/.pml.json" };

/** Returns a call of a tool, without a client. */
export function newCall(changes: Partial<Call> = {}): Call {
  return {
    id: toolId("fs", "write"),
    arguments: { path: "a" },
    via: "tools/call",
    actor: "local",
    cancellation: new Cancellation(),
    client: NO_CLIENT,
    callId: "1",
    ...changes,
  };
}

/** What a test sets of a call in the pipeline. */
export interface Resolved {
  readonly server?: Server;
  readonly verdict?: Verdict | undefined;
  readonly definition?: () => Maybe<ToolDefinition>;
  /** Returns whether the configuration is still the same. */
  readonly isCurrent?: () => boolean;
}

/** Returns services without secrets or a model. */
export function servicesOf(
  { definition = () => ({ name: "t", inputSchema: {} }), isCurrent = () => true }: Resolved,
): CallServices {
  return {
    isCurrent,
    loadDefinition: definition,
    withSampling: (_, client) => client,
    redactor: { clean: (value) => value },
  };
}

/** Returns a call whose server was found. */
export function resolvedContext(call: Call, resolved: Resolved = {}): CallContext {
  const context = new CallContext(call, servicesOf(resolved));
  const { server = serverDouble("double"), verdict } = resolved;
  context.resolve({ server, version: 1, isBlocked: false });
  context.verdict = verdict;
  return context;
}

/** The parts of a pipeline. All others do nothing. */
export interface PipelineParts extends Resolved {
  readonly checks?: readonly Check[];
  /** Runs a call. By default it ends with `DONE`. */
  readonly run?: (call: CallContext) => Promise<Outcome>;
  readonly checkResult?: CallRunner["checkResult"];
  readonly deadlines?: Deadlines;
  readonly capacity?: Capacity;
  /** Resolves a call each time that its checks begin. By default to `server` and `verdict`. */
  readonly resolve?: (call: CallContext) => void;
  /** Returns when a record of a start is written. Rejects if it cannot be. */
  readonly written?: () => Promise<void>;
  readonly mayRunUnrecorded?: () => boolean;
  /** The journal; by default one that `records()` returns. */
  readonly journal?: Journal;
}

/** A pipeline of a test. */
export interface TestPipeline extends Disposable {
  readonly pipeline: CallPipeline;
  readonly callTool: CallTool;
  /** Returns the records so far. */
  readonly records: () => readonly JournalRecord[];
}

/** Makes a pipeline of a few parts. */
export function newPipeline(parts: PipelineParts = {}): TestPipeline {
  const noted: JournalRecord[] = [];
  const journal = parts.journal ?? journalOf(noted, parts.written);
  const log = { error: assert.fail, info: () => {} };
  const records = new Records({ open: () => journal }, log, { countRecord() {} });
  const deadlines = parts.deadlines ?? new Deadlines(() => ({ callMs: 60_000, capMs: 60_000 }));
  const { run = () => Promise.resolve(DONE), checkResult = (_call, outcome) => outcome } = parts;
  const { server = serverDouble("double"), verdict } = parts;
  const resolve = parts.resolve ?? ((call: CallContext) => {
    call.resolve({ server, version: 1, isBlocked: false });
    call.verdict = verdict;
  });
  const { redactor, ...services } = servicesOf(parts);
  const host: PipelineHost = {
    ...services,
    redactor: { ...redactor, cleanError: (error) => error },
    capacity: parts.capacity ??
      new Capacity(() => ({ concurrentCalls: 64, queuedCalls: 0 }), () => {}),
    resolver: { resolve: (call) => void resolve(call) },
    records,
    deadlines,
    runner: { run, checkResult, signIn: () => Promise.resolve(false) },
    mayRunUnrecorded: () => Promise.resolve(parts.mayRunUnrecorded?.() ?? false),
    errorFor: (_, error) => error,
  };
  const pipeline = new CallPipeline(host, parts.checks ?? []);
  return {
    pipeline,
    callTool: pipeline.call,
    records: () => {
      // The records of ends are written after the answers.
      records[Symbol.dispose]();
      return noted;
    },
    [Symbol.dispose]: () => {
      deadlines[Symbol.dispose]();
      records[Symbol.dispose]();
    },
  };
}

/** Returns a journal that keeps its records in an array. */
function journalOf(
  noted: JournalRecord[],
  written: () => Promise<void> = () => Promise.resolve(),
): Journal {
  const journal = {
    append: (record: JournalRecord, done?: (error?: PmlError) => void) => {
      noted.push(record);
      if (done !== undefined) written().then(() => done(), done);
    },
    end: (record: JournalRecord) => void noted.push(record),
    [Symbol.dispose]() {},
  };
  return journal as unknown as Journal; // nothing else of it is used
}

/** Sessions without answers. */
export const NO_SESSIONS = {
  covers: () => Promise.resolve(false),
  keep: () => Promise.reject(new Error("no answer is for a session")),
};

/** Questions without other answers. */
export const NO_OFFERS = {
  findAnswers: () => Promise.resolve({}),
  offeredRule: () => undefined,
  reachOf: () => "",
  add: () => Promise.resolve(),
  addTools: () => Promise.reject(new Error("no answer is for several tools")),
  deny: () => Promise.reject(new Error("no answer denies a tool")),
};
