/**
 * Creates a server from its registry entry: its definition, the values that it receives, and the
 * lines that the user sees before its first use.
 *
 * @module
 */

import type { Config } from "../../config/current_config.ts";
import type { Environment } from "../../config/env.ts";
import type { Keys } from "../../config/keys.ts";
import type { RegistryEntry } from "../../config/registries.ts";
import type { ServerDefinition } from "../kind.ts";
import { foundLines, serverText } from "../../config/shown.ts";
import { confusableWith } from "../../core/confusable.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { CodeManifest, Manifest } from "../manifest.ts";
import type { ServerIdentity } from "../../policy/server_identity.ts";
import { accessOf, grantsOf, type ServerGrants } from "../../policy/grants.ts";
import { permissionLines } from "../../policy/permission_lines.ts";
import { pinnedOf } from "../../policy/lock.ts";
import { manifestVariables, requiredOf } from "../../registry/manifest.ts";
import type { FoundEntry } from "../../registry/registries.ts";
import { keyRequired, keysMissing } from "../cloud/rpc.ts";
import { kindOf, manifestKindOf } from "../kinds.ts";
import { unpinnedPackages } from "../stdio/unpinned.ts";

/** A server of a registry. */
export interface RegistryServer {
  readonly entry: FoundEntry;
  readonly identity: ServerIdentity;
  /** Undefined if the server runs in the cloud. */
  readonly definition: ServerDefinition | undefined;
}

/** Creates a server from an entry that a registry returned. */
export function registryServer(
  entry: FoundEntry,
  { config, environment, names, codePath }: {
    readonly config: Config;
    readonly environment: Environment;
    /** Every name that the user may know here, to find similar ones. */
    readonly names: readonly string[];
    /** Returns the path of a module's code. */
    readonly codePath: Parameters<typeof definitionOf>[1];
  },
): RegistryServer {
  const { manifest } = entry;
  const { name, fqdn } = manifest;
  const { workspace, grants, cloud } = config;
  const definition = definitionOf(manifest, codePath);
  const facts = entryFacts(entry, {
    definition,
    environment,
    workspace,
    grants: grantsOf(manifest, grants[name]),
    twin: confusableWith(name, names),
  });
  const identity: ServerIdentity = {
    // A capability is pinned by its whole name.
    name: fqdn,
    pinned: pinnedOf(manifest, entry),
    facts: [...facts, ...manifestKindOf(manifest).accountLines?.(manifest, cloud?.url) ?? []],
    isCoveredByTrust: false,
    isInLock: true,
  };
  return { entry, identity, definition };
}

/** The facts that the user sees in addition to the entry itself. */
export interface Showing {
  readonly definition: ServerDefinition | undefined;
  readonly environment: Pick<Environment, "get">;
  readonly workspace: string;
  /** Its grants beyond the defaults. */
  readonly grants: ServerGrants | undefined;
  /** Another name that looks like this one. */
  readonly twin: string | undefined;
}

/** Returns the definition of an entry; undefined if the cloud runs it. */
export function definitionOf(
  manifest: Manifest,
  codePath: (manifest: CodeManifest) => string,
): ServerDefinition | undefined {
  const { kind, name } = manifest;
  const own = manifestKindOf(manifest).definition(manifest, codePath);
  return own && { kind, name, ...own } as ServerDefinition; // its kind made the rest
}

/** Returns the lines that an approval covers. */
export function entryFacts(
  entry: FoundEntry,
  { definition, environment, workspace, grants, twin }: Showing,
): readonly string[] {
  const { manifest, source, vouched, older, gone } = entry;
  const kind = manifestKindOf(manifest);
  const lines = kind.lines(manifest, {
    permissionLines: (permissions) =>
      permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace),
    // Values are shown whole: they come from a registry, so they are not keys, and may be
    // addresses.
    describe: (changes) =>
      definition === undefined ? "" : serverText({ ...definition, ...changes }),
    foundLines: () => foundLines(environment),
    unpinned: unpinnedPackages,
  });
  return [
    `Yes lets PML use ${quoted(manifest.fqdn)} in this workspace. It is:`,
    ...lines,
    `version ${quoted(manifest.version)} of the registry ${quoted(source, Infinity)}`,
    vouched,
    ...(twin === undefined ? [] : [`Its name looks like ${quoted(twin)}, which is another server`]),
    ...(gone ? ["Its registry no longer has it"] : []),
    ...(older ? ["Its registry had a newer version before"] : []),
    ...kind.keyLines?.(manifest) ?? [],
    ...manifest.warnings.map((line) => `Its author warns: ${quoted(line, Infinity)}`),
  ];
}

/**
 * Returns the error for an entry that names the token of a registry: it would be sent elsewhere.
 */
export function misusedToken(
  { manifest, source }: FoundEntry,
  registries: readonly RegistryEntry[],
): PmlError | undefined {
  const tokens = registries.flatMap(({ tokenEnv }) => tokenEnv?.toUpperCase() ?? []);
  // On Windows, names of variables ignore case.
  const token = manifestVariables(manifest).find((each) => tokens.includes(each.toUpperCase()));
  if (token === undefined) return undefined;
  const attempt = `Cannot use ${quoted(manifest.name)} of the registry ${quoted(source, 200)}`;
  const why = `${attempt}: it names ${token}, the token of a registry`;
  return new PmlError("REGISTRY_BAD_RESPONSE", why, {
    hint: "Give the registry's token another name",
  });
}

/** Throws `KEY_MISSING` if a call would lack a key. This comes before the approval request. */
export function assertKeys(manifest: Manifest, keys: Pick<Keys, "cloud" | "find">): void {
  const { name } = manifest;
  const { isInCloud = false } = kindOf(manifest);
  if (isInCloud && keys.cloud() === undefined) throw keyRequired(name);
  const missing = requiredOf(manifest).filter((each) => keys.find(each) === undefined);
  if (missing.length > 0) throw keysMissing(name, missing);
}
