/**
 * Reads `__meta__` for the author of a module, and reports every mistake, not only the first one.
 *
 * @module
 */

import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { isObject, objectOf, quoted, visible } from "../core/json.ts";
import { type ModuleMeta, type ModuleTool, parseModuleMeta } from "../protocol/tool.ts";
import { metaComment, unexportedTool } from "../servers/module/meta_comment.ts";
import type { ReportFinding } from "./_finding.ts";

/** The module of a `__meta__`, and the context of its check. */
export interface MetaContext {
  readonly text: string;
  readonly path: string;
  /** The names of built-in servers. */
  readonly builtinNames: ReadonlySet<string>;
  readonly report: ReportFinding;
}

const MODULE_KEYS = ["name", "version", "description", "permissions", "tools"];
const TOOL_KEYS = [
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
/** The number of characters of a description that search reads. */
const DESCRIPTION_MAX = 2_000;
const DEFINITION_MAX = 32_000;

/** The valid part of the metadata. */
export interface ValidMeta {
  readonly meta: ModuleMeta;
  /** The names of all its tools, valid or not. */
  readonly toolNames: readonly string[];
}

/** Reads the valid part of the metadata; undefined if there is none. */
export function readMeta(exported: unknown, context: MetaContext): ValidMeta | undefined {
  const { text, path, builtinNames, report } = context;
  const value = exported ?? metaComment(text, path);
  if (value === undefined) {
    report("failed", "there is no __meta__", {
      hint: 'Write `export const __meta__ = { name: "x", tools: { … } }`',
    });
    return undefined;
  }
  const metadata = objectOf(value);
  const tools = objectOf(metadata.tools);
  const reportError = (error: unknown) =>
    report("failed", visible(asPmlError(error).message.replace(/^.*?: (?=__meta__)/, ""), 400));
  const moduleMeta = attempt(
    () => parseModuleMeta(isObject(metadata.tools) ? { ...metadata, tools: {} } : value, path),
    reportError,
  );
  // If the metadata itself is invalid, its tools are still checked.
  const base = moduleMeta === undefined ? { name: "x" } : metadata;
  const validTools = Object.entries(tools).flatMap(([name, tool]): readonly ModuleTool[] => {
    const withOneTool = { ...base, tools: Object.fromEntries([[name, tool]]) };
    return attempt(() => parseModuleMeta(withOneTool, path), reportError)?.tools ?? [];
  });
  if (moduleMeta !== undefined && builtinNames.has(moduleMeta.name)) {
    report("failed", `__meta__.name is ${quoted(moduleMeta.name)}, which ships with PML`, {
      hint: "Choose another name",
    });
  }
  const toolNames = Object.keys(tools);
  if (isObject(metadata.tools) && toolNames.length === 0) {
    report("failed", "__meta__.tools is empty", { hint: "Name a function that is exported" });
  }
  reportUnknown("__meta__", { members: metadata, keys: MODULE_KEYS, report });
  if (moduleMeta !== undefined && moduleMeta.description === undefined) {
    reportUndescribed("__meta__", report);
  }
  for (const tool of validTools) reportTool(tool, report);
  const meta = {
    ...moduleMeta ?? { name: "x", version: undefined, description: undefined },
    tools: validTools,
  };
  report("ok", `${quoted(meta.name)} with ${counted(validTools.length, "tool")}`);
  return { meta, toolNames };
}

/** Reports tools without a function, and functions without a tool. */
export function reportFunctions(
  { meta, toolNames }: ValidMeta,
  { exports, text, report }: {
    readonly exports: readonly string[];
    readonly text: string;
    readonly report: ReportFinding;
  },
): void {
  for (const { definition: { name } } of meta.tools) {
    if (exports.includes(name)) continue;
    const { why, hint } = unexportedTool(name);
    report("failed", why, { hint });
  }
  for (const name of exports.filter((name) => !toolNames.includes(name))) {
    const index = text.split("\n").findIndex((line) =>
      /^export\b/.test(line) && line.includes(name)
    );
    report("warning", `the function ${quoted(name)} is exported, but no tool has its name`, {
      hint: "Name it in __meta__.tools, or do not export it",
      line: index < 0 ? undefined : index + 1,
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

function reportTool({ definition }: ModuleTool, report: ReportFinding): void {
  const { name, description = "", ...members } = definition;
  const key = `__meta__.tools.${name}`;
  if (description.trim() === "") reportUndescribed(key, report);
  if (description.length > DESCRIPTION_MAX) {
    report("warning", `${key}.description has ${description.length} characters`, {
      hint: `Search reads ${DESCRIPTION_MAX}, and the model pays for each`,
    });
  }
  const size = JSON.stringify(definition).length;
  if (size > DEFINITION_MAX) {
    report("warning", `${key} has ${size} characters`, {
      hint: "Make its schemas smaller",
    });
  }
  reportUnknown(key, { members, keys: TOOL_KEYS, report });
}

function reportUndescribed(key: string, report: ReportFinding): void {
  report("warning", `${key} has no description`, {
    hint: "A model chooses by it: write a sentence",
  });
}

/**
 * Reports unknown fields. Only warns, because a later version of PML may support them.
 */
function reportUnknown(
  key: string,
  { members, keys, report }: {
    readonly members: Readonly<Record<string, unknown>>;
    readonly keys: readonly string[];
    readonly report: ReportFinding;
  },
): void {
  for (const name of Object.keys(members).filter((name) => !keys.includes(name))) {
    report("warning", `${key}.${visible(name, 80)} is unknown and is ignored`, {
      hint: `Known are ${keys.join(", ")}`,
    });
  }
}
