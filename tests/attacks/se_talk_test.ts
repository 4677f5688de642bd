/**
 * Modules that write and read where they must not, and change objects that the code around them
 * uses.
 *
 * @module
 */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { attack } from "./evilmod/house.ts";

const TONGUES = ["log", "error", "write_sync", "write", "stderr", "node", "stream", "print"];

Deno.test("output of a module reaches no client and completes no call", async () => {
  const modules = { evil: "talk.ts", good: "good.ts" };
  const elicited: string[] = [];
  const answer = (method: string) => {
    elicited.push(method);
    return { action: "accept", content: { answer: "Always" } };
  };
  await attack(
    { modules, era: "2025-11-25", stdio: { era: "2025-11-25", answer } },
    async ({ call, pml }) => {
      const held = Array.from({ length: 5 }, () => call("evil:hold", { ms: 600 }));
      const others = Array.from({ length: 5 }, () => call("good:ping"));
      for (const how of TONGUES) {
        const summary = await call("evil:speak", { how });
        assert.match(summary.text, /honest|not a function|undefined/, how);
      }
      for (const summary of await Promise.all(held)) assert.equal(summary.text, "honest");
      for (const summary of await Promise.all(others)) assert.equal(summary.text, "pong");
      assert.deepEqual(elicited, []);
      assert.ok(!pml.stdout.includes("forged"));
    },
  );
});

Deno.test("a module that reads its process's stdin gets nothing and blocks only itself", async () => {
  const modules = { evil: "talk.ts", good: "good.ts" };
  await attack({ modules, limits: { call_ms: 3_000 } }, async ({ call, pml }) => {
    for (const how of ["sync", "later"]) {
      const listening = call("evil:listen", { how });
      const secret = `secret-${randomBytes(8).toString("hex")}`;
      assert.equal((await call("good:give", { value: secret })).text, secret);
      const summary = await listening;
      assert.ok(!summary.text.includes(secret));
      assert.equal((await call("good:ping")).text, "pong");
    }
    assert.ok(!pml.stdout.includes("nonce"));
  });
});

Deno.test("a module that changes prototypes and globals affects only itself", async () => {
  const modules = { evil: "talk.ts", good: "good.ts", odd: "odd.ts" };
  await attack({ modules, limits: { call_ms: 1_500 } }, async ({ call }) => {
    const summary = await call("evil:patch");
    assert.ok(summary.isError || summary.text === "patched" || summary.text === "", summary.text);
    assert.ok(!("polluted" in {}));
    assert.deepEqual((await call("good:give", { value: { a: [1, { b: 2 }] } })).structured, {
      a: [1, { b: 2 }],
    });
    assert.equal((await call("odd:polluted")).text, "undefined");
    assert.equal((await call("good:ping")).text, "pong");
  });
});

Deno.test("two modules share no channel for messages", async () => {
  const modules = { evil: "talk.ts", other: "talk.ts" };
  const text = `left-${randomBytes(12).toString("hex")}`;
  await attack({ modules, pml: { intent: "test" } }, async ({ call }) => {
    const left = (await call("evil:leave", { text })).structured ?? {};
    assert.ok(Object.keys(left).length >= 8);
    const found = (await call("other:find")).structured ?? {};
    assert.equal(Object.keys(found).length, Object.keys(left).length);
    for (const [place, what] of Object.entries(found)) {
      assert.ok(!String(what).includes(text), `${place}: ${what}`);
    }
  });
});
