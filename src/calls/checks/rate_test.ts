import assert from "node:assert/strict";
import type { Identity } from "../../config/current_config.ts";
import { parsePattern } from "../../core/pattern.ts";
import { toolId } from "../../core/tool_id.ts";
import { newCall, resolvedContext } from "../_context_test.ts";
import { Rates, withinRate } from "./rate.ts";

const rate = (pattern: string, calls: number, ms: number) => ({
  ...{ pattern: parsePattern(pattern), calls, ms, text: `${calls}` },
});
const CI: Identity = {
  ...{ name: "ci", token: "", keys: true, toolset: undefined },
  permissions: { allow: [], ask: [], deny: [] },
  rates: [rate("fs:read", 2, 1_000), rate("fs:*", 3, 60_000)],
};

Deno.test("Rates counts each call once, by every rate that its tool has, until its time is over", () => {
  const rates = new Rates();
  const take = (tool: string, callId: string, now: number) =>
    rates.take(CI, { id: toolId("fs", tool), callId }, now);
  const refused = (tool: string, now: number, seconds: number) =>
    assert.throws(() => take(tool, "refused", now), {
      code: "OVERLOADED",
      detail: { retry_after_s: seconds },
      hint: `Try again in ${seconds} s`,
    });
  take("read", "1", 0);
  take("read", "2", 100);
  take("read", "2", 200); // its pass began again
  refused("read", 300, 1);
  // What was refused counted for nothing, also not for the other rate.
  take("write", "4", 400);
  refused("write", 500, 60);
  refused("read", 1_200, 59);
  take("write", "7", 60_050);
  take("read", "8", 60_150);
  // Tools without a rate are not counted.
  for (let at = 0; at < 9; at++) rates.take(CI, { id: toolId("git", "log"), callId: `${at}` }, 0);
  rates.take({ ...CI, rates: [] }, { id: toolId("fs", "read"), callId: "9" }, 60_200);
});

Deno.test("withinRate() counts each call of an identity, and the passes of one call once", () => {
  const identity = { ...CI, rates: [rate("s:*", 2, 60_000)] };
  const policy = { now: { config: { narrowing: { identity } } } };
  const check = withinRate(policy as unknown as Parameters<typeof withinRate>[0]);
  const [first, second, third] = ["1", "2", "3"].map((callId) =>
    resolvedContext(newCall({ id: toolId("s", "t"), callId }), {})
  );
  assert.ok(first && second && third);
  for (const call of [first, first, second]) assert.equal(check(call), undefined);
  assert.throws(() => check(third), { code: "OVERLOADED" });
});
