import assert from "node:assert/strict";
import { serverDouble } from "../servers/_server_double_test.ts";
import type { ProgressReport } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { newCall, resolvedContext, servicesOf } from "./_context_test.ts";
import { CallContext } from "./context.ts";

const DEFINITION: ToolDefinition = { name: "write", inputSchema: { type: "object" } };
const SERVER = serverDouble("fs");

Deno.test("a call is current while its version is, and never where its server was blocked", () => {
  let isSame = true;
  const call = resolvedContext(newCall(), { isCurrent: () => isSame });
  assert.equal(call.isCurrent(), true);
  call.assertCurrent();
  call.resolve({ server: SERVER, version: 1, isBlocked: true });
  assert.equal(call.isCurrent(), false);
  call.resolve({ server: SERVER, version: 1, isBlocked: false });
  isSame = false;
  assert.equal(call.hasChanged, false);
  assert.throws(() => call.assertCurrent(), { code: "OVERLOADED" });
  assert.equal(call.hasChanged, true);
  call.resolve({ server: SERVER, version: 2, isBlocked: false });
  assert.equal(call.hasChanged, false, "the checks begin again");
});

Deno.test("a definition is loaded once for the checks of a call, and again when they begin again", async () => {
  for (const isLate of [false, true]) {
    let loads = 0;
    const call = resolvedContext(newCall(), {
      definition: () => {
        loads++;
        return isLate ? Promise.resolve(DEFINITION) : DEFINITION;
      },
    });
    assert.equal(await call.definition(), DEFINITION);
    assert.equal(call.definition(), DEFINITION, "later uses do not wait");
    assert.equal(call.loadedDefinition, DEFINITION);
    assert.equal(loads, 1);
    call.resolve({ server: SERVER, version: 2, isBlocked: false });
    assert.equal(call.loadedDefinition, undefined);
    await call.definition();
    assert.equal(loads, 2);
  }
});

Deno.test("assertListed() throws for a definition that was not checked", async () => {
  const call = resolvedContext(newCall(), { definition: () => Promise.resolve(DEFINITION) });
  await call.definition();
  for (const listed of [DEFINITION, structuredClone(DEFINITION)]) call.assertListed(listed);
  assert.equal(call.hasChanged, false);
  for (const listed of [undefined, { ...DEFINITION, description: "another" }]) {
    call.hasChanged = false;
    assert.throws(() => call.assertListed(listed), { code: "OVERLOADED" });
    assert.equal(call.hasChanged, true);
  }
  resolvedContext(newCall({ method: "prompts/get" })).assertListed(undefined);
});

Deno.test("arguments that were fixed are given as they came when the checks begin again", () => {
  const call = resolvedContext(newCall());
  call.arguments = { path: "a", owner: "acme" };
  call.fixed = { callerArguments: { path: "a" }, shown: { path: "a", owner: "?" } };
  call.settingsError = new PmlError("BAD_ARGUMENTS", "no");
  call.resolve({ server: SERVER, version: 2, isBlocked: false });
  assert.deepEqual(call.arguments, { path: "a" });
  assert.deepEqual([call.fixed, call.settingsError], [undefined, undefined]);
});

Deno.test("a decision that a request brings along is ignored", () => {
  const verdict = { kind: "allow", rule: "*", source: "itself" } as const;
  const call = new CallContext(newCall({ verdict }), servicesOf({}));
  assert.equal(call.verdict, undefined);
});

Deno.test("a client gets progress without secrets, and is asked for its tools each time", () => {
  const seen: unknown[] = [];
  const client = {
    onProgress: ({ message }: ProgressReport) => void seen.push(message),
    toolset: () => {
      seen.push("toolset");
      return undefined;
    },
  };
  const clean = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value).replaceAll("SECRET", "[secret]"));
  const services = { ...servicesOf({}), redactor: { clean } };
  const call = new CallContext(newCall({ client }), services);
  assert.equal(call.wantsReports, true);
  call.client.onProgress?.({ progress: 1, message: "with SECRET" });
  assert.deepEqual([call.toolset, call.client.toolset?.()], [undefined, undefined]);
  assert.deepEqual(seen, ["with [secret]", "toolset", "toolset"]);
  const silent = new CallContext(newCall(), services);
  assert.equal(silent.wantsReports, false);
  silent.client.onProgress?.({ progress: 1 });
  assert.deepEqual(
    [silent.client.onServerRequest, silent.client.onQuestion, silent.client.onOpen],
    [
      ...[undefined, undefined, undefined],
    ],
  );
});

Deno.test("a call is cancelled with its request until it ends, and not the other way", () => {
  const request = new Cancellation();
  const [open, over] = [1, 2].map(() =>
    new CallContext(newCall({ cancellation: request }), servicesOf({}))
  );
  assert.ok(open !== undefined && over !== undefined);
  over.end();
  over.cancel(new PmlError("TIMED_OUT", "late"));
  assert.equal(request.isCancelled, false);
  request.cancel("no more");
  assert.equal(open.cancellation.isCancelled, true);
  assert.equal((open.cancellation.reason as PmlError).code, "CANCELLED");
  assert.equal((over.cancellation.reason as PmlError).code, "TIMED_OUT");
});
