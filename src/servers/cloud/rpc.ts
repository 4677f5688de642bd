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
import { OF_CAPABILITY } from "../known_server.ts";
import { externalTools } from "../../protocol/lists.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { splitToolId, type ToolId } from "../../core/tool_id.ts";
import { isUnsent, Outages } from "../../io/outages.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import { CLOUD_URL, type CloudManifest, isProxy, upstreamLines } from "./kind.ts";
import { HttpServers } from "../http/http_servers.ts";
import type { HttpServersHost, HttpValues } from "../http/http_options.ts";

/** The PML that connections to the cloud belong to. `Machine` implements it. */
export interface CloudHost extends Omit<HttpServersHost, "authorization"> {
  /** The address of the hub, if the user named one. */
  readonly cloudUrl: string | undefined;
}

/** The key of the user's account, and those that manifests name. */
type CloudKeys = Pick<Keys, "cloud" | "get" | "filled">;

/** A server in the cloud: known only by its name, or from a registry. */
export interface CloudEntry {
  readonly name: string;
  readonly manifest: CloudManifest | undefined;
}

/** The destination of a server's calls, without the values of keys. */
interface CloudAddress {
  readonly url: string;
  readonly isHub: boolean;
  readonly named: ReadonlySet<string>;
}

const WRITTEN = { authorization: "Bearer ${PML_API_KEY}" };
/** How long a probe of an origin may take, and the pause after it, in milliseconds. */
const LOOKS = { lateMs: 30_000, restMs: 500 };

/** Reaches the servers in the cloud. */
export class Cloud {
  readonly #host: CloudHost;
  readonly #keys: CloudKeys;
  readonly #servers: HttpServers;
  readonly #made = new Map<string, { readonly key: string; readonly server: UpstreamServer }>();
  readonly #outages = new Outages(LOOKS.restMs);

  /** Sends nothing yet. */
  constructor(host: CloudHost, keys: CloudKeys) {
    this.#host = host;
    this.#keys = keys;
    this.#servers = new HttpServers(new CloudServersHost(host, this.#fetch));
  }

  /** Returns a server: the same object as long as nothing changes. */
  of(entry: CloudEntry): UpstreamServer {
    const server = this.#reached(entry);
    const { name, manifest } = entry;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    const cacheEntry = this.#made.get(name);
    if (cacheEntry?.key === key) return cacheEntry.server;
    const way = this.#servers.of(server);
    const made = manifest ? way : { ...way, toolName: (tool: string) => `${name}__${tool}` };
    this.#made.set(name, { key, server: made });
    return made;
  }

  /** Throws if a key is missing that a call of this server needs. */
  assertReached(entry: CloudEntry): void {
    this.#reached(entry);
  }

  /** Returns the tools that its registry lists. */
  definitions({ manifest }: CloudEntry): readonly ToolDefinition[] {
    const { tools = [] } = manifest ?? {};
    return tools.map(({ name, definition }) => definition ?? undescribed(name));
  }

  /** Returns the definition of a tool. Internal tools are visible to capabilities only. */
  definition(entry: CloudEntry, { id, via }: Pick<Call, "id" | "via">): ToolDefinition {
    const { name: server, manifest } = entry;
    const { tool } = splitToolId(id);
    const all = this.definitions(entry);
    const tools = via === OF_CAPABILITY ? all : externalTools(all);
    const definition = tools.find(({ name }) => name === tool);
    if (definition === undefined && manifest !== undefined && manifest.tools.length > 0) {
      const has = tools.slice(0, 20).map(({ name }) => name).join(", ");
      const message = `Cannot find the tool ${quoted(`${server}:${tool}`, 200)}: it has ${has}`;
      throw new PmlError("UNKNOWN_TOOL", message, { hint: "Find its name with `search`" });
    }
    return definition ?? undescribed(tool);
  }

  /** Returns lines for the user with the destination of a call and the values that are sent. */
  facts(entry: CloudEntry): readonly string[] {
    const { manifest } = entry;
    const { url, isHub } = this.#placeOf(entry);
    const host = URL.parse(url)?.host ?? url;
    const keys = [...(isHub ? ["PML_API_KEY"] : []), ...manifest?.envRequired ?? []];
    return [
      `a tool in the cloud, at ${quoted(host)}: its operator can read everything that it is sent`,
      ...manifest === undefined ? [] : upstreamLines(manifest),
      `It is sent these arguments${keys.length === 0 ? "" : `, and the keys ${keys.join(", ")}`}`,
    ];
  }

