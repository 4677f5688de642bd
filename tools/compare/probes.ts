/**
 * The probes, each for one feature of the protocol, with the accepted differences of PML.
 *
 * @module
 */

import type { Era, Json } from "../../tests/kit/json_rpc.ts";
import type { ProbePeer, Values, Way } from "./probe_peer.ts";

/** An accepted difference, with its reason. */
export interface Exception {
  readonly reason: string;
  /** Whether clients get more than from the server itself. */
  readonly isBetter?: boolean;
  /** The ways to which this applies; by default all ways through PML. */
  readonly ways?: readonly Way[];
  /** The revision to which this applies; by default both. */
  readonly era?: Era;
}

/** One probe. */
export interface Probe {
  readonly name: string;
  /** Uses the feature, and returns the values that the client or the server got. */
  readonly run: (peer: ProbePeer) => Promise<unknown>;
  readonly exceptions?: readonly Exception[];
}

const OLDER = "2025-11-25";
const NEWEST = "2026-07-28";
const KINDS = ["text", "image", "audio", "link", "embedded", "blob", "members"];
const META_ONLY_LISTS: Exception = {
  reason: "With `meta_only`, `search` and `schema` show tools",
  ways: ["meta_only"],
};
const SHARED_SERVERS: Exception = {
  reason:
    "PML declares it only with `pml stdio`, because several clients of `pml serve` share servers",
  ways: ["serve"],
};
const APPS_EXTENSION: Exception = {
  reason:
    "Clients declare this extension. The official servers with pages do not, and neither does PML",
};
const JOINED_LISTS: Exception = {
  reason:
    "PML joins the lists of all servers, and `_meta` of a whole list is no part of a pinned definition",
};
const SKILL = "skill://x/SKILL.md";
const CLIENT_META = { "x.test/mine": { m: 1 } };

/** Returns the probes of a list, one for each item. */
function listProbes(
  what: string,
  { method, key, items, exceptions = [] }: {
    readonly method: string;
    readonly key: string;
    readonly items: readonly (readonly [name: string, feature: string])[];
    readonly exceptions?: readonly Exception[];
  },
): readonly Probe[] {
  return items.map(([name, feature]) => ({
    name: `${what}: ${feature}`,
    run: async (peer) => {
      const find = async () =>
        (await peer.list(method, key)).find((item) => `${item.uri ?? item.name}` === name);
      // PML answers the first request for other lists without waiting for a slow server.
      return key === "tools" ? await find() : await peer.until(find);
    },
    exceptions,
  }));
}

/** Parses the text of a result as JSON. */
function valueOf({ content }: Json): Json | undefined {
  const [block] = content as unknown as readonly Json[];
  return block?.text === undefined ? undefined : JSON.parse(`${block.text}`);
}

async function receivedMessages(peer: ProbePeer): Promise<Json> {
  return valueOf(await peer.call("seen")) ?? {};
}

/** Returns the request that the client received, and the answer that the server received. */
async function askQuestion(peer: ProbePeer, kind: string, method: string): Promise<unknown> {
  const before = peer.requests.length;
  const result = await peer.ask(kind);
  const request = peer.requests.slice(before).find((request) => request.method === method);
  const { progressToken: _, ...meta } = (request?.params._meta ?? {}) as Values;
  return { result, params: peer.normalize({ ...request?.params, _meta: meta }) };
}

/** Calls the tool `notify`, and returns the params of `count` different notifications. */
async function readNotifications(
  peer: ProbePeer,
  { kind, method, count = 1, meta = {} }: {
    readonly kind: string;
    readonly method: string;
    readonly count?: number;
    readonly meta?: Values;
  },
): Promise<unknown> {
  const since = peer.count;
  await peer.call("notify", { kind }, { _meta: meta });
  const all: unknown[] = [];
  for (let at = 0; at < count; at++) {
    const isOther = (params: Json) =>
      params["x/kept"] !== undefined &&
      !all.some((earlier) => JSON.stringify(earlier) === JSON.stringify(params));
    all.push(await peer.waitForNotification(method, since, isOther));
  }
  return all;
}

/** Subscribes to a resource (and, in the newest revision, to prompts). */
async function subscribe(peer: ProbePeer): Promise<void> {
  if (peer.era === OLDER) {
    await peer.request("resources/subscribe", { uri: peer.uri("test://a") });
    return;
  }
  const since = peer.count;
  const uris = [peer.uri("test://a")];
  const notifications = { promptsListChanged: true, resourceSubscriptions: uris };
  peer.beginRequest("subscriptions/listen", { notifications });
  await peer.waitForNotification("notifications/subscriptions/acknowledged", since);
}

