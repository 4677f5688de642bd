/**
 * The hub as an MCP server: its own tools, on both eras of the protocol.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { errorResponse, isObject, type JsonObject, visible } from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { HubStore, Related } from "../store/store.ts";
import { type Hit, search } from "./_search.ts";

/** Answers a request of MCP. */
export type Mcp = (request: HubRequest) => Promise<HubResponse>;

const BODY = 1_000_000;
const QUERY = 500;
const LIMIT = { least: 1, most: 20, usual: 10 };
const SUBSCRIPTIONS = 32;
const SERVER = { name: "pml-hub", version: "0.1.0" };

/** The part of the store that the tools read. */
type Readable = Pick<HubStore, "page" | "related">;

/** A tool of a hub. */
interface OwnTool {
  readonly does: string;
  /** The name of the text argument, and its description. */
  readonly text: readonly [name: string, description: string];
  readonly run: (store: Readable, text: string, limit: number) => Promise<Found>;
}

/** The result of a tool of the hub. */
interface Found {
  readonly lines: readonly string[];
  readonly results: readonly JsonObject[];
  /** The text for an empty result. */
  readonly none: string;
}

const QUERIED = ["query", "A few words that describe the tool"] as const;
const OWN: Readonly<Record<string, OwnTool>> = {
  pml__search_tools: {
    does: "Find tools of the servers that this hub offers",
    text: QUERIED,
    run: async (store, query, limit) =>
      shownHits(await search(store, { query, kind: "tools", limit })),
  },
  pml__search_capabilities: {
    does: "Find capabilities (namespace:action) that this hub offers",
    text: QUERIED,
    run: async (store, query, limit) =>
      shownHits(await search(store, { query, kind: "capabilities", limit })),
  },
  pml__related: {
    does: "Tell which tools published capabilities call right after a tool, and right before it",
    text: ["tool", "The name of a tool, such as github:search_code"],
    run: async (store, tool, limit) => shownRelated(tool, await store.related(tool, limit)),
  },
};
const LISTED = Object.entries(OWN).map(([name, { does, text }]) => ({
  name,
  description: does,
  inputSchema: inputOf(text),
  annotations: { readOnlyHint: true, openWorldHint: false },
}));

/** Returns the handler of MCP requests. The first request loads the library. */
export function openMcp(store: Readable): Mcp {
  const opening = { handler: undefined as ReturnType<typeof handlerOf> | undefined };
  return async (hubRequest) => {
    const body = await hubRequest.body(BODY);
    if (body === undefined) {
      return errorResponse(413, "too_large", { message: `The body has more than ${BODY} bytes` });
    }
    opening.handler ??= handlerOf(store);
    const headers = Object.entries(hubRequest.headers).flatMap(([name, value]) =>
      typeof value === "string" && WANTED.test(name) ? [[name, value] as const] : []
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

function inputOf([name, description]: OwnTool["text"]) {
  const text: Record<string, string | number> = { type: "string", maxLength: QUERY, description };
  const { least: minimum, most: maximum, usual } = LIMIT;
  const limit: typeof text = { type: "integer", minimum, maximum, default: usual };
  return {
    type: "object" as const,
    properties: { [name]: text, limit },
    required: [name],
    additionalProperties: false,
  };
}

/** The headers of the protocol. Keys and cookies are not passed on. */
const WANTED = /^(accept|content-type|mcp-[\w-]+)$/;

async function handlerOf(store: Readable) {
  const { createMcpHandler, Server } = await import("@modelcontextprotocol/server");
  let turn = Promise.resolve();
  return createMcpHandler(() => {
    const server = new Server(SERVER, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [...LISTED] }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const own = Object.hasOwn(OWN, params.name) ? OWN[params.name] : undefined;
      if (own === undefined) {
        return wrong(`There is no tool ${visible(params.name)}: ${Object.keys(OWN).join(", ")}`);
      }
      const query = wantedIn(params.arguments, own.text[0]);
      if (typeof query === "string") return wrong(query);
      // A batch of searches delays no other request.
      await (turn = turn.then(nextTurn));
      return resultOf(await own.run(store, query.text, query.limit));
    });
    return server;
  }, { maxRequestBodySize: BODY, maxSubscriptions: SUBSCRIPTIONS });
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Returns the search, or the problem with its arguments. */
function wantedIn(
  value: unknown,
  name: string,
): { readonly text: string; readonly limit: number } | string {
  const { [name]: text, limit = LIMIT.usual, ...rest } = isObject(value) ? value : {};
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) return `There is no argument ${visible(unknown)}`;
  if (typeof text !== "string" || text.length > QUERY) {
    return `${name} is no text of at most ${QUERY} characters`;
  }
  const isLimit = Number.isInteger(limit) && Number(limit) >= LIMIT.least &&
    Number(limit) <= LIMIT.most;
  if (!isLimit) return `limit is no whole number from ${LIMIT.least} to ${LIMIT.most}`;
  return { text, limit: Number(limit) };
}

function shownHits(hits: readonly Hit[]): Found {
  const lines = hits.map(({ name, version, description }) =>
    `${name} (${version}): ${visible(description, 200)}`
  );
  return { lines, results: hits.map((hit) => ({ ...hit })), none: "Nothing fits; try other words" };
}

function shownRelated(query: string, all: readonly Related[]): Found {
  const lines = all.map(({ tool, place, capabilities, organisations }) =>
    `${tool} comes ${place} ${visible(query, 200)} in ${counted(capabilities, "capability")} of ` +
    counted(organisations, "organisation")
  );
  const none = "No published capability calls this tool with another one";
  return { lines, results: all.map((one) => ({ ...one })), none };
}

function counted(count: number, what: "capability" | "organisation"): string {
  return `${count} ${count === 1 ? what : what.replace(/y$/, "ie") + "s"}`;
}

function resultOf({ lines, results, none }: Found) {
  const text = lines.length === 0 ? none : lines.join("\n");
  return { content: [{ type: "text" as const, text }], structuredContent: { results } };
}

function wrong(text: string) {
  return { content: [{ type: "text" as const, text }], isError: true };
}
