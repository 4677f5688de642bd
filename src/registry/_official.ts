/**
 * A source for the official MCP Registry, or another registry with the same API (v0.1).
 *
 * @module
 */

import { objectOf, quoted, textOf, withoutUndefined } from "../core/json.ts";
import { offerOf, pmlName } from "./_server_json.ts";
import { RegistryClient, type RegistryClientOptions } from "./client.ts";
import type { Fqdn } from "./fqdn.ts";
import type { CatalogPage, Lookup, RegistryReader } from "./source.ts";

const REQUEST = { type: "application/json", maxBytes: 4_000_000, ms: 10_000 } as const;
const PAGE = 100;
const MISSING: Lookup = { kind: "missing" };

/** The source of a registry that is configured as `mcp+https://…`. */
export class Official implements RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  readonly #client: RegistryClient;
  /** Names in the registry by names in PML, for the servers that were found so far. */
  readonly #names = new Map<string, string>();

  /** Creates a source. Requests nothing yet. */
  constructor(url: string, options: RegistryClientOptions) {
    this.url = url;
    this.#client = new RegistryClient(url, options);
  }

  /**
   * Looks up a server. Names in the registry have a slash and may have capitals, which names in PML
   * lack. So this tries the most likely name first and then a search: at most three requests.
   */
  async manifest(
    { name, action, version }: Fqdn,
    signal: AbortSignal,
    etag?: string,
  ): Promise<Lookup> {
    if (action !== undefined || !name.includes(".")) return MISSING;
    const fullName = this.#names.get(name) ?? likelyName(name);
    const lookup = await this.#version(pathOf(fullName, version), signal, etag);
    if (lookup !== undefined) return lookup;
    const [owner = "", serverName = ""] = name.split(".").slice(-2);
    const isNewest = version === undefined || version === "latest";
    // A request for an exact version needs one more request after the search.
    for (
      const search of [
        `${owner}/${serverName}`,
        ...isNewest ? [`${owner}.${serverName}`] : [],
      ]
    ) {
      const { server, response } = await this.#search(search, name, signal);
      if (server !== undefined && isNewest) return this.#lookup(response);
      if (server !== undefined && server !== fullName) {
        return await this.#version(pathOf(server, version), signal, etag) ?? MISSING;
      }
    }
    return MISSING;
  }

  /** Rejects, because this registry has only programs and URLs. */
  code(): Promise<never> {
    return Promise.reject(this.#client.badResponse("it has no modules"));
  }

  /** Returns a page of the newest versions. Servers that PML cannot run are left out. */
  async catalog(signal: AbortSignal, cursor?: string): Promise<CatalogPage> {
    const { servers, next } = await this.#list(withoutUndefined({ cursor }), signal);
    const items = servers.flatMap((response) => {
      const offer = offerOf(response);
      if (offer.kind !== "entry") return [];
      this.#remember(nameOf(response));
      return [offer.json];
    });
    return { items, next };
  }

  async #version(
    path: string,
    signal: AbortSignal,
    etag: string | undefined,
  ): Promise<Lookup | undefined> {
    const answered = await this.#client.get(path, { ...REQUEST, signal, etag });
    if (answered.kind === "missing") return undefined;
    if (answered.kind === "unchanged") return answered;
    return this.#lookup(this.#client.json(answered.bytes), answered.etag);
  }

  async #search(
    search: string,
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly server?: string; readonly response?: unknown }> {
    const { servers } = await this.#list({ search }, signal);
    const response = servers.find((one) => pmlName(nameOf(one)) === name);
    if (response === undefined) return {};
    const server = nameOf(response);
    this.#remember(server);
    return { server, response };
  }

  /** Stores a name. If several servers have the same name in PML, the most likely name is used. */
  #remember(server: string): void {
    const name = pmlName(server);
    if (server === likelyName(name) || !this.#names.has(name)) this.#names.set(name, server);
  }

  async #list(
    filter: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<{ readonly servers: readonly unknown[]; readonly next: string | undefined }> {
    const query = new URLSearchParams({ version: "latest", limit: String(PAGE), ...filter });
    const answered = await this.#client.get(`/v0.1/servers?${query}`, { ...REQUEST, signal });
    if (answered.kind !== "found") throw this.#client.badResponse("it has no list of servers");
    const { servers, metadata } = objectOf(this.#client.json(answered.bytes));
    if (!Array.isArray(servers)) {
      throw this.#client.badResponse("its list of servers is not an array");
    }
    return { servers, next: textOf(objectOf(metadata).nextCursor) || undefined };
  }

  #lookup(response: unknown, etag?: string): Lookup {
    const offer = offerOf(response);
    if (offer.kind === "entry") return { kind: "found", json: offer.json, etag };
    if (offer.kind === "deleted") return MISSING;
    throw this.#client.badResponse(`${quoted(nameOf(response))} cannot be run here: ${offer.why}`, {
      hint: "See its page for a definition under mcpServers",
    });
  }
}

function likelyName(name: string): string {
  return name.replace(/\.(?=[^.]*$)/, "/");
}

/** Returns the path of a version of a server. */
function pathOf(server: string, version = "latest"): string {
  return `/v0.1/servers/${encodeURIComponent(server)}/versions/${encodeURIComponent(version)}`;
}

function nameOf(response: unknown): string {
  return textOf(objectOf(objectOf(response).server).name);
}