const TOOL_FIELDS = listProbes("tools", {
  ...{ method: "tools/list", key: "tools", exceptions: [META_ONLY_LISTS] },
  items: [
    ["titled", "title and description"],
    ["annotated", "annotations"],
    ["schemas", "input and output schema"],
    ["icons", "icons"],
    ["meta", "`_meta`"],
    ["unknown", "unknown members"],
    ["slow", "`execution`"],
  ],
});

const CONTENT: readonly Probe[] = KINDS.map((kind) => ({
  name: `content: ${kind}`,
  run: async (peer) => await peer.call("content", { kind }),
}));

const RESULTS: readonly Probe[] = [
  {
    name: "content: a block of an unknown type",
    run: async (peer) => await peer.call("content", { kind: "later" }),
    exceptions: [{ reason: "It becomes text: no extension of the client has it" }],
  },
  {
    name: "result: structured object, `_meta` and unknown members",
    run: async (peer) => await peer.call("structured"),
  },
  {
    name: "result: structured list",
    run: async (peer) => await peer.call("structured", { kind: "list" }),
    exceptions: [{
      reason: "In this revision it must be an object, so clients could refuse the result",
      era: OLDER,
    }],
  },
  { name: "result: `isError`", run: async (peer) => await peer.call("fail", { kind: "result" }) },
  {
    name: "result: JSON-RPC error of a tool",
    run: async (peer) => await peer.call("fail"),
    exceptions: [{
      reason: "It becomes a result with `isError`, which models see",
      isBetter: true,
    }],
  },
  {
    name: "request: arguments",
    run: async (peer) => await peer.call("echo", { a: ["é", null, 1.5, { b: true }] }),
  },
  {
    name: "request: `_meta` and unknown params",
    run: async (peer) => await peer.call("echo", {}, { _meta: CLIENT_META, "x/more": [1] }),
  },
  { name: "ping", run: async (peer) => await peer.request("ping", {}) },
  {
    name: "unknown tool",
    run: async (peer) => "error" in await peer.call("no_such_tool"),
    exceptions: [{
      reason: "It is an error of JSON-RPC (-32602), and names similar tools",
    }],
  },
];

const RESOURCES: readonly Probe[] = [
  ...listProbes("resources", {
    ...{ method: "resources/list", key: "resources" },
    items: [
      ["test://a", "title, description, type and size"],
      ["test://b", "icons, annotations, `_meta` and unknown members"],
    ],
  }),
  ...listProbes("resource templates", {
    ...{ method: "resources/templates/list", key: "resourceTemplates" },
    items: [["item", "all members"]],
  }),
  ...[["test://a", "text"], ["test://b", "binary, several contents"], ["test://item/7", "template"]]
    .map(([uri = "", what]) => ({
      name: `resources: read ${what}`,
      run: async (peer: ProbePeer) => await peer.request("resources/read", { uri: peer.uri(uri) }),
    })),
  {
    name: "resources: error",
    run: async (peer) => await peer.request("resources/read", { uri: peer.uri("test://none") }),
    exceptions: [{ reason: "The error names its server" }],
  },
  {
    name: "resources: notification of a change",
    run: async (peer) => {
      await subscribe(peer);
      // A subscription may start some time after its acknowledgement, so it tries several times.
      return await peer.until(async () => {
        const method = "notifications/resources/updated";
        const [params] = await readNotifications(peer, {
          kind: "updated",
          method,
        }) as readonly unknown[];
        return params ?? undefined;
      });
    },
  },
];

const PROMPTS: readonly Probe[] = [
  ...listProbes("prompts", {
    ...{ method: "prompts/list", key: "prompts" },
    items: [["greet", "all members"]],
  }),
  {
    name: "prompts: get",
    run: async (peer) => {
      const params = {
        name: peer.clientName("greet"),
        arguments: { who: "Ada" },
        _meta: CLIENT_META,
      };
      return await peer.request("prompts/get", params);
    },
  },
  {
    name: "prompts: notification of a changed list",
    run: async (peer) => {
      if (peer.era === NEWEST) await subscribe(peer);
      const since = peer.count;
      await peer.call("notify", { kind: "prompts" });
      const change = await peer.waitForNotification("notifications/prompts/list_changed", since);
      const names = (await peer.list("prompts/list", "prompts")).map(({ name }) => name);
      return [change !== null, names];
    },
  },
  {
    name: "completion: of a prompt",
    run: async (peer) => {
      const ref = { type: "ref/prompt", name: peer.clientName("greet") };
      const argument = { name: "who", value: "A" };
      return await peer.request("completion/complete", { ref, argument });
    },
  },
  {
    name: "completion: of a template, with context",
    run: async (peer) => {
      const ref = { type: "ref/resource", uri: peer.uri("test://item/{id}") };
      const argument = { name: "id", value: "7" };
      const context = { arguments: { other: "x" } };
      return await peer.request("completion/complete", { ref, argument, context });
    },
  },
];

