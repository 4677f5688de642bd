import assert from "node:assert/strict";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import { limitsOf } from "../config/limits.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { assertGolden } from "../../tests/kit/golden.ts";
import { LargeResults } from "./large_results.ts";
import { Results } from "./results.ts";

const { signal } = new AbortController();

/** Kept results whose selector returns the expression. */
function scene() {
  const policy = { config: { limits: { ...limitsOf({}), keptBytes: 200_000 } } };
  const selector = {
    assertValid: () => Promise.resolve(),
    select: async (_: Json, expression: string) => {
      if (expression === "busy") throw new PmlError("OVERLOADED", "busy");
      return await Promise.resolve(expression === "no" ? null : expression);
    },
  };
  const events: JsonObject[] = [];
  const journal = { record: (event: string, of: object) => void events.push({ event, ...of }) };
  const state = { kind: "allow" as "allow" | "deny" };
  const store = new Results(policy, Date.now, () => state.kind === "deny");
  const results = new LargeResults(store, { selector, journal, policy });
  const source = { id: toolId("a", "b"), arguments: { path: "c" } };
  const keep = async (output: Json) =>
    await results.keep(output, { actor: "local", reader: "call", source });
  const read = async (output: Json, more: JsonObject) => {
    const { uri = "" } = await keep(output) ?? {};
    return (await results.read({ uri, overrides: more, actor: "local", signal })).text;
  };
  return { results, keep, read, events, state };
}

Deno.test("a kept result exists for its identity alone", async () => {
  const { results, keep } = scene();
  const { uri = "" } = await keep("a\nb") ?? {};
  const read = (actor: string) => results.read({ uri, overrides: { lines: "2" }, actor, signal });
  assert.equal((await read("local")).text, "lines 2 to 2 of 2\nb");
  await assert.rejects(read("other"), { code: "BAD_ARGUMENTS" });
});

Deno.test("a kept result cannot be read after a rule denies its call", async () => {
  const { results, keep, state } = scene();
  const { uri = "" } = await keep({ a: ["b"] }) ?? {};
  const read = (more: JsonObject) => results.read({ uri, overrides: more, actor: "local", signal });
  assert.equal((await read({ pointer: "/a/0" })).text, '{"value":"b","total":1}');
  state.kind = "deny";
  const all: readonly JsonObject[] = [{}, { grep: "b" }, { pointer: "/a" }];
  for (const more of all) {
    await assert.rejects(read(more), { code: "PERMISSION_DENIED" });
  }
});

Deno.test("a result whose selection fails is kept, so that its tool need not run again", async () => {
  const { results } = scene();
  const cancellation = new Cancellation();
  const call = { id: toolId("a", "b"), arguments: {}, callId: "1", actor: "local", cancellation };
  const error = await results.selectFrom({ a: 1 }, { select: "busy", call }).catch((error) =>
    error
  );
  assert.equal(error.code, "OVERLOADED");
  const [uri = ""] = /pml:[^"]+/.exec(error.hint) ?? [];
  const { text } = await results.read({ uri, actor: "local", signal });
  assert.equal(text, '{"value":{"a":1},"total":1}');
});

Deno.test("the answer for any large result has at most 2,000 bytes", async () => {
  const { keep } = scene();
  const odd = "\u{1f600}".repeat(20_000);
  const wide = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`name${at}`, { at }]));
  let deep: Json = "x".repeat(30_000);
  for (let depth = 0; depth < 500; depth++) deep = [deep];
  const texts = ["x".repeat(50_000), "\n".repeat(50_000), `${"long ".repeat(400)}\n`.repeat(40)];
  for (const output of [...texts, odd, wide, deep, [odd], Array(9_000).fill(null)]) {
    const { text = "" } = await keep(output) ?? {};
    const { length } = new TextEncoder().encode(text);
    assert.ok(length > 100 && length <= 2_000, `${length} bytes: ${text.slice(0, 200)}`);
    assert.ok(text.isWellFormed());
  }
});

Deno.test("a text that is too large to keep is not replaced", async () => {
  const { keep } = scene();
  assert.equal(await keep("x".repeat(300_000)), undefined);
});

