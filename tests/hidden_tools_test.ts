/**
 * Requests for a tool that an identity may not use have the same answers as requests for a missing
 * one, with every method.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { approve, WEATHER } from "./capability_scene.ts";
import { DoorClient } from "./kit/door_client.ts";
import { FullHttp } from "./kit/full_http.ts";
import { servePml } from "./kit/pml_serve.ts";
import { writeConfig } from "./script_scene.ts";

const TOKENS = { denied: "token-of-the-one-0001", chosen: "token-of-the-other-0002" };
/**
 * A hidden tool and a missing one each; their names are alike, so that errors suggest the same
 * name.
 */
const PAIRS = [
  ["filesystem:write_file", "filesystem:brite_file"],
  ["weather:warn", "xeather:warn"],
  ["full:add", "fuxx:add"],
  ["my:saved", "xy:saved"],
] as const;
const READ = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };

type Request = readonly [method: string, params: Record<string, unknown>];

/** Returns requests that name a tool, or its server. */
function requestsOf(id: string): readonly Request[] {
  const [server = "", tool] = id.split(":");
  const [args, name] = [{ path: "made.txt", content: "x" }, `${server}__prompt`];
  const uri = `pml://${server}/test://a`;
  const one = { tool: id, arguments: args };
  const tools: readonly Request[] = [
    [`${server}__${tool}`, args],
    [`${server}__${tool}`, { odd: 1 }],
    ["call", one],
    ["call", { tool: `${server}:@tools` }],
    ["schema", { tools: [id, READ.tool] }],
    ["schema", { tools: [id, READ.tool], as: "typescript" }],
    ["batch", { calls: [one, READ] }],
    ["execute_workflow", { plan: { tasks: [{ id: "w", ...one }] } }],
    ["execute_workflow", {
      plan: {
        tasks: [{ id: "r", ...READ }, {
          id: "w",
          tool: id,
          arguments: { path: "$r", content: "" },
        }],
      },
    }],
    ["execute_code", {
      code: withoutTypeCheck(`return await mcp["${id}"](${JSON.stringify(args)})`),
    }],
  ].map(([name, args]) => ["tools/call", { name, arguments: args }]);
  return [
    ...tools,
    ["prompts/get", { name, arguments: {} }],
    ["resources/read", { uri }],
    ["completion/complete", {
      ref: { type: "ref/prompt", name },
      argument: { name: "a", value: "b" },
    }],
  ];
}

/**
 * Sends all requests about a tool. Returns the answers without its names and without random ids.
 */
async function answersOf(client: DoorClient, id: string): Promise<readonly string[]> {
  const [server = "", tool = ""] = id.split(":");
  const all: string[] = [];
  for (const [method, params] of requestsOf(id)) {
    const { id: _, ...said } = await client.request(method, params);
    all.push(
      // The name of a tool may be a part of an id.
      `${method} ${params.name}: ${JSON.stringify(said)}`
        .replace(/[0-9a-f-]{36}/g, "")
        .replace(/contains [a-z2-7]{8}|\[[a-z2-7]{8} (?=\d)/g, "MARK ")
        .replaceAll(server, "SERVER").replaceAll(tool, "TOOL"),
    );
  }
  return all;
}

Deno.test("a tool that is hidden from an identity answers like a missing one", async () => {
  await using full = new FullHttp("legacy");
  const hidden = ["filesystem:write_file", "weather:*", "full:*", "my:*"];
  await using ws = await makeAttackWorkspace({
    files: { "a.txt": "hello", "weather.js": WEATHER },
    pml: {
      version: 1,
      permissions: { allow: ["*"] },
      private_mcps: { weather: { type: "deno", path: "weather.js" } },
      mcpServers: { full: { type: "http", url: full.url } },
    },
  });
  await approve(ws, { "my:saved": `return "ran"` });
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  await writeConfig(ws, {
    toolsets: { reading: ["filesystem:read_file", "filesystem:list_directory"] },
    identities: {
      denied: { token: hash(TOKENS.denied), permissions: { allow: ["*"], deny: hidden } },
      chosen: {
        token: hash(TOKENS.chosen),
        permissions: { allow: ["*"] },
        toolset: "reading",
      },
    },
  });
  await using served = await servePml(ws);
  // The user sees all of them.
  await using own = await DoorClient.open(served, { era: "2026-07-28" });
  const all: string[] = [];
  for (const [id] of PAIRS) all.push(...await answersOf(own, id));
  for (const one of ["made.txt", "TOOLed", ':"ran"']) {
    assert.ok(all.some((text) => text.includes(one)));
  }
  assert.ok(full.ledger.length > 0);
  for (const token of Object.values(TOKENS)) {
    await using other = await DoorClient.open(served, { era: "2026-07-28", token });
    assert.match(
      JSON.stringify(await other.request("tools/call", { name: "call", arguments: READ })),
      /hello/,
    );
    for (const [id, none] of token === TOKENS.denied ? PAIRS : PAIRS.slice(1, 3)) {
      const seen = await answersOf(other, id);
      assert.deepEqual(seen, await answersOf(other, none));
      assert.doesNotMatch(seen.join(), /PERMISSION_DENIED|deny rule/);
    }
  }
});
