/**
 * The reference servers of MCP behind one PML, with a user's definitions: npm installs them once
 * for the whole file, and they run both with the user's rights and confined, called by the SDK's
 * client.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { textOf } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect, type Connection } from "./kit/client.ts";
import type { Era, Message } from "./kit/json_rpc.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const VERSION = "2026.8.31";
const NAMES = ["everything", "filesystem", "memory", "sequential-thinking"] as const;
/** Installing waits for the network. */
const INSTALL_MS = 120_000;

/** PML with the real servers behind it, and a client. */
interface House extends AsyncDisposable, Connection {
  readonly ws: Workspace;
  /** Calls a tool by its id. */
  call(id: string, args?: Record<string, unknown>): Promise<Pick<Message, "result">>;
}

/** Returns definitions as a user writes them. */
function definitions({ path }: Workspace, confine: boolean): Record<string, unknown> {
  const more: Record<string, { readonly args?: readonly string[]; readonly env?: object }> = {
    filesystem: { args: [path] },
    // By default its file is in its package, whose content would then differ from the installed
    // one.
    memory: { env: { MEMORY_FILE_PATH: join(path, "memory.jsonl") } },
    "sequential-thinking": { env: { DISABLE_THOUGHT_LOGGING: "true" } },
  };
  return Object.fromEntries(NAMES.map((name) => {
    const { args = [], env = {} } = more[name] ?? {};
    const spec = `@modelcontextprotocol/server-${name}@${VERSION}`;
    const own = { command: "npx", args: ["-y", spec, ...args], env };
    return [`real-${name}`, { ...own, ...(confine && { confine }) }];
  }));
}

/** Defines the servers in a workspace that has a trusted file. */
async function define(ws: Workspace, confine: boolean): Promise<void> {
  const allow = ["filesystem:*", ...NAMES.map((name) => `real-${name}:*`)];
  const gateway = { tools_exposure: "full_proxy" };
  const mcpServers = definitions(ws, confine);
  const pml = { version: 1, permissions: { allow }, gateway, mcpServers };
  await Deno.writeTextFile(ws.file(".pml.json"), JSON.stringify(pml));
}

async function open(ws: Workspace, era: Era): Promise<House> {
  const connection = await connect(ws, {
    era,
    capabilities: { elicitation: { form: {} }, sampling: {} },
    elicit: ({ message }) => ({ action: "accept", content: { name: message.slice(0, 30) } }),
  });
  connection.client.setRequestHandler("sampling/createMessage", ({ params }) => ({
    role: "assistant",
    model: "none",
    content: { type: "text", text: `heard ${JSON.stringify(params.messages)}` },
  }));
  const call: House["call"] = async (id, args = {}) => {
    const params = { name: id.replace(":", "__"), arguments: args };
    const result = await connection.client.callTool(params, { timeout: INSTALL_MS });
    return { result } as unknown as Message;
  };
  return { ...connection, ws, call };
}

/**
 * Installs every server, and asserts that each runs: one first, because npm then has their common
 * packages in its cache, and the others in parallel.
 */
async function install(ws: Workspace): Promise<void> {
  await define(ws, false);
  await using house = await open(ws, "2025-11-25");
  const first = [
    ["real-everything:echo", { message: "hi" }],
    ["real-filesystem:list_allowed_directories", {}],
    ["real-memory:read_graph", {}],
    ["real-sequential-thinking:sequentialthinking", thought(1)],
  ] as const;
  const runs = async ([id, args]: readonly [string, Record<string, unknown>]) => {
    const { result } = await house.call(id, args);
    assert.equal(result?.isError, undefined, `${id}: ${textOf({ result })}`);
  };
  const [one, ...others] = first;
  await runs(one);
  await Promise.all(others.map(runs));
}

function thought(thoughtNumber: number): Record<string, unknown> {
  return { thought: "think", nextThoughtNeeded: true, thoughtNumber, totalThoughts: 3 };
}

