/**
 * Corrects the items of lists: a client that cannot read one item may refuse the whole list, with
 * the items of all other servers. A tool whose name is invalid here gets another name. Everything
 * else stays as its server wrote it.
 *
 * @module
 */

import { isJsonNumber } from "../../core/exact_number.ts";
import { isObject, objectOf } from "../../core/json.ts";
import { type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { isToolName, toolSlug } from "../../core/tool_id.ts";

type Is = (value: unknown) => boolean;

const isText: Is = (value) => typeof value === "string";
const isFlag: Is = (value) => typeof value === "boolean";
const isTexts: Is = (value) => Array.isArray(value) && value.every(isText);
const isIcons: Is = (value) =>
  Array.isArray(value) && value.every((one) => isObject(one) && isText(one.src));

/** Checks of the optional keys of a tool that MCP defines. */
const TOOL: Readonly<Record<string, Is>> = {
  title: isText,
  description: isText,
  outputSchema: isObject,
  annotations: isObject,
  execution: isObject,
  icons: isIcons,
  _meta: isObject,
};
/** Checks of the optional keys of resources, templates and prompts. */
const OTHERS: Readonly<Record<string, Is>> = {
  title: isText,
  description: isText,
  mimeType: isText,
  size: isJsonNumber,
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

/** The key in `_meta` for the server's own name of a tool that has another name here. */
const OWN_NAME = "pml/name";
/** The maximum length of a tool's name, in characters. A tool with a longer name is left out. */
const NAME_MAX = 1_000;

/** Returns the name of a tool at its server. */
export function ownName({ name, _meta }: ListItem): string {
  const own = objectOf(_meta)[OWN_NAME];
  // A server may have set this key itself.
  return typeof own === "string" && toolSlug(own) === name ? own : String(name);
}

/** Returns an item that every client can read, with a name that is valid here. */
export function readable(list: ListName, item: ListItem): ListItem {
  if (list === "tools") return namedTool(readableTool(item));
  // Clients compare the entry of a skill with its files.
  if (list === "skills") return item;
  const name = isText(item.name) ? item.name : item[LISTS[list].key];
  return part(item, OTHERS, { name });
}

function namedTool(tool: ListItem): ListItem {
  const name = String(tool.name);
  if (isToolName(name) || name === "" || name.length > NAME_MAX) return tool;
  const { title = name, _meta } = tool;
  return { ...tool, name: toolSlug(name), title, _meta: { ...objectOf(_meta), [OWN_NAME]: name } };
}

/** Returns a tool that every client can read: the same object if it already is. */
function readableTool(tool: ListItem): ListItem {
  const { inputSchema, outputSchema, annotations } = tool;
  const schema = objectOf(inputSchema);
  // Arguments are always an object, for any schema.
  const input = schema.type === "object" ? schema : { ...schema, type: "object" };
  return part(tool, TOOL, {
    inputSchema: part(input, INPUT),
    outputSchema: isObject(outputSchema) ? part(outputSchema, OUTPUT) : outputSchema,
    annotations: isObject(annotations) ? part(annotations, ANNOTATIONS) : annotations,
  });
}

/** Removes members that fail their check, and sets other members. */
function part(
  value: Readonly<Record<string, unknown>>,
  kinds: Readonly<Record<string, Is>>,
  others: Readonly<Record<string, unknown>> = {},
): ListItem {
  const isOdd = (key: string) => value[key] !== undefined && kinds[key]?.(value[key]) === false;
  const all = { ...value, ...others };
  const isSame = Object.keys(all).every((key) => all[key] === value[key] && !isOdd(key));
  if (isSame) return value as ListItem; // it came as JSON
  const entries = Object.entries(all).filter(([key, one]) => one !== undefined && !isOdd(key));
  return Object.fromEntries(entries) as ListItem;
}
