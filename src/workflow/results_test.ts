import assert from "node:assert/strict";
import { limitsOf } from "../config/limits.ts";
import { asPmlError } from "../core/errors.ts";
import type { Json } from "../core/json.ts";
import { pageOf, parsePageRequest, shapeLine } from "./_page.ts";
import { Results } from "./results.ts";

function store(limits = { keptBytes: 10_000, keptMs: 1_000 }) {
  const clock = { now: 0 };
  const config = { limits: { ...limitsOf({}), ...limits } };
  return { results: new Results({ config }, () => clock.now), clock };
}

function kept(results: Results, output: Json, actor = "local"): string {
  return results.put(actor, output) ?? assert.fail("the output was not kept");
}

Deno.test("Results keeps an output for its identity and a limited time", () => {
  const { results, clock } = store();
  const name = kept(results, { a: 1 });
  assert.match(name, /^[a-z2-7]{12}\.result$/);
  assert.deepEqual(results.output(name, "local"), { a: 1 });
  assert.throws(() => results.output(name, "other"), /it is not kept/);
  assert.throws(() => results.output(`${name}s`, "local"), /the run keeps "result"/);
  clock.now += 1_000;
  assert.throws(() => results.output(name, "local"), /it is not kept/);
});

Deno.test("Results removes the oldest outputs for new ones, and never an active run", () => {
  const { results } = store();
  const busy = results.begin("local", {});
  results.keep(busy, "a", "x".repeat(3_000));
  const first = kept(results, "x".repeat(3_000));
  const second = kept(results, "y".repeat(3_000));
  assert.throws(() => results.output(first, "local"), /it is not kept/);
  assert.equal(results.output(second, "local"), "y".repeat(3_000));
  assert.equal(results.output(`${busy.id}.a`, "local"), "x".repeat(3_000));
  assert.equal(results.put("local", "z".repeat(20_000)), undefined);
  results.keep(busy, "b", "z".repeat(20_000));
  assert.ok(busy.outputs.has("b"));
  assert.throws(() => results.output(`${busy.id}.b`, "local"), /the run keeps "a", "b"/);
});

Deno.test("Results suggests a plan only for runs of plans that are no longer kept", () => {
  const { results } = store();
  const hintOf = (find: () => unknown) => {
    try {
      return find();
    } catch (error) {
      return asPmlError(error).hint;
    }
  };
  assert.match(`${hintOf(() => results.output("zzzz.result", "local"))}`, /make the call again/);
  assert.match(`${hintOf(() => results.sourceOf("zzzz.result", "local"))}`, /make the call again/);
  assert.match(`${hintOf(() => results.resume("zzzz", "local"))}`, /remaining tasks/);
});

Deno.test("Results counts each identity separately and removes nothing in vain", () => {
  const { results } = store();
  const first = kept(results, "x".repeat(3_000));
  const others = kept(results, "y".repeat(3_000), "other");
  assert.equal(results.put("local", "z".repeat(20_000)), undefined);
  const busy = results.begin("local", { text: "b".repeat(3_000) });
  results.keep(busy, "b", "z".repeat(20_000));
  assert.doesNotThrow(() => results.output(first, "local"));
  // The other run is active, so this output would not fit even without the first one.
  assert.equal(results.put("local", "z".repeat(8_000)), undefined);
  assert.doesNotThrow(() => results.output(first, "local"));
  for (let at = 0; at < 9; at++) kept(results, "x".repeat(2_000));
  assert.throws(() => results.output(first, "local"), /it is not kept/);
  assert.doesNotThrow(() => results.output(others, "other"));
  assert.throws(() => results.begin("local", { text: "x".repeat(9_000) }), { code: "OVERLOADED" });
  results.end(busy);
  // Refused and finished runs take no space.
  kept(results, "x".repeat(7_000));
  assert.doesNotThrow(() => results.output(others, "other"));
});

Deno.test("pageOf() returns a part that fits and the next offset", () => {
  const list = Array.from({ length: 5_000 }, (_, n) => ({ n, text: "abc" }));
  const read = (value: Json, uri: string) => pageOf(value, parsePageRequest(uri));
  const first = read(list, "pml://results/abcdefghijkl.a");
  const { value, total, next } = first as { value: Json[]; total: number; next: number };
  assert.ok(JSON.stringify(value).length < 20_000);
  assert.deepEqual([total, next], [5_000, value.length]);
  assert.deepEqual(read(list, "abcdefghijkl.a?offset=4999"), {
    value: [{ n: 4_999, text: "abc" }],
    offset: 4_999,
    total: 5_000,
  });
  assert.deepEqual(read(list, "abcdefghijkl.a?limit=1#/7"), {
    value: { n: 7 },
    total: 2,
    next: 1,
  });
  assert.deepEqual(read(list, "abcdefghijkl.a?pointer=/7/text&limit=2"), {
    value: "ab",
    total: 3,
    next: 2,
  });
  assert.deepEqual(read({ "a b": 1 }, "abcdefghijkl.a#/a%20b"), { value: 1 });
  const large = { one: "x".repeat(50_000), two: 2 };
  assert.deepEqual(read(large, "abcdefghijkl.a"), {
    value: { one: "too large, string(50000)" },
    total: 2,
    next: 1,
  });
  assert.throws(() => read(list, "abcdefghijkl.a#/5000"), /"abcdefghijkl\.a" is an array of 5000/);
  for (const uri of ["", "pml://results/", "a#/b", "abcdefghijkl.a?offset=x", "abcdefghijkl.a#b"]) {
    assert.throws(() => read(list, uri), { code: "BAD_ARGUMENTS" }, uri);
  }
});

Deno.test("pageOf() reads only the elements of its page", () => {
  let looked = 0;
  const list = new Proxy<Json[]>(Array(400_000).fill(1), {
    get: (all, key) => {
      if (/^\d/.test(String(key))) looked++;
      return Reflect.get(all, key);
    },
  });
  const request = { name: "x", pointer: "", offset: 200_000, limit: 2 };
  assert.deepEqual(pageOf(list, request).value, [1, 1]);
  assert.equal(looked, 2);
});

Deno.test("shapeOf() returns types and names but no values", () => {
  const value = { id: 1, tags: ["secret"], "odd name\u202e": null, deep: { a: [{ b: [[]] }] } };
  assert.equal(
    shapeLine(value),
    '{id: number, tags: array(1) of string, "odd name\\u{202e}": null, ' +
      "deep: {a: array(1) of {b: array(1)}}}",
  );
  assert.ok(
    shapeLine(Object.fromEntries(Array(900).fill("k").map((k, n) => [k + n, 1]))).length < 400,
  );
});
