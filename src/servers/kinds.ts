/**
 * The table of server kinds. A new kind is a folder next to this file, and a line of `KINDS`.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { CodeManifest, Manifest } from "./manifest.ts";
import { CAPABILITY } from "./capability/kind.ts";
import { CLOUD } from "./cloud/kind.ts";
import { HTTP } from "./http/kind.ts";
import type {
  DefinitionKind,
  ManifestKind,
  ModuleDefinition,
  ProgramDefinition,
  PublishedKind,
  RemoteDefinition,
  ServerDefinition,
  ServerKind,
} from "./kind.ts";
import { MODULE } from "./module/kind.ts";
import { STDIO } from "./stdio/kind.ts";

/** Every kind of servers, in the order in which messages list them. */
export const KINDS: readonly ServerKind[] = [MODULE, STDIO, HTTP, CLOUD, CAPABILITY];

/**
 * Returns the kind of a name; undefined for other entries of the directory, such as a namespace.
 */
export function findKind(name: string): ServerKind | undefined {
  // A loop, because each call runs this: it allocates nothing.
  for (const kind of KINDS) if (kind.name === name) return kind;
  return undefined;
}

/** Returns the kind of a definition, a manifest or a pinned server. */
export function kindOf({ kind: name }: { readonly kind: string }): ServerKind {
  const kind = findKind(name);
  if (kind === undefined) throw new PmlError("BUG", `Cannot use the server kind ${quoted(name)}`);
  return kind;
}

/** Returns the part of a definition's kind that handles definitions. */
export function definitionKindOf(definition: Pick<ServerDefinition, "kind">): DefinitionKind {
  const { name, definition: kind } = kindOf(definition);
  if (kind === undefined) throw new PmlError("BUG", `No definition is of the kind ${quoted(name)}`);
  return kind;
}

/** Returns the kind for a value of `type` in a file, and the function that reads such an entry. */
export function kindOfType(
  type: string,
): { readonly kind: string; readonly read: NonNullable<DefinitionKind["read"]> } {
  const kind = KINDS.find(({ definition }) => definition?.types.includes(type));
  const read = kind?.definition?.read;
  if (kind !== undefined && read !== undefined) return { kind: kind.name, read };
  throw new PmlError("BUG", `No kind of servers has the type ${quoted(type)}`);
}

/** Returns the definition if it is the definition of a module, otherwise undefined. */
export function moduleOf(definition: ServerDefinition): ModuleDefinition | undefined {
  return definitionKindOf(definition).module?.(definition);
}

/** Returns the definition if it is the definition of a program, otherwise undefined. */
export function programOf(definition: ServerDefinition): ProgramDefinition | undefined {
  return definitionKindOf(definition).program?.(definition);
}

/** Returns the definition if it is the definition of a server at a URL, otherwise undefined. */
export function remoteOf(definition: ServerDefinition): RemoteDefinition | undefined {
  return definitionKindOf(definition).remote?.(definition);
}

/** Returns whether servers of a kind are programs, which PML starts. */
export function isProgramKind(name: string): boolean {
  return findKind(name)?.definition?.program !== undefined;
}

/** Returns the definitions that are definitions of programs. */
export function programsOf(
  definitions: readonly ServerDefinition[],
): readonly ProgramDefinition[] {
  return definitions.flatMap((own) => programOf(own) ?? []);
}

/** Returns the part of a manifest's kind that handles manifests. */
export function manifestKindOf(manifest: Pick<Manifest, "kind">): ManifestKind {
  const { name, manifest: kind } = kindOf(manifest);
  if (kind === undefined) throw new PmlError("BUG", `No manifest is of the kind ${quoted(name)}`);
  return kind;
}

/** Returns the manifest if it has code, otherwise undefined. */
export function codeManifest(manifest: Manifest): CodeManifest | undefined {
  return manifestKindOf(manifest).code?.(manifest);
}

/** Returns the tools that a published capability calls; undefined for other manifests. */
export function callsOf(manifest: Manifest): readonly string[] | undefined {
  return manifestKindOf(manifest).calls?.(manifest);
}

/** Returns the names of kinds in `pml.lock` and in the policies of companies. */
export function pinnedKinds(): readonly string[] {
  return [...new Set(KINDS.map(({ pinnedAs }) => pinnedAs))];
}

/**
 * Returns the texts about manifests of a type, and the parts of their entries. Returns undefined
 * for an unknown type.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { publishedKind } from "@casys/pml/registry";
 *
 * assert.equal(publishedKind("deno")?.hasCode, true);
 * assert.equal(publishedKind("unknown"), undefined);
 * ```
 */
export function publishedKind(type: unknown): PublishedKind | undefined {
  const { manifest, isInCloud = false } = KINDS.find(({ name }) => name === type) ?? {};
  if (manifest === undefined) return undefined;
  const { text, code, calls } = manifest;
  return { ...text, hasCode: code !== undefined, onlyCalls: calls !== undefined, isInCloud };
}