  /** Returns the error of a failed call in the words of the cloud. */
  failure(error: unknown, entry: CloudEntry, id: ToolId): unknown {
    if (!(error instanceof PmlError)) return error;
    const { code, detail = {} } = error;
    const what = `Cannot call ${quoted(id, 200)}`;
    const { isHub } = this.#placeOf(entry);
    if (code === "LOGIN_REQUIRED" && isHub) return this.#rejected(what, detail);
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

  #placeOf({ manifest }: CloudEntry): CloudAddress {
    const configuredUrl = this.#host.cloudUrl;
    const hub = configuredUrl ?? CLOUD_URL;
    // Only an address that the user configured may be in a private network.
    const named = new Set(configuredUrl === undefined ? [] : [new URL(configuredUrl).host]);
    const url = manifest === undefined ? `${hub.replace(/\/+$/, "")}/mcp` : addressOf(manifest);
    return { url, isHub: manifest === undefined || isProxy(url, hub), named };
  }

  #reached(entry: CloudEntry): HttpValues {
    const { name, manifest } = entry;
    const { url, isHub, named } = this.#placeOf(entry);
    const key = isHub ? this.#keys.cloud() : undefined;
    if (isHub && key === undefined) throw keyRequired(name);
    const variables = manifest?.envRequired ?? [];
    const missing = variables.filter((each) => this.#keys.get(each) === undefined);
    if (missing.length > 0) throw keysMissing(name, missing);
    const keyHeaders = Object.fromEntries(
      variables.map((each) => [`x-pml-key-${each}`.toLowerCase(), `\${${each}}`]),
    );
    return {
      name,
      url,
      headers: key === undefined ? {} : { authorization: `Bearer ${key.value}` },
      written: { ...(isHub && WRITTEN), ...keyHeaders },
      keyHeaders: this.#keys.filled({ headers: keyHeaders }, name).headers,
      named,
      tools: undefined,
      definition: manifest ?? url,
    };
  }

  #rejected(what: string, detail: Readonly<Record<string, unknown>>): PmlError {
    const from = this.#keys.cloud()?.from;
    return new PmlError("CLOUD_KEY_REJECTED", `${what}: the cloud rejects PML_API_KEY`, {
      hint: `It was found in ${from}: put a valid key there, or check what your account may use`,
      detail,
    });
  }

  /** Sends a request. If an origin cannot be reached, all servers there fail without trying. */
  readonly #fetch: Fetch = async (url, options) => {
    const { origin } = new URL(url);
    const { fetch } = this.#host;
    // The probe contains no key and nothing of any call.
    const probe = async () => {
      const signal = AbortSignal.timeout(LOOKS.lateMs);
      await fetch(origin, { method: "HEAD", signal, named: options.named }).catch((error) => {
        // Any answer proves that the origin is reachable.
        if (!(error instanceof PmlError) || isUnsent(error)) throw error;
      });
    };
    await this.#outages.pass(origin, probe);
    try {
      return await fetch(url, options);
    } catch (error) {
      if (isUnsent(error)) this.#outages.note(origin, error);
      throw error;
    }
  };
}

/** Sends the requests of all servers in the cloud by its own function, and signs in at none. */
class CloudServersHost implements HttpServersHost {
  readonly fetch: Fetch;
  readonly home: string;
  readonly room: HttpServersHost["room"];
  readonly #host: CloudHost;

  constructor(host: CloudHost, fetch: Fetch) {
    this.#host = host;
    this.fetch = fetch;
    this.home = host.home;
    this.room = host.room;
  }

  get limits(): HttpServersHost["limits"] {
    return this.#host.limits;
  }

  authorization(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}

/**
 * Returns the address of a server in the cloud. A hub that publishes the address that it forwards
 * calls to gets the approved version with each request, so it cannot choose another one.
 */
function addressOf({ proxyTo, upstream, version }: CloudManifest): string {
  return upstream === undefined ? proxyTo : `${proxyTo}@${version}`;
}

// The hub checks the arguments: no schema is known here.
function undescribed(tool: string): ToolDefinition {
  return { name: tool, inputSchema: { type: "object" } };
}

/** Returns the error of a call that needs PML_API_KEY. */
export function keyRequired(server: string): PmlError {
  return new PmlError("CLOUD_KEY_REQUIRED", "Cloud mode requires PML_API_KEY", {
    hint: keyHint("PML_API_KEY"),
    detail: { server },
  });
}

/** Returns the error of a call that lacks keys, with all their names. */
export function keysMissing(server: string, missing: readonly string[]): PmlError {
  const names = missing.join(", ");
  return new PmlError("KEY_MISSING", `Cannot call ${quoted(server)}: it requires ${names}`, {
    hint: keyHint(missing[0]),
    detail: { missing },
  });
}
