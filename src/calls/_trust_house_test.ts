import assert from "node:assert/strict";
import { serverDouble } from "../servers/_server_double_test.ts";
import { type Call, type Outcome, textResult } from "../protocol/call.ts";
import { parsePattern } from "../core/pattern.ts";
import type { ResolvedCall, Server } from "../servers/server.ts";
import { toolId } from "../core/tool_id.ts";
import { Approvals } from "../policy/approvals.ts";
import { type ApprovalEvent, type ApprovalHost, assertNotDenied, decisionOf } from "./decisions.ts";
import { type Judge, makeJudge } from "../policy/rules.ts";
import type { Subject } from "../policy/subject.ts";
import { newCall, newPipeline, NO_OFFERS, NO_SESSIONS, resolvedContext } from "./_context_test.ts";
import { approved } from "./checks/approval.ts";
import { notDenied } from "./checks/rules.ts";
import { serverIsTrusted } from "./checks/trust.ts";
import type { CallContext } from "./context.ts";

/** A tool of the house. */
export const WEATHER = toolId("weather", "today");
/** What its call gives. */
export const DONE: Outcome = { kind: "result", result: textResult("sunny") };
/** Rules that say nothing. */
export const NO_RULES: Judge = makeJudge({ deny: [], ask: [], allow: [] });

/** Makes a call of the tool. */
export function callOf(change: Partial<Call> = {}): Call {
  return newCall({
    id: WEATHER,
    arguments: { city: "Oslo" },
    via: "test",
    callId: crypto.randomUUID(),
    ...change,
  });
}

/** Makes what a question about a call shows. */
export function subjectOf(call: Pick<Call, "id" | "arguments" | "actor">): Promise<Subject> {
  const { id: tool, arguments: args, actor } = call;
  const subject = { tool, arguments: args, definition: "d", rules: "r", actor, workspace: "/ws" };
  return Promise.resolve(subject);
}

/** Resolves calls to a server, by the present rules. */
export function resolving(server: Server, judge: () => Judge): (call: Call) => CallContext {
  return (call) => resolvedContext(call, { server, verdict: decisionOf(judge(), call, undefined) });
}

/** Resolves calls, of which one that a deny rule matches stops here. */
export function admitted(
  resolved: (call: Call) => CallContext,
): (call: Call) => Promise<ResolvedCall> {
  return async (call) => {
    const next = await Promise.resolve(resolved(call));
    assertNotDenied(next);
    return next;
  };
}

/** Makes a pipeline that asks about servers and calls, and runs what passes. */
export function trusting(
  host: ApprovalHost,
  { resolve, isCurrent = () => true, passed, run }: {
    /** Returns the present server and rules. */
    readonly resolve: () => { readonly server: Server; readonly judge: Judge };
    readonly isCurrent?: () => boolean;
    /** Is called for each call that passed the check of its server. */
    readonly passed?: () => void;
    readonly run: (call: CallContext) => void;
  },
): (call: Call) => Promise<Outcome> {
  return async (call) => {
    using pipeline = newPipeline({
      isCurrent,
      resolve: (context) => {
        const { server, judge } = resolve();
        context.resolve({ server, version: 1, isBlocked: false });
        context.verdict = decisionOf(judge, context, undefined);
      },
      checks: [notDenied, serverIsTrusted(host), () => void passed?.(), approved(host)],
      run: (context) => {
        run(context);
        return Promise.resolve(DONE);
      },
    });
    return await pipeline.callTool(call);
  };
}

/** Makes a server that nobody trusts yet, with the checks before it. */
export async function house(
  rules: {
    readonly allow?: string[];
    readonly deny?: string[];
    readonly isOnlyForReading?: boolean;
  },
) {
  const home = await Deno.makeTempDir();
  const clock = { now: 1_000_000 };
  const lifetime = { ttl: 600_000, clock: { now: () => clock.now } };
  const approvals = new Approvals(home, { warn: assert.fail }, lifetime);
  const events: ApprovalEvent["event"][] = [];
  const ran: CallContext[] = [];
  const state = { trusted: false, accepted: 0, passed: 0 };
  const list = (texts: readonly string[] = []) =>
    texts.map((text) => ({ pattern: parsePattern(text), source: "x" }));
  const trusted = makeJudge({ deny: list(rules.deny), ask: [], allow: list(rules.allow) });
  const judge = () => state.trusted ? trusted : NO_RULES;
  const asking = {
    approvals,
    subjectOf,
    offers: NO_OFFERS,
    sessions: NO_SESSIONS,
    rules: NO_OFFERS,
    record: ({ event, call }: ApprovalEvent) => {
      assert.equal(call.id.split(":")[0], "weather", "each record names its tool");
      return Promise.resolve(void events.push(event));
    },
    currentConfig: (): object => state,
    workspace: "/ws",
  };
  const unapproved = () =>
    Promise.resolve(
      state.trusted ? undefined : {
        code: "WORKSPACE_UNTRUSTED" as const,
        facts: ["the file /ws/.pml.json"],
        ...(rules.isOnlyForReading && { isOnlyForReading: true }),
        accept: () => {
          state.accepted++;
          state.trusted = true;
          return Promise.resolve();
        },
      },
    );
  const server = serverDouble("weather", { findUnapproved: unapproved });
  const callTool = trusting(asking, {
    resolve: () => ({ server, judge: judge() }),
    passed: () => state.passed++,
    run: (call) => void ran.push(call),
  });
  const close = () => Deno.remove(home, { recursive: true });
  return {
    ...{ callTool, resolved: resolving(server, judge), server, judge },
    ...{ clock, events, ran, state, asking },
    [Symbol.asyncDispose]: close,
  };
}
