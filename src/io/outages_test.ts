import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { Outages } from "./outages.ts";

const error = new PmlError("UPSTREAM_DOWN", "Cannot reach it: it is away");
const other = new PmlError("UPSTREAM_DOWN", "Cannot reach it: it is still away");

/** Counts probes, which the test ends. */
class Probes {
  readonly begun: PromiseWithResolvers<void>[] = [];
  readonly probe = (): Promise<void> => {
    const one = Promise.withResolvers<void>();
    this.begun.push(one);
    return one.promise;
  };
}

Deno.test("Outages.pass() makes no probe without an outage", async () => {
  const probes = new Probes();
  const outages = new Outages();
  await outages.throwDuringOutage("a", probes.probe);
  assert.equal(await outages.limitDuringOutage("a", () => Promise.resolve(1)), 1);
  outages.record("a", error);
  await outages.throwDuringOutage("b", probes.probe);
  assert.deepEqual([outages.errorOf("a"), outages.errorOf("b")], [error, undefined]);
  assert.deepEqual([outages.isDue("a"), outages.isDue("b"), probes.begun.length], [true, true, 0]);
});

Deno.test("Outages makes one probe for all callers, and no caller waits long for it", async () => {
  const probes = new Probes();
  const outages = new Outages();
  outages.record("a", error);
  const since = performance.now();
  const all = Array.from(
    { length: 10 },
    () => outages.throwDuringOutage("a", probes.probe).catch((why) => why),
  );
  assert.deepEqual(new Set(await Promise.all(all)), new Set([error]));
  assert.ok(performance.now() - since < 5_000, "a probe that hangs blocks no caller");
  assert.deepEqual([probes.begun.length, outages.isDue("a")], [1, false]);
  // The newest error is thrown, and it starts no second probe.
  outages.record("a", other);
  await assert.rejects(outages.throwDuringOutage("a", probes.probe), other);
  assert.equal(probes.begun.length, 1);
  const waiting = outages.throwDuringOutage("a", probes.probe, 60_000);
  probes.begun[0]?.resolve();
  await waiting;
  assert.equal(outages.errorOf("a"), undefined);
});

Deno.test("Outages makes another probe after the rest that follows a failed one", async () => {
  for (const [restMs, isDue] of [[0, true], [60_000, false]] as const) {
    const probes = new Probes();
    const outages = new Outages(restMs);
    outages.record("a", error);
    assert.equal(outages.isDue("a"), isDue);
    outages.setProbe("a", probes.probe());
    const waiting = outages.throwDuringOutage("a", probes.probe, 60_000);
    probes.begun[0]?.reject(other);
    await assert.rejects(waiting, error);
    assert.equal(outages.isDue("a"), isDue);
    const again = outages.throwDuringOutage("a", probes.probe, 60_000);
    assert.equal(probes.begun.length, isDue ? 2 : 1);
    probes.begun[1]?.resolve();
    await (isDue ? again : assert.rejects(again, error));
  }
});

Deno.test("Outages.limitDuringOutage() does not wait for long work during an outage", async () => {
  const outages = new Outages();
  outages.record("a", error);
  const { promise, resolve } = Promise.withResolvers<number>();
  await assert.rejects(outages.limitDuringOutage("a", () => promise), error);
  // The probe comes first: the work has not begun.
  outages.setProbe("a", promise);
  await assert.rejects(outages.limitDuringOutage("a", () => assert.fail("it began")), error);
  resolve(1);
  const value = await outages.limitDuringOutage("a", () => Promise.resolve(2));
  assert.deepEqual([value, outages.errorOf("a")], [2, undefined]);
  // An error of the work that comes soon is thrown unchanged.
  outages.record("a", error);
  await assert.rejects(outages.limitDuringOutage("a", () => Promise.reject(other)), other);
});