const NOTIFICATIONS: readonly Probe[] = [
  {
    name: "log messages: level, logger, data, `_meta` and unknown members",
    run: async (peer) => {
      if (peer.era === OLDER) await peer.request("logging/setLevel", { level: "debug" });
      const meta = { "io.modelcontextprotocol/logLevel": "debug" };
      return await readNotifications(peer, {
        kind: "log",
        method: "notifications/message",
        count: 2,
        meta,
      });
    },
  },
  {
    name: "log messages: a level that is set",
    run: async (peer) => {
      const level = "error";
      if (peer.era === OLDER) await peer.request("logging/setLevel", { level });
      const meta = { "io.modelcontextprotocol/logLevel": level };
      return await readNotifications(peer, { kind: "log", method: "notifications/message", meta });
    },
    exceptions: [{
      reason: "PML sends only messages of that level or above, which the probe server ignores",
      isBetter: true,
    }],
  },
  {
    name: "progress: values, message, `_meta` and unknown members",
    run: async (peer) => {
      const meta = { progressToken: "t1" };
      return await readNotifications(peer, {
        ...{ kind: "progress", method: "notifications/progress", count: 2, meta },
      });
    },
  },
];

const QUESTIONS: readonly Probe[] = [
  {
    name: "elicitation: form, accepted",
    run: (peer) => askQuestion(peer, "form", "elicitation/create"),
  },
  {
    name: "elicitation: form, declined",
    run: async (peer) => {
      peer.answers["elicitation/create"] = () => ({ action: "decline" });
      const { content } = await peer.ask("form");
      delete peer.answers["elicitation/create"];
      return content;
    },
  },
  {
    name: "elicitation: page",
    run: (peer) => askQuestion(peer, "url", "elicitation/create"),
  },
  {
    name: "elicitation: page, completed",
    run: async (peer) => {
      const since = peer.count;
      await peer.ask("url");
      return await peer.waitForNotification("notifications/elicitation/complete", since);
    },
  },
  {
    name: "sampling",
    run: async (peer) => {
      const content = { type: "text", text: "Hi" };
      const answer = { role: "assistant", model: "m", content, stopReason: "endTurn" };
      peer.answers["sampling/createMessage"] = () => answer;
      return await askQuestion(peer, "sample", "sampling/createMessage");
    },
  },
  {
    name: "sampling: with tools",
    run: async (peer) => {
      const content = [{ type: "tool_use", id: "1", name: "add", input: { a: 1 } }];
      const answer = { role: "assistant", model: "m", content, stopReason: "toolUse" };
      peer.answers["sampling/createMessage"] = () => answer;
      return await askQuestion(peer, "tools", "sampling/createMessage");
    },
  },
  {
    name: "roots",
    run: async (peer) => (await peer.ask("roots")).content,
    exceptions: [{
      reason: "PML answers itself: with the client's roots in the workspace, or with the workspace",
    }],
  },
];