/** The requests to each server, with assertions about the answers. */
const ASKED: Readonly<Record<string, (house: House) => Promise<void>>> = {
  "lists and finds their tools": async ({ client }) => {
    let names: string[] = [];
    // A first list waits for no server longer than three seconds; later servers are in the next
    // list.
    await until(async () => {
      names = (await client.listTools()).tools.map(({ name }) => name);
      return ["everything__echo", "filesystem__read_text_file", "memory__read_graph"]
        .every((name) => names.includes(`real-${name}`));
    });
    assert.ok(names.filter((name) => name.startsWith("real-")).length >= 35, `${names.length}`);
    const { content } = await client.callTool({
      name: "search",
      arguments: { query: "add observations to the knowledge graph", server: "real-memory" },
    });
    assert.match(JSON.stringify(content), /real-memory:add_observations/);
  },
  "everything: text, numbers, structure, pictures": async ({ call }) => {
    const echoed = await call("real-everything:echo", { message: "hé" });
    assert.equal(textOf(echoed), "Echo: hé");
    const sum = await call("real-everything:get-sum", { a: 2, b: 3 });
    assert.match(textOf(sum), /is 5\b/);
    const weather = await call("real-everything:get-structured-content", { location: "Chicago" });
    assert.equal(typeof weather.result?.structuredContent?.temperature, "number");
    const { result } = await call("real-everything:get-tiny-image");
    const blocks = result?.content as unknown as readonly { readonly type: string }[];
    assert.ok(blocks.some(({ type }) => type === "image"));
    const wrong = await call("real-everything:get-sum", { a: "two" });
    assert.doesNotMatch(textOf(wrong), /BAD_ARGUMENTS/, "the server refuses it in its own words");
  },
  "everything: reports its progress": async ({ client, raw }) => {
    const before = raw.messages.length;
    const params = {
      name: "real-everything__trigger-long-running-operation",
      arguments: { duration: 0.5, steps: 5 },
    };
    const { content } = await client.callTool(params, { onprogress: () => {} });
    assert.match(JSON.stringify(content), /completed/);
    // The SDK's client drops messages that arrive in one chunk with the result.
    const seen = raw.messages.slice(before)
      .filter(({ method }) => method === "notifications/progress")
      .map(({ params }) => params?.progress);
    assert.deepEqual(seen, [1, 2, 3, 4, 5]);
  },
  "everything: resources, templates, prompts and completion": async ({ client }) => {
    await until(async () =>
      (await client.listResources()).resources.some(({ name }) => name === "features.md")
    );
    const { resources } = await client.listResources();
    const features = resources.find(({ name }) => name === "features.md");
    assert.match(features?.uri ?? "", /^pml:\/\/real-everything\/demo:\/\/resource\/static/);
    const { contents } = await client.readResource({ uri: features?.uri ?? "" });
    assert.match(JSON.stringify(contents), /Features/);
    await until(async () => (await client.listResourceTemplates()).resourceTemplates.length > 1);
    const { resourceTemplates } = await client.listResourceTemplates();
    const templates = resourceTemplates.map(({ uriTemplate }) => uriTemplate);
    const uri = "pml://real-everything/demo://resource/dynamic/text/{resourceId}";
    assert.ok(templates.includes(uri), `${templates}`);
    const item = await client.readResource({ uri: uri.replace("{resourceId}", "7") });
    assert.match(JSON.stringify(item.contents), /Resource 7/);
    await until(async () => (await client.listPrompts()).prompts.length > 0);
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.some(({ name }) => name === "real-everything__args-prompt"));
    const { messages } = await client.getPrompt({
      name: "real-everything__args-prompt",
      arguments: { city: "Oslo" },
    });
    assert.match(JSON.stringify(messages), /Oslo/);
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "real-everything__completable-prompt" },
      argument: { name: "department", value: "E" },
    });
    assert.deepEqual(completion.values, ["Engineering"]);
  },
  "everything: asks the user, and the client's model": async ({ call }) => {
    const asked = await call("real-everything:trigger-elicitation-request");
    assert.match(JSON.stringify(asked.result?.content), /Name: Server real-everything asks: /);
    const args = { prompt: "say it", maxTokens: 5 };
    const sampled = await call("real-everything:trigger-sampling-request", args);
    assert.match(textOf(sampled), /heard .*say it/s);
  },
  "everything: notifies followers of a resource of its changes": async ({ client, raw, call }) => {
    // In the newest revision clients listen for changes, which the tests of pass-through cover.
    if (raw.era === "2026-07-28") return;
    const uri = "pml://real-everything/demo://resource/dynamic/text/1";
    await client.subscribeResource({ uri });
    const told = () =>
      raw.messages.filter(({ method, params }) =>
        method === "notifications/resources/updated" && params?.uri === uri
      ).length;
    await call("real-everything:toggle-subscriber-updates");
    await until(() => told() > 0);
    await client.unsubscribeResource({ uri });
  },
  "filesystem: works in the workspace and nowhere else": async ({ ws, call }) => {
    await call("real-filesystem:write_file", { path: ws.file("made.txt"), content: "made\n" });
    assert.equal(await Deno.readTextFile(ws.file("made.txt")), "made\n");
    const read = await call("real-filesystem:read_text_file", { path: ws.file("made.txt") });
    assert.match(textOf(read), /^made/);
    const outside = await call("real-filesystem:read_text_file", { path: ws.outside });
    assert.equal(outside.result?.isError as unknown, true);
    assert.ok(!textOf(outside).includes(ws.canary));
  },
  "memory: stores a graph": async ({ ws, call }) => {
    const entity = { name: "PML", entityType: "gateway", observations: ["runs servers"] };
    await call("real-memory:create_entities", { entities: [entity] });
    const { result } = await call("real-memory:search_nodes", { query: "gateway" });
    assert.match(textOf({ result }), /runs servers/);
    assert.match(await Deno.readTextFile(ws.file("memory.jsonl")), /"PML"/);
  },
  "sequential-thinking: counts": async ({ call }) => {
    const counts: number[] = [];
    for (const at of [1, 2]) {
      const answer = await call("real-sequential-thinking:sequentialthinking", thought(at));
      counts.push(Number(JSON.parse(textOf(answer)).thoughtHistoryLength));
    }
    assert.equal((counts[1] ?? 0) - (counts[0] ?? 0), 1, "both went to one process");
    // The server converts arguments, so PML does not check their types.
    const texts = { ...thought(1), thoughtNumber: "1", totalThoughts: "3", at: "10:00" };
    const converted = await call("real-sequential-thinking:sequentialthinking", texts);
    assert.equal(JSON.parse(textOf(converted)).thoughtNumber, 1);
    const none = { ...thought(1), branchId: null };
    const own = textOf(await call("real-sequential-thinking:sequentialthinking", none));
    assert.doesNotMatch(own, /BAD_ARGUMENTS/, "the server decides about null");
  },
  "two killed servers are started again": async ({ call, raw }) => {
    // Once is enough for the slowest test.
    if (raw.era === "2026-07-28") return;
    const served: readonly (readonly [server: string, id: string, like: RegExp])[] = [
      ["server-memory", "real-memory:read_graph", /runs servers/],
      ["server-filesystem", "real-filesystem:list_allowed_directories", /Allowed/],
    ];
    for (const [server, id, like] of served) {
      const running = async () =>
        (await raw.watch.living()).filter(({ command }) => command.includes(server));
      const [one, ...more] = await running();
      assert.ok(one !== undefined && more.length === 0, "one process is one server");
      Deno.kill(one.pid, "SIGKILL");
      assert.match(textOf(await retried(() => call(id))), like);
    }
  },
};

/** A call during the server's end fails, and PML does not repeat it. */
async function retried<T extends Pick<Message, "result">>(call: () => Promise<T>): Promise<T> {
  const answer = await call();
  return textOf(answer).startsWith("UPSTREAM_DOWN") ? await call() : answer;
}

Deno.test("the reference servers work behind PML, in both revisions, free and confined", async () => {
  const limits = { start_ms: INSTALL_MS, call_ms: INSTALL_MS };
  await using ws = await makeAttackWorkspace({ pml: { version: 1 }, limits });
  await install(ws);
  for (const [confine, era] of [[false, "2026-07-28"], [true, "2025-11-25"]] as const) {
    await define(ws, confine);
    await using house = await open(ws, era);
    for (const [what, ask] of Object.entries(ASKED)) {
      await ask(house).catch((cause) => {
        throw new Error(`${what} (${confine ? "confined" : "free"}, on ${era})`, { cause });
      });
    }
    const good = await house.call("filesystem:read_file", { path: "good.txt" });
    assert.equal(textOf(good), "good\n");
    const { code } = await house.raw.close();
    assert.equal(code, 0, house.raw.stderr);
    await house.raw.watch.assertNothingLeft();
    await Deno.remove(ws.file("memory.jsonl"));
  }
});
