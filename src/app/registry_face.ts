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

import { PmlError } from "../core/errors.ts";
import { defined, type JsonObject, quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { parseJsonBytes } from "../core/utf8.ts";
import type { Fqdn } from "../registry/fqdn.ts";
import { integrityOf } from "../policy/integrity.ts";
import { type OmittedTool, parseManifest } from "../registry/manifest.ts";
import type { SavedCapability, ToolDefinition, Versions } from "../registry/registry.ts";
export { parseExact } from "../core/exact_json.ts";
export { parseJson } from "../core/parse_json.ts";

export { isLoopback } from "../core/address.ts";
export { BUILTIN_NAMES } from "../servers/module/builtin_names.ts";
export {
  type OpenFileOptions,
  type ReadFileOptions,
  readRegular,
  type Regular,
} from "../io/regular_file.ts";
export * from "../registry/registry.ts";
export type { ManifestText, PublishedKind } from "../servers/kind.ts";
export { publishedKind } from "../servers/kinds.ts";

/**
 * Returns why clients would refuse a manifest, or leave out one of its tools; nothing if they take
 * all of it. `named` are hosts of this machine, with their ports, that it may use without TLS.
 */
export function whyRefused(
  manifest: JsonObject,
  { asked, named }: { readonly asked: Fqdn; readonly named: ReadonlySet<string> },
): string | undefined {
  const leftOut: OmittedTool[] = [];
  try {
    parseManifest(manifest, { url: "", asked, named, leftOut });
    const [left] = leftOut;
    return left && `the tool ${quoted(left.name)}: ${left.reason}`;
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    return error.message.replace(/^Cannot use (?:the entry )?".*?"(?: of ".*?")?: /, "");
  }
}

/** Reads a capability that this person saved. Throws if there is none, or if it was changed. */
export async function savedCapability(name: string): Promise<SavedCapability> {
  const { CapabilityStore } = await import("../workflow/capability_store.ts");
  const { capabilityId } = await import("../servers/capability/capability.ts");
  const { readEnvironment } = await import("../config/env.ts");
  const { savedIn } = await import("../workflow/saved_capability.ts");
  const store = new CapabilityStore(readEnvironment().home);
  return savedIn(store.load(capabilityId(name)));
}

/** Reads the content of a capability. Throws a TypeError with the problem. */
export async function capabilityIn(code: Uint8Array): Promise<SavedCapability> {
  const { savedIn } = await import("../workflow/saved_capability.ts");
  const { parseCapability } = await import("../servers/capability/capability.ts");
  const said: unknown = parseJsonBytes(code, parseExact);
  const saved = savedIn(parseCapability(said));
  if (integrityOf(saved.code) === integrityOf(code)) return saved;
  throw new TypeError("it is not in its canonical form");
}

/** Tools of one server, or capabilities of one namespace, among which is searched. */
export interface Searched {
  /** The name of the server or the namespace. */
  readonly name: string;
  /** The description, if there is one. */
  readonly description?: string | undefined;
  /** The tools; of some only the name and a description are known. */
  readonly tools: readonly ToolDefinition[];
}

/** Ranks tools by the words of a query, as PML's own search does. Returns ids, the best first. */
export async function rankTools(
  query: string,
  { among, limit }: { readonly among: readonly Searched[]; readonly limit: number },
): Promise<readonly string[]> {
  const { Catalog } = await import("../search/catalog.ts");
  const { Search } = await import("../search/search.ts");
  const catalog = new Catalog();
  for (const { name, description, tools } of among) {
    catalog.set({ name, origin: "registry", ...defined({ description }) }, tools);
  }
  const { hits } = await new Search(catalog).search(query, { limit });
  return hits.map(({ id }) => id);
}

/** How to read a folder. */
export interface FolderReading {
  /** Is called for each file that is left out, with the reason. */
  readonly warn: (message: string) => void;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

/**
 * Reads a folder as `pml registry serve` does: modules and manifests, and their tags. The metadata
 * of a module is read in a sandbox child without grants.
 */
export async function readFolder(
  path: string,
  reading: FolderReading,
): Promise<readonly Versions[]> {
  const { Folder } = await import("../registry/folder.ts");
  const { limitsOf } = await import("../config/limits.ts");
  const { FolderContents } = await import("../workflow/folder_contents.ts");
  const limits = limitsOf({});
  const home = await Deno.makeTempDir({ prefix: "pml-folder-" });
  try {
    const { signal } = reading;
    const contents = new FolderContents({ home, limits, signal, workspace: path });
    const options = { maxBytes: limits.moduleBytes, log: reading };
    const folder = new Folder(await Deno.realPath(path), contents, options);
    return await folder.all();
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** Sends requests over TLS to public addresses, and to hosts that the operator named. */
export interface Outgoing extends Disposable {
  /** Sends a request, and follows no redirect. Throws `PmlError` where the address is not allowed. */
  readonly fetch: (url: string, options: OutgoingOptions) => Promise<Response>;
}

/** A request that is sent. */
export interface OutgoingOptions {
  /** The method of HTTP. */
  readonly method: string;
  /** The headers, by their names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, if there is one. */
  readonly body?: string;
  /** Ends the request. */
  readonly signal: AbortSignal;
}

/** Opens a way to the network; `named` are hosts that may be in a private network, with ports. */
export async function openOutgoing(named: ReadonlySet<string>): Promise<Outgoing> {
  const { GuardedFetch } = await import("../transport/http/client/guarded_fetch.ts");
  const guarded = new GuardedFetch();
  return {
    fetch: (url, options) => guarded.fetch(url, { ...options, named }),
    [Symbol.dispose]: () => guarded[Symbol.dispose](),
  };
}
