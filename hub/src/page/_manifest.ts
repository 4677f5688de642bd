/**
 * Reads a manifest for its page. Publishers wrote the manifest, so each member is validated here.
 *
 * @module
 */

import {
  isObject,
  type Json,
  type JsonObject,
  type ManifestText,
  objectOf,
  type Permissions,
  publishedKind,
  textOf,
} from "@casys/pml/registry";

/** A permission that an entry requests. */
export interface Permission {
  readonly kind: keyof Permissions;
  readonly item: string;
}

/** A tool of an entry. `definition` is undefined if the manifest contains only its name. */
export interface ShownTool {
  readonly name: string;
  readonly definition: JsonObject | undefined;
}

/** The parts of a manifest that a page shows. */
export interface ManifestView {
  /** The name of the entry's kind; `other` for an unknown kind. */
  readonly type: string;
  readonly kind: ManifestText;
  readonly routing: string;
  readonly description: string;
  readonly integrity: string;
  readonly env: readonly string[];
  readonly warnings: readonly string[];
  readonly permissions: readonly Permission[];
  readonly tools: readonly ShownTool[];
  /** How the server is started or reached, in the order of the page. */
  readonly launch: readonly (readonly [what: string, value: string])[];
}

/** The text for a kind that this version does not know. */
const OTHER: ManifestText = {
  title: "other",
  summary: "PML does not know entries of this kind.",
};
const KINDS = ["read", "write", "net", "run", "env"] as const;

/** Reads a manifest. */
export function viewOf(manifest: JsonObject): ManifestView {
  const { type, routing, description, integrity, warnings, tools } = manifest;
  const toolList = listOf(tools).flatMap(toolOf);
  const permissionSets = [
    manifest.permissions,
    ...toolList.map((tool) => tool.definition?.permissions),
  ];
  const install = objectOf(manifest.install);
  const kind = publishedKind(type);
  return {
    type: kind === undefined ? OTHER.title : textOf(type),
    kind: kind ?? OTHER,
    routing: textOf(routing),
    description: textOf(description),
    integrity: textOf(integrity),
    env: unique([...textsOf(manifest.env_required), ...textsOf(install.env_required)]),
    warnings: warningsOf(warnings),
    permissions: KINDS.flatMap((kind) =>
      unique(permissionSets.flatMap((set) => textsOf(objectOf(set)[kind]))).map((item) => ({
        kind,
        item,
      }))
    ),
    tools: toolList,
    launch: launchOf(manifest, install),
  };
}

function toolOf(listed: Json): readonly ShownTool[] {
  const definition = isObject(listed) ? objectOf(listed) : undefined;
  const name = textOf(definition === undefined ? listed : definition.name);
  return name === "" ? [] : [{ name: name.replace(/^[^:]*:/, ""), definition }];
}

function launchOf(manifest: JsonObject, install: JsonObject): ManifestView["launch"] {
  const command = [textOf(install.command), ...textsOf(install.args).map(quotedWord)].join(" ");
  const upstream = objectOf(manifest.upstream);
  const rows: ManifestView["launch"] = [
    ["Command", command.trim()],
    ...pairs(install.env).map(([name, value]) => ["Variable", `${name}=${value}`] as const),
    ["Address", textOf(manifest.url)],
    ...pairs(manifest.headers).map(([name, value]) => ["Header", `${name}: ${value}`] as const),
    ["Behind it", textOf(manifest.proxy_to)],
    ["Passed on to", textOf(upstream.host)],
    ["With the headers", textsOf(upstream.headers).join(", ")],
    ...textsOf(manifest.tools_used).map((tool) => ["Calls", tool] as const),
  ];
  return rows.filter(([, value]) => value !== "");
}

function quotedWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}

function pairs(value: Json | undefined): readonly (readonly [string, string])[] {
  return Object.entries(objectOf(value)).map(([name, member]) => [name, textOf(member)]);
}

/** Reads warnings: a list of texts, or an object from subjects to texts. */
function warningsOf(value: Json | undefined): readonly string[] {
  const itemText = (item: Json) => typeof item === "string" ? item : JSON.stringify(item);
  const warningText = (warning: Json) =>
    Array.isArray(warning) ? warning.map(itemText).join(", ") : itemText(warning);
  if (!isObject(value)) return listOf(value).map(warningText);
  return Object.entries(objectOf(value))
    .filter(([, warning]) => warning !== false && warning !== null)
    .map(([key, warning]) => {
      const subject = key.replaceAll("_", " ");
      return warning === true ? subject : `${subject}: ${warningText(warning)}`;
    });
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: Json | undefined): readonly string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