Deno.test("grep shows lines around few matches, and pages of many", async () => {
  const { read } = scene();
  const text = Array.from({ length: 900 }, (_, at) => at === 500 ? "the needle" : `row ${at}`).join(
    "\n",
  );
  const few = await read(text, { grep: "NEEDLE".toLowerCase() });
  assert.ok(few.startsWith("1 of 900 lines contain"));
  assert.ok(few.includes("\n500- row 499\n501: the needle\n502- row 501\n"), few);
  const many = await read(text, { grep: "row" });
  const [, next] = /next: offset=(\d+)/.exec(many) ?? [];
  assert.ok(many.length < 4_200);
  const second = await read(text, { grep: "row", offset: next ?? "" });
  assert.ok(second.includes(`\n${Number(next) + 1}: row ${next}`), second);
});

Deno.test("grep in JSON shows the small object around a match, and the pointer", async () => {
  const { read } = scene();
  const rows = Array.from({ length: 300 }, (_, id) => ({ id, "a/b": { name: `name ${id}` } }));
  assert.equal(
    await read(rows, { grep: "name 123" }),
    '1 values or names contain "name 123"\n/123/a~1b: {"name":"name 123"}',
  );
  assert.ok((await read(rows, { grep: "name" })).includes("next: offset="));
  const long = { text: `${"x\n".repeat(5_000)}here it is\n${"y".repeat(5_000)}` };
  const shown = await read([long, "z".repeat(9_000)], { grep: "here" });
  assert.ok(shown.includes("/0/text: …") && shown.includes("here it is"), shown);
});

Deno.test("select returns the value of the selector, and no match is an error with the shape", async () => {
  const { results, keep, events } = scene();
  const { uri = "" } = await keep({ a: [1] }) ?? {};
  const read = (select: string) => results.read({ uri, select, actor: "local", signal });
  assert.equal((await read("yes")).text, "yes");
  assert.equal((await read("/a/0")).text, "1");
  for (const select of ["no", "/b"]) {
    await assert.rejects(
      read(select),
      (error: Error & { code?: string }) =>
        error.code === "BAD_ARGUMENTS" && error.message.includes("{a: array(1) of number}"),
    );
  }
  assert.deepEqual(events.map(({ about }) => (about as JsonObject).select), [
    "yes",
    "/a/0",
    "no",
    "/b",
  ]);
});

Deno.test("the answers for large results and the errors of select have their text", async () => {
  const { results, keep, read } = scene();
  const log = Array.from({ length: 60 }, (_, at) => `line ${at + 1} of a log with many words`).join(
    "\n",
  );
  const rows = {
    total: 90,
    rows: Array.from({ length: 90 }, (_, id) => ({ id, name: `row ${id}` })),
  };
  const texts: string[] = [];
  for (const output of [log, rows, rows.rows]) {
    for (const reader of ["call", "execute_workflow"] as const) {
      const { text = "" } =
        await results.keep(output, { actor: "local", reader, source: undefined }) ?? {};
      texts.push(text);
    }
  }
  texts.push(await read(log, { lines: "3-5" }), await read(log, { grep: "9 of" }));
  texts.push(await read(rows, { grep: "row 8" }), await read(rows, { pointer: "/rows/7" }));
  const cancellation = Cancellation.of(signal);
  const call = { id: toolId("a", "b"), arguments: {}, callId: "1", actor: "local", cancellation };
  for (const [output, select] of [[rows, "no"], [log, "/a"]] as const) {
    const selecting = results.selectFrom(output, { select, call });
    texts.push(await selecting.catch(({ message, hint }) => `${message}\n${hint}`));
  }
  const { uri = "" } = await keep(rows) ?? {};
  const lines = results.read({ uri, overrides: { lines: "1" }, actor: "local", signal });
  texts.push(String(await lines.catch(({ message, hint }) => `${message}\n${hint}`)));
  assertGolden(
    "results/kept and read",
    texts.join("\n\n").replace(/[a-z2-7]{12}(?=\.result)/g, "ID"),
  );
});
