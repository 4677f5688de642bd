/**
 * Reads `__meta__` for its author: each thing that is wrong with it, not only the first.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { type ModuleMeta, type ModuleTool, parseModuleMeta } from "../core/tool.ts";
import { metaComment } from "../modules/meta_comment.ts";
import type { Say } from "./_finding.ts";

/** Where `__meta__` stands, and what it must not say. */
export interface MetaPlace {
  readonly text: string;
  readonly path: string;
  /** Names of servers that ship with PML. */
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
/** What the search reads of a description. */
const DESCRIPTION_MAX = 2_000;
const DEFINITION_MAX = 32_000;

/** Metadata as far as it is good. */
export interface MetaFound {
  readonly meta: ModuleMeta;
  /** The names of its tools, good or not. */
  readonly named: readonly string[];
}

/** Reads the metadata as far as it is good; undefined where there is none. */
export function readMeta(exported: unknown, place: MetaPlace): MetaFound | undefined {
  const { text, path, taken, say } = place;
  const value = exported ?? metaComment(text, path);
  if (value === undefined) {
    say("failed", "there is no __meta__", {
      hint: 'Write `export const __meta__ = { name: "x", tools: { … } }`',
    });
    return undefined;
  }
  const said = isObject(value) ? value : {};
  const tools = isObject(said.tools) ? said.tools : {};
  const failed = (error: unknown) =>
    say("failed", visible(asPmlError(error).message.replace(/^.*?: (?=__meta__)/, ""), 400));
  const head = attempt(
    () => parseModuleMeta(isObject(said.tools) ? { ...said, tools: {} } : value, "it"),
    failed,
  );
  const base = head === undefined ? { name: "x" } : said;
  const read = Object.entries(tools).flatMap(([name, tool]): readonly ModuleTool[] => {
    const one = { ...base, tools: Object.fromEntries([[name, tool]]) };
    return attempt(() => parseModuleMeta(one, "it"), failed)?.tools ?? [];
  });
  if (head !== undefined && taken.has(head.name)) {
    say("failed", `__meta__.name is ${quoted(head.name)}, which ships with PML`, {
      hint: "Take another name",
    });
  }
  const named = Object.keys(tools);
  if (isObject(said.tools) && named.length === 0) {
    say("failed", "__meta__.tools is empty", { hint: "Name a function that is exported" });
  }
  sayUnknown("__meta__", { found: said, known: OF_MODULE, say });
  if (head !== undefined && head.description === undefined) sayUndescribed("__meta__", say);
  for (const one of read) sayTool(one, say);
  const meta = {
    ...head ?? { name: "x", version: undefined, description: undefined },
    tools: read,
  };
  say("ok", `${quoted(meta.name)} with ${read.length} tool${read.length === 1 ? "" : "s"}`);
  return { meta, named };
}

/** Says which tools have no function, and which functions no tool. */
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
    say("failed", `__meta__ names the tool ${quoted(name)}, and no such function is exported`, {
      hint: `Write \`export function ${name}(args, host)\`, or take it out of __meta__.tools`,
    });
  }
  for (const name of exports.filter((name) => !named.includes(name))) {
    const at = text.split("\n").findIndex((line) => /^export\b/.test(line) && line.includes(name));
    say("warning", `the function ${quoted(name)} is exported, and no tool has its name`, {
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
  const { name, description = "", ...found } = definition;
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
      hint: "Make its schemas smaller: a model reads them whole",
    });
  }
  sayUnknown(key, { found, known: OF_TOOL, say });
}

function sayUndescribed(key: string, say: Say): void {
  say("warning", `${key} has no description`, { hint: "A model chooses by it: write a sentence" });
}

/** What a later PML may know is no failure here; more often it is a slip. */
function sayUnknown(
  key: string,
  { found, known, say }: {
    readonly found: Readonly<Record<string, unknown>>;
    readonly known: readonly string[];
    readonly say: Say;
  },
): void {
  for (const name of Object.keys(found).filter((name) => !known.includes(name))) {
    say("warning", `${key}.${visible(name, 80)} is unknown and counts for nothing`, {
      hint: `Known are ${known.join(", ")}`,
    });
  }
}
