/**
 * Calls tools that run in the cloud: through the hub, or at the address that a manifest names.
 *
 * The person's account key goes to the origin of the hub and nowhere else. The keys of others go
 * with a call and with nothing else, to the origin that wants them.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { quoted } from "../core/json.ts";
import { externalTools } from "../core/lists.ts";
import type { CloudManifest } from "../core/manifest.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { isUnsent, Outages } from "../io/outages.ts";
import type { UpstreamServer } from "../mcp_client/upstreams.ts";
import { HttpServers, type HttpServersOptions, type HttpValues } from "./http_servers.ts";

/** The hub, unless the person names another. */
export const CLOUD_URL = "https://pml.casys.ai";

/** A value, and where it was found. */
interface Key {
  readonly value: string;
  readonly from: string;
}

/** What the cloud stands in; functions are asked at each call. */
export interface CloudOptions extends HttpServersOptions {
  /** The address of the hub, where the person named one. */
  readonly url: () => string | undefined;
  /** The key of the person's account; throws where it is malformed. */
  readonly key: () => Key | undefined;
  /** Gives a variable that a manifest names. */
  readonly find: (name: string) => string | undefined;
  /** Fills in headers; throws what cannot be sent. */
  readonly fill: (headers: Headers, server: string) => Headers;
}

/** A server in the cloud: by its name alone, or as a registry has it. */
export interface CloudEntry {
  readonly name: string;
  readonly manifest: CloudManifest | undefined;
}

type Headers = Readonly<Record<string, string>>;

/** Where the calls of a server go, as far as no key is needed to know it. */
interface Place {
  readonly url: string;
  readonly isHub: boolean;
  readonly named: ReadonlySet<string>;
}

const WRITTEN = { authorization: "Bearer ${PML_API_KEY}" };
/** How long a look whether an origin is back may take, and how long there is none after it. */
const LOOKS = { lateMs: 30_000, restMs: 500 };

/** The cloud, as far as this PML may use it. */
export class Cloud {
  readonly #options: CloudOptions;
  readonly #servers: HttpServers;
  readonly #made = new Map<string, { readonly key: string; readonly server: UpstreamServer }>();
  readonly #outages = new Outages(LOOKS.restMs);

  /** Takes the way out; nothing is sent yet. */
  constructor(options: CloudOptions) {
    this.#options = options;
    this.#servers = new HttpServers({ ...options, fetch: this.#fetch });
  }

  /** Gives the way to a server: the same object as long as nothing of it changes. */
  of(entry: CloudEntry): UpstreamServer {
    const server = this.#reached(entry);
    const { name, manifest } = entry;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    const known = this.#made.get(name);
    if (known?.key === key) return known.server;
    const way = this.#servers.of(server);
    const made = manifest ? way : { ...way, toolName: (tool: string) => `${name}__${tool}` };
    this.#made.set(name, { key, server: made });
    return made;
  }

  /** Throws what a call of a server would lack. */
  assertReached(entry: CloudEntry): void {
    this.#reached(entry);
  }

  /** Returns the tools that its registry tells of. */
  definitions({ manifest }: CloudEntry): readonly ToolDefinition[] {
    const { tools = [] } = manifest ?? {};
    return externalTools(tools.map(({ name, definition }) => definition ?? undescribed(name)));
  }

  /** Gives what is known of a tool. */
  definition(entry: CloudEntry, tool: string): ToolDefinition {
    const { name: server, manifest } = entry;
    const tools = this.definitions(entry);
    const known = tools.find(({ name }) => name === tool);
    if (known === undefined && manifest !== undefined && manifest.tools.length > 0) {
      const has = tools.slice(0, 20).map(({ name }) => name).join(", ");
      const message = `Cannot find the tool ${quoted(`${server}:${tool}`, 200)}: it has ${has}`;
      throw new PmlError("UNKNOWN_TOOL", message, { hint: "Find its name with `search`" });
    }
    return known ?? undescribed(tool);
  }

  /** Says where a call goes and what goes with it, for a person. */
  facts(entry: CloudEntry): readonly string[] {
    const { manifest } = entry;
    const { url, isHub } = this.#placeOf(entry);
    const host = URL.parse(url)?.host ?? url;
    const keys = [...(isHub ? ["PML_API_KEY"] : []), ...manifest?.envRequired ?? []];
    return [
      `a tool in the cloud, at ${quoted(host)}: who runs it can read what it is sent`,
      `It is sent these arguments${keys.length === 0 ? "" : `, and the keys ${keys.join(", ")}`}`,
    ];
  }

