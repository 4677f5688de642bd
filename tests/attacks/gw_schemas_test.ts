/**
 * Schemas and values from the same hostile author.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { END_MS, until } from "../kit/wait.ts";
import { call, toldCode } from "./evil_servers.ts";
import { busyMs } from "./floods.ts";
import { assertAftermath, endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

/**
 * The output schema of each tool, its result, and the expected outcome. It is text because it runs
 * in a module of one file, and in a server.
 */
const CASES = String.raw`
  const many = (length, make) => Array.from({ length }, (_, at) => make(at));
  const ofA = (a, rest = {}) => ({ type: "object", properties: { a }, ...rest });
  const defs = (make) => Object.fromEntries(many(60, (at) =>
    ["d" + at, at === 0 ? { minimum: 5 } : make({ $ref: "#/$defs/d" + (at - 1) })]));
  const named = (name, inner) => ofA({ properties: { [name]: inner } });
  const slow = { pattern: "^(a+)+$" };
  const text = "a".repeat(40) + "!";
  const cases = {
    choices: [ofA({ pattern: "(a|a)".repeat(25) + "$" }), text, "wrong"],
    repeated: [ofA({ pattern: "a{0,200}".repeat(8) + "b" }), "a".repeat(2_000), "unchecked"],
    back: [ofA({ pattern: "^(a+)+\\1$" }), text, "unchecked"],
    around: [ofA({ pattern: "^(?=(a+)+$)" }), text, "unchecked"],
    enum: [ofA({ items: { enum: many(20_000, (at) => "v" + at) } }),
      many(20_000, (at) => "v" + (19_999 - at)), "fits"],
    objects: [ofA({ items: { enum: many(10_000, (at) => ({ at })) } }),
      many(100_000, (at) => ({ at })), "unchecked"],
    unique: [ofA({ uniqueItems: true }), many(60_000, (at) => [at]), "unchecked"],
    recursive: [ofA(true, { allOf: [{ $ref: "#" }] }), 1, "unchecked"],
    doubled: [ofA({ $ref: "#/$defs/d59" }, { $defs: defs((d) => ({ anyOf: [d, d] })) }), 1,
      "unchecked"],
    turned: [ofA({ $ref: "#/$defs/d59" }, { $defs: defs((d) => ({ if: d, then: d, else: d })) }), 1,
      "unchecked"],
    chained: [ofA({ items: { $ref: "#/$defs/d59" } }, { $defs: defs((d) => d) }),
      many(100_000, () => 9), "unchecked"],
    names: [ofA({ additionalProperties: { ...slow }, propertyNames: slow }),
      Object.fromEntries(many(2_000, (at) => ["a".repeat(30) + at, text])), "wrong"],
    kinds: [ofA({ items: { type: many(40_000, (at) => "x" + at).concat("number") } }),
      many(200_000, () => 1), "fits"],
    joined: [ofA({ items: { anyOf: [{ required: [many(40_000, () => 0)] }, {}] } }),
      many(20_000, () => ({})), "fits"],
    aimed: [ofA({ additionalProperties: true, unevaluatedProperties: true }),
      Object.fromEntries(many(15_000, (at) => [String((at + 1) * 32_768), 1])), "fits"],
    formats: [ofA({ items: { format: "url" } }), many(20, () => "http://" + "a".repeat(50_000)),
      "fits"],
  };
  for (const name of ["default", "enum", "const", "examples", "pattern"]) {
    cases["named_" + name] = [named(name, { ...slow }), { [name]: text }, "wrong"];
  }`;

const MODULE = `${CASES}
  const empty = { type: "object" };
  const tools = Object.entries(cases).flatMap(([name, [schema]]) => [
    ["out_" + name, { inputSchema: empty, outputSchema: schema }],
    ["in_" + name, { inputSchema: schema }],
  ]);
  export const __meta__ = { name: "evil", tools: Object.fromEntries(tools) };
  const give = (name) => () => ({ structuredContent: { a: cases[name][1] }, content: [] });
`;

const SERVER = `${CASES}
  const tools = Object.entries(cases).flatMap(([name, [schema]]) => [
    { name: "out_" + name, inputSchema: { type: "object" }, outputSchema: schema },
    { name: "in_" + name, inputSchema: schema },
  ]);
  const results = {
    initialize: () => ({
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "evil", version: "1" },
    }),
    "tools/list": () => ({ tools }),
    "tools/call": ({ name }) => ({
      content: [],
      structuredContent: { a: cases[name.replace(/^(out|in)_/, "")][1] },
    }),
  };
  let rest = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\\n");
    rest = lines.pop() ?? "";
    for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
      if (id === undefined) continue;
      const line = JSON.stringify({ jsonrpc: "2.0", id, result: results[method]?.(params) ?? {} });
      const bytes = new TextEncoder().encode(line + "\\n");
      for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
    }
  }`;

const GOOD = `
  export const __meta__ = { name: "good", tools: { ping: {} } };
  export const ping = () => "pong";`;

