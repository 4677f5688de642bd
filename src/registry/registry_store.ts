/**
 * The content of a registry: entries with their versions, and the manifests of modules.
 *
 * @module
 */

import {
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  textOf,
  withoutUndefined,
} from "../core/json.ts";
import { type ModuleMeta, unionOfPermissions } from "../protocol/tool.ts";
import { integrityOf } from "../core/hash.ts";
import { CAPABILITY } from "../servers/capability/kind.ts";

/** One version of a server. */
export interface EntryVersion {
  /** The name without a version: `serena`, `fs:read_json`. */
  readonly fqdn: string;
  /** The version as clients request it. */
  readonly version: string;
  /** The manifest, which clients get as JSON. */
  readonly manifest: JsonObject;
  /** The exact bytes of a module. */
  readonly code?: Uint8Array;
  /** Whether this version never changes. */
  readonly immutable: boolean;
}

/** All versions of one server. */
export interface Versions {
  /** The name without a version. */
  readonly fqdn: string;
  /** The entries, the newest first; never empty. */
  readonly entries: readonly EntryVersion[];
  /** Versions by tags, such as `beta`. The tag `latest` is used for requests without a version. */
  readonly tags: Readonly<Record<string, string>>;
}

/** A query for a page of the catalog. */
export interface CatalogQuery {
  /** The name that the page follows; empty for the first page. */
  readonly after: string;
  /** Words in lower case. An entry matches if its text contains all of them. */
  readonly words: readonly string[];
  /** The maximum number of entries of the page. */
  readonly limit: number;
}

/** A store of registry entries. */
export interface RegistryStore {
  /**
   * Returns the entry of a version or a tag of a name; without a version, the newest release.
   */
  entry(fqdn: string, version: string | undefined): Promise<EntryVersion | undefined>;
  /**
   * Returns the newest entry of each matching name, ordered by name. If there are more than the
   * limit, the result has one extra entry.
   */
  page(query: CatalogQuery): Promise<readonly EntryVersion[]>;
}

/** Returns a page of the newest entries of sorted names. */
export function entriesPage(
  all: readonly Versions[],
  { after, words, limit }: CatalogQuery,
): readonly EntryVersion[] {
  return all.flatMap((versions) => {
    const newest = chooseVersion(versions, undefined);
    return newest !== undefined && newest.fqdn > after && matchesWords(newest, words)
      ? [newest]
      : [];
  }).slice(0, limit + 1);
}

function matchesWords(entry: EntryVersion, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = searchText(entry);
  return words.every((word) => text.includes(word));
}

/**
 * Returns the searchable text of an entry in lower case: name, description and names of tools.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { searchText } from "@casys/pml/registry";
 *
 * const manifest = { description: "Weather of a city", tools: ["forecast"] };
 * assert.match(searchText({ fqdn: "weather", manifest }), /forecast/);
 * ```
 */
export function searchText({ fqdn, manifest }: Pick<EntryVersion, "fqdn" | "manifest">): string {
  const tools = Array.isArray(manifest.tools) ? manifest.tools as readonly Json[] : [];
  const names = tools.map((tool) => textOf(isObject(tool) ? tool.name : tool));
  return [fqdn, textOf(manifest.description), ...names].join("\n").toLowerCase();
}

/** Groups entries by their names, and sorts them by name and version. */
export function versionsOf(
  entries: readonly EntryVersion[],
  tags: Readonly<Record<string, Versions["tags"]>> = {},
): readonly Versions[] {
  const byName = Map.groupBy(entries, ({ fqdn }) => fqdn);
  return [...byName].sort(([a], [b]) => a < b ? -1 : 1).map(([fqdn, own]) => ({
    fqdn,
    entries: own.toSorted((a, b) => compareVersions(b.version, a.version)),
    tags: memberOf(tags, fqdn) ?? {},
  }));
}

/**
 * Returns the entry of a version or a tag; without a version, the newest release. Returns undefined
 * if no entry has that version or tag.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { chosen } from "@casys/pml/registry";
 *
 * const versions = {
 *   entries: [{ version: "2.0.0-rc.1" }, { version: "1.1.0" }, { version: "1.0.0" }],
 *   tags: { beta: "2.0.0-rc.1" },
 * };
 * assert.equal(chosen(versions, undefined)?.version, "1.1.0");
 * assert.equal(chosen(versions, "beta")?.version, "2.0.0-rc.1");
 * assert.equal(chosen(versions, "3.0.0"), undefined);
 * ```
 */
