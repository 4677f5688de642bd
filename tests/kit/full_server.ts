/**
 * An MCP server on stdio with all features next to plain tools: resources, templates,
 * subscriptions, prompts, completion, log messages, questions and sampling, in either revision.
 *
 *     deno run -A full_server.ts ERA LEDGER
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

/** The environment of a server. */
export interface FullOptions {
  readonly isModern: boolean;
  /** Records the actions of the server, a line each. */
  readonly note: (line: string) => void;
  /** Notifies subscribers outside of the server's own connections. */
  readonly tell?: {
    readonly resourceUpdated: (uri: string) => void;
    readonly promptsChanged: () => void;
  };
}

interface State extends FullOptions {
  prompts: readonly object[];
}

const ASKED = {
  type: "object" as const,
  properties: { name: { type: "string" as const, title: "Name" } },
  required: ["name"],
};
const TOOLS = [
  "ask_name",
  "ask_twice",
  "ask_secret",
  "ask_page",
  "sample",
  "link",
  "log",
  "touch",
  "add_prompt",
  "meta",
  "fail",
];
const RESOURCES = [
  { uri: "test://a", name: "a", title: "The first", size: 3, "x/kept": 1 },
  { uri: "test://b", name: "b" },
];

function text(said: unknown) {
  return { content: [{ type: "text" as const, text: String(said) }] };
}

/**
 * Asks the client: with a request if the revision has one, else with a result after which the
 * client repeats its request.
 */
async function asked(
  { isModern, context }: { readonly isModern: boolean; readonly context: ServerContext },
  requests: Readonly<Record<string, { method: string; params: object }>>,
): Promise<Readonly<Record<string, Record<string, unknown>>> | undefined> {
  if (isModern) {
    const said = context.mcpReq.inputResponses ?? {};
    const all = Object.keys(requests).every((key) => key in said);
    return all ? said as Record<string, Record<string, unknown>> : undefined;
  }
  const answers = Object.entries(requests).map(async ([key, { method, params }]) => {
    const answer = await context.mcpReq.send({ method, params } as never);
    return [key, answer as Record<string, unknown>] as const;
  });
  return Object.fromEntries(await Promise.all(answers));
}

function question(message: string) {
  return {
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: ASKED },
  };
}

/** Returns the questions of a tool before it answers. */
function wantedBy(name: string, args: unknown): Record<string, { method: string; params: object }> {
  const wanted: Record<string, { method: string; params: object }> = {};
  if (name === "ask_name") wanted.one = question("Who\nare you?");
  if (name === "ask_secret") wanted.one = question("Type your password");
  if (name === "ask_page") {
    wanted.one = {
      method: "elicitation/create",
      params: { mode: "url", message: "Log in", url: "https://127.0.0.1/x", elicitationId: "e1" },
    };
  }
  if (name === "ask_twice") Object.assign(wanted, { one: question("One?"), two: question("Two?") });
  if (name === "sample") {
    const messages = [{ role: "user", content: { type: "text", text: "Say it" } }];
    const params = { messages, maxTokens: 10, ...Object(args) };
    wanted.one = { method: "sampling/createMessage", params };
  }
  return wanted;
}

async function call(
  { name, arguments: args, _meta }: { name: string; arguments?: unknown; _meta?: unknown },
  { context, server, state }: { context: ServerContext; server: Server; state: State },
) {
  const { isModern, note, tell } = state;
  note(`call ${name} ${JSON.stringify(args ?? null)}`);
  const wanted = wantedBy(name, args);
  if (Object.keys(wanted).length > 0) {
    const answers = await asked({ isModern, context }, wanted);
    if (answers !== undefined) {
      if (name === "ask_page" && !isModern) {
        const params = { elicitationId: "e1" };
        await context.mcpReq.notify({ method: "notifications/elicitation/complete", params });
      }
      return text(JSON.stringify(answers));
    }
    return inputRequired({ inputRequests: wanted as never, requestState: "of the server" });
  }
  switch (name) {
    case "link":
      return {
        content: [
          { type: "resource_link", uri: "test://linked", name: "linked", "x/kept": { deep: true } },
          { type: "text", text: "see", annotations: { priority: 1, "x/kept": 2 } },
        ],
        structuredContent: { at: "test://linked" },
        _meta: { "x/kept": 3 },
        "x/kept": 4,
      };
    case "log":
      for (const level of ["debug", "info", "error"] as const) {
        await context.mcpReq.notify({
          method: "notifications/message",
          params: { level, logger: "deep", data: { level } },
        });
      }
      return text("logged");
    case "touch":
      for (const uri of ["test://a", "test://b"]) {
        if (tell === undefined) await server.sendResourceUpdated({ uri });
        else tell.resourceUpdated(uri);
      }
      return text("touched");
    case "add_prompt":
      state.prompts = [...state.prompts, { name: "later", arguments: [] }];
      for (let at = 0; at < 20; at++) {
        if (tell === undefined) await server.sendPromptListChanged();
        else tell.promptsChanged();
      }
      return text("added");
    case "meta":
      return text(JSON.stringify(_meta ?? null));
    default:
      throw new ProtocolError(-32099, "It fails", { why: "always" });
  }
}

/** Returns a function that creates the server, once for each connection or request. */
export function fullServer(options: FullOptions): () => Server {
  const prompts = [{ name: "greet", arguments: [{ name: "name", required: true }] }];
  const state: State = { ...options, prompts };
  return () => makeServer(state);
}

function makeServer(state: State): Server {
  const { note } = state;
  const server = new Server({ name: "full", version: "1.0.0" }, {
    capabilities: {
      tools: {},
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    },
  });
  server.removeRequestHandler("logging/setLevel");
  server.fallbackRequestHandler = async ({ method, params: given }, context) => {
    const params = (given ?? {}) as Record<string, never>;
    if (method !== "tools/call") {
      note(`${method} ${JSON.stringify({ ...params, _meta: undefined })}`);
    }
    switch (method) {
      case "tools/list":
        return { tools: TOOLS.map((name) => ({ name, inputSchema: { type: "object" } })) };
      case "tools/call":
        return await call(params as never, { context, server, state });
      case "resources/list": {
        // The last page names itself as the next.
        const at = Number(params.cursor ?? 0);
        return { resources: RESOURCES.slice(at, at + 1), nextCursor: "1" };
      }
      case "resources/templates/list":
        return { resourceTemplates: [{ uriTemplate: "test://item/{id}", name: "item" }] };
      case "resources/read":
        if (`${params.uri}`.endsWith("missing")) {
          throw new ProtocolError(-32002, "Not found", { a: 1 });
        }
        return {
          contents: [{ uri: params.uri, mimeType: "text/plain", text: "t", "x/kept": 1 }],
          "x/kept": 2,
        };
      case "prompts/list":
        return { prompts: state.prompts };
      case "prompts/get": {
        const text = JSON.stringify([params.name, params.arguments]);
        return { messages: [{ role: "user", content: { type: "text", text } }] };
      }
      case "completion/complete":
        return { completion: { values: [JSON.stringify(params.ref)], hasMore: false } };
      case "resources/subscribe":
      case "resources/unsubscribe":
      case "logging/setLevel":
        return {};
    }
    throw new ProtocolError(-32601, "Method not found");
  };
  return server;
}

if (import.meta.main) {
  const [era = "legacy", ledger = "/dev/null"] = Deno.args;
  const isModern = era === "modern";
  const note = (line: string) => Deno.writeTextFileSync(ledger, `${line}\n`, { append: true });
  note(`start ${Deno.pid}`);
  serveStdio(fullServer({ isModern, note }), isModern ? { legacy: "reject" } : {});
}