type Case = readonly [schema: unknown, value: unknown, kind: "fits" | "wrong" | "unchecked"];
const cases = new Function(`${CASES}; return cases;`)() as Readonly<Record<string, Case>>;
const NAMES = Object.keys(cases);
/**
 * The cases for a module. Its own child checks them, so one of each kind is enough: the child hangs
 * in a pattern, in a comparison, in references, or has too much work.
 */
const OF_MODULE = [
  "choices",
  "back",
  "objects",
  "recursive",
  "doubled",
  "chained",
  "names",
  "aimed",
];
const OTHER_NAMES =
  NAMES.map((name) => `const out_${name} = give("${name}"), in_${name} = out_${name};`).join("\n") +
  `export { ${NAMES.flatMap((name) => [`out_${name}`, `in_${name}`]).join()} };`;

/**
 * Pause between two calls of the other tool: calls without pauses would use a whole core.
 */
const PAUSE_MS = 20;

/**
 * Codes by which PML may refuse a call of the module. A result whose check hangs ends its own
 * child.
 */
const REFUSALS = [
  ...[undefined, "BAD_ARGUMENTS", "OUTPUT_INVALID", "UPSTREAM_PROTOCOL"],
  ...["TIMED_OUT", "SANDBOX_CRASHED"],
];

function sceneOf(era: Era): Promise<Scene> {
  const args = ["run", "-A", "--no-config", "--quiet", "./server.js"];
  return makeScene({
    // The test measures the time of PML alone.
    ownProcess: true,
    era,
    limits: { call_ms: 1_500 },
    files: { "evil.js": MODULE + OTHER_NAMES, "server.js": SERVER, "good.js": GOOD },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "evil:*", "served:*", "good:*"] },
      private_mcps: {
        evil: { type: "deno", path: "./evil.js" },
        good: { type: "deno", path: "./good.js" },
      },
      mcpServers: { served: { command: process.execPath, args } },
    },
  });
}

/**
 * Repeats calls of another tool while something runs, and returns for how long PML was busy at most
 * in one such call: on a busy machine, everything waits.
 */
async function longestWait({ pml }: Scene, run: () => Promise<unknown>): Promise<number> {
  const state = { isOver: false, longest: 0 };
  const pinging = (async () => {
    while (!state.isOver) {
      const since = await busyMs(pml.pid);
      assert.equal(textOf(await call(pml, "good:ping")), "pong");
      state.longest = Math.max(state.longest, await busyMs(pml.pid) - since);
      await delay(PAUSE_MS);
    }
  })();
  await Promise.all([pinging, run().finally(() => state.isOver = true)]);
  return state.longest;
}

for (const era of ERAS) {
  // Checks that hang take seconds, on each revision.
  for (const server of era === "2025-11-25" ? ["evil", "served"] : ["served"]) {
    Deno.test(`schema and result of the same author delay no other call, of ${server}, on ${era} (GW1)`, async () => {
      await using scene = await sceneOf(era);
      const { ws, pml } = scene;
      await call(pml, "good:ping");
      await call(pml, `${server}:out_kinds`);
      for (const name of server === "evil" ? OF_MODULE : NAMES) {
        const [, a] = cases[name] ?? assert.fail();
        const waits: number[] = [];
        // Other programs use the machine, too: a defect delays the gateway each time.
        do {
          waits.push(
            await longestWait(scene, async () => {
              const [out, given] = await Promise.all([
                call(pml, `${server}:out_${name}`),
                call(pml, `${server}:in_${name}`, { a }),
              ]);
              assert.ok(REFUSALS.includes(toldCode(out)), `${name}: ${toldCode(out)}`);
              assert.ok(REFUSALS.includes(toldCode(given)), `${name}: ${toldCode(given)}`);
              if (server === "served") assert.deepEqual(out.result?.structuredContent, { a });
            }),
          );
        } while (Math.min(...waits) >= 300 && waits.length < 8);
        assert.ok(Math.min(...waits) < 300, `${name}: the others waited ${waits} ms`);
      }
      await endWell(ws, pml);
    });
  }
}

const ENDS = {
  "closes stdin": async (scene: Scene) => [await scene.pml.close(), 0] as const,
  "is ended by SIGTERM": async (scene: Scene) => [await scene.pml.kill("SIGTERM"), 143] as const,
};

for (const [how, end] of Object.entries(ENDS)) {
  Deno.test(`PML ends soon when its client ${how} while schemas are checked (GW1)`, async () => {
    await using scene = await sceneOf("2025-11-25");
    const { ws, pml } = scene;
    await Promise.all(["evil", "served"].map((one) => call(pml, `${one}:out_kinds`)));
    const seen = pml.messages.length;
    for (const server of ["evil", "served"]) {
      for (const name of NAMES) {
        call(pml, `${server}:out_${name}`).catch(() => {}); // PML may end before the answer
      }
    }
    await until(() => pml.messages.length > seen);
    const [{ code, ms }, wanted] = await end(scene);
    assert.equal(code, wanted, pml.stderr);
    assert.ok(ms < END_MS, `the end took ${ms} ms`);
    await assertAftermath(ws, pml);
  });
}
