/**
 * Reads a manifest for its page. Publishers wrote it, so each member is validated here, once.
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

/** One permission that is asked for. */
export interface Wish {
  readonly kind: keyof Permissions;
  readonly item: string;
}

/** A tool of an entry. Without a definition only its name is known. */
export interface ShownTool {
  readonly name: string;
  readonly definition: JsonObject | undefined;
}

/** The parts of a manifest that a page shows. */
export interface Shown {
  /** The name of its kind, or `other`. */
  readonly type: string;
  readonly kind: ManifestText;
  readonly routing: string;
  readonly description: string;
  readonly integrity: string;
  readonly env: readonly string[];
  readonly warnings: readonly string[];
  readonly wishes: readonly Wish[];
  readonly tools: readonly ShownTool[];
  /** How it is started or reached, in the order in which it is shown. */
  readonly way: readonly (readonly [what: string, value: string])[];
}

/** An entry that a newer client may know. */
const OTHER: ManifestText = {
  title: "other",
  summary: "PML does not know entries of this kind.",
};
const KINDS = ["read", "write", "net", "run", "env"] as const;

/** Reads a manifest. */
export function shownOf(manifest: JsonObject): Shown {
  const { type, routing, description, integrity, warnings, tools } = manifest;
  const listed = listOf(tools).flatMap(toolOf);
  const asking = [manifest.permissions, ...listed.map((tool) => tool.definition?.permissions)];
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
    wishes: KINDS.flatMap((kind) =>
      unique(asking.flatMap((one) => textsOf(objectOf(one)[kind]))).map((item) => ({ kind, item }))
    ),
    tools: listed,
    way: wayOf(manifest, install),
  };
}

function toolOf(listed: Json): readonly ShownTool[] {
  const definition = isObject(listed) ? objectOf(listed) : undefined;
  const name = textOf(definition === undefined ? listed : definition.name);
  return name === "" ? [] : [{ name: name.replace(/^[^:]*:/, ""), definition }];
}

function wayOf(manifest: JsonObject, install: JsonObject): Shown["way"] {
  const command = [textOf(install.command), ...textsOf(install.args).map(quotedWord)].join(" ");
  const upstream = objectOf(manifest.upstream);
  const rows: Shown["way"] = [
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
  return Object.entries(objectOf(value)).map(([name, one]) => [name, textOf(one)]);
}

/** Reads warnings: a list, or an object whose keys are their subjects. */
function warningsOf(value: Json | undefined): readonly string[] {
  const word = (one: Json) => typeof one === "string" ? one : JSON.stringify(one);
  const listed = (one: Json) => Array.isArray(one) ? one.map(word).join(", ") : word(one);
  if (!isObject(value)) return listOf(value).map(listed);
  return Object.entries(objectOf(value)).filter(([, one]) => one !== false && one !== null)
    .map(([key, one]) => {
      const about = key.replaceAll("_", " ");
      return one === true ? about : `${about}: ${listed(one)}`;
    });
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: Json | undefined): readonly string[] {
  return listOf(value).filter((one) => typeof one === "string");
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
