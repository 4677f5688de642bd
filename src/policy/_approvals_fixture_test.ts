import type { ApprovalReply } from "../protocol/answers.ts";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { Approvals } from "./approvals.ts";
import { digestOf, type Subject } from "./subject.ts";

/** A minute in milliseconds. */
export const MINUTE = 60_000;

/** Creates the subject of a question. */
export function subject(
  given: JsonObject = { path: "a.txt" },
  changes: Partial<Subject> = {},
): Subject {
  return {
    tool: toolId("filesystem", "write_file"),
    arguments: given,
    definition: "d1",
    rules: "r1",
    actor: "local",
    workspace: "/w",
    ...changes,
  };
}

/** Opens approvals with a separate home and clock. */
export async function fixture() {
  const home = await Deno.makeTempDir();
  const warnings: string[] = [];
  const clock = { now: Date.now() };
  const log = { warn: (message: string) => warnings.push(message) };
  const lifetime = { ttl: 10 * MINUTE, clock: { now: () => clock.now } };
  const approvals = new Approvals(home, log, lifetime);
  return {
    home,
    warnings,
    clock,
    approvals,
    take: async (id: string) => await approvals.meaningOf(undefined, id) === "terminal",
    /** Opens a question, advances the clock by a second, and answers. */
    answered: (asked: Subject, reply: string, about: Subject = asked) => {
      const offer = { always: "fs:write" };
      const { handle } = approvals.open([asked], offer);
      clock.now += 1_000;
      return approvals.settle({ handle, reply: reply as ApprovalReply }, digestOf([about]), offer);
    },
    [Symbol.asyncDispose]: () => Deno.remove(home, { recursive: true }),
  };
}
