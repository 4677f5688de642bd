/**
 * Responses of the official MCP Registry (API v0.1), for the registry of the tests.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { JsonObject } from "../../src/core/json.ts";
import type { Answerer } from "./fake_registry.ts";

/** One version of a server: its `server.json`, and the registry's own metadata. */
export interface OfficialEntry {
  readonly server: JsonObject & { readonly name: string; readonly version: string };
  readonly status?: "active" | "deprecated" | "deleted";
  readonly statusMessage?: string;
}

/** Answers as the official registry does; the last version of a server is the latest. */
export function officialAnswers(all: readonly OfficialEntry[]): Answerer {
  const isLatest = (one: OfficialEntry) =>
    one === all.findLast(({ server }) => server.name === one.server.name);
  const shown = (one: OfficialEntry) => ({
    server: one.server,
    _meta: {
      "io.modelcontextprotocol.registry/official": {
        status: one.status ?? "active",
        ...(one.statusMessage && { statusMessage: one.statusMessage }),
        publishedAt: "2025-09-29T12:00:00Z",
        updatedAt: "2025-09-29T12:00:00Z",
        isLatest: isLatest(one),
      },
    },
  });
  return ({ target }) => {
    const { pathname, searchParams: query } = new URL(target, "http://127.0.0.1");
    const [, name, version] = /^\/v0\.1\/servers\/([^/]+)\/versions\/([^/]+)$/.exec(pathname) ?? [];
    if (pathname === "/v0.1/servers") {
      const search = (query.get("search") ?? "").toLowerCase();
      const found = all.filter((one) =>
        one.status !== "deleted" && one.server.name.toLowerCase().includes(search) &&
        (query.get("version") !== "latest" || isLatest(one))
      );
      const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 30)];
      const page = found.slice(from, from + limit);
      const isLast = from + limit >= found.length;
      return said(200, {
        servers: page.map(shown),
        metadata: { count: page.length, ...(!isLast && { nextCursor: String(from + limit) }) },
      });
    }
    const wanted = decodeURIComponent(version ?? "");
    const one = all.find((each) =>
      each.server.name === decodeURIComponent(name ?? "") &&
      (wanted === "latest" ? isLatest(each) : each.server.version === wanted)
    );
    if (one === undefined) {
      return said(404, { title: "Not Found", status: 404, detail: "Server not found" }, "problem+");
    }
    return said(200, shown(one));
  };
}

function said(status: number, value: unknown, kind = "") {
  const body = Buffer.from(JSON.stringify(value));
  const headers = {
    "content-type": `application/${kind}json`,
    "content-length": String(body.length),
  };
  return { status, headers, body };
}