  /** Returns what the failure of a call means for the cloud. */
  failure(error: unknown, entry: CloudEntry, id: ToolId): unknown {
    if (!(error instanceof PmlError)) return error;
    const { code, detail = {} } = error;
    const what = `Cannot call ${quoted(id, 200)}`;
    if (code === "LOGIN_REQUIRED" && this.#placeOf(entry).isHub) {
      return this.#rejected(what, detail);
    }
    if (code !== "UPSTREAM_DOWN" || detail.may_have_run !== false) return error;
    return new PmlError(code, `${what}: the cloud is out of reach (${error.message})`, {
      hint: "Tools on this machine work without it; try again when you are online",
      detail: { ...detail, tool: id },
      cause: error,
    });
  }

  #placeOf({ manifest }: CloudEntry): Place {
    const hub = this.#options.url() ?? CLOUD_URL;
    // Only an address that the person gave may lie in a private network.
    const named = new Set(this.#options.url() === undefined ? [] : [new URL(hub).host]);
    const url = manifest?.proxyTo ?? `${hub.replace(/\/+$/, "")}/mcp`;
    return { url, isHub: manifest === undefined || isProxy(url, hub), named };
  }

  #reached(entry: CloudEntry): HttpValues {
    const { name, manifest } = entry;
    const { url, isHub, named } = this.#placeOf(entry);
    const key = isHub ? this.#options.key() : undefined;
    if (isHub && key === undefined) throw keyRequired(name);
    const wanted = manifest?.envRequired ?? [];
    const missing = wanted.filter((each) => this.#options.find(each) === undefined);
    if (missing.length > 0) throw keysMissing(name, missing);
    const keyHeaders = Object.fromEntries(
      wanted.map((each) => [`x-pml-key-${each}`.toLowerCase(), `\${${each}}`]),
    );
    return {
      name,
      url,
      headers: key === undefined ? {} : { authorization: `Bearer ${key.value}` },
      written: { ...(isHub && WRITTEN), ...keyHeaders },
      keyHeaders: this.#options.fill(keyHeaders, name),
      named,
      tools: undefined,
      definition: manifest ?? url,
    };
  }

  #rejected(what: string, detail: Readonly<Record<string, unknown>>): PmlError {
    const from = this.#options.key()?.from;
    return new PmlError("CLOUD_KEY_REJECTED", `${what}: the cloud does not take PML_API_KEY`, {
      hint: `It was found in ${from}: put one there that holds, or see what your account may use`,
      detail,
    });
  }

  /** That nobody can be reached at an origin is found out once for all servers there. */
  readonly #fetch: Fetch = async (url, options) => {
    const { origin } = new URL(url);
    const { fetch } = this.#options;
    // The look carries no key and says nothing of any call.
    const look = async () => {
      const signal = AbortSignal.timeout(LOOKS.lateMs);
      await fetch(origin, { method: "HEAD", signal, named: options.named }).catch((error) => {
        // Whoever answers anything at all is there.
        if (!(error instanceof PmlError) || isUnsent(error)) throw error;
      });
    };
    await this.#outages.pass(origin, { look });
    try {
      return await fetch(url, options);
    } catch (error) {
      if (isUnsent(error)) this.#outages.note(origin, error);
      throw error;
    }
  };
}

/**
 * Tells whether an address is one where the hub proxies a server: a registry can name any, and the
 * key of the account opens more than that.
 */
export function isProxy(url: string, hub: string | undefined): boolean {
  const address = URL.parse(url);
  return address?.origin === new URL(hub ?? CLOUD_URL).origin &&
    /^\/mcp\/proxy\/[^/]+$/.test(address.pathname) && address.search === "";
}

// The hub looks at arguments that nobody here knows a schema for.
function undescribed(tool: string): ToolDefinition {
  return { name: tool, inputSchema: { type: "object" } };
}

/** Makes the error of a call that the hub would let in by a key alone. */
export function keyRequired(server: string): PmlError {
  return new PmlError("CLOUD_KEY_REQUIRED", "Cloud mode requires PML_API_KEY", {
    hint: `${quoted(server)} runs in the cloud: set PML_API_KEY in the environment that starts ` +
      "pml, or run `pml init`",
    detail: { server },
  });
}

/** Makes the error of a call that lacks keys, with the names of all of them. */
export function keysMissing(server: string, missing: readonly string[]): PmlError {
  const names = missing.join(", ");
  return new PmlError("KEY_MISSING", `Cannot call ${quoted(server)}: it requires ${names}`, {
    hint: "Set it in the environment that starts pml, or in .env of a workspace that is trusted",
    detail: { missing },
  });
}
