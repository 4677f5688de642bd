import assert from "node:assert/strict";
import { memoized } from "./memo.ts";

Deno.test("memoized() makes one thing for each object, and tries again what threw", () => {
  const fails = [true, false];
  let made = 0;
  const make = memoized((from: { readonly name: string }) => {
    if (fails.shift()) throw new Error("not yet");
    return { from, count: ++made };
  });
  const [one, other] = [{ name: "a" }, { name: "a" }];
  assert.throws(() => make(one), /not yet/);
  assert.equal(make(one), make(one));
  assert.notEqual(make(one), make(other));
  assert.equal(made, 2);
});
