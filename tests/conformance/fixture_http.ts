/**
 * Serves the fixture of the conformance suite over Streamable HTTP on loopback, in either revision.
 *
 * @module
 */

import {
  createMcpHandler,
  type McpHttpHandler,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { SentEvents } from "./_sent_events.ts";
import { fixtureOf } from "./fixture.ts";
import type { Kind } from "./words.ts";

const NEWEST = "2026-07-28";

/** The fixture at an address. */
export interface FixtureHttp extends AsyncDisposable {
  readonly url: string;
}

/** Serves the newest revision. */
function serveModern(): McpHttpHandler {
  const tell = (list: "tools" | "prompts"): void =>
    list === "tools" ? modern.notify.toolsChanged() : modern.notify.promptsChanged();
  const make = fixtureOf({ kind: "modern", tell });
  const modern: McpHttpHandler = createMcpHandler(make, { legacy: "reject" });
  return modern;
}

/** Listens on a free port of 127.0.0.1. */
export function serveFixture(kind: Kind | "both"): FixtureHttp {
  const modern = kind === "legacy" ? undefined : serveModern();
  const make = fixtureOf({ kind: "legacy" });
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const older = async (request: Request) => {
    const known = request.headers.get("mcp-session-id");
    if (known !== null) {
      const transport = sessions.get(known);
      return await transport?.handleRequest(request) ?? new Response(null, { status: 404 });
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
      eventStore: new SentEvents({ bytes: 0, most: 1_000_000 }),
      retryInterval: 50,
    });
    await make().connect(transport);
    return await transport.handleRequest(request);
  };
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(
    options,
    async (request) => {
      const isModern = kind !== "both" || request.headers.get("mcp-protocol-version") === NEWEST;
      return await (isModern ? modern?.fetch(request) : undefined) ?? await older(request);
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      for (const transport of sessions.values()) await transport.close();
      await modern?.close();
      await server.shutdown();
    },
  };
}
