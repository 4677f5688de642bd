/**
 * Servers whose lists and answers have every fault, on stdio and over HTTP: each error names its
 * server and quotes its answer, and none looks like an error of PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { makeScene } from "./attacks/stage.ts";
import type { Era, Message } from "./kit/json_rpc.ts";
import { FAULTS, listen } from "./kit/odd_server.ts";
import { repoFile } from "./kit/pml_command.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";

type Json = Record<string, unknown>;

const STATUSES = [301, 400, 401, 403, 404, 405, 418, 429, 500, 502, 503, 599];
const EXPOSURE = { tools_exposure: "full_proxy" };
const LISTS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
/** Phrases of PML's own errors, which must not appear. */
const OURS = /BUG|report it|Cannot read propert|is not a function|undefined|\[object/;
/** Faults that differ between pipes and HTTP. */
const ON_PIPES = [
  "no JSON",
  "cut",
  "another id",
  "ends",
  "neither",
  "both",
  "half a page",
  "error is null",
];
/** The log line about a resource that cannot be followed. */
const UNFOLLOWED = /follow a resource of "odd\d+x": .* -?\d+/;
const LIMITS = { call_ms: 1_000, start_ms: 3_000 };

/** Sends all requests to a server. Returns each method with its answer. */
async function askAll(
  pml: RawStdio,
  name: string,
): Promise<readonly (readonly [string, Message])[]> {
  const ref = { type: "ref/prompt", name: `${name}__p` };
  const requests: readonly (readonly [string, Json])[] = [
    ["tools/call", { name: `${name}__t`, arguments: {} }],
    ["tools/call", { name: "call", arguments: { tool: `${name}:t`, arguments: {} } }],
    ["resources/read", { uri: `pml://${name}/test://a` }],
    ["prompts/get", { name: `${name}__p`, arguments: {} }],
    ["completion/complete", { ref, argument: { name: "a", value: "b" } }],
    ...pml.era === "2025-11-25"
      ? [["resources/subscribe", { uri: `pml://${name}/test://a` }] as const]
      : [],
  ];
  // At once, so that a missing answer costs its timeout once.
  return await Promise.all(
    requests.map(async ([method, params]) => [method, await pml.request(method, params)] as const),
  );
}

/** Returns an error's text if it looks like one of PML, or names no server. */
function wrongIn({ result, error }: Message, name: string): readonly string[] {
  const text = JSON.stringify(error ?? (result?.isError ? result : {}));
  // An error of the server passes unchanged.
  const isItsOwn = /It says no|long |deep|"x"|<.result>/.test(text);
  const isNamed = error === undefined && !result?.isError || text.includes(name);
  return OURS.test(text) || !isNamed && !isItsOwn ? [text.slice(0, 700)] : [];
}

/** Asserts that each server without a list is reported with its name. */
async function assertTold(pml: RawStdio): Promise<void> {
  const { result } = await pml.request("resources/read", { uri: "pml://servers" });
  const [{ text }] = result?.contents as unknown as [{ text: string }];
  assert.doesNotMatch(text, OURS);
  const states = JSON.parse(text) as readonly { name: string; state: string; why?: string }[];
  for (const { name, state, why = "" } of states) {
    if (state === "failed") assert.ok(why.includes(`"${name}"`), why);
  }
}

async function assertAll(
  era: Era,
  mcpServers: Readonly<Record<string, Readonly<{ what: string; definition: object }>>>,
): Promise<void> {
  const names = Object.keys(mcpServers);
  const definitions = Object.entries(mcpServers).map((
    [name, { definition }],
  ) => [name, definition]);
  await using scene = await makeScene({
    era,
    // PML asks about addresses that no list contains.
    capabilities: { elicitation: {} },
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
    limits: LIMITS,
    pml: {
      version: 1,
      gateway: EXPOSURE,
      permissions: { allow: names.map((name) => `${name}:*`) },
      mcpServers: Object.fromEntries(definitions),
    },
  });
  const { pml } = scene;
  await Promise.all(LISTS.map(async (method) => {
    const { error } = await pml.request(method, {});
    assert.equal(error, undefined, method);
  }));
  const wrong: string[] = [];
  await Promise.all(names.map(async (name) => {
    const what = `${mcpServers[name]?.what} on ${era}`;
    for (const [method, message] of await askAll(pml, name)) {
      wrong.push(...wrongIn(message, name).map((text) => `${method} of "${what}": ${text}`));
    }
  }));
  assert.deepEqual(wrong, []);
  await assertTold(pml);
  await pml.close();
  assert.doesNotMatch(
    pml.stderr,
    /BUG|report it|Cannot read propert|Uncaught|RpcError|\\u\{a\}/,
  );
  const mayFollow = era === "2025-11-25";
  const isRefused = Object.values(mcpServers).some(({ what }) => what === "code -32600");
  if (mayFollow && isRefused) assert.match(pml.stderr, UNFOLLOWED);
}

for (const [kind, era] of [["legacy", "2026-07-28"], ["modern", "2025-11-25"]] as const) {
  Deno.test(`no fault of a server on stdio is reported as one of PML, ${kind} for ${era}`, async () => {
    const all = ON_PIPES.map((fault, at) => {
      const args = ["run", "-A", "--quiet", repoFile("tests/kit/odd_server.ts"), kind, fault];
      // The tests use one cache of Deno, so that each start compiles nothing.
      const env = { DENO_DIR: "${DENO_DIR}" };
      return [`odd${at}x`, { what: fault, definition: { command: process.execPath, args, env } }];
    });
    await assertAll(era, Object.fromEntries(all));
  });

  Deno.test(`no fault of a server over HTTP is reported as one of PML, ${kind} for ${era}`, async () => {
    const isModern = kind === "modern";
    const faults = [
      ...Object.keys(FAULTS).map((fault) => ({ fault, isModern })),
      ...STATUSES.map((status) => ({ fault: `status ${status}`, isModern, status })),
    ];
    using servers = new DisposableStack();
    const all = await Promise.all(faults.map(async (one, at) => {
      const { url } = servers.use(await listen(one));
      return [`odd${at}x`, { what: one.fault, definition: { type: "http", url } }] as const;
    }));
    for (let at = 0; at < all.length; at += 48) {
      await assertAll(era, Object.fromEntries(all.slice(at, at + 48)));
    }
  });
}