const EXTENSIONS: readonly Probe[] = [
  {
    name: "tasks: a call as a task",
    run: async (peer) => {
      const { task } = await peer.call("slow", {}, { task: { ttl: 60_000 } });
      const { taskId = "", status } = (task ?? {}) as Json;
      const state = await peer.request("tasks/get", { taskId });
      const result = await peer.request("tasks/result", { taskId });
      return { status, now: state.status, content: result.content };
    },
    exceptions: [{
      reason: "Tasks of the older revision do not exist in this one",
      era: NEWEST,
    }, {
      reason: "The meta-tool `call` answers when the tool has ended",
      ...{ ways: ["meta_only"], era: OLDER },
    }],
  },
  {
    name: "skills: declared",
    run: (peer) => Promise.resolve(extensionsOf(peer)["io.modelcontextprotocol/skills"]),
  },
  ...listProbes("skills", {
    ...{ method: "skills/list", key: "skills" },
    items: [[SKILL, "list, with digests, `_meta` and unknown members"]],
  }),
  ...[["skills/get", SKILL, "get"], ["resources/directory/read", "skill://x", "read a directory"]]
    .map(([method = "", uri = "", what]) => ({
      name: `skills: ${what}`,
      run: async (peer: ProbePeer) => await peer.request(method, { uri: peer.uri(uri) }),
    })),
  {
    name: "skills: read a file",
    run: async (peer) => await peer.request("resources/read", { uri: peer.uri(SKILL) }),
  },
  {
    name: "skills: read a file by the address of its server",
    run: async (peer) => await peer.request("resources/read", { uri: SKILL }),
  },
  ...listProbes("apps", {
    ...{ method: "tools/list", key: "tools" },
    items: [["page", "a tool with a page is listed"], ["button", "a tool for apps is listed"]],
  }),
  {
    name: "apps: read a page",
    run: async (peer) => {
      return await peer.request("resources/read", { uri: peer.uri("ui://probe/page.html") });
    },
  },
  {
    name: "apps: read a page by the address of its server",
    run: async (peer) => await peer.request("resources/read", { uri: "ui://probe/page.html" }),
  },
  {
    name: "apps: declared",
    run: (peer) => Promise.resolve(extensionsOf(peer)["io.modelcontextprotocol/ui"]),
    exceptions: [APPS_EXTENSION],
  },
  {
    name: "apps: a page calls a tool by its bare name",
    run: async (peer) => {
      return await peer.request("tools/call", { name: "button", arguments: {} });
    },
  },
  {
    name: "custom request of the client",
    run: async (peer) => await peer.request("notes/list", { one: 1 }),
  },
  {
    name: "custom request of the server",
    run: async (peer) => {
      peer.answers["notes/ask"] = ({ one }) => ({ one, "x/kept": 2 });
      return await askQuestion(peer, "notes", "notes/ask");
    },
  },
  {
    name: "custom notification of the client",
    run: async (peer) => {
      const method = "notifications/notes/heard";
      await peer.notify(method, { one: 1, _meta: CLIENT_META });
      return await peer.until(async () => {
        const all = (await receivedMessages(peer)).notifications as unknown as readonly Json[];
        return all.find((message) => `${message.method}` === method);
      });
    },
  },
  {
    name: "custom notification of the server",
    run: (peer) => readNotifications(peer, { kind: "notes", method: "notifications/notes/told" }),
  },
];

const CONNECTION: readonly Probe[] = [
  {
    name: "instructions",
    run: (peer) => Promise.resolve(peer.greeting.instructions),
    exceptions: [{
      reason: "PML has its own instructions; with `full_proxy` they contain the server's",
    }],
  },
  {
    name: "name of the server",
    run: ({ greeting, era }) => {
      const meta = greeting._meta?.["io.modelcontextprotocol/serverInfo"];
      return Promise.resolve((era === OLDER ? greeting.serverInfo : meta)?.name);
    },
    exceptions: [{ reason: "The client is connected to PML" }],
  },
  {
    name: "experimental capabilities of the server",
    run: (peer) => Promise.resolve(peer.greeting.capabilities?.experimental),
    exceptions: [SHARED_SERVERS],
  },
  {
    name: "unknown extensions of the server",
    run: (peer) => Promise.resolve(extensionsOf(peer)["x.test/notes"]),
    exceptions: [SHARED_SERVERS],
  },
  { name: "name of the client", run: async (peer) => (await receivedMessages(peer)).client },
  {
    name: "experimental capabilities of the client",
    run: async (peer) => (await receivedMessages(peer)).capabilities?.experimental,
  },
  {
    name: "unknown extensions of the client",
    run: async (peer) => (await receivedMessages(peer)).capabilities?.extensions?.["x.test/notes"],
  },
  {
    name: "`_meta` of a list",
    run: async (peer) => (await peer.request("tools/list", {}))._meta,
    exceptions: [JOINED_LISTS],
  },
];

/** The last probe, because an HTTP client may send a cancelled request again. */
const LAST: readonly Probe[] = [
  {
    name: "cancellation: reason for the server",
    run: async (peer) => {
      const { waits } = await receivedMessages(peer);
      const { length: before } = (await receivedMessages(peer))
        .cancelled as unknown as readonly unknown[];
      const id = peer.beginCall("wait");
      await peer.until(async () =>
        (await receivedMessages(peer)).waits === waits ? undefined : true
      );
      await peer.notify("notifications/cancelled", { requestId: id, reason: "changed my mind" });
      return await peer.until(async () => {
        const all = (await receivedMessages(peer)).cancelled as unknown as readonly unknown[];
        return all[before];
      });
    },
    exceptions: [{
      reason: "Over HTTP, closing the stream of a request cancels it, without a reason",
      ...{ ways: ["serve"], era: NEWEST },
    }],
  },
];

function extensionsOf({ greeting }: ProbePeer): Json {
  return greeting.capabilities?.extensions ?? {};
}

/** All probes, in the order of the table. */
export const PROBES: readonly Probe[] = [
  ...TOOL_FIELDS,
  ...CONTENT,
  ...RESULTS,
  ...RESOURCES,
  ...PROMPTS,
  ...NOTIFICATIONS,
  ...QUESTIONS,
  ...EXTENSIONS,
  ...CONNECTION,
  ...LAST,
];
