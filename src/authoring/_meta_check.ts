/**
 * Reads `__meta__` for its author, and reports every mistake, not only the first.
 *
 * @module
 */

import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { isObject, objectOf, quoted, visible } from "../core/json.ts";
import { type ModuleMeta, type ModuleTool, parseModuleMeta } from "../protocol/tool.ts";
import { metaComment, unexported } from "../servers/module/meta_comment.ts";
import type { Say } from "./_finding.ts";

/** The module of a `__meta__`, and the context of its check. */
export interface MetaPlace {
  readonly text: string;
  readonly path: string;
  /** The names of built-in servers. */
  readonly taken: ReadonlySet<string>;
  readonly say: Say;
}

const OF_MODULE = ["name", "version", "description", "permissions", "tools"];
const OF_TOOL = [
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
  "permissions",
  "errors",
  "visibility",
  "icons",
  "execution",
  "_meta",
];
/** Search reads this many characters of a description. */
const DESCRIPTION_MAX = 2_000;
const DEFINITION_MAX = 32_000;

/** The valid part of the metadata. */
export interface MetaFound {
  readonly meta: ModuleMeta;
  /** The names of all its tools, valid or not. */
  readonly named: readonly string[];
}

/** Reads the valid part of the metadata; undefined if there is none. */
export function readMeta(exported: unknown, place: MetaPlace): MetaFound | undefined {
  const { text, path, taken, say } = place;
  const value = exported ?? metaComment(text, path);
  if (value === undefined) {
    say("failed", "there is no __meta__", {
      hint: 'Write `export const __meta__ = { name: "x", tools: { … } }`',
    });
    return undefined;
  }
  const metadata = objectOf(value);
  const tools = objectOf(metadata.tools);
  const failed = (error: unknown) =>
    say("failed", visible(asPmlError(error).message.replace(/^.*?: (?=__meta__)/, ""), 400));
  const head = attempt(
    () => parseModuleMeta(isObject(metadata.tools) ? { ...metadata, tools: {} } : value, path),
    failed,
  );
  const base = head === undefined ? { name: "x" } : metadata;
  const read = Object.entries(tools).flatMap(([name, tool]): readonly ModuleTool[] => {
    const one = { ...base, tools: Object.fromEntries([[name, tool]]) };
    return attempt(() => parseModuleMeta(one, path), failed)?.tools ?? [];
  });
  if (head !== undefined && taken.has(head.name)) {
    say("failed", `__meta__.name is ${quoted(head.name)}, which ships with PML`, {
      hint: "Choose another name",
    });
  }
  const named = Object.keys(tools);
  if (isObject(metadata.tools) && named.length === 0) {
    say("failed", "__meta__.tools is empty", { hint: "Name a function that is exported" });
  }
  sayUnknown("__meta__", { members: metadata, keys: OF_MODULE, say });
  if (head !== undefined && head.description === undefined) sayUndescribed("__meta__", say);
  for (const one of read) sayTool(one, say);
  const meta = {
    ...head ?? { name: "x", version: undefined, description: undefined },
    tools: read,
  };
  say("ok", `${quoted(meta.name)} with ${counted(read.length, "tool")}`);
  return { meta, named };
}

/** Reports tools without a function, and functions without a tool. */
export function sayFunctions(
  { meta, named }: MetaFound,
  { exports, text, say }: {
    readonly exports: readonly string[];
    readonly text: string;
    readonly say: Say;
  },
): void {
  for (const { definition: { name } } of meta.tools) {
    if (exports.includes(name)) continue;
    const { why, hint } = unexported(name);
    say("failed", why, { hint });
  }
  for (const name of exports.filter((name) => !named.includes(name))) {
    const at = text.split("\n").findIndex((line) => /^export\b/.test(line) && line.includes(name));
    say("warning", `the function ${quoted(name)} is exported, but no tool has its name`, {
      hint: "Name it in __meta__.tools, or do not export it",
      line: at < 0 ? undefined : at + 1,
    });
  }
}

function attempt<T>(read: () => T, failed: (error: unknown) => void): T | undefined {
  try {
    return read();
  } catch (error) {
    failed(error);
    return undefined;
  }
}

function sayTool({ definition }: ModuleTool, say: Say): void {
  const { name, description = "", ...members } = definition;
  const key = `__meta__.tools.${name}`;
  if (description.trim() === "") sayUndescribed(key, say);
  if (description.length > DESCRIPTION_MAX) {
    say("warning", `${key}.description has ${description.length} characters`, {
      hint: `Search reads ${DESCRIPTION_MAX}, and the model pays for each`,
    });
  }
  const size = JSON.stringify(definition).length;
  if (size > DEFINITION_MAX) {
    say("warning", `${key} has ${size} characters`, {
      hint: "Make its schemas smaller",
    });
  }
  sayUnknown(key, { members, keys: OF_TOOL, say });
}

function sayUndescribed(key: string, say: Say): void {
  say("warning", `${key} has no description`, { hint: "A model chooses by it: write a sentence" });
}

/**
 * Reports unknown fields as warnings. A later version of PML may know them, but most are mistakes.
 */
function sayUnknown(
  key: string,
  { members, keys, say }: {
    readonly members: Readonly<Record<string, unknown>>;
    readonly keys: readonly string[];
    readonly say: Say;
  },
): void {
  for (const name of Object.keys(members).filter((name) => !keys.includes(name))) {
    say("warning", `${key}.${visible(name, 80)} is unknown and is ignored`, {
      hint: `Known are ${keys.join(", ")}`,
    });
  }
}
