/**
 * Shows one tool to a user: its arguments, what decides about it, and a call to try.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { numberText } from "../core/exact_number.ts";
import {
  inset,
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
  visible,
} from "../core/json.ts";
import { infoAt, namesInFolder } from "../io/place.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { tokensOf } from "../core/tokens.ts";

const TYPE_MAX = 60;
const TEXT_MAX = 2_000;
const LINE_MAX = 400;
const SIGNATURE_MAX = 100;
const NAME_MAX = 40;
const EXAMPLE_DEPTH = 4;
/** How many folders of a workspace are searched for a file. */
const MOST_FOLDERS = 20;
/** The placeholders of values in an example call. */
const PLACE = new Map([["string", "TEXT"], ["number", "1"], ["boolean", "true"]]);

/** PML's own facts about a tool. */
export interface ToolFacts {
  /** The name that clients see. */
  readonly id: string;
  readonly verdict: string;
  /** The words for what decides. */
  readonly rule: string;
  readonly permissions: readonly string[];
}

/** One argument. */
interface Argument {
  readonly name: string;
  readonly isNeeded: boolean;
  readonly type: string;
  readonly says: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Returns the lines about a tool. Texts of the server are shown with every character visible. */
export async function toolPage(
  app: App,
  tool: ToolDefinition,
  { id, verdict, rule, permissions }: ToolFacts,
): Promise<string> {
  const all = await argumentsOf(tool);
  const named = all.map(({ name, isNeeded }) => isNeeded ? name : `${name}?`);
  const short = `${id}(${named.join(", ")})`;
  const width = (texts: readonly string[]) => Math.max(0, ...texts.map(({ length }) => length));
  const types = width(all.map(({ type }) => type.length > TYPE_MAX ? "" : type));
  const names = width(named);
  const lines = all.map(({ type, says }, at) =>
    `  ${(named[at] ?? "").padEnd(names)}  ${type.padEnd(types)}  ${says}`.trimEnd()
  );
  const tokens = tokensOf(JSON.stringify(tool));
  return [
    short.length > SIGNATURE_MAX ? id : short,
    ...(tool.description ? [inset(tool.description, TEXT_MAX)] : []),
    "",
    ...lines,
    ...(lines.length > 0 ? [""] : []),
    `${verdict}, by ${rule}`,
    ...permissions,
    ...(await outputLines(app, tool, id)),
    tokensLine(tokens),
    ...verdict === "denied" ? [] : [await callToTry(tool, id)],
  ].join("\n");
}

/** Returns a line with the tokens of a tool. */
export function tokensLine(tokens: number): string {
  return `about ${tokens} tokens where a client lists it`;
}

/** Returns a line with a call to try. */
export async function callToTry(tool: ToolDefinition, id: string): Promise<string> {
  const needed = (await argumentsOf(tool)).filter(({ isNeeded }) => isNeeded);
  return `Try it: ${["pml call", id, ...needed.map(typed)].join(" ")}`;
}

/** The place of examples. */
interface ExamplePlace {
  readonly workspace: string;
  /** Whether paths must name nothing that exists, because the tool may write there. */
  readonly isNew: boolean;
}

/**
 * Returns the arguments of an example call: those that are required. Paths name things that exist
 * in the workspace, or new ones.
 */
export function exampleArguments(
  { name, inputSchema }: Pick<ToolDefinition, "name" | "inputSchema">,
  place: ExamplePlace,
): JsonObject {
  return objectOf(
    exampleValue("", { schema: objectOf(inputSchema), tool: name, depth: 0, ...place }),
  );
}

function exampleValue(
  name: string,
  { schema, depth, ...place }: ExamplePlace & {
    readonly schema: JsonObject;
    readonly tool: string;
    readonly depth: number;
  },
): Json {
  const values = [schema.const, schema.default, ...listOf(schema.enum), ...listOf(schema.examples)];
  const value = values.find((value) => value !== undefined);
  if (value !== undefined) return value;
  const next = (name: string, schema: unknown) =>
    exampleValue(name, { schema: objectOf(schema), depth: depth + 1, ...place });
  const [type] = listOf(schema.type).length > 0 ? listOf(schema.type) : [schema.type];
  // A schema may refer to itself, so the depth is limited.
  if (depth > EXAMPLE_DEPTH) return null;
  switch (type ?? (isObject(schema.properties) ? "object" : "string")) {
    case "object": {
      const properties = objectOf(schema.properties);
      // Equal names, at each depth, would take exponential time.
      const names = [...new Set(listOf(schema.required).map(textOf))];
      return Object.fromEntries(names.map((name) => [name, next(name, properties[name])]));
    }
    case "array":
      return Number(schema.minItems) > 0 ? [next(name, schema.items)] : [];
    case "boolean":
      return true;
    case "number":
    case "integer":
      return Math.max(1, Number(schema.minimum) || 0);
    case "string":
      return exampleText(name, place);
    default:
      return null;
  }
}

/** Returns a text that fits the name of an argument. */
function exampleText(
  name: string,
  { tool, workspace, isNew }: ExamplePlace & { readonly tool: string },
): string {
  const [word, of] = [name.toLowerCase(), tool.toLowerCase()];
  const isPath = /path|dir|folder|file/.test(word);
  const isFile = /file/.test(word) || /file|image|media/.test(of) && !/search|list|find/.test(of);
  if (isPath && isNew) return join(workspace, isFile ? "example.txt" : "example");
  if (isPath) return isFile ? firstFile(workspace) ?? workspace : workspace;
  return /url|uri/.test(word) ? "https://example.com/" : "example";
}

/** Returns a file of a folder or of the folders in it; none whose name begins with a dot. */
function firstFile(folder: string, isDeep = true): string | undefined {
  const paths = namesInFolder(folder).filter((name) => !name.startsWith(".")).sort()
    .map((name) => join(folder, name));
  const file = paths.find((path) => infoAt(path)?.isFile === true);
  if (file !== undefined || !isDeep) return file;
  return paths.filter((path) => infoAt(path)?.isDirectory === true).slice(0, MOST_FOLDERS)
    .map((path) => firstFile(path, false)).find((path) => path !== undefined);
}

async function argumentsOf({ inputSchema }: ToolDefinition): Promise<readonly Argument[]> {
  const { typesOf } = await import("../app/app_workflow.ts");
  const { properties, required, $defs, definitions } = inputSchema;
  const needed = listOf(required);
  const all = Object.entries(objectOf(properties)).map(([name, property]): Argument => {
    const schema = objectOf(property);
    // References lead to the definitions of the whole.
    const alone = { name, inputSchema: { $defs, definitions, ...schema } } as ToolDefinition;
    const { args } = typesOf(alone, { server: "", observed: () => undefined });
    return {
      name: visible(name, NAME_MAX),
      isNeeded: needed.includes(name),
      type: visible(bare(args), TEXT_MAX),
      says: [
        inset(textOf(schema.description), LINE_MAX),
        schema.default !== undefined &&
        `(default: ${visible(JSON.stringify(schema.default), TYPE_MAX)})`,
      ].filter(Boolean).join(" "),
      schema,
    };
  });
  return all.sort((one, other) => Number(other.isNeeded) - Number(one.isNeeded));
}

/** Returns the type of a tool's results, by its own schema or as observed. */
async function outputLines(app: App, tool: ToolDefinition, id: string): Promise<readonly string[]> {
  const { observedBy, typesOf } = await import("../app/app_workflow.ts");
  const [server = ""] = id.split(":");
  const { output } = typesOf(tool, { server, observed: await observedBy(app) });
  const text = bare(output);
  return text === "any" ? [] : [`returns ${visible(text, TEXT_MAX)}`];
}

function bare(type: string): string {
  return type.replace(/\/\*\*.*?\*\/ /g, "");
}

/** Returns an argument as a user types it, with a value of the right kind. */
function typed({ name, type, schema }: Argument): string {
  const [first, example] = [schema.enum, schema.examples]
    .map((list) => Array.isArray(list) ? list[0] : undefined);
  const firstValue = schema.default ?? first ?? example;
  const number = numberText(firstValue);
  const isPlain = typeof firstValue === "boolean" ||
    typeof firstValue === "string" && /^[\w./:-]+$/.test(firstValue);
  const value = number ?? (isPlain ? firstValue : PLACE.get(type));
  if (value !== undefined) return `${name}=${value}`;
  return `${name}:='${/\[\]$|^Array</.test(type) ? "[]" : "{}"}'`;
}
