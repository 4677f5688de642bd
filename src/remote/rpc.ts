/**
 * Calls tools in the cloud, through the hub or at the address that a manifest names.
 *
 * The key of the person's account is sent only to the origin of the hub. Other keys are sent only
 * with a call, to the origin that needs them.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { quoted } from "../core/json.ts";
import type { CloudManifest } from "../core/manifest.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { soon } from "../io/in_time.ts";
import type { UpstreamServer } from "../mcp_client/upstreams.ts";
import { HttpServers, type HttpServersOptions, type HttpValues } from "./http_servers.ts";

/** The default address of the hub. */
export const CLOUD_URL = "https://pml.casys.ai";

/** A key and where it was found. */
interface FoundKey {
  readonly value: string;
  readonly from: string;
}

/** The options of `Cloud`. The functions are called at each call. */
export interface CloudOptions extends HttpServersOptions {
  /** Returns the address of the hub if the person named one. */
  readonly url: () => string | undefined;
  /** Returns the key of the person's account. Throws if it is malformed. */
  readonly key: () => FoundKey | undefined;
  /** Returns the value of a variable that a manifest names. */
  readonly find: (name: string) => string | undefined;
  /** Fills in headers. Throws if one cannot be sent. */
  readonly fill: (headers: Headers, server: string) => Headers;
}

/** A server in the cloud: known only by its name, or from a registry. */
export interface CloudEntry {
  readonly name: string;
  readonly manifest: CloudManifest | undefined;
}

type Headers = Readonly<Record<string, string>>;

/** Where the calls of a server go. No key is needed to know it. */
interface CloudAddress {
  readonly url: string;
  readonly isHub: boolean;
  readonly named: ReadonlySet<string>;
}

const WRITTEN = { authorization: "Bearer ${PML_API_KEY}" };
/** How long a call waits for a check whether a cloud that was down can be reached again. */
const LOOK_MS = 70;
/** How long such a check may take, and the shortest time between two of them. */
const LOOKS = { lateMs: 30_000, everyMs: 500 };

/** An origin that could not be reached, and the check whether it can be reached again. */
interface UnreachableOrigin {
  readonly error: unknown;
  readonly look: Promise<void>;
  readonly at: number;
}

/** Reaches the servers in the cloud. */
export class Cloud {
  readonly #options: CloudOptions;
  readonly #servers: HttpServers;
  readonly #made = new Map<string, { readonly key: string; readonly server: UpstreamServer }>();
  readonly #gone = new Map<string, UnreachableOrigin>();

  /** Sends nothing yet. */
  constructor(options: CloudOptions) {
    this.#options = options;
    this.#servers = new HttpServers({ ...options, fetch: this.#fetch });
  }

  /** Returns the way to a server: the same object as long as nothing changes. */
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

  /** Throws if a key is missing that a call of this server needs. */
  assertReached(entry: CloudEntry): void {
    this.#reached(entry);
  }

  /** Returns the definition of a tool. */
  definition({ name: server, manifest }: CloudEntry, tool: string): ToolDefinition {
    const { tools = [] } = manifest ?? {};
    const known = tools.find(({ name }) => name === tool);
    if (known === undefined && tools.length > 0) {
      const has = tools.slice(0, 20).map(({ name }) => name).join(", ");
      const message = `Cannot find the tool ${quoted(`${server}:${tool}`, 200)}: it has ${has}`;
      throw new PmlError("UNKNOWN_TOOL", message, { hint: "Find its name with `search`" });
    }
    // The hub checks the arguments if there is no schema here.
    return known?.definition ?? { name: tool, inputSchema: { type: "object" } };
  }

  /** Returns where a call goes and what is sent with it, for a person to read. */
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

  /** Returns the error of a failed call in the words of the cloud. */
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

  #placeOf({ manifest }: CloudEntry): CloudAddress {
    const hub = this.#options.url() ?? CLOUD_URL;
    // Only an address that the person gave may be in a private network.
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
    return new PmlError("CLOUD_KEY_REJECTED", `${what}: the cloud rejects PML_API_KEY`, {
      hint: `It was found in ${from}: put a valid key there, or check what your account may use`,
      detail,
    });
  }

  /** Sends a request. If an origin cannot be reached, all servers there fail without trying. */
  readonly #fetch: Fetch = async (url, options) => {
    const { origin } = new URL(url);
    if (this.#gone.has(origin)) await this.#look(origin, options.named);
    const gone = this.#gone.get(origin);
    if (gone !== undefined) throw gone.error;
    try {
      return await this.#options.fetch(url, options);
    } catch (error) {
      if (isUnsent(error)) {
        this.#gone.set(origin, { error, look: Promise.resolve(), at: performance.now() });
      }
      throw error;
    }
  };

  /**
   * Checks whether an origin can be reached again. A caller waits only a short time for the check.
   */
  async #look(origin: string, named: ReadonlySet<string>): Promise<void> {
    const gone = this.#gone.get(origin);
    if (gone === undefined) return;
    if (performance.now() - gone.at < LOOKS.everyMs) return void await soon(gone.look, LOOK_MS);
    const signal = AbortSignal.timeout(LOOKS.lateMs);
    // It carries no key and no part of a call.
    const look = this.#options.fetch(origin, { method: "HEAD", signal, named }).then(
      () => void this.#gone.delete(origin),
      // Any answer shows that the origin can be reached.
      (error) => void (error instanceof PmlError && !isUnsent(error) && this.#gone.delete(origin)),
    );
    this.#gone.set(origin, { ...gone, look, at: Infinity });
    const again = look.then(() => {
      const still = this.#gone.get(origin);
      if (still !== undefined) this.#gone.set(origin, { ...still, at: performance.now() });
    });
    await soon(again, LOOK_MS);
  }
}

/**
 * Returns whether an address is one where the hub proxies a server. A registry can name any
 * address, and the key of the account must not go to another one.
 */
export function isProxy(url: string, hub: string | undefined): boolean {
  const address = URL.parse(url);
  return address?.origin === new URL(hub ?? CLOUD_URL).origin &&
    /^\/mcp\/proxy\/[^/]+$/.test(address.pathname) && address.search === "";
}

function isUnsent(error: unknown): boolean {
  return error instanceof PmlError && error.code === "UPSTREAM_DOWN" &&
    error.detail?.may_have_run === false;
}

/** Returns the error of a call that needs PML_API_KEY. */
export function keyRequired(server: string): PmlError {
  return new PmlError("CLOUD_KEY_REQUIRED", "Cloud mode requires PML_API_KEY", {
    hint: `${quoted(server)} runs in the cloud: set PML_API_KEY in the environment that starts ` +
      "pml, or run `pml init`",
    detail: { server },
  });
}

/** Returns the error of a call that lacks keys, with all their names. */
export function keysMissing(server: string, missing: readonly string[]): PmlError {
  const names = missing.join(", ");
  return new PmlError("KEY_MISSING", `Cannot call ${quoted(server)}: it requires ${names}`, {
    hint: "Set it in the environment that starts pml, or in .env of a workspace that is trusted",
    detail: { missing },
  });
}
