/**
 * Calls that run at once. When a call has passed all gates, it is kept what they found out: the
 * server, the definition, the version of what holds. A next call of the tool, while nothing of that
 * has changed, asks only what depends on the call itself: the rules, the schema, a place among the
 * calls that run, the journal. What is unusual about it, or goes wrong before it is sent, is left to
 * the gates.
 *
 * @module
 */

import { endOf, endOfError, endOfOutcome, startOf } from "../audit/gate.ts";
import type { Records } from "../audit/records.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Call, CallTool, Outcome, Verdict } from "../core/call.ts";
import type { Capacity } from "../core/capacity.ts";
import type { PmlError } from "../core/errors.ts";
import { OF_CAPABILITY } from "../core/known_server.ts";
import type { Back, Cancel, QuickTool } from "../core/quick_tool.ts";
import type { Pass, PassCall } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { BegunCall } from "../gateway/options.ts";
import type { Schemas } from "../gateway/schemas.ts";
import { onAbort } from "../io/waiting.ts";
import { judged } from "../permissions/gate.ts";
import type { Policy } from "../policy/policy.ts";
import type { UsedTool } from "../workflow/use_memory.ts";
import { cancelled, type Deadlines, inVain, type Running } from "./deadline.ts";

/** What quick calls stand in. */
export interface QuickCallsOptions {
  readonly policy: Policy;
  readonly schemas: Schemas;
  readonly capacity: Capacity;
  readonly records: Records;
  readonly redactor: Redactor;
  readonly deadlines: Deadlines;
  /** Whether a tool is one of the module that its author is writing. */
  readonly isDraft: (id: ToolId) => boolean;
  /** Has a provider answer what the server asks a model, if the person chose one. */
  readonly sampled: (call: PassCall) => PassCall;
  /** Is told of each call that reached its server. */
  readonly onUse: ((used: UsedTool) => void) | undefined;
}

/** A tool whose calls can run at once. */
interface Ready {
  readonly pass: Pass;
  readonly tool: QuickTool;
  readonly definition: ToolDefinition;
}

/** What a quick call stands in. */
interface QuickCallOptions extends QuickCallsOptions {
  readonly ready: Ready;
  readonly verdict: Verdict;
  /** Has the next call of the tool pass the gates. */
  readonly forget: () => void;
}

/** Keeps what is known of the tools that were called. */
export class QuickCalls {
  readonly #options: QuickCallsOptions;
  readonly #ready = new Map<ToolId, Ready>();

  /** Takes the options; knows no tool. */
  constructor(options: QuickCallsOptions) {
    this.#options = options;
  }

  /** Keeps what a call found out that has passed all gates. */
  async passed({ id, method, fixed, via, pass }: PassCall): Promise<void> {
    const known = this.#ready.get(id);
    const { policy: { now } } = this.#options;
    // Capabilities alone reach internal tools.
    const isPlain = method === undefined && fixed === undefined && via !== OF_CAPABILITY &&
      !pass.isBlocked && now.config.narrowing?.identity === undefined;
    if (!isPlain || now.version !== pass.version) return;
    const definition = await pass.definition();
    const isSame = known?.pass.server === pass.server && known.definition === definition &&
      known.pass.version === pass.version && known.tool.holds();
    const tool = isSame ? known.tool : pass.server.quick?.(definition);
    if (tool === undefined) this.#ready.delete(id);
    else if (!isSame) this.#ready.set(id, { pass, tool, definition });
  }

  /** Runs calls at once that can, and has all others pass the gates. */
  readonly before = (gated: CallTool): CallTool => (call) => {
    if (isUnusual(call)) return gated(call);
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const cancel = this.begin({
      ...call,
      back: { answered: resolve, failed: reject, ways: () => call },
      again: () => void gated(call).then(resolve, reject),
    });
    if (cancel === undefined) return gated(call);
    const waiting = onAbort(call.signal, () => cancel(call.signal.reason));
    return promise.finally(() => waiting[Symbol.dispose]());
  };

