import assert from "node:assert/strict";
import { passCall, serverDouble } from "../core/_server_double_test.ts";
import { type Call, type Outcome, textResult } from "../core/call.ts";
import { parsePattern } from "../core/pattern.ts";
import type { PassCall, Server } from "../core/server.ts";
import { toolId } from "../core/tool_id.ts";
import { Approvals } from "./approvals.ts";
import { askGate, type GateEvent, judged, refuse } from "./gate.ts";
import { type Judge, makeJudge } from "./rules.ts";
import type { Subject } from "./subject.ts";
import { trustGate } from "./trust_gate.ts";

/** A tool of the house. */
export const WEATHER = toolId("weather", "today");
/** What its call gives. */
export const DONE: Outcome = { kind: "result", result: textResult("sunny") };

/** Makes a call of the tool. */
export function callOf(change: Partial<Call> = {}): Call {
  return {
    id: WEATHER,
    arguments: { city: "Oslo" },
    via: "test",
    actor: "local",
    signal: new AbortController().signal,
    callId: crypto.randomUUID(),
    ...change,
  };
}

/** Makes what a question about a call shows. */
export function subjectOf(call: Call): Promise<Subject> {
  const { id: tool, arguments: args, actor } = call;
  const subject = { tool, arguments: args, definition: "d", rules: "r", actor, workspace: "/ws" };
  return Promise.resolve(subject);
}

/** Begins passes like the call path: with the current server and rules. */
export function passing(server: Server, judge: () => Judge): (call: Call) => PassCall {
  return (call) => passCall({ ...call, verdict: judged(judge(), call) }, { server });
}

/** Makes a server that nobody trusts yet, with the gates before it. */
export async function house(
  rules: { readonly allow?: string[]; readonly deny?: string[]; readonly isLook?: boolean },
) {
  const home = await Deno.makeTempDir();
  const clock = { now: 1_000_000 };
  const approvals = new Approvals(home, { warn: assert.fail, now: () => clock.now, ttl: 600_000 });
  const events: GateEvent["event"][] = [];
  const ran: Call[] = [];
  const state = { trusted: false, accepted: 0, passed: 0 };
  const list = (texts: readonly string[] = []) =>
    texts.map((text) => ({ pattern: parsePattern(text), source: "x" }));
  const trusted = makeJudge({ deny: list(rules.deny), ask: [], allow: list(rules.allow) });
  const untrusted = makeJudge({ deny: [], ask: [], allow: [] });
  const judge = () => state.trusted ? trusted : untrusted;
  const asking = {
    approvals,
    subjectOf,
    alwaysOffered: () => undefined,
    always: () => Promise.resolve(),
    record: ({ event }: GateEvent) => Promise.resolve(void events.push(event)),
    read: (): object => state,
  };
  const unapproved = () =>
    Promise.resolve(
      state.trusted ? undefined : {
        code: "WORKSPACE_UNTRUSTED" as const,
        facts: ["the file /ws/.pml.json"],
        ...(rules.isLook && { isLook: true }),
        accept: () => {
          state.accepted++;
          state.trusted = true;
          return Promise.resolve();
        },
      },
    );
  const asked = askGate(asking)((call) => {
    ran.push(call);
    return Promise.resolve(DONE);
  });
  const again = passing(serverDouble("weather", { unapproved }), judge);
  const gated = trustGate({
    ...asking,
    again: admitted(again),
    isCurrent: () => true,
    workspace: () => "/ws",
  })(async (call) => {
    state.passed++;
    return await asked(call);
  });
  const callTool = (call: Call) => gated(again(call));
  const close = () => Deno.remove(home, { recursive: true });
  return { callTool, again, clock, events, ran, state, asking, [Symbol.asyncDispose]: close };
}

/** Begins passes like the call path: a call that a deny rule matches stops here. */
export function admitted(again: (call: Call) => PassCall): (call: Call) => Promise<PassCall> {
  return async (call) => {
    const next = await Promise.resolve(again(call));
    refuse(next);
    return next;
  };
}
