/**
 * Calls tools in the cloud, through the hub or at the address that a manifest names.
 *
 * The key of the user's account is sent only to the origin of the hub. Other keys are sent only
 * with a call, to the origin that needs them.
 *
 * @module
 */

import type { Keys } from "../../config/keys.ts";
import type { Call } from "../../protocol/call.ts";
import { keyHint, PmlError } from "../../core/errors.ts";
import type { Fetch } from "../../core/fetch.ts";
import { quoted } from "../../core/json.ts";
import { VIA_CAPABILITY } from "../known_server.ts";
import { externalTools } from "../../protocol/lists.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { splitToolId, type ToolId } from "../../core/tool_id.ts";
import { isUnsent, Outages } from "../../io/outages.ts";
import type { UpstreamServer } from "../client/wire.ts";
import { SEARCH_HINT } from "../lists/unknown_tool.ts";
import { CLOUD_URL, type CloudManifest, isProxy, upstreamLines } from "./kind.ts";
import { HttpServers } from "../http/http_servers.ts";
import type { HttpServersHost, HttpValues } from "../http/http_options.ts";

/** The services of PML that connections to the cloud use. `Machine` implements it. */
export interface CloudHost extends Omit<HttpServersHost, "authorization"> {
  /** The address of the hub, if the user configured one. */
  readonly cloudUrl: string | undefined;
}

/** Has the key of the user's account, and the keys that manifests require. */
type CloudKeys = Pick<Keys, "cloud" | "get" | "fill">;

/** A server in the cloud. Its manifest is undefined if only the name is known. */
export interface CloudEntry {
  readonly name: string;
  readonly manifest: CloudManifest | undefined;
}

/** The destination of a server's calls, without the values of keys. */
interface CloudAddress {
  readonly url: string;
  /** Whether the destination is the hub, so that the key of the account may be sent to it. */
  readonly isHub: boolean;
  /** The hosts that the user named. */
  readonly named: ReadonlySet<string>;
}

/** The headers of requests to the hub, without the value of the key, for errors. */
const HUB_HEADERS = { authorization: "Bearer ${PML_API_KEY}" };
/** How long a probe of an origin may take, and the pause between two probes, in milliseconds. */
const PROBE = { lateMs: 30_000, restMs: 500 };

/** Reaches the servers in the cloud. */
export class Cloud {
  readonly #host: CloudHost;
  readonly #keys: CloudKeys;
  readonly #servers: HttpServers;
  readonly #cache = new Map<string, { readonly key: string; readonly server: UpstreamServer }>();
  readonly #outages = new Outages(PROBE.restMs);

  /** Sends nothing yet. */
  constructor(host: CloudHost, keys: CloudKeys) {
    this.#host = host;
    this.#keys = keys;
    this.#servers = new HttpServers(new CloudServersHost(host, this.#fetch));
  }

  /** Returns how to reach a server: the same object until a value, such as a key, changes. */
  upstreamOf(entry: CloudEntry): UpstreamServer {
    const server = this.#valuesOf(entry);
    const { name, manifest } = entry;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    const cacheEntry = this.#cache.get(name);
    if (cacheEntry?.key === key) return cacheEntry.server;
    const upstream = this.#servers.of(server);
    const cachedServer = manifest
      ? upstream
      : { ...upstream, toolName: (tool: string) => `${name}__${tool}` };
    this.#cache.set(name, { key, server: cachedServer });
    return cachedServer;
  }

  /** Throws if a key that a call of the server needs is missing. */
  assertKeys(entry: CloudEntry): void {
    this.#valuesOf(entry);
  }

  /** Returns the tools that the registry lists. */
  definitions({ manifest }: CloudEntry): readonly ToolDefinition[] {
    const { tools = [] } = manifest ?? {};
    return tools.map(({ name, definition }) => definition ?? definitionWithoutSchema(name));
  }

  /**
   * Returns the definition of a tool. Only calls of capabilities can use internal tools. Throws
   * `UNKNOWN_TOOL` if the registry lists tools, but not this one.
   */
  definition(entry: CloudEntry, { id, via }: Pick<Call, "id" | "via">): ToolDefinition {
    const { name: server, manifest } = entry;
    const { tool } = splitToolId(id);
    const all = this.definitions(entry);
    const tools = via === VIA_CAPABILITY ? all : externalTools(all);
    const definition = tools.find(({ name }) => name === tool);
    if (definition === undefined && manifest !== undefined && manifest.tools.length > 0) {
      const has = tools.slice(0, 20).map(({ name }) => name).join(", ");
      const message = `Cannot find the tool ${quoted(`${server}:${tool}`, 200)}: it has ${has}`;
      throw new PmlError("UNKNOWN_TOOL", message, { hint: SEARCH_HINT });
    }
    return definition ?? definitionWithoutSchema(tool);
  }

  /**
   * Returns lines for the user with the destination of a call and the keys that are sent with it.
   */
  facts(entry: CloudEntry): readonly string[] {
    const { manifest } = entry;
    const { url, isHub } = this.#addressOf(entry);
    const host = URL.parse(url)?.host ?? url;
    const keys = [...(isHub ? ["PML_API_KEY"] : []), ...manifest?.envRequired ?? []];
    return [
      `a tool in the cloud, at ${quoted(host)}: its operator can read everything that it is sent`,
      ...manifest === undefined ? [] : upstreamLines(manifest),
      `It is sent these arguments${keys.length === 0 ? "" : `, and the keys ${keys.join(", ")}`}`,
    ];
  }

