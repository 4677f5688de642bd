/**
 * The hub as an MCP server with its own tools, for both revisions of the protocol.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { errorResponse, isObject, type JsonObject, visible } from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { HubStore, Related } from "../store/store.ts";
import { type Hit, search } from "./_search.ts";

/** Answers an MCP request. */
export type Mcp = (request: HubRequest) => Promise<HubResponse>;

const MAX_BODY = 1_000_000;
const MAX_QUERY = 500;
/** The bounds of the argument `limit`, and its default. */
const LIMIT = { least: 1, most: 20, usual: 10 };
const MAX_SUBSCRIPTIONS = 32;
const SERVER = { name: "pml-hub", version: "0.1.0" };

/** The part of the store that the tools read. */
type Readable = Pick<HubStore, "page" | "related">;

/** A tool of a hub. */
interface HubTool {
  readonly description: string;
  /** The name of the text argument, and its description. */
  readonly text: readonly [name: string, description: string];
  readonly run: (store: Readable, text: string, limit: number) => Promise<ToolResult>;
}

/** The result of a tool of the hub. */
interface ToolResult {
  readonly lines: readonly string[];
  readonly results: readonly JsonObject[];
  /** The text for an empty result. */
  readonly emptyText: string;
}

const QUERY_ARGUMENT = ["query", "A few words that describe the tool"] as const;
const TOOLS: Readonly<Record<string, HubTool>> = {
  pml__search_tools: {
    description: "Find tools of the servers that this hub offers",
    text: QUERY_ARGUMENT,
    run: async (store, query, limit) =>
      hitResult(await search(store, { query, kind: "tools", limit })),
  },
  pml__search_capabilities: {
    description: "Find capabilities (namespace:action) that this hub offers",
    text: QUERY_ARGUMENT,
    run: async (store, query, limit) =>
      hitResult(await search(store, { query, kind: "capabilities", limit })),
  },
  pml__related: {
    description:
      "List the tools that published capabilities call right after a tool, or right before it",
    text: ["tool", "The name of a tool, such as github:search_code"],
    run: async (store, tool, limit) => relatedResult(tool, await store.related(tool, limit)),
  },
};
const TOOL_LIST = Object.entries(TOOLS).map(([name, { description, text }]) => ({
  name,
  description,
  inputSchema: inputOf(text),
  annotations: { readOnlyHint: true, openWorldHint: false },
}));

/** Returns the handler of MCP requests. The first request loads the MCP SDK. */
export function openMcp(store: Readable): Mcp {
  const opening = { handler: undefined as ReturnType<typeof handlerOf> | undefined };
  return async (hubRequest) => {
    const body = await hubRequest.body(MAX_BODY);
    if (body === undefined) {
      return errorResponse(413, "too_large", {
        message: `The body has more than ${MAX_BODY} bytes`,
      });
    }
    opening.handler ??= handlerOf(store);
    const headers = Object.entries(hubRequest.headers).flatMap(([name, value]) =>
      typeof value === "string" && PROTOCOL_HEADERS.test(name) ? [[name, value] as const] : []
    );
    const request = new Request("http://hub.invalid/mcp", {
      method: "POST",
      headers: Object.fromEntries(headers),
      body,
      signal: hubRequest.signal,
    });
    return await (await opening.handler).fetch(request);
  };
}

function inputOf([name, description]: HubTool["text"]) {
  const text: Record<string, string | number> = {
    type: "string",
    maxLength: MAX_QUERY,
    description,
  };
  const { least: minimum, most: maximum, usual } = LIMIT;
  const limit: typeof text = { type: "integer", minimum, maximum, default: usual };
  return {
    type: "object" as const,
    properties: { [name]: text, limit },
    required: [name],
    additionalProperties: false,
  };
}

/** The headers that the handler gets. Keys and cookies are not passed on. */
const PROTOCOL_HEADERS = /^(accept|content-type|mcp-[\w-]+)$/;

async function handlerOf(store: Readable) {
  const { createMcpHandler, Server } = await import("@modelcontextprotocol/server");
  let turn = Promise.resolve();
  return createMcpHandler(() => {
    const server = new Server(SERVER, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [...TOOL_LIST] }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const tool = Object.hasOwn(TOOLS, params.name) ? TOOLS[params.name] : undefined;
      if (tool === undefined) {
        return errorResult(
          `There is no tool ${visible(params.name)}: ${Object.keys(TOOLS).join(", ")}`,
        );
      }
      const query = parseArguments(params.arguments, tool.text[0]);
      if (typeof query === "string") return errorResult(query);
      // Runs one search per turn of the event loop, so that a batch does not delay other requests.
      await (turn = turn.then(nextTurn));
      return resultOf(await tool.run(store, query.text, query.limit));
    });
    return server;
  }, { maxRequestBodySize: MAX_BODY, maxSubscriptions: MAX_SUBSCRIPTIONS });
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Returns the arguments, or the reason why they are not valid. */
function parseArguments(
  value: unknown,
  name: string,
): { readonly text: string; readonly limit: number } | string {
  const { [name]: text, limit = LIMIT.usual, ...rest } = isObject(value) ? value : {};
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) return `There is no argument ${visible(unknown)}`;
  if (typeof text !== "string" || text.length > MAX_QUERY) {
    return `${name} is not a text of at most ${MAX_QUERY} characters`;
  }
  const isLimit = Number.isInteger(limit) && Number(limit) >= LIMIT.least &&
    Number(limit) <= LIMIT.most;
  if (!isLimit) return `limit is not a whole number from ${LIMIT.least} to ${LIMIT.most}`;
  return { text, limit: Number(limit) };
}

function hitResult(hits: readonly Hit[]): ToolResult {
  const lines = hits.map(({ name, version, description }) =>
    `${name} (${version}): ${visible(description, 200)}`
  );
  return {
    lines,
    results: hits.map((hit) => ({ ...hit })),
    emptyText: "Nothing matches; try other words",
  };
}

function relatedResult(query: string, all: readonly Related[]): ToolResult {
  const lines = all.map(({ tool, place, capabilities, organisations }) =>
    `${tool} comes ${place} ${visible(query, 200)} in ${withNoun(capabilities, "capability")} of ` +
    withNoun(organisations, "organisation")
  );
  const emptyText = "No published capability calls this tool with another one";
  return { lines, results: all.map((related) => ({ ...related })), emptyText };
}

function withNoun(count: number, what: "capability" | "organisation"): string {
  return `${count} ${count === 1 ? what : what.replace(/y$/, "ie") + "s"}`;
}

function resultOf({ lines, results, emptyText }: ToolResult) {
  const text = lines.length === 0 ? emptyText : lines.join("\n");
  return { content: [{ type: "text" as const, text }], structuredContent: { results } };
}

function errorResult(text: string) {
  return { content: [{ type: "text" as const, text }], isError: true };
}
