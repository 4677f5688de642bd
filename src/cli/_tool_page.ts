/**
 * Shows one tool to a user: its arguments, the decision of the rules, and a call to try.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { numberText } from "../core/exact_number.ts";
import {
  indentLines,
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
  visible,
} from "../core/json.ts";
import { infoAt, namesInFolder } from "../io/path_info.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { tokensOf } from "../core/tokens.ts";

const TYPE_MAX = 60;
const TEXT_MAX = 2_000;
const LINE_MAX = 400;
const SIGNATURE_MAX = 100;
const NAME_MAX = 40;
const EXAMPLE_DEPTH = 4;
/** The maximum number of folders of a workspace that are searched for a file. */
const FOLDERS_MAX = 20;
/** The placeholders of values in an example call. */
const PLACEHOLDERS = new Map([["string", "TEXT"], ["number", "1"], ["boolean", "true"]]);

/** PML's own facts about a tool. */
export interface ToolFacts {
  /** The name that clients see. */
  readonly id: string;
  readonly verdict: string;
  /** Lines about the effect of a call, and the rule that decides. */
  readonly decision: readonly string[];
  readonly permissions: readonly string[];
}

/** One argument. */
interface Argument {
  readonly name: string;
  readonly isRequired: boolean;
  readonly type: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Returns the lines about a tool. Texts of the server are shown with every character visible. */
export async function toolPage(
  app: App,
  tool: ToolDefinition,
  { id, verdict, decision, permissions }: ToolFacts,
): Promise<string> {
  const toolArguments = await readArguments(tool);
  const argumentNames = toolArguments.map(({ name, isRequired }) => isRequired ? name : `${name}?`);
  const signature = `${id}(${argumentNames.join(", ")})`;
  const width = (texts: readonly string[]) => Math.max(0, ...texts.map(({ length }) => length));
  const typeWidth = width(toolArguments.map(({ type }) => type.length > TYPE_MAX ? "" : type));
  const nameWidth = width(argumentNames);
  const lines = toolArguments.map(({ type, description }, index) =>
    `  ${(argumentNames[index] ?? "").padEnd(nameWidth)}  ${type.padEnd(typeWidth)}  ${description}`
      .trimEnd()
  );
  const tokens = tokensOf(JSON.stringify(tool));
  return [
    signature.length > SIGNATURE_MAX ? id : signature,
    ...(tool.description ? [indentLines(tool.description, TEXT_MAX)] : []),
    "",
    ...lines,
    ...(lines.length > 0 ? [""] : []),
    ...decision,
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
  const required = (await readArguments(tool)).filter(({ isRequired }) => isRequired);
  return `Try it: ${["pml call", id, ...required.map(argumentText)].join(" ")}`;
}

/** The paths that examples may use. */
interface ExamplePlace {
  readonly workspace: string;
  /** Whether paths must name nothing that exists, because the tool may write there. */
  readonly isNew: boolean;
}

/**
 * Returns values for the required arguments of an example call. Paths name existing files and folders
 * of the workspace, or new ones.
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
      // Names that repeat at each depth would take exponential time.
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
  const [word, toolName] = [name.toLowerCase(), tool.toLowerCase()];
  const isPath = /path|dir|folder|file/.test(word);
  const isFile = /file/.test(word) ||
    /file|image|media/.test(toolName) && !/search|list|find/.test(toolName);
  if (isPath && isNew) return join(workspace, isFile ? "example.txt" : "example");
  if (isPath) return isFile ? firstFile(workspace) ?? workspace : workspace;
  return /url|uri/.test(word) ? "https://example.com/" : "example";
}

/** Returns a file in a folder or in its subfolders. Skips names that begin with a dot. */
function firstFile(folder: string, isDeep = true): string | undefined {
  const paths = namesInFolder(folder).filter((name) => !name.startsWith(".")).sort()
    .map((name) => join(folder, name));
  const file = paths.find((path) => infoAt(path)?.isFile === true);
  if (file !== undefined || !isDeep) return file;
  return paths.filter((path) => infoAt(path)?.isDirectory === true).slice(0, FOLDERS_MAX)
    .map((path) => firstFile(path, false)).find((path) => path !== undefined);
}

async function readArguments({ inputSchema }: ToolDefinition): Promise<readonly Argument[]> {
  const { typesOf } = await import("../app/app_workflow.ts");
  const { properties, required, $defs, definitions } = inputSchema;
  const requiredNames = listOf(required);
  const toolArguments = Object.entries(objectOf(properties)).map(([name, property]): Argument => {
    const schema = objectOf(property);
    // References point to the definitions of the whole schema.
    const alone = { name, inputSchema: { $defs, definitions, ...schema } } as ToolDefinition;
    const { args } = typesOf(alone, { server: "", observed: () => undefined });
    return {
      name: visible(name, NAME_MAX),
      isRequired: requiredNames.includes(name),
      type: visible(withoutComments(args), TEXT_MAX),
      description: [
        indentLines(textOf(schema.description), LINE_MAX),
        schema.default !== undefined &&
        `(default: ${visible(JSON.stringify(schema.default), TYPE_MAX)})`,
      ].filter(Boolean).join(" "),
      schema,
    };
  });
  return toolArguments.sort((one, other) => Number(other.isRequired) - Number(one.isRequired));
}

/** Returns the type of a tool's results, by its own schema or as observed. */
async function outputLines(app: App, tool: ToolDefinition, id: string): Promise<readonly string[]> {
  const { typesOf } = await import("../app/app_workflow.ts");
  const [server = ""] = id.split(":");
  const { output } = typesOf(tool, { server, observed: await app.observedOutput() });
  const text = withoutComments(output);
  return text === "any" ? [] : [`returns ${visible(text, TEXT_MAX)}`];
}

/** Removes the doc comments from a type. */
function withoutComments(type: string): string {
  return type.replace(/\/\*\*.*?\*\/ /g, "");
}

/** Returns an argument as a user types it, with a value of the right kind. */
function argumentText({ name, type, schema }: Argument): string {
  const [first, example] = [schema.enum, schema.examples]
    .map((list) => Array.isArray(list) ? list[0] : undefined);
  const firstValue = schema.default ?? first ?? example;
  const number = numberText(firstValue);
  const isPlain = typeof firstValue === "boolean" ||
    typeof firstValue === "string" && /^[\w./:-]+$/.test(firstValue);
  const value = number ?? (isPlain ? firstValue : PLACEHOLDERS.get(type));
  if (value !== undefined) return `${name}=${value}`;
  return `${name}:='${/\[\]$|^Array</.test(type) ? "[]" : "{}"}'`;
}
