/**
 * The public API about registries: names, hashes and module metadata, in the form that registries,
 * locks and the gateway share, and the parts of which a registry is made.
 *
 * @example
 * ```ts
 * import { integrityOf, parseFqdn } from "@casys/pml/registry";
 *
 * parseFqdn("fs:read_json@1.2.0"); // { name: "fs", action: "read_json", version: "1.2.0" }
 * integrityOf(new TextEncoder().encode("export const x = 1;")); // "sha256-…"
 * ```
 *
 * @module
 */

import { PmlError } from "./src/core/errors.ts";
import { type JsonObject, quoted, withoutUndefined } from "./src/core/json.ts";
import { parseExact } from "./src/core/exact_json.ts";
import { parseJsonBytes } from "./src/core/utf8.ts";
import type { Fqdn } from "./src/registry/fqdn.ts";
import { integrityOf } from "./src/core/hash.ts";
import { type OmittedTool, parseManifest } from "./src/registry/manifest.ts";
import type { SavedCapability, ToolDefinition, Versions } from "./src/registry/registry.ts";
export { parseExact } from "./src/core/exact_json.ts";
export { parseJson } from "./src/core/parse_json.ts";

export { isLoopback } from "./src/core/address.ts";
export { BUILTIN_NAMES } from "./src/servers/module/builtin_names.ts";
export {
  type OpenFileOptions,
  type ReadFileOptions,
  readRegular,
  type Regular,
} from "./src/io/regular_file.ts";
export * from "./src/registry/registry.ts";
export type { ManifestText, PublishedKind } from "./src/servers/kind.ts";
export { publishedKind } from "./src/servers/kinds.ts";

/**
 * Returns why clients would refuse a manifest, or leave out one of its tools; undefined if they take
 * all of it. `asked` is the name of the entry. `named` has the hosts of this machine, with their
 * ports, that the manifest may use without TLS.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { parseFqdn, whyRefused } from "@casys/pml/registry";
 *
 * const entry = { asked: parseFqdn("weather@1.0.0"), named: new Set<string>() };
 * const manifest = {
 *   fqdn: "weather",
 *   version: "1.0.0",
 *   type: "http",
 *   url: "https://weather.example/mcp",
 *   routing: "local",
 *   tools: [],
 * };
 * assert.equal(whyRefused(manifest, entry), undefined);
 * assert.match(whyRefused({ ...manifest, url: "ftp://weather.example" }, entry) ?? "", /url/);
 * ```
 */
export function whyRefused(
  manifest: JsonObject,
  { asked, named }: { readonly asked: Fqdn; readonly named: ReadonlySet<string> },
): string | undefined {
  const leftOut: OmittedTool[] = [];
  try {
    parseManifest(manifest, { url: "", asked, plainHttpHosts: named, leftOut });
    const [omission] = leftOut;
    return omission && `the tool ${quoted(omission.name)}: ${omission.reason}`;
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    return error.message.replace(/^Cannot use (?:the entry )?".*?"(?: of ".*?")?: /, "");
  }
}

/**
 * Reads a capability that the user of this machine saved.
 *
 * @throws {PmlError} NAME_INVALID if the name is not `namespace:action`; UNKNOWN_TOOL if no capability
 * has it; INTEGRITY_MISMATCH if its file was changed; CONFIG_INVALID if the list of capabilities
 * cannot be read.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { savedCapability } from "@casys/pml/registry";
 *
 * await assert.rejects(savedCapability("notes:missing"), { code: "UNKNOWN_TOOL" });
 * ```
 */
export async function savedCapability(name: string): Promise<SavedCapability> {
  const { CapabilityStore } = await import("./src/workflow/capability_store.ts");
  const { capabilityId } = await import("./src/servers/capability/capability.ts");
  const { readEnvironment } = await import("./src/config/env.ts");
  const { toSavedCapability } = await import("./src/workflow/saved_capability.ts");
  const store = new CapabilityStore(readEnvironment().home);
  return toSavedCapability(store.load(capabilityId(name)));
}

/**
 * Parses the content of a capability, as a registry stores it.
 *
 * @throws {TypeError} If a member is wrong, or the content is not UTF-8 or not canonical JSON.
 * @throws {SyntaxError} If the content is not JSON.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { capabilityIn } from "@casys/pml/registry";
 *
 * const content = {
 *   code: "return 42;",
 *   kind: "code",
 *   parameters: { type: "object" },
 *   tools_used: {},
 *   version: 1,
 * };
 * const saved = await capabilityIn(new TextEncoder().encode(JSON.stringify(content)));
 * assert.equal(saved.text, "return 42;");
 * ```
 */
export async function capabilityIn(code: Uint8Array): Promise<SavedCapability> {
  const { toSavedCapability } = await import("./src/workflow/saved_capability.ts");
  const { parseCapability } = await import("./src/servers/capability/capability.ts");
  const json: unknown = parseJsonBytes(code, parseExact);
  const saved = toSavedCapability(parseCapability(json));
  if (integrityOf(saved.code) === integrityOf(code)) return saved;
  throw new TypeError("it is not in its canonical form");
}

