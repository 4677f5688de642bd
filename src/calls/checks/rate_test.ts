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

Deno.test("Rates counts each call once, for every rate of its tool, until the period ends", () => {
  const rates = new Rates();
  const count = (tool: string, callId: string, now: number) =>
    rates.count(CI, { id: toolId("fs", tool), callId }, now);
  const refused = (tool: string, now: number, seconds: number) =>
    assert.throws(() => count(tool, "refused", now), {
      code: "OVERLOADED",
      detail: { retry_after_s: seconds },
      hint: `Try again in ${seconds} s`,
    });
  count("read", "1", 0);
  count("read", "2", 100);
  count("read", "2", 200); // its checks restarted
  refused("read", 300, 1);
  // A refused call counts for no rate.
  count("write", "4", 400);
  refused("write", 500, 60);
  refused("read", 1_200, 59);
  count("write", "7", 60_050);
  count("read", "8", 60_150);
  // Tools without a rate are not counted.
  for (let at = 0; at < 9; at++) rates.count(CI, { id: toolId("git", "log"), callId: `${at}` }, 0);
  rates.count({ ...CI, rates: [] }, { id: toolId("fs", "read"), callId: "9" }, 60_200);
});

Deno.test("withinRate() counts each call of an identity, and a call whose checks restart once", () => {
  const identity = { ...CI, rates: [rate("s:*", 2, 60_000)] };
  const policy = { now: { config: { restrictions: { identity } } } };
  const check = withinRate(policy as unknown as Parameters<typeof withinRate>[0]);
  const [first, second, third] = ["1", "2", "3"].map((callId) =>
    resolvedContext(newCall({ id: toolId("s", "t"), callId }), {})
  );
  assert.ok(first && second && third);
  for (const call of [first, first, second]) assert.equal(check(call), undefined);
  assert.throws(() => check(third), { code: "OVERLOADED" });
});