  /** Begins a call; returns undefined, and has done nothing, if it has to pass the gates. */
  begin(request: BegunCall): Cancel | undefined {
    const { id } = request;
    const { policy, capacity, records } = this.#options;
    // The gates apply a change that the watcher missed.
    if (!policy.isCurrent()) return undefined;
    const { now } = policy;
    const ready = this.#ready.get(id);
    if (ready === undefined || !records.isSound || this.#options.isDraft(id)) return undefined;
    if (now.version !== ready.pass.version || !ready.tool.holds()) {
      this.#ready.delete(id);
      return undefined;
    }
    const verdict = judged(now.judge, request);
    if (verdict.kind !== "allow") return undefined;
    // Other servers pass the gates, which check their arguments.
    if (!ready.pass.server.checksArguments) return undefined;
    if (!agrees(request, ready)) return undefined;
    if (!request.isNested && !capacity.enter()) return undefined;
    const forget = () => this.#ready.delete(id);
    const call = new QuickCall(request, { ...this.#options, ready, verdict, forget });
    return (reason) => call.cancel(reason);
  }
}

/** Returns whether the headers of a call, if it has some, say what its arguments say. */
function agrees({ agrees }: BegunCall, { definition }: Ready): boolean {
  try {
    agrees?.(definition);
    return true;
  } catch {
    return false; // the gates say why
  }
}

/** Returns whether a call has more to it than a tool and its arguments. */
function isUnusual(call: Call): boolean {
  const { method, answer, task, agrees, meta, members, facts, fixed, via, signal } = call;
  return signal.aborted || via === OF_CAPABILITY || via === "server" ||
    [method, answer, task, agrees, meta, members, facts, fixed].some((one) => one !== undefined);
}

/** A call that runs at once. It is the call that its records and its server see. */
class QuickCall implements Back {
  readonly callId: string = crypto.randomUUID();
  readonly #request: BegunCall;
  readonly #options: QuickCallOptions;
  #since = 0;
  #running: Running | undefined;
  #cancel: Cancel | undefined;
  #full: PassCall | undefined;
  /** What the server answered, before anything is remarked in it. */
  #came: Outcome | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  /** Writes the start record. The call is sent when it is written. */
  constructor(request: BegunCall, options: QuickCallOptions) {
    this.#request = request;
    this.#options = options;
    options.records.begin(startOf(this.#call), (error) => this.#recorded(error));
  }

  /** Gives the call up. The client waits for no answer. */
  cancel(reason: unknown): void {
    if (this.#isOver) return;
    const error = cancelled(this.#request, reason);
    if (this.#cancel === undefined) return this.failed(error);
    this.#abort?.abort(error);
    this.#cancel(error);
    // What ignores its signal cannot hold the caller.
    this.failed(error);
  }

  answered(outcome: Outcome): void {
    this.#came = outcome;
    const { schemas, ready: { definition, pass } } = this.#options;
    const { id } = this.#request;
    const fit = schemas.fitting(outcome, id, { definition, server: pass.server });
    if (!(fit instanceof Promise)) return this.#ended(fit);
    fit.then((checked) => this.#ended(checked), (error) => this.failed(error));
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#over(() => endOfError(error));
    // It may repeat what the server sent.
    this.#request.back.failed(this.#options.redactor.cleaned(error));
  }

  unsent(error: unknown): void {
    if (this.#isOver) return;
    this.#over(() => endOfError(error));
    this.#options.forget();
    this.#request.again();
  }

  ways(): PassCall {
    return this.#full ??= this.#made();
  }

  #recorded(lost: PmlError | undefined): void {
    if (this.#isOver) return;
    const { deadlines, policy, ready } = this.#options;
    const isCurrent = policy.now.version === ready.pass.version && ready.tool.holds();
    if (lost !== undefined) {
      this.#isOver = true;
      this.#leave();
      return this.#request.again();
    }
    // What was recorded is the attempt. The gates begin another one.
    if (!isCurrent) return this.unsent(cancelled(this.#request, undefined));
    this.#since = performance.now();
    this.#running = deadlines.begin(this.#request, (error) => this.cancel(error));
    try {
      this.#cancel = ready.tool.call(this.#request.arguments, this);
    } catch (error) {
      this.failed(error);
    }
  }

  #ended(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#over(() => endOfOutcome(outcome));
    this.#request.back.answered(outcome);
  }

  #over(end: () => ReturnType<typeof endOfError>): void {
    const { deadlines, records, onUse, ready: { definition } } = this.#options;
    this.#isOver = true;
    if (this.#running?.isAsking) this.#abort?.abort(inVain());
    if (this.#running !== undefined) deadlines.end(this.#running);
    this.#leave();
    const ended = performance.now();
    const since = this.#since || ended;
    const isSent = this.#cancel !== undefined;
    records.later(() => {
      records.end(endOf(this, { since, ended, ...end() }));
      if (isSent) onUse?.({ call: this.#call, definition, since, ended, outcome: this.#came });
    });
  }

  #leave(): void {
    if (!this.#request.isNested) this.#options.capacity.leave();
  }

  /** The call without its ways back to the client. */
  get #call() {
    const { id, arguments: args, via, actor, request, run } = this.#request;
    const { verdict, ready: { pass } } = this.#options;
    return {
      ...{ id, via, actor, request, verdict, pass, callId: this.callId },
      arguments: args,
      ...run !== undefined && { run },
    };
  }

  /** Makes the call with its ways back to the client, which few servers use. */
  #made(): PassCall {
    const { redactor, sampled } = this.#options;
    const ways = this.#request.back.ways();
    this.#abort = new AbortController();
    const onProgress: Call["onProgress"] = (progress) => {
      if (this.#running?.notes(progress) !== false) ways.onProgress?.(redactor.clean(progress));
    };
    return sampled({
      ...ways,
      ...this.#call,
      ...{ onProgress, ...this.#running?.held(ways), signal: this.#abort.signal },
    });
  }
}