  /**
   * Converts the error of a failed call. The new error explains the part of the cloud in it.
   */
  failure(error: unknown, entry: CloudEntry, id: ToolId): unknown {
    if (!(error instanceof PmlError)) return error;
    const { code, detail = {} } = error;
    const what = `Cannot call ${quoted(id, 200)}`;
    const { isHub } = this.#addressOf(entry);
    if (code === "LOGIN_REQUIRED" && isHub) return this.#keyRejected(what, detail);
    if (code === "UPSTREAM_PROTOCOL" && isHub && detail.status === 409) {
      const why = "the hub no longer passes it on to the one server that was approved";
      return new PmlError(code, `${what}: ${why}`, {
        hint: `Approve it again: pml lock update ${entry.name}`,
        detail,
        cause: error,
      });
    }
    if (code !== "UPSTREAM_DOWN" || detail.may_have_run !== false) return error;
    return new PmlError(code, `${what}: the cloud is out of reach (${error.message})`, {
      hint: "Tools on this machine work without it; try again when you are online",
      detail: { ...detail, tool: id },
      cause: error,
    });
  }

  #addressOf({ manifest }: CloudEntry): CloudAddress {
    const configuredUrl = this.#host.cloudUrl;
    const hub = configuredUrl ?? CLOUD_URL;
    // Only an address that the user configured may be in a private network.
    const named = new Set(configuredUrl === undefined ? [] : [new URL(configuredUrl).host]);
    const url = manifest === undefined ? `${hub.replace(/\/+$/, "")}/mcp` : addressOf(manifest);
    return { url, isHub: manifest === undefined || isProxy(url, hub), named };
  }

  #valuesOf(entry: CloudEntry): HttpValues {
    const { name, manifest } = entry;
    const { url, isHub, named } = this.#addressOf(entry);
    const key = isHub ? this.#keys.cloud() : undefined;
    if (isHub && key === undefined) throw keyRequiredError(name);
    const variables = manifest?.envRequired ?? [];
    const missing = variables.filter((each) => this.#keys.get(each) === undefined);
    if (missing.length > 0) throw missingKeysError(name, missing);
    const keyHeaders = Object.fromEntries(
      variables.map((each) => [`x-pml-key-${each}`.toLowerCase(), `\${${each}}`]),
    );
    return {
      name,
      url,
      headers: key === undefined ? {} : { authorization: `Bearer ${key.value}` },
      written: { ...(isHub && HUB_HEADERS), ...keyHeaders },
      keyHeaders: this.#keys.fill({ headers: keyHeaders }, name).headers,
      named,
      tools: undefined,
      definition: manifest ?? url,
    };
  }

  #keyRejected(what: string, detail: Readonly<Record<string, unknown>>): PmlError {
    const from = this.#keys.cloud()?.from;
    return new PmlError("CLOUD_KEY_REJECTED", `${what}: the cloud rejects PML_API_KEY`, {
      hint: `It was found in ${from}: put a valid key there, or check what your account may use`,
      detail,
    });
  }

  /** Sends a request. During an outage of an origin, requests to it fail without being sent. */
  readonly #fetch: Fetch = async (url, options) => {
    const { origin } = new URL(url);
    const { fetch } = this.#host;
    // A probe contains no key and no data of a call.
    const probe = async () => {
      const signal = AbortSignal.timeout(PROBE.lateMs);
      await fetch(origin, { method: "HEAD", signal, named: options.named }).catch((error) => {
        // Any answer proves that the origin is reachable.
        if (!(error instanceof PmlError) || isUnsent(error)) throw error;
      });
    };
    await this.#outages.throwDuringOutage(origin, probe);
    try {
      return await fetch(url, options);
    } catch (error) {
      if (isUnsent(error)) this.#outages.record(origin, error);
      throw error;
    }
  };
}

/** The host of connections to the cloud: it sends requests with `fetch`, and never signs in. */
class CloudServersHost implements HttpServersHost {
  readonly fetch: Fetch;
  readonly home: string;
  readonly waitForMemory: HttpServersHost["waitForMemory"];
  readonly #host: CloudHost;

  constructor(host: CloudHost, fetch: Fetch) {
    this.#host = host;
    this.fetch = fetch;
    this.home = host.home;
    this.waitForMemory = host.waitForMemory;
  }

  get limits(): HttpServersHost["limits"] {
    return this.#host.limits;
  }

  authorization(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}

/**
 * Returns the address of a server in the cloud. If the manifest contains the host to which the hub
 * forwards calls, the URL contains the approved version, so that the hub cannot use another
 * version.
 */
function addressOf({ proxyTo, upstream, version }: CloudManifest): string {
  return upstream === undefined ? proxyTo : `${proxyTo}@${version}`;
}

/**
 * Returns a definition for a tool whose schema only the hub knows. The hub checks the arguments.
 */
function definitionWithoutSchema(tool: string): ToolDefinition {
  return { name: tool, inputSchema: { type: "object" } };
}

/** Returns the error for a call that needs PML_API_KEY. */
export function keyRequiredError(server: string): PmlError {
  return new PmlError("CLOUD_KEY_REQUIRED", "Cloud mode requires PML_API_KEY", {
    hint: keyHint("PML_API_KEY"),
    detail: { server },
  });
}

/**
 * Returns the error for a call whose keys are missing. It contains the names of all missing keys.
 */
export function missingKeysError(server: string, missing: readonly string[]): PmlError {
  const names = missing.join(", ");
  return new PmlError("KEY_MISSING", `Cannot call ${quoted(server)}: it requires ${names}`, {
    hint: keyHint(missing[0]),
    detail: { missing },
  });
}
