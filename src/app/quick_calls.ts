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
import type { Call, Outcome, Verdict } from "../core/call.ts";
import type { Capacity } from "../core/capacity.ts";
import type { PmlError } from "../core/errors.ts";
import { OF_CAPABILITY } from "../core/known_server.ts";
import type { Back, Cancel, QuickTool } from "../core/quick_tool.ts";
import type { Pass, PassCall } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { BegunCall } from "../gateway/options.ts";
import type { Schemas } from "../gateway/schemas.ts";
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

/** Keeps what is known of the tools that were called. */
export class QuickCalls {
  readonly #options: QuickCallsOptions;
  readonly #ready = new Map<ToolId, Ready>();

  /** Takes the options; knows no tool. */
  constructor(options: QuickCallsOptions) {
    this.#options = options;
  }

  /** Keeps what a call found out that has passed all gates. */
  async passed({ id, method, via, fixed, pass }: PassCall): Promise<void> {
    const known = this.#ready.get(id);
    const { policy: { now } } = this.#options;
    const isPlain = method === undefined && fixed === undefined && !pass.isBlocked &&
      now.config.narrowing?.identity === undefined;
    // Internal tools, which capabilities reach, are nobody else's.
    if (!isPlain || via === OF_CAPABILITY || now.version !== pass.version) return;
    const definition = await pass.definition();
    const isSame = known?.pass.server === pass.server && known.definition === definition &&
      known.pass.version === pass.version && known.tool.holds();
    const tool = isSame ? known.tool : pass.server.quick?.(definition);
    if (tool === undefined) this.#ready.delete(id);
    else if (!isSame) this.#ready.set(id, { pass, tool, definition });
  }

  /** Begins a call; returns undefined, and has done nothing, if it has to pass the gates. */
  begin(request: BegunCall): Cancel | undefined {
    const { id, arguments: args } = request;
    const { policy: { now }, schemas, capacity, records } = this.#options;
    const ready = this.#ready.get(id);
    if (ready === undefined || !records.isSound) return undefined;
    if (now.version !== ready.pass.version || !ready.tool.holds()) {
      this.#ready.delete(id);
      return undefined;
    }
    const verdict = judged(now.judge, request);
    if (verdict.kind !== "allow") return undefined;
    if (!schemas.fitsAtOnce(ready.definition.inputSchema, args)) return undefined;
    if (!capacity.enter()) return undefined;
    const call = new QuickCall(request, { ...this.#options, ready, verdict });
    return (reason) => call.cancel(reason);
  }
}

/** A call that runs at once. It is the call that its records and its server see. */
class QuickCall implements Back {
  readonly callId: string = crypto.randomUUID();
  readonly #request: BegunCall;
  readonly #options: QuickCallsOptions & { readonly ready: Ready; readonly verdict: Verdict };
  #since = 0;
  #running: Running | undefined;
  #cancel: Cancel | undefined;
  #full: PassCall | undefined;
  /** What the server answered, before anything is remarked in it. */
  #came: Outcome | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  /** Writes the start record. The call is sent when it is written. */
  constructor(
    request: BegunCall,
    options: QuickCallsOptions & { readonly ready: Ready; readonly verdict: Verdict },
  ) {
    this.#request = request;
    this.#options = options;
    const { id, arguments: args, via, actor, request: of } = request;
    const { callId } = this;
    const { verdict } = options;
    const call = { id, arguments: args, via, actor, callId, request: of, verdict };
    options.records.begin(startOf(call), (error) => this.#recorded(error));
  }

  /** Gives the call up. The client waits for no answer. */
  cancel(reason: unknown): void {
    if (this.#isOver) return;
    const error = cancelled(this.#request, reason);
    if (this.#cancel === undefined) return this.failed(error);
    this.#abort?.abort(error);
    this.#cancel(error);
  }

  answered(outcome: Outcome): void {
    this.#came = outcome;
    const { schemas, ready: { definition, pass } } = this.#options;
    const { id } = this.#request;
    const { checksArguments: isChecked } = pass.server;
    const fit = schemas.fitting(outcome, { id, definition, isChecked });
    if (!(fit instanceof Promise)) return this.#ended(fit);
    fit.then((checked) => this.#ended(checked), (error) => this.failed(error));
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#over(endOfError(error));
    // It may repeat what the server sent.
    this.#request.back.failed(this.#options.redactor.cleaned(error));
  }

  ways(): PassCall {
    return this.#full ??= this.#made();
  }

  #recorded(lost: PmlError | undefined): void {
    if (this.#isOver) return;
    const { capacity, deadlines, policy, ready } = this.#options;
    const isCurrent = policy.now.version === ready.pass.version && ready.tool.holds();
    if (lost !== undefined || !isCurrent) {
      this.#isOver = true;
      capacity.leave();
      // Where the start was written, the attempt ends; the gates begin another one.
      if (lost === undefined) this.#note(endOfError(cancelled(this.#request, undefined)));
      return this.#request.again();
    }
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
    this.#over(endOfOutcome(outcome));
    this.#request.back.answered(outcome);
  }

  #over(end: ReturnType<typeof endOfError>): void {
    const { capacity, deadlines, ready: { pass }, onUse } = this.#options;
    this.#isOver = true;
    if (this.#running?.isAsking) this.#abort?.abort(inVain());
    if (this.#running !== undefined) deadlines.end(this.#running);
    capacity.leave();
    this.#note(end);
    if (this.#cancel === undefined) return;
    const { id, arguments: args, via, actor } = this.#request;
    const call = { id, arguments: args, via, actor, pass };
    onUse?.({ call, since: this.#since, outcome: this.#came });
  }

  #note(end: ReturnType<typeof endOfError>): void {
    const since = this.#since || performance.now();
    this.#options.records.end(endOf(this, { since, ...end }));
  }

  /** Makes the call with its ways back to the client, which few servers use. */
  #made(): PassCall {
    const { id, arguments: args, via, actor, request, back } = this.#request;
    const { ready: { pass }, redactor, sampled, verdict } = this.#options;
    const { callId } = this;
    const ways = back.ways();
    this.#abort = new AbortController();
    const onProgress: Call["onProgress"] = (progress) => {
      this.#running?.heard();
      ways.onProgress?.(redactor.clean(progress));
    };
    return sampled({
      ...{ id, arguments: args, via, actor, request, callId, verdict, pass },
      ...{ ...ways, onProgress, ...this.#running?.held(ways), signal: this.#abort.signal },
    });
  }
}
