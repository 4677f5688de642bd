/**
 * The server of the probes: a stdio server with the MCP SDK that has every feature of the protocol.
 *
 *     deno run -A probe_server.ts 2025-11-25|2026-07-28
 *
 * @module
 */

import {
  inputRequired,
  ProtocolError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { sha256 } from "../../src/core/hash.ts";

type Json = Record<string, unknown>;

/** An extension with custom methods. */
export const NOTES = "x.test/notes";
/** An experimental capability of the server. */
export const EXPERIMENTAL = { "x.test/trial": { level: 2 } };
/** The instructions of the server. */
export const INSTRUCTIONS = "Call echo first.";
const UNKNOWN_MEMBER = { "x/kept": { deep: [1, null] } };
const META = { "x.test/meta": { a: 1 } };
const ICONS = [{ src: "https://x.test/icon.png", mimeType: "image/png", sizes: ["48x48"] }];
const PNG = "iVBORw0KGgo=";
const SCHEMA = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const UI = "io.modelcontextprotocol/ui";
const SKILLS = "io.modelcontextprotocol/skills";
const PAGE = "ui://probe/page.html";
const PAGE_TYPE = "text/html;profile=mcp-app";
const SKILL = "skill://x/SKILL.md";
const SKILL_TEXT = "---\nname: x\ndescription: A skill\n---\n# x\n";
const SKILL_FILE = { uri: SKILL, size: SKILL_TEXT.length };
const SKILL_ENTRY = {
  ...{
    uri: SKILL,
    frontmatter: { name: "x", description: "A skill" },
    _meta: META,
    ...UNKNOWN_MEMBER,
  },
  resources: [{ ...SKILL_FILE, digest: `sha256:${sha256(SKILL_TEXT)}`, ...UNKNOWN_MEMBER }],
};

const INPUT = {
  type: "object",
  $defs: { one: { type: "string", pattern: "^a" } },
  properties: { a: { $ref: "#/$defs/one" }, b: { anyOf: [{ type: "integer" }, { type: "null" }] } },
  additionalProperties: true,
};
const PLAIN = { type: "object" };
const TOOLS: readonly Json[] = [
  { name: "echo", inputSchema: PLAIN },
  { name: "titled", title: "A title", description: "Says it.\nTwice.", inputSchema: PLAIN },
  { name: "annotated", annotations: { readOnlyHint: true, title: "T" }, inputSchema: PLAIN },
  { name: "schemas", inputSchema: INPUT, outputSchema: SCHEMA },
  { name: "icons", icons: ICONS, inputSchema: PLAIN },
  { name: "meta", _meta: META, inputSchema: PLAIN },
  { name: "unknown", ...UNKNOWN_MEMBER, inputSchema: PLAIN },
  { name: "slow", execution: { taskSupport: "optional" }, inputSchema: PLAIN },
  { name: "page", _meta: { ui: { resourceUri: PAGE } }, inputSchema: PLAIN },
  { name: "button", _meta: { ui: { visibility: ["app"] } }, inputSchema: PLAIN },
  ...["content", "structured", "ask", "notify", "wait", "seen", "fail", "changes"]
    .map((name) => ({ name, inputSchema: PLAIN })),
];

const RESOURCES: readonly Json[] = [
  {
    uri: "test://a",
    name: "a",
    title: "The first",
    description: "d",
    mimeType: "text/plain",
    size: 3,
  },
  {
    uri: "test://b",
    name: "b",
    icons: ICONS,
    annotations: { priority: 1 },
    _meta: META,
    ...UNKNOWN_MEMBER,
  },
  { uri: PAGE, name: "page", mimeType: PAGE_TYPE },
];
const CONTENTS: Readonly<Record<string, readonly Json[]>> = {
  "test://a": [{
    uri: "test://a",
    mimeType: "text/plain",
    text: "one",
    _meta: META,
    ...UNKNOWN_MEMBER,
  }],
  "test://b": [{ uri: "test://b", mimeType: "image/png", blob: PNG }, {
    uri: "test://b/2",
    text: "",
  }],
  "test://item/7": [{ uri: "test://item/7", text: "seven" }],
  [PAGE]: [{
    uri: PAGE,
    mimeType: PAGE_TYPE,
    text: "<p>page</p>",
    _meta: { ui: { prefersBorder: true } },
  }],
  [SKILL]: [{ uri: SKILL, mimeType: "text/markdown", text: SKILL_TEXT, ...UNKNOWN_MEMBER }],
};
const BLOCKS: Readonly<Record<string, readonly Json[]>> = {
  text: [{ type: "text", text: "a\nb", annotations: { audience: ["user"], priority: 0.5 } }],
  image: [{ type: "image", data: PNG, mimeType: "image/png" }],
  audio: [{ type: "audio", data: PNG, mimeType: "audio/wav" }],
  link: [{ type: "resource_link", uri: "test://linked", name: "l", icons: ICONS, size: 2 }],
  embedded: [{
    type: "resource",
    resource: { uri: "test://e", mimeType: "text/plain", text: "e" },
  }],
  blob: [{ type: "resource", resource: { uri: "test://e", mimeType: "image/png", blob: PNG } }],
  members: [{ type: "text", text: "t", _meta: META, ...UNKNOWN_MEMBER }],
  later: [{ type: "x.test/later", data: 1 }],
};
const QUESTIONS: Readonly<Record<string, { readonly method: string; readonly params: Json }>> = {
  form: {
    method: "elicitation/create",
    params: {
      ...{ mode: "form", message: "Who?", _meta: META },
      requestedSchema: { type: "object", properties: { name: { type: "string", title: "Name" } } },
    },
  },
  url: {
    method: "elicitation/create",
    params: { mode: "url", message: "Log in", url: "https://127.0.0.1/x", elicitationId: "e1" },
  },
  sample: {
    method: "sampling/createMessage",
    params: {
      messages: [{ role: "user", content: { type: "text", text: "Say it" } }],
      ...{ maxTokens: 10, systemPrompt: "Be brief", _meta: META },
    },
  },
  tools: {
    method: "sampling/createMessage",
    params: {
      messages: [{ role: "user", content: { type: "text", text: "Add" } }],
      ...{ maxTokens: 10, toolChoice: { mode: "auto" } },
      tools: [{ name: "add", inputSchema: { type: "object" } }],
    },
  },
  roots: { method: "roots/list", params: {} },
  notes: { method: "notes/ask", params: { one: 1, ...UNKNOWN_MEMBER } },
};
/** The beginning of reserved keys of `_meta`. */
const RESERVED = "io.modelcontextprotocol/";
/** Accepts any result. */
const ANY = {
  "~standard": { version: 1, vendor: "probe", validate: (value: unknown) => ({ value }) },
};

/** The messages that the server has received, for probes of requests from the client. */
const received: Json = { notifications: [], cancelled: [], waits: 0 };
let hasLaterPrompt = false;

function textOf(value: unknown): Json {
  return { content: [{ type: "text", text: JSON.stringify(value) ?? "" }] };
}

async function askClient(
  kind: string,
  isModern: boolean,
  { mcpReq }: ServerContext,
): Promise<Json> {
  const request = QUESTIONS[kind] ?? { method: kind, params: {} };
  if (!isModern) {
    const answer = await mcpReq.send(request as never, ANY as never)
      .catch((error: Error) => ({ error: error.message }));
    if (kind === "url") {
      const params = { elicitationId: "e1" };
      await mcpReq.notify({ method: "notifications/elicitation/complete", params });
    }
    return textOf(answer);
  }
  const answers = mcpReq.inputResponses as Json | undefined;
  if (answers?.one !== undefined) return textOf(answers.one);
  return inputRequired({ inputRequests: { one: request } as never, requestState: "s" }) as never;
}

async function sendNotifications(
  params: Json,
  server: Server,
  { mcpReq }: ServerContext,
): Promise<Json> {
  const { kind } = params.arguments as Json;
  const { progressToken } = (params._meta ?? {}) as Json;
  const more = { _meta: META, ...UNKNOWN_MEMBER };
  const send = (method: string, values: Json) => mcpReq.notify({ method, params: values } as never);
  if (kind === "progress") {
    for (const progress of [1, 2.5]) {
      const report = { progressToken, progress, total: 4, message: `step ${progress}`, ...more };
      await send("notifications/progress", report);
    }
  }
  if (kind === "log") {
    for (const level of ["debug", "warning"]) {
      await send("notifications/message", { level, logger: "deep", data: { level }, ...more });
    }
  }
  if (kind === "notes") await send("notifications/notes/told", { one: 1, ...more });
  if (kind === "updated") {
    await send("notifications/resources/updated", { uri: "test://a", ...more });
  }
  if (kind === "prompts") {
    hasLaterPrompt = true;
    await server.sendPromptListChanged();
  }
  return textOf("sent");
}

async function callTool(
  params: Json,
  { server, isModern, context }: {
    readonly server: Server;
    readonly isModern: boolean;
    readonly context: ServerContext;
  },
): Promise<Json> {
  const { name, arguments: args = {}, _meta, task, ...others } = params;
  const { kind = "" } = args as Json;
  const { signal } = context.mcpReq;
  switch (name) {
    case "content":
      return { content: BLOCKS[String(kind)] ?? [] };
    case "structured":
      return {
        ...textOf({ n: 1 }),
        ...{
          structuredContent: kind === "list" ? [1, { n: 2 }] : { n: 1 },
          _meta: META,
          ...UNKNOWN_MEMBER,
        },
      };
    case "ask":
      return await askClient(String(kind), isModern, context);
    case "notify":
      return await sendNotifications(params, server, context);
    case "wait":
      received.waits = Number(received.waits) + 1;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      (received.cancelled as unknown[]).push(signal.reason?.message ?? String(signal.reason));
      return textOf("cancelled");
    case "seen": {
      const { envelope = {} } = context.mcpReq as { readonly envelope?: Json };
      const capabilities = envelope[`${RESERVED}clientCapabilities`] ??
        server.getClientCapabilities();
      const client = envelope[`${RESERVED}clientInfo`] ?? server.getClientVersion();
      return textOf({ ...received, client, capabilities });
    }
    case "fail":
      if (kind === "result") return { ...textOf("no"), isError: true };
      throw new ProtocolError(-32099, "It fails", { why: "always" });
    case "slow":
      if (task === undefined) return textOf("slow");
      return {
        task: {
          ...{ taskId: "t1", status: "working", ttl: 60_000, pollInterval: 10 },
          ...{ createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "2026-01-01T00:00:00Z" },
        },
      };
    default: {
      const meta = _meta as Json | undefined;
      return textOf({ args, others, meta: meta?.["x.test/mine"] ?? null });
    }
  }
}

function listItems(method: string, { cursor }: Json): Json | undefined {
  switch (method) {
    case "tools/list":
      return { tools: TOOLS, _meta: META };
    case "resources/list": {
      const at = Number(cursor ?? 0);
      const nextCursor = at + 1 < RESOURCES.length ? { nextCursor: `${at + 1}` } : {};
      return { resources: RESOURCES.slice(at, at + 1), ...nextCursor };
    }
    case "resources/templates/list":
      return {
        resourceTemplates: [{
          ...{ uriTemplate: "test://item/{id}", name: "item", title: "An item" },
          ...{ mimeType: "text/plain", icons: ICONS, _meta: META, ...UNKNOWN_MEMBER },
        }],
      };
    case "prompts/list":
      return {
        prompts: [
          {
            ...{
              name: "greet",
              title: "Greet",
              description: "d",
              icons: ICONS,
              _meta: META,
              ...UNKNOWN_MEMBER,
            },
            arguments: [{ name: "who", description: "Who", required: true }],
          },
          ...hasLaterPrompt ? [{ name: "later" }] : [],
        ],
      };
    default:
      return undefined;
  }
}

function answerRequest(method: string, params: Json): Json {
  switch (method) {
    case "resources/read": {
      const contents = CONTENTS[String(params.uri)];
      if (contents === undefined) throw new ProtocolError(-32002, "Not found", { a: 1 });
      return { contents, _meta: META };
    }
    case "prompts/get":
      return {
        ...{ description: "d", _meta: META },
        messages: [
          { role: "user", content: { type: "text", text: JSON.stringify(params.arguments) } },
          { role: "assistant", content: BLOCKS.embedded?.[0] },
        ],
      };
    case "completion/complete": {
      const { ref, argument, context } = params;
      const values = [JSON.stringify({ ref, argument, context })];
      return { completion: { values, total: 9, hasMore: true } };
    }
    case "skills/list":
      return { skills: [SKILL_ENTRY] };
    case "skills/get":
      return { skill: SKILL_ENTRY, ...UNKNOWN_MEMBER };
    case "resources/directory/read":
      return {
        resources: [{
          ...SKILL_FILE,
          name: "SKILL.md",
          mimeType: "text/markdown",
          ...UNKNOWN_MEMBER,
        }],
      };
    case "notes/list":
      return { got: { one: params.one }, ...UNKNOWN_MEMBER };
    case "tasks/get":
      return {
        ...{ taskId: params.taskId, status: "completed", ttl: 60_000 },
        ...{ createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "2026-01-01T00:00:00Z" },
      };
    case "tasks/result":
      return textOf("of the task");
    case "resources/subscribe":
    case "resources/unsubscribe":
    case "logging/setLevel":
      return {};
  }
  throw new ProtocolError(-32601, "Method not found");
}

/** Returns a server of one revision. */
function makeServer(isModern: boolean): Server {
  const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  const server = new Server({ name: "probe", version: "1.0.0" }, {
    instructions: INSTRUCTIONS,
    capabilities: {
      tools: { listChanged: true },
      ...{ resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true } },
      ...{ completions: {}, logging: {}, experimental: EXPERIMENTAL },
      ...!isModern && { tasks },
      extensions: { [NOTES]: { level: 1 }, [SKILLS]: { directoryRead: true }, [UI]: {} },
    } as never,
  });
  server.removeRequestHandler("logging/setLevel");
  server.fallbackRequestHandler = async ({ method, params = {} }, context) => {
    const values = params as Json;
    if (method === "tools/call") {
      return await callTool(values, { server, isModern, context }) as never;
    }
    return (listItems(method, values) ?? answerRequest(method, values)) as never;
  };
  server.fallbackNotificationHandler = ({ method, params }) => {
    const { _meta, ...others } = (params ?? {}) as Json;
    const meta = (_meta as Json | undefined)?.["x.test/mine"] ?? null;
    (received.notifications as unknown[]).push({ method, ...others, meta });
    return Promise.resolve();
  };
  return server;
}

if (import.meta.main) {
  const isModern = Deno.args[0] === "2026-07-28";
  serveStdio(() => makeServer(isModern), isModern ? { legacy: "reject" } : {});
}
