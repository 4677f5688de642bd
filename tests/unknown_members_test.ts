/**
 * Members that PML does not know, in the params and results of known methods: they reach the other
 * side in both directions, whatever the revisions and the transports are.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeScenery } from "./attacks/stage.ts";
import type { Json } from "./kit/json_rpc.ts";
import { EXTENSION, MORE, serveMembers, TOLD } from "./kit/members_server.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const SENT = { "x/sent": { c: [null] }, soon: 1 };
const META = { "x/mine": { d: 1 } };
const ANSWERS: Readonly<Record<string, Json>> = {
  "elicitation/create": { action: "accept", content: {}, ...SENT } as unknown as Json,
  "sampling/createMessage": {
    role: "assistant",
    model: "m",
    content: { type: "text", text: "Hi" },
    ...SENT,
  } as unknown as Json,
};
const REQUESTS = [
  ["tools/call", { name: "m__echo", arguments: {} }],
  ["prompts/get", { name: "m__greet" }],
  ["resources/read", { uri: "pml://m/test://a" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "m__greet" }, argument: {} }],
] as const;
const LISTS = [
  ["tools/list", "tools"],
  ["prompts/list", "prompts"],
  ["resources/list", "resources"],
  ["resources/templates/list", "resourceTemplates"],
] as const;

function assertKept(value: unknown, what: string): void {
  const { "x/kept": kept, later, _meta } = value as Json;
  assert.deepEqual({ "x/kept": kept, later }, MORE, what);
  assert.deepEqual(_meta?.["x/meta"], { b: 1 }, what);
}

/** Opens a client of a PML with the server. */
async function opened(
  { era, door }: typeof WAYS[number],
  { isModern, over }: { readonly isModern: boolean; readonly over: "stdio" | "http" },
) {
  const http = over === "http" ? serveMembers(isModern) : undefined;
  const [command, ...args] = denoCommand("tests/kit/members_server.ts");
  const m = http === undefined
    ? { command, args: [...args, ...isModern ? ["--modern"] : []] }
    : { type: "http", url: http.url };
  const ws = await makeScenery({
    limits: { first_list_ms: 60_000 },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: ["m:*"] },
      mcpServers: { m },
    },
  });
  const asked: Json[] = [];
  const pml = new RawStdio(ws, {
    era,
    door,
    capabilities: { elicitation: { form: {} }, sampling: {}, extensions: { [EXTENSION]: {} } },
    answer: (method, params) => {
      asked.push(params as Json);
      return ANSWERS[method] ?? assert.fail(method);
    },
  });
  await pml.open();
  return {
    pml,
    asked,
    [Symbol.asyncDispose]: async () => {
      await pml[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
      await http?.[Symbol.asyncDispose]();
    },
  };
}

for (const way of WAYS) {
  for (const isModern of [false, true]) {
    for (const over of ["stdio", "http"] as const) {
      const behind = `${isModern ? "2026-07-28" : "2025-11-25"} over ${over}`;
      Deno.test(`unknown members survive between a client, ${way.on}, and a server, ${behind}`, async () => {
        await using scene = await opened(way, { isModern, over });
        const { pml, asked } = scene;
        const listed = async (method: string, key: string) => {
          const { result } = await pml.request(method, SENT);
          const items = (result?.[key] ?? []) as unknown as readonly Json[];
          return items.filter(({ later }) => later !== undefined);
        };
        for (const [method, key] of LISTS) {
          await until(async () => (await listed(method, key)).length > 0);
          assertKept((await listed(method, key))[0], method);
        }
        for (const [method, params] of REQUESTS) {
          const message = { method, params: { ...params, ...SENT, _meta: META } };
          const { result } = await pml.request(method, message.params);
          assertKept(result, method);
          const { "x/sent": sent, soon, _meta } = result?.got as Json;
          assert.deepEqual({ "x/sent": sent, soon }, SENT, method);
          assert.deepEqual(_meta?.["x/mine"], META["x/mine"], method);
        }
        for (const name of ["m__elicit", "m__sample"]) {
          const { result } = await pml.callTool(name);
          assertKept(result, name);
          assertKept(asked.at(-1), name);
          const { "x/sent": sent, soon } = result?.answer as Json;
          assert.deepEqual({ "x/sent": sent, soon }, SENT, name);
        }
        const isOlder = way.era === "2025-11-25";
        if (isOlder) {
          await pml.request("logging/setLevel", { level: "debug" });
          await pml.request("resources/subscribe", { uri: "pml://m/test://a" });
        }
        const _meta = { progressToken: "p", "io.modelcontextprotocol/logLevel": "debug" };
        await pml.request("tools/call", { name: "m__tell", arguments: {}, _meta });
        const names = [
          "progress",
          "message",
          "notes/told",
          ...isOlder ? ["resources/updated"] : [],
        ];
        for (const name of names) {
          const is = ({ method }: { readonly method?: string }) =>
            method === `notifications/${name}`;
          await until(() => pml.messages.some(is));
          assertKept(pml.messages.find(is)?.params, name);
        }
        await pml.notify(TOLD, { ...SENT, _meta: META });
        const heard = async () =>
          (await pml.callTool("m__heard")).result?.heard as unknown as readonly Json[];
        await until(async () => (await heard()).length > 0);
        const [{ _meta: told, ...params } = {}] = await heard();
        assert.deepEqual(params, SENT);
        assert.deepEqual(told?.["x/mine"], META["x/mine"]);
      });
    }
  }
}
