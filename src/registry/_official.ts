/**
 * A source for the official MCP Registry, or another registry with the same API (v0.1).
 *
 * @module
 */

import { defined, objectOf, quoted, textOf } from "../core/json.ts";
import { nameHere, offerOf } from "./_server_json.ts";
import { RegistryClient, type RegistryClientOptions } from "./client.ts";
import type { Fqdn } from "./fqdn.ts";
import type { CatalogPage, LookOptions, Lookup, RegistryReader } from "./source.ts";

const LOOK = { type: "application/json", maxBytes: 4_000_000, ms: 10_000 } as const;
const PAGE = 100;
const MISSING: Lookup = { kind: "missing" };

/** The source of a registry that is configured as `mcp+https://…`. */
export class Official implements RegistryReader {
  /** The URL as configured. */
  readonly url: string;
  readonly #client: RegistryClient;
  /** Names in the registry by names in PML, for the servers that were found so far. */
  readonly #names = new Map<string, string>();

  /** Takes the URL; requests nothing yet. */
  constructor(url: string, options: RegistryClientOptions) {
    this.url = url;
    this.#client = new RegistryClient(url, options);
  }

  /**
   * Looks up a server. Names in the registry have a slash and may have capitals, which names in PML
   * lack. So this tries the most likely name first and then a search: at most three requests.
   */
  async manifest({ name, action, version }: Fqdn, options: LookOptions): Promise<Lookup> {
    if (action !== undefined || !name.includes(".")) return MISSING;
    const fullName = this.#names.get(name) ?? likeliest(name);
    const lookup = await this.#version(fullName, version, options);
    if (lookup !== undefined) return lookup;
    const [owner = "", own = ""] = name.split(".").slice(-2);
    const isNewest = version === undefined || version === "latest";
    // A given version needs one more request after the search.
    for (const search of [`${owner}/${own}`, ...isNewest ? [`${owner}.${own}`] : []]) {
      const { server, response } = await this.#searched(search, { name, options });
      if (server !== undefined && isNewest) return this.#lookup(response);
      if (server !== undefined && server !== fullName) {
        return await this.#version(server, version, options) ?? MISSING;
      }
    }
    return MISSING;
  }

  /** Rejects, because this registry has only programs and URLs. */
  code(): Promise<never> {
    return Promise.reject(this.#client.bad("it has no modules"));
  }

  /** Returns a page of the newest versions. Servers that PML cannot run are left out. */
  async catalog(
    options: LookOptions & { readonly cursor?: string | undefined },
  ): Promise<CatalogPage> {
    const { cursor } = options;
    const { servers, next } = await this.#list(defined({ cursor }), options);
    const items = servers.flatMap((response) => {
      const offer = offerOf(response);
      if (offer.kind !== "entry") return [];
      this.#remember(nameOf(response));
      return [offer.json];
    });
    return { items, next };
  }

  async #version(
    server: string,
    version: string | undefined,
    { signal, etag }: LookOptions,
  ): Promise<Lookup | undefined> {
    const which = `${encodeURIComponent(server)}/versions/${
      encodeURIComponent(version ?? "latest")
    }`;
    const answered = await this.#client.get(`/v0.1/servers/${which}`, { ...LOOK, signal, etag });
    if (answered.kind === "missing") return undefined;
    if (answered.kind === "unchanged") return answered;
    return this.#lookup(this.#client.json(answered.bytes), answered.etag);
  }

  async #searched(
    search: string,
    { name, options }: { readonly name: string; readonly options: LookOptions },
  ): Promise<{ readonly server?: string; readonly response?: unknown }> {
    const { servers } = await this.#list({ search }, options);
    const response = servers.find((one) => nameHere(nameOf(one)) === name);
    if (response === undefined) return {};
    const server = nameOf(response);
    this.#remember(server);
    return { server, response };
  }

  /** Stores a name. If several have the same name in PML, the most likely one is used. */
  #remember(server: string): void {
    const here = nameHere(server);
    if (server === likeliest(here) || !this.#names.has(here)) this.#names.set(here, server);
  }

  async #list(
    filter: Readonly<Record<string, string>>,
    { signal }: LookOptions,
  ): Promise<{ readonly servers: readonly unknown[]; readonly next: string | undefined }> {
    const query = new URLSearchParams({ version: "latest", limit: String(PAGE), ...filter });
    const answered = await this.#client.get(`/v0.1/servers?${query}`, { ...LOOK, signal });
    if (answered.kind !== "found") throw this.#client.bad("it has no list of servers");
    const { servers, metadata } = objectOf(this.#client.json(answered.bytes));
    if (!Array.isArray(servers)) throw this.#client.bad("its list of servers is not an array");
    return { servers, next: textOf(objectOf(metadata).nextCursor) || undefined };
  }

  #lookup(response: unknown, etag?: string): Lookup {
    const offer = offerOf(response);
    if (offer.kind === "entry") return { kind: "found", json: offer.json, etag };
    if (offer.kind === "deleted") return MISSING;
    throw this.#client.bad(`${quoted(nameOf(response))} cannot be run here: ${offer.why}`, {
      hint: "See its page for a definition under mcpServers",
    });
  }
}

function likeliest(name: string): string {
  return name.replace(/\.(?=[^.]*$)/, "/");
}

function nameOf(response: unknown): string {
  return textOf(objectOf(objectOf(response).server).name);
}
