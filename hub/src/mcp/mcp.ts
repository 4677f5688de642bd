/**
 * The hub as an MCP server: its own tools, on both eras of the protocol.
 *
 * @module
 */

import { failure, isObject, type JsonObject, visible } from "@casys/pml/registry";
import type { HubRequest, HubResponse } from "../http/exchange.ts";
import type { HubStore } from "../store/store.ts";
import { type Hit, search, type Wanted } from "./_search.ts";

/** Answers a request of MCP. */
export type Mcp = (asked: HubRequest) => Promise<HubResponse>;

const BODY = 1_000_000;
const QUERY = 500;
const LIMIT = { least: 1, most: 20, usual: 10 };
const SUBSCRIPTIONS = 32;
const SERVER = { name: "pml-hub", version: "0.1.0" };

const INPUT = {
  type: "object",
  properties: {
    query: { type: "string", maxLength: QUERY, description: "A few words of what it should do" },
    limit: { type: "integer", minimum: LIMIT.least, maximum: LIMIT.most, default: LIMIT.usual },
  },
  required: ["query"],
  additionalProperties: false,
} as const;
const OWN: Readonly<Record<string, { readonly kind: Wanted["kind"]; readonly does: string }>> = {
  pml__search_tools: { kind: "tools", does: "Find tools of the servers that this hub offers" },
  pml__search_capabilities: {
    kind: "capabilities",
    does: "Find capabilities (namespace:action) that this hub offers",
  },
};
const LISTED = Object.entries(OWN).map(([name, { does }]) => ({
  name,
  description: does,
  inputSchema: { ...INPUT, required: [...INPUT.required] },
  annotations: { readOnlyHint: true, openWorldHint: false },
}));

/** Returns what answers requests of MCP. The library is loaded by the first one. */
export function openMcp(store: Pick<HubStore, "page">): Mcp {
  const opening = { handler: undefined as ReturnType<typeof handlerOf> | undefined };
  return async (asked) => {
    const body = await asked.body(BODY);
    if (body === undefined) {
      return failure(413, "too_large", { message: `The body has more than ${BODY} bytes` });
    }
    opening.handler ??= handlerOf(store);
    const headers = Object.entries(asked.headers).flatMap(([name, value]) =>
      typeof value === "string" && WANTED.test(name) ? [[name, value] as const] : []
    );
    const request = new Request("http://hub.invalid/mcp", {
      ...{ method: "POST", headers: Object.fromEntries(headers), body },
      signal: asked.signal,
    });
    return await (await opening.handler).fetch(request);
  };
}

/** What the protocol says in headers. Keys and cookies stay outside. */
const WANTED = /^(accept|content-type|mcp-[\w-]+)$/;

async function handlerOf(store: Pick<HubStore, "page">) {
  const { createMcpHandler, Server } = await import("@modelcontextprotocol/server");
  return createMcpHandler(() => {
    const server = new Server(SERVER, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [...LISTED] }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const own = Object.hasOwn(OWN, params.name) ? OWN[params.name] : undefined;
      if (own === undefined) {
        return wrong(`There is no tool ${visible(params.name)}: ${Object.keys(OWN).join(", ")}`);
      }
      const said = wantedIn(params.arguments);
      if (typeof said === "string") return wrong(said);
      return shown(await search(store, { ...said, kind: own.kind }));
    });
    return server;
  }, { maxRequestBodySize: BODY, maxSubscriptions: SUBSCRIPTIONS });
}

/** Returns what is looked for, or what is wrong with it. */
function wantedIn(said: unknown): Pick<Wanted, "query" | "limit"> | string {
  const { query, limit = LIMIT.usual, ...rest } = isObject(said) ? said : {};
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) return `There is no argument ${visible(unknown)}`;
  if (typeof query !== "string" || query.length > QUERY) {
    return `query is no text of at most ${QUERY} characters`;
  }
  const isLimit = Number.isInteger(limit) && Number(limit) >= LIMIT.least &&
    Number(limit) <= LIMIT.most;
  if (!isLimit) return `limit is no whole number from ${LIMIT.least} to ${LIMIT.most}`;
  return { query, limit: Number(limit) };
}

function shown(hits: readonly Hit[]) {
  const lines = hits.map(({ name, version, description }) =>
    `${name} (${version}): ${visible(description, 200)}`
  );
  const text = lines.length === 0 ? "Nothing fits; try other words" : lines.join("\n");
  const results: readonly JsonObject[] = hits.map((hit) => ({ ...hit }));
  return { content: [{ type: "text" as const, text }], structuredContent: { results } };
}

function wrong(text: string) {
  return { content: [{ type: "text" as const, text }], isError: true };
}
