/**
 * Creates a server from an entry of a registry: the definition of the server, its identity, and the
 * lines that the user sees before the first use.
 *
 * @module
 */

import type { Config } from "../../config/current_config.ts";
import type { Environment } from "../../config/env.ts";
import type { Keys } from "../../config/keys.ts";
import type { RegistryEntry } from "../../config/registries.ts";
import type { ServerDefinition } from "../kind.ts";
import { networkLines, serverText } from "../../config/workspace_lines.ts";
import { confusableWith } from "../../core/confusable.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { CodeManifest, Manifest } from "../manifest.ts";
import type { ServerIdentity } from "../../policy/server_identity.ts";
import { accessOf, grantsOf, type ServerGrants } from "../../policy/grants.ts";
import { permissionLines } from "../../policy/permission_lines.ts";
import { pinnedOf } from "../../policy/lock.ts";
import { manifestVariables, requiredVariables } from "../../registry/manifest.ts";
import type { FoundEntry } from "../../registry/registries.ts";
import { keyRequiredError, missingKeysError } from "../cloud/rpc.ts";
import { kindOf, manifestKindOf } from "../kinds.ts";
import { unpinnedPackages } from "../stdio/unpinned.ts";

/** A server of a registry. */
export interface RegistryServer {
  readonly entry: FoundEntry;
  readonly identity: ServerIdentity;
  /** The definition of the server; undefined if the cloud runs it. */
  readonly definition: ServerDefinition | undefined;
}

/** Creates a server from an entry that a registry returned. */
export function registryServer(
  entry: FoundEntry,
  { config, environment, names, codePath }: {
    readonly config: Config;
    readonly environment: Environment;
    /** The names of other servers, to warn about a name that looks like another name. */
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
    // A capability is pinned by its whole name, such as `fs:read_json`.
    name: fqdn,
    pinned: pinnedOf(manifest, entry),
    facts: [...facts, ...manifestKindOf(manifest).accountLines?.(manifest, cloud?.url) ?? []],
    isCoveredByTrust: false,
    isInLock: true,
    tools: manifest.tools.flatMap((tool) => tool.definition ?? []),
  };
  return { entry, identity, definition };
}

/** The facts, other than the entry, that the approval request shows. */
export interface EntryContext {
  readonly definition: ServerDefinition | undefined;
  readonly environment: Pick<Environment, "get">;
  readonly workspace: string;
  /** The grants of the server beyond the permissions in its manifest. */
  readonly grants: ServerGrants | undefined;
  /** The name of another server that looks like this one. */
  readonly twin: string | undefined;
}

/** Returns the definition of an entry; undefined if the cloud runs it. */
export function definitionOf(
  manifest: Manifest,
  codePath: (manifest: CodeManifest) => string,
): ServerDefinition | undefined {
  const { kind, name } = manifest;
  const ofKind = manifestKindOf(manifest).definition(manifest, codePath);
  return ofKind && { kind, name, ...ofKind } as ServerDefinition; // has the members of its kind
}

/** Returns the lines that an approval covers. */
export function entryFacts(
  entry: FoundEntry,
  { definition, environment, workspace, grants, twin }: EntryContext,
): readonly string[] {
  const { manifest, source, vouched, older, gone } = entry;
  const kind = manifestKindOf(manifest);
  const lines = kind.lines(manifest, {
    permissionLines: (permissions) =>
      permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace),
    // The lines show whole values. The values come from a registry, so they are not the user's
    // keys.
    describe: (changes) =>
      definition === undefined ? "" : serverText({ ...definition, ...changes }),
    networkLines: () => networkLines(environment),
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
 * Returns an error if an entry requires a variable that contains the token of a registry: the
 * server would get the token.
 */
export function misusedTokenError(
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

/** Throws if a call would lack a key, such as `KEY_MISSING`. Runs before the approval request. */
export function assertKeys(manifest: Manifest, keys: Pick<Keys, "cloud" | "find">): void {
  const { name } = manifest;
  const { isInCloud = false } = kindOf(manifest);
  if (isInCloud && keys.cloud() === undefined) throw keyRequiredError(name);
  const missing = requiredVariables(manifest).filter((each) => keys.find(each) === undefined);
  if (missing.length > 0) throw missingKeysError(name, missing);
}
