import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { parseRef, partAt, withReferences } from "./_refs.ts";
import { isConditionTrue } from "./_when.ts";
import { parsePlan, type ReferenceValues, taskCalls } from "./plan.ts";

function parsed(...tasks: readonly JsonObject[]) {
  return parsePlan({ tasks }, { maxTasks: 10 });
}

function task(id: string, more: JsonObject = {}): JsonObject {
  return { id, tool: "s:t", ...more };
}

function problemsOf(...tasks: readonly JsonObject[]): string {
  try {
    parsed(...tasks);
  } catch (error) {
    assert.ok(error instanceof PmlError && error.code === "BAD_ARGUMENTS", String(error));
    return error.message;
  }
  assert.fail("the plan was taken");
}

function knowing(outputs: Readonly<Record<string, Json>>, most = 10): ReferenceValues {
  const kept = () => assert.fail("nothing is kept");
  return {
    maxCalls: most,
    maxOutputLength: 1_000,
    params: {},
    output: (id) => outputs[id],
    earlierOutput: kept,
  };
}

const REF = (text: string): JsonObject => ({ $ref: text });

Deno.test("parsePlan() orders each task after those that it names or refers to", () => {
  const { tasks } = parsed(
    task("d", { depends_on: ["c"] }),
    task("c", { when: REF("b#/ok") }),
    task("b", { arguments: { deep: [{ x: REF("a#/y") }] } }),
    task("a"),
    task("e", { for_each: REF("d"), arguments: { one: REF("$item#/x"), at: REF("$index") } }),
  );
  assert.deepEqual(tasks.map(({ id }) => id), ["a", "b", "c", "d", "e"]);
  assert.deepEqual(tasks.map(({ needs }) => needs), [[], ["a"], ["b"], ["c"], ["d"]]);
});

Deno.test("parsePlan() reports all problems with their tasks (RX7)", () => {
  const table: readonly (readonly [RegExp, readonly JsonObject[]])[] = [
    [/task "a b": .*its id is not/, [task("a b")]],
    [/task "a": .*the same id/, [task("a"), task("a")]],
    [/need each other: "a" needs "b" needs "a"$/, [
      task("a", { arguments: { x: REF("b") } }),
      task("b", { depends_on: ["a"] }),
    ]],
    [/need each other: "a" needs "a"$/, [task("a", { when: REF("a") })]],
    [/task "b": .*part of the output of "a", write \{"\$ref":"a#\/x\/y"\}/, [
      task("a"),
      task("b", { arguments: { x: REF("a.x.y") } }),
    ]],
    [/task "a": .*no task "x"; there are "a"\. .*\$literal/, [task("a", { depends_on: ["x"] })]],
    [/no task ""; .*\$literal/, [task("a", { arguments: { x: REF("#/$defs/y") } })]],
    [/"\$ref" is not a string/, [task("a", { arguments: { x: { $ref: 1 } } })]],
    [/"\$ref" must be the only member.*\$literal/, [
      task("a", { arguments: { x: { $ref: "a", type: "object" } } }),
    ]],
    [/"\$item" .*the arguments/, [task("a", { arguments: { x: REF("$item") } })]],
    [/"\$item" .*the arguments/, [task("a", { for_each: [1], when: REF("$item") })]],
    [/no task "\$params"/, [task("a", { arguments: { x: REF("$params#/x") } })]],
    [/pointer in "b#x" does not begin with "\/"/, [task("b", { arguments: { x: REF("b#x") } })]],
    [/`when` is not one of/, [task("a", { when: { any: [] } })]],
    [/`when` is not one of/, [task("a", { when: { equals: [1, 1], not: true } })]],
    [/"equals" takes two/, [task("a", { when: { equals: [1] } })]],
    [/"and" takes a list/, [task("a", { when: { not: { and: [] } } })]],
    [/`for_each` is neither/, [task("a", { for_each: "abc" })]],
    [/task "a": [^]*task "b": /, [task("a", { depends_on: ["x"] }), task("b", { when: 1 })]],
    [/Cannot run 11 tasks: limits\.plan_tasks is 10/, Array(11).fill(task("a"))],
  ];
  for (const [wanted, tasks] of table) assert.match(problemsOf(...tasks), wanted);
});

Deno.test("parsePlan() refuses so many references that parsing them would block other clients", () => {
  const plan = (count: number): JsonObject => {
    const args = { all: Array.from({ length: count }, () => REF("a")) };
    return { tasks: [{ id: "a", tool: "x:y" }, { id: "b", tool: "x:y", arguments: args }] };
  };
  const options = { maxTasks: 10, params: undefined };
  assert.equal(parsePlan(plan(9_000), options).tasks.length, 2);
  assert.throws(() => parsePlan(plan(10_000), options), /10000 references or more/);
});

Deno.test("parsePlan() refuses too deep nesting and does not parse data in $literal", async () => {
  let deep: Json = REF("a");
  for (let depth = 0; depth < 100; depth++) deep = [deep];
  assert.match(problemsOf(task("a", { arguments: { deep } })), /nested deeper than 64/);
  let not: Json = true;
  for (let depth = 0; depth < 20; depth++) not = { not };
  assert.match(problemsOf(task("a", { when: not })), /`when` is nested deeper than 16/);
  const schema = { $literal: { $ref: "#/$defs/x", type: "object" } };
  const { tasks: [only] } = parsed(task("a", { arguments: { schema } }));
  assert.ok(only !== undefined);
  const [step] = await taskCalls(only, knowing({})) ?? [];
  assert.deepEqual(step?.arguments, { schema: schema.$literal });
});

