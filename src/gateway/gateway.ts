/**
 * The MCP face: one server for both protocol eras, its lists, and its calls.
 *
 * @module
 */

import {
  type CallToolRequest,
  type ListToolsResult,
  type McpServerFactory,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Answer, Call, CallTool, Outcome, Progress, Question, Verdict } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import { parseToolId, type ToolId, wireName } from "../core/tool_id.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer, SearchOptions } from "../search/search.ts";
import type { Asked } from "../workflow/batch.ts";
import { answerOf, ask, askMeanwhile, canAsk, type Reaction } from "./asking.ts";
import { helloOf } from "./hello.ts";
import { serverLine } from "./instructions.ts";
import type { MetaCall, MetaCalls } from "./meta_calls.ts";
import { isMetaTool, type MetaTool, metaTools } from "./meta_tools.ts";
import { failed, forOlderClient, toSdk } from "./results.ts";
import type { Schemas } from "./schemas.ts";
import type { Servers } from "./servers.ts";

/** How long a client may keep a list: rules change under it. */
const LIST_TTL_MS = 5_000;

/** What the configuration says of the face. */
export interface FaceSettings {
  readonly exposure: "meta_only" | "full_proxy";
  readonly metaTools: readonly MetaTool[];
  /** Whether names in lists begin with their server's. */
  readonly prefix: boolean;
  readonly batchMax: number;
  /** Whether questions may go to the client at all. */
  readonly asksClient: boolean;
  /** How long a question waits for its answer. */
  readonly approvalMs: number;
}

/** What the face needs of the house; functions are asked at each request. */
export interface GatewayOptions {
  readonly callTool: CallTool;
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly schemas: Schemas;
  readonly search: (
    query: string | readonly string[],
    options: SearchOptions,
  ) => Promise<SearchAnswer>;
  readonly judge: (id: ToolId, args?: JsonObject) => Verdict;
  readonly settings: () => FaceSettings;
  /** Asks once for several calls, or gives what lets each pass. */
  readonly askForAll: (calls: readonly Call[]) => Promise<Asked>;
  /** Leaves a question for the terminal, for a client that cannot ask; gives the error to tell. */
  readonly leave: (question: Question) => Promise<PmlError>;
  /** Why nothing can be called at all, if so. */
  readonly problem: () => PmlError | undefined;
  readonly onError: (error: Error) => void;
}

/** One call has one question, or two where its server has to be trusted first. */
const MOST_ROUNDS = 4;

/** Serves MCP requests; every connection gets its own SDK server from the factory. */
export class Gateway {
  readonly #options: GatewayOptions;
  #meta: Promise<MetaCalls> | undefined;
  readonly #connections = new Set<Server>();

  /** Makes the face; nothing is asked of any server yet. */
  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /** Makes the server of one connection, for either era. */
  readonly factory: McpServerFactory = () => {
    const { onError } = this.#options;
    const { serverInfo, ...hello } = helloOf(this.#options.servers.states());
    const server = new Server(serverInfo, {
      ...hello,
      cacheHints: { "tools/list": { ttlMs: LIST_TTL_MS, cacheScope: "private" } },
      debouncedNotificationMethods: ["notifications/tools/list_changed"],
    });
    server.onerror = onError;
    server.onclose = () => void this.#connections.delete(server);
    server.setRequestHandler("tools/list", () => this.#list());
    server.setRequestHandler(
      "tools/call",
      (request, context) => this.#call(request, { context, server }),
    );
    this.#connections.add(server);
    return server;
  };

  /** Tells every client that the list of tools is another one. */
  listChanged(): void {
    for (const server of this.#connections) {
      // A connection that is just closing needs no word.
      server.sendToolListChanged().catch(this.#options.onError);
    }
  }

  /** Gives the tools that the exposure shows, in a fixed order. */
  async list(): Promise<readonly JsonObject[]> {
    const { settings, servers, catalog, judge, problem } = this.#options;
    const { exposure, metaTools: names, batchMax, prefix } = settings();
    if (exposure === "meta_only") {
      const all = metaTools(serverLine(servers.states()), batchMax);
      return names.map((name) => all[name] as unknown as JsonObject);
    }
    if (problem() === undefined) await servers.prepare();
    return catalog.list().filter(({ id }) => judge(id).kind !== "deny")
      .map(({ id, tool }) => ({ ...tool, name: prefix ? wireName(id) : tool.name } as JsonObject));
  }

  async #list(): Promise<ListToolsResult> {
    // Definitions go out as they are; the SDK's type names only the fields that it knows.
    return { tools: await this.list() } as unknown as ListToolsResult;
  }

  async #call(
    request: CallToolRequest,
    from: { readonly context: ServerContext; readonly server: Server },
  ): Promise<Reaction> {
    const { context } = from;
    const isOlder = context.mcpReq.envelope === undefined;
    try {
      let answer = answerOf(context);
      for (let round = 1;; round++) {
        const outcome = await this.#run(request, { context, answer });
        if (outcome.kind === "result") {
          return toSdk(isOlder ? forOlderClient(outcome.result) : outcome.result);
        }
        const { question } = outcome;
        const asks = round <= MOST_ROUNDS && this.#asks(question, from);
        if (asks && !isOlder) return ask(question);
        // Less than the question lives: what nobody answered can still be left for the terminal.
        const ms = this.#options.settings().approvalMs - 500;
        answer = asks ? await askMeanwhile(question, { context, ms }) : undefined;
        if (answer === undefined) throw await this.#options.leave(question);
      }
    } catch (error) {
      return failed(error);
    }
  }

  async #run(
    request: CallToolRequest,
    from: { readonly context: ServerContext; readonly answer: Answer | undefined },
  ): Promise<Outcome> {
    const { name, arguments: args = {} } = request.params;
    const { context, answer } = from;
    const call: MetaCall = {
      // The SDK parsed it from JSON.
      arguments: args as JsonObject,
      signal: context.mcpReq.signal,
      answer,
      onProgress: progressTo(context),
    };
    const meta = await this.#metaCalls();
    if (isMetaTool(name)) return await meta.call(name, call);
    return await meta.callTool(this.#idOf(name), { ...call, via: "tools/call" });
  }

  /** What only calls need is loaded by the first of them. */
  #metaCalls(): Promise<MetaCalls> {
    this.#meta ??= import("./meta_calls.ts").then(({ MetaCalls }) => new MetaCalls(this.#options));
    return this.#meta;
  }

  #asks(
    question: Question,
    from: { readonly context: ServerContext; readonly server: Server },
  ): boolean {
    return this.#options.settings().asksClient && !question.terminalOnly &&
      canAsk(from.context, from.server.getClientCapabilities());
  }

  #idOf(name: string): ToolId {
    const { catalog, settings, servers } = this.#options;
    const bare = settings().prefix
      ? undefined
      : catalog.list().find(({ tool }) => tool.name === name)?.id;
    const id = bare ?? catalog.byWireName(name) ?? parseToolId(name);
    if (id !== undefined) return id;
    throw servers.unknown(name);
  }
}

function progressTo(context: ServerContext): ((progress: Progress) => void) | undefined {
  const meta: unknown = context.mcpReq._meta;
  const progressToken = isObject(meta) ? meta.progressToken : undefined;
  if (typeof progressToken !== "string" && typeof progressToken !== "number") return undefined;
  return (progress) => {
    const params = { ...progress, progressToken };
    // A client that is gone misses nothing.
    context.mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  };
}
