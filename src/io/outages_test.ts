import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { Outages } from "./outages.ts";

const error = new PmlError("UPSTREAM_DOWN", "Cannot reach it: it is away");
const other = new PmlError("UPSTREAM_DOWN", "Cannot reach it: it is still away");

/** Counts looks that end when they are told to. */
class Looks {
  readonly begun: PromiseWithResolvers<void>[] = [];
  readonly probe = (): Promise<void> => {
    const one = Promise.withResolvers<void>();
    this.begun.push(one);
    return one.promise;
  };
}

Deno.test("Outages lets everything pass that is not away, and looks for none of it", async () => {
  const looks = new Looks();
  const outages = new Outages();
  await outages.pass("a", looks);
  assert.equal(await outages.briefly("a", () => Promise.resolve(1)), 1);
  outages.note("a", error);
  await outages.pass("b", looks);
  assert.deepEqual([outages.of("a"), outages.of("b")], [error, undefined]);
  assert.deepEqual([outages.isDue("a"), outages.isDue("b"), looks.begun.length], [true, true, 0]);
});

Deno.test("Outages makes one look for all that wait, and lets nobody wait long for it", async () => {
  const looks = new Looks();
  const outages = new Outages();
  outages.note("a", error);
  const since = performance.now();
  const all = Array.from({ length: 10 }, () => outages.pass("a", looks).catch((why) => why));
  assert.deepEqual(new Set(await Promise.all(all)), new Set([error]));
  assert.ok(performance.now() - since < 5_000, "a look that hangs keeps nobody");
  assert.deepEqual([looks.begun.length, outages.isDue("a")], [1, false]);
  // The newest reason is told, and it is no reason for a second look.
  outages.note("a", other);
  await assert.rejects(outages.pass("a", looks), other);
  assert.equal(looks.begun.length, 1);
  const waiting = outages.pass("a", { ...looks, waitMs: 60_000 });
  looks.begun[0]?.resolve();
  await waiting;
  assert.equal(outages.of("a"), undefined);
});

Deno.test("Outages looks again after a look that failed, and not before the rest is over", async () => {
  for (const [restMs, isDue] of [[0, true], [60_000, false]] as const) {
    const looks = new Looks();
    const outages = new Outages(restMs);
    outages.note("a", error);
    assert.equal(outages.isDue("a"), isDue);
    outages.watch("a", looks.probe());
    const waiting = outages.pass("a", { ...looks, waitMs: 60_000 });
    looks.begun[0]?.reject(other);
    await assert.rejects(waiting, error);
    assert.equal(outages.isDue("a"), isDue);
    const again = outages.pass("a", { ...looks, waitMs: 60_000 });
    assert.equal(looks.begun.length, isDue ? 2 : 1);
    looks.begun[1]?.resolve();
    await (isDue ? again : assert.rejects(again, error));
  }
});

Deno.test("Outages.briefly() leaves work behind that takes long while something is away", async () => {
  const outages = new Outages();
  outages.note("a", error);
  const { promise, resolve } = Promise.withResolvers<number>();
  await assert.rejects(outages.briefly("a", () => promise), error);
  // The look comes first: the work is not begun.
  outages.watch("a", promise);
  await assert.rejects(outages.briefly("a", () => assert.fail("it began")), error);
  resolve(1);
  const value = await outages.briefly("a", () => Promise.resolve(2));
  assert.deepEqual([value, outages.of("a")], [2, undefined]);
  // What fails soon fails as it is.
  outages.note("a", error);
  await assert.rejects(outages.briefly("a", () => Promise.reject(other)), other);
});