Deno.test("partAt() follows a JSON pointer and reports the existing members if it fails", () => {
  const value = { "a/b": { "~": [{ x: null }] }, text: "abc", "": 1, list: [] };
  const at = (text: string) => partAt(value, parseRef(text));
  assert.equal(at("t"), value);
  assert.equal(at("t#/a~1b/~0/0/x"), null);
  assert.equal(at("t#/"), 1);
  const table: readonly (readonly [string, RegExp])[] = [
    ["t#/nope", /"t#\/nope" is missing: "t" is an object with "a\/b", "text"/],
    ["t#/__proto__", /is missing/],
    ["t#/constructor", /is missing/],
    ["t#/list/length", /"t#\/list" is an array of 0/],
    ["t#/list/0", /is missing/],
    ["t#/a~1b/~0/-1", /is missing/],
    ["t#/a~1b/~0/00", /is missing/],
    ["t#/text/0", /"t#\/text" is a string/],
  ];
  for (const [ref, wanted] of table) assert.throws(() => at(ref), wanted, ref);
});

Deno.test("filled() creates members of any name and changes nothing else", () => {
  const given = JSON.parse('{"__proto__": {"x": {"$ref": "a"}}, "constructor": 1}');
  const value = withReferences(given, () => "taken");
  assert.equal(JSON.stringify(value), '{"__proto__":{"x":"taken"},"constructor":1}');
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(({} as Record<string, unknown>).x, undefined);
});

Deno.test("isConditionTrue() treats missing values as false", () => {
  const outputs: Readonly<Record<string, Json>> = { a: { n: 3, none: [], off: false, text: "x" } };
  const take = (ref: { source: string; pointer: string }) => partAt(outputs[ref.source] ?? {}, ref);
  const table: readonly (readonly [boolean, Json])[] = [
    [true, true],
    [true, REF("a#/n")],
    [false, REF("a#/none")],
    [false, REF("a#/off")],
    [false, REF("a#/missing")],
    [true, { exists: REF("a#/off") }],
    [false, { exists: REF("a#/missing") }],
    [true, { equals: [REF("a#/n"), 3] }],
    [true, { equals: [{ k: REF("a#/text"), l: 1 }, { $literal: { l: 1, k: "x" } }] }],
    [false, { equals: [REF("a#/missing"), null] }],
    [true, { not: { equals: [REF("a#/n"), 4] } }],
    [false, { and: [true, REF("a#/off")] }],
    [true, { or: [false, REF("a#/text")] }],
  ];
  for (const [wanted, when] of table) {
    assert.equal(isConditionTrue(when, take), wanted, JSON.stringify(when));
  }
});

Deno.test("taskCalls() returns a call for each known element", async () => {
  const { tasks } = parsed(
    task("a"),
    task("b", {
      for_each: REF("a#/list"),
      arguments: { one: REF("$item#/x"), at: REF("$index"), all: REF("a#/list"), fixed: 1 },
    }),
  );
  const [, each] = tasks;
  assert.ok(each !== undefined);
  assert.equal(await taskCalls(each, knowing({})), undefined);
  const steps = await taskCalls(each, knowing({ a: { list: [{ x: "p" }, { x: "q" }] } }));
  assert.deepEqual(steps?.map(({ index, arguments: { one, at } }) => [index, one, at]), [
    [0, "p", 0],
    [1, "q", 1],
  ]);
  const known = (list: Json, most?: number) => taskCalls(each, knowing({ a: { list } }, most));
  await assert.rejects(known("abc"), /`for_each` is not an array/);
  await assert.rejects(known([1]), /"\$item#\/x" is missing: "\$item" is a number/);
  await assert.rejects(known([{ x: "x".repeat(990) }]), /of outputs/);
  const four = known(Array(4).fill({ x: 1 }), 3);
  await assert.rejects(four, /Cannot run 4 tasks: limits\.plan_tasks is 3/);
});

Deno.test("parsePlan() accepts the parameters of a saved plan", async () => {
  const tasks = [
    task("a", { for_each: REF("$params#/list"), arguments: { x: REF("$params#/x") } }),
  ];
  const { tasks: [only], params } = parsePlan({ tasks }, {
    maxTasks: 10,
    params: { x: 1, list: [7] },
  });
  assert.ok(only !== undefined);
  const steps = await taskCalls(only, { ...knowing({}), params });
  assert.deepEqual(steps?.map(({ arguments: args }) => args), [{ x: 1 }]);
  const absent = taskCalls(only, { ...knowing({}), params: { list: [7] } });
  await assert.rejects(absent, /"\$params#\/x" is missing: "\$params" is an object with "list"/);
});

Deno.test("isConditionTrue() compares values by their parts, in any order of members", () => {
  const large = Array.from({ length: 3_000 }, (_, at) => ({ at }));
  const others = structuredClone(large);
  const take = ({ source }: { source: string }) => source === "large" ? large : others;
  assert.ok(isConditionTrue({ equals: [REF("large"), REF("others")] }, take));
  assert.ok(!isConditionTrue({ equals: [{ a: 1, b: [1, null] }, { b: [1, null], a: 2 }] }, take));
  assert.ok(!isConditionTrue({ equals: [{ a: [] }, { a: {} }] }, take));
  assert.ok(isConditionTrue({ equals: [{ a: 1, b: [1, null] }, { b: [1, null], a: 1 }] }, take));
});