export function chooseVersion<T extends Pick<EntryVersion, "version">>(
  { entries, tags }: { readonly entries: readonly T[]; readonly tags: Versions["tags"] },
  version: string | undefined,
): T | undefined {
  const exact = (version: string | undefined) => entries.find((one) => one.version === version);
  const tagged = (tag: string) => exact(memberOf(tags, tag));
  if (version !== undefined && version !== "latest") return exact(version) ?? tagged(version);
  return tagged("latest") ?? entries.find((one) => !isPreRelease(one.version)) ?? entries[0];
}

/** Returns the manifest of a module: its metadata and the hash of its code. */
export function moduleManifest(
  { fqdn, version, meta, integrity }: {
    readonly fqdn: string;
    readonly version: string;
    readonly meta: ModuleMeta;
    readonly integrity: string;
  },
): JsonObject {
  const permissions = unionOfPermissions(meta.tools.map((tool) => tool.permissions));
  const { description } = meta;
  return toLocalManifest({
    fqdn,
    type: "deno",
    version,
    description,
    permissions,
    tools: meta.tools.map(({ definition, permissions }) => ({ ...definition, permissions })),
    env_required: permissions.env,
  }, integrity);
}

/** A saved capability in the form that a registry publishes. */
export interface SavedCapability {
  /** Its content: canonical JSON. */
  readonly code: Uint8Array;
  /** Whether it is code or a plan. */
  readonly kind: "code" | "plan";
  /** The code, or the plan as JSON. */
  readonly text: string;
  /** The description, if there is one. */
  readonly description?: string | undefined;
  /** The JSON Schema of its arguments. */
  readonly parameters: JsonObject;
  /** The tools that it declares to call, in order. */
  readonly calls: readonly string[];
}

/**
 * Returns the manifest of a saved capability: its parameters, its calls and its hash.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { capabilityIn, capabilityManifest } from "@casys/pml/registry";
 *
 * const content =
 *   '{"code":"return 42;","kind":"code","parameters":{"type":"object"},"tools_used":{},"version":1}';
 * const saved = await capabilityIn(new TextEncoder().encode(content));
 * const manifest = capabilityManifest({ fqdn: "math:answer", version: "1.0.0", saved });
 * assert.equal(manifest.type, "capability");
 * ```
 */
export function capabilityManifest(
  { fqdn, version, saved }: {
    readonly fqdn: string;
    readonly version: string;
    readonly saved: SavedCapability;
  },
): JsonObject {
  const { code, description, parameters: inputSchema, calls: tools_used } = saved;
  return toLocalManifest({
    fqdn,
    type: CAPABILITY.name,
    version,
    description,
    tools: [withoutUndefined({ name: fqdn.split(":")[1], description, inputSchema })],
    tools_used,
    env_required: [],
  }, integrityOf(code));
}

function toLocalManifest(members: object, integrity: string): JsonObject {
  // All members are JSON, because they were parsed from JSON.
  return withoutUndefined({ ...members, warnings: [], routing: "local", integrity }) as JsonObject;
}

/**
 * Compares two versions by the rules of semantic versioning. Other texts are compared as texts.
 * Returns a number below 0 if the first one is older, above 0 if it is newer, and 0 if both are
 * equal.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { compareVersions } from "@casys/pml/registry";
 *
 * assert.deepEqual(["1.10.0", "1.9.0", "1.10.0-rc.1"].sort(compareVersions), [
 *   "1.9.0",
 *   "1.10.0-rc.1",
 *   "1.10.0",
 * ]);
 * ```
 */
export function compareVersions(a: string, b: string): number {
  const [one, other] = [partsOf(a), partsOf(b)] as const;
  const byCore = compareParts(one.core, other.core);
  if (byCore !== 0) return byCore;
  // A pre-release comes before its release.
  const both = one.preRelease.length > 0 && other.preRelease.length > 0;
  return both
    ? compareParts(one.preRelease, other.preRelease)
    : other.preRelease.length - one.preRelease.length;
}

function partsOf(version: string) {
  const [core = "", preRelease] = version.replace(/\+.*/, "").split(/-(.*)/s);
  return { core: core.split("."), preRelease: preRelease?.split(".") ?? [] };
}

function compareParts(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const [one, other] = [a[at], b[at]];
    if (one === other) continue;
    if (one === undefined || other === undefined) return one === undefined ? -1 : 1;
    const numbers = [one, other].map((part) => /^\d+$/.test(part));
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    const byNumber = numbers[0] ? Number(one) - Number(other) : 0;
    return byNumber !== 0 ? byNumber : one < other ? -1 : 1;
  }
  return 0;
}

function isPreRelease(version: string): boolean {
  return version.replace(/\+.*/, "").includes("-");
}
