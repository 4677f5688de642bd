/**
 * Puts right what of an item would keep a client from reading the whole list it stands in, that of
 * every other server among it, and names a tool whose name is none here. All else stays as
 * its server wrote it.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import { type ListItem, type ListName, LISTS } from "../core/lists.ts";
import { isToolName, toolSlug } from "../core/tool_id.ts";

type Is = (value: unknown) => boolean;

const isText: Is = (value) => typeof value === "string";
const isFlag: Is = (value) => typeof value === "boolean";
const isTexts: Is = (value) => Array.isArray(value) && value.every(isText);
const isIcons: Is = (value) =>
  Array.isArray(value) && value.every((one) => isObject(one) && isText(one.src));

/** What clients take at the keys that MCP names, where these are there at all. */
const TOOL: Readonly<Record<string, Is>> = {
  title: isText,
  description: isText,
  outputSchema: isObject,
  annotations: isObject,
  execution: isObject,
  icons: isIcons,
  _meta: isObject,
};
/** Those of resources, templates and prompts. */
const OTHERS: Readonly<Record<string, Is>> = {
  title: isText,
  description: isText,
  mimeType: isText,
  size: (value) => typeof value === "number",
  annotations: isObject,
  icons: isIcons,
  arguments: (value) =>
    Array.isArray(value) && value.every((one) => isObject(one) && isText(one.name)),
  _meta: isObject,
};
const ANNOTATIONS: Readonly<Record<string, Is>> = {
  title: isText,
  readOnlyHint: isFlag,
  destructiveHint: isFlag,
  idempotentHint: isFlag,
  openWorldHint: isFlag,
};
const OUTPUT: Readonly<Record<string, Is>> = { $schema: isText };
const INPUT: Readonly<Record<string, Is>> = {
  properties: isObject,
  required: isTexts,
};

/** Where the name stands that the server gave, for one that has another here. */
const OWN_NAME = "pml/name";
/** A longer name is no name, and its tool is left out. */
const NAME_MAX = 1_000;

/** Gives the name that its server knows a tool by. */
export function ownName({ name, _meta }: ListItem): string {
  const own = objectOf(_meta)[OWN_NAME];
  // A server may have written that itself.
  return typeof own === "string" && toolSlug(own) === name ? own : String(name);
}

/** Gives an item of a list that every client can read, under a name that it can have here. */
export function readable(list: ListName, item: ListItem): ListItem {
  if (list === "tools") return namedTool(readableTool(item));
  const name = isText(item.name) ? item.name : item[LISTS[list].key];
  return part(item, OTHERS, { name });
}

function namedTool(tool: ListItem): ListItem {
  const name = String(tool.name);
  if (isToolName(name) || name === "" || name.length > NAME_MAX) return tool;
  const { title = name, _meta } = tool;
  return { ...tool, name: toolSlug(name), title, _meta: { ...objectOf(_meta), [OWN_NAME]: name } };
}

/** What can be read already is the same object. */
function readableTool(tool: ListItem): ListItem {
  const { inputSchema, outputSchema, annotations } = tool;
  const said = isObject(inputSchema) ? inputSchema : {};
  // Arguments are an object, whatever else a schema says of them.
  const input = said.type === "object" ? said : { ...said, type: "object" };
  return part(tool, TOOL, {
    inputSchema: part(input, INPUT),
    outputSchema: isObject(outputSchema) ? part(outputSchema, OUTPUT) : outputSchema,
    annotations: isObject(annotations) ? part(annotations, ANNOTATIONS) : annotations,
  });
}

/** Leaves out what nobody could read, and puts other members in their places. */
function part(
  value: Readonly<Record<string, unknown>>,
  kinds: Readonly<Record<string, Is>>,
  others: Readonly<Record<string, unknown>> = {},
): ListItem {
  const isOdd = (key: string) => value[key] !== undefined && kinds[key]?.(value[key]) === false;
  const all = { ...value, ...others };
  const isSame = Object.keys(all).every((key) => all[key] === value[key] && !isOdd(key));
  if (isSame) return value as ListItem; // it came as JSON
  const kept = Object.entries(all).filter(([key, one]) => one !== undefined && !isOdd(key));
  return Object.fromEntries(kept) as ListItem;
}