/** The tools of one server, or the capabilities of one namespace, that a search ranks. */
export interface Searched {
  /** The name of the server or the namespace. */
  readonly name: string;
  /** The description, if there is one. */
  readonly description?: string | undefined;
  /** The tools; of some only the name and a description are known. */
  readonly tools: readonly ToolDefinition[];
}

/**
 * Ranks tools by the words of a query, as PML's own search does. Returns at most `limit` ids, the best
 * first; none if nothing matches.
 *
 * @throws {PmlError} INPUT_TOO_LARGE if the query has more than 32,768 characters.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { rankTools } from "@casys/pml/registry";
 *
 * const weather = {
 *   name: "weather",
 *   tools: [
 *     { name: "forecast", description: "Returns the forecast of a city", inputSchema: {} },
 *     { name: "stations", description: "Lists weather stations", inputSchema: {} },
 *   ],
 * };
 * const ids = await rankTools("forecast for a city", { among: [weather], limit: 1 });
 * assert.deepEqual(ids, ["weather:forecast"]);
 * ```
 */
export async function rankTools(
  query: string,
  { among, limit }: { readonly among: readonly Searched[]; readonly limit: number },
): Promise<readonly string[]> {
  const { Catalog } = await import("./src/search/catalog.ts");
  const { Search } = await import("./src/search/search.ts");
  const catalog = new Catalog();
  for (const { name, description, tools } of among) {
    catalog.set({ name, origin: "registry", ...withoutUndefined({ description }) }, tools);
  }
  const { hits } = await new Search(catalog).search(query, { limit });
  return hits.map(({ id }) => id);
}

/** The options of `readFolder`. */
export interface FolderReading {
  /** Called for each file that is left out, with the reason. */
  readonly warn: (message: string) => void;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

/**
 * Reads a folder as `pml registry serve` does: modules and manifests, and their tags. The metadata of
 * a module is read in a sandbox child without grants. A file that cannot be used is left out, after a
 * warning.
 *
 * @throws {Deno.errors.NotFound} If there is no such folder.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { readFolder } from "@casys/pml/registry";
 *
 * const path = await Deno.makeTempDir();
 * await Deno.writeTextFile(
 *   `${path}/hello.ts`,
 *   `export const __meta__ = { version: "1.0.0", tools: { greet: {} } };
 * export const greet = () => "Hello";
 * `,
 * );
 * const signal = AbortSignal.timeout(60_000);
 * const [hello] = await readFolder(path, { warn: console.warn, signal });
 * assert.equal(hello?.fqdn, "hello");
 * assert.equal(hello.entries[0]?.version, "1.0.0");
 * await Deno.remove(path, { recursive: true });
 * ```
 */
export async function readFolder(
  path: string,
  reading: FolderReading,
): Promise<readonly Versions[]> {
  const { Folder } = await import("./src/registry/folder.ts");
  const { limitsOf } = await import("./src/config/limits.ts");
  const { FolderContents } = await import("./src/workflow/folder_contents.ts");
  const limits = limitsOf({});
  const home = await Deno.makeTempDir({ prefix: "pml-folder-" });
  try {
    const real = await Deno.realPath(path);
    const contents = new FolderContents(real, { home, limits }, reading.signal);
    return await new Folder(contents, reading).all();
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** Sends requests over TLS to public addresses, and to hosts that the operator named. */
export interface Outgoing extends Disposable {
  /**
   * Sends a request, and follows no redirect. Throws PERMISSION_DENIED if the address or a header is
   * not allowed, UPSTREAM_DOWN if the host cannot be reached, and UPSTREAM_PROTOCOL if its answer is
   * not valid.
   */
  readonly fetch: (url: string, options: OutgoingOptions) => Promise<Response>;
}

/** The options of a request. */
export interface OutgoingOptions {
  /** The HTTP method. */
  readonly method: string;
  /** The headers, by their names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, if there is one. */
  readonly body?: string;
  /** Ends the request. */
  readonly signal: AbortSignal;
}

/**
 * Creates an `Outgoing`. `named` has the hosts, with their ports, that may be in a private network or
 * on this machine. Dispose it to close its connections.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { listen, openOutgoing } from "@casys/pml/registry";
 *
 * await using listener = await listen({
 *   host: "127.0.0.1",
 *   port: 0,
 *   what: "an example",
 *   answer: (_request, response) => void response.end("hello"),
 * });
 * using outgoing = await openOutgoing(new Set([new URL(listener.origin).host]));
 * const response = await outgoing.fetch(listener.origin, {
 *   method: "GET",
 *   headers: {},
 *   signal: AbortSignal.timeout(10_000),
 * });
 * assert.equal(await response.text(), "hello");
 * ```
 */
export async function openOutgoing(named: ReadonlySet<string>): Promise<Outgoing> {
  const { GuardedFetch } = await import("./src/transport/http/client/guarded_fetch.ts");
  const guarded = new GuardedFetch();
  return {
    fetch: (url, options) => guarded.fetch(url, { ...options, named }),
    [Symbol.dispose]: () => guarded[Symbol.dispose](),
  };
}
