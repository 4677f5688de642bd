import assert from "node:assert/strict";
import { PmlError } from "../../core/errors.ts";
import { ALLOW, ASK, DENY, newCall, resolvedContext } from "../_context_test.ts";
import { configIsValid, notDenied } from "./rules.ts";

Deno.test("notDenied() throws for a denied call, and lets others pass", () => {
  for (const verdict of [ALLOW, ASK, undefined]) {
    assert.equal(notDenied(resolvedContext(newCall(), { verdict })), undefined);
  }
  const denied = resolvedContext(newCall(), { verdict: DENY });
  assert.throws(() => notDenied(denied), { code: "PERMISSION_DENIED" });
});

Deno.test("notDenied() throws for a call whose fixed arguments cannot be added, unless it is denied", () => {
  const settingsError = new PmlError("BAD_ARGUMENTS", "a key is missing");
  const call = resolvedContext(newCall(), { verdict: ALLOW });
  call.settingsError = settingsError;
  assert.throws(() => notDenied(call), settingsError);
  call.verdict = DENY;
  assert.throws(() => notDenied(call), { code: "PERMISSION_DENIED" });
});

Deno.test("configIsValid() throws the problem of a configuration that is not valid", () => {
  const config: { problem: PmlError | undefined } = { problem: undefined };
  const check = configIsValid({ now: { config } } as never); // nothing else of it is used
  const call = resolvedContext(newCall());
  assert.equal(check(call), undefined);
  config.problem = new PmlError("CONFIG_INVALID", "no");
  assert.throws(() => check(call), config.problem);
});
