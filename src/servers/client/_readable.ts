/**
 * Corrects the items of lists. A client that cannot read one item may refuse the whole list, with
 * the items of all other servers. A tool whose name is not valid in PML gets another name. Valid
 * members stay as the server wrote them.
 *
 * @module
 */

import { isJsonNumber } from "../../core/exact_number.ts";
import { isObject, objectOf } from "../../core/json.ts";
import { type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { isToolName, toolSlug } from "../../core/tool_id.ts";

type Predicate = (value: unknown) => boolean;

const isText: Predicate = (value) => typeof value === "string";
const isFlag: Predicate = (value) => typeof value === "boolean";
const isTexts: Predicate = (value) => Array.isArray(value) && value.every(isText);
const isIcons: Predicate = (value) =>
  Array.isArray(value) && value.every((one) => isObject(one) && isText(one.src));

/** Checks of a tool's optional members that MCP defines. */
const TOOL: Readonly<Record<string, Predicate>> = {
  title: isText,
  description: isText,
  outputSchema: isObject,
  annotations: isObject,
  execution: isObject,
  icons: isIcons,
  _meta: isObject,
};
/** Checks of the optional members of resources, templates and prompts. */
const ITEM: Readonly<Record<string, Predicate>> = {
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
const ANNOTATIONS: Readonly<Record<string, Predicate>> = {
  title: isText,
  readOnlyHint: isFlag,
  destructiveHint: isFlag,
  idempotentHint: isFlag,
  openWorldHint: isFlag,
};
const OUTPUT: Readonly<Record<string, Predicate>> = { $schema: isText };
const INPUT: Readonly<Record<string, Predicate>> = {
  properties: isObject,
  required: isTexts,
};

/** The key in `_meta` for the name of a tool at its server, if PML gave the tool another name. */
const OWN_NAME = "pml/name";
/** The maximum length of a tool's name, in characters. A tool with a longer name is left out. */
const NAME_MAX = 1_000;

/** Returns the name of a tool at its server. */
export function ownName({ name, _meta }: ListItem): string {
  const own = objectOf(_meta)[OWN_NAME];
  // A server may have set this key itself, so its value is checked.
  return typeof own === "string" && toolSlug(own) === name ? own : String(name);
}

/** Returns an item that every client can read, with a name that is valid in PML. */
export function toReadable(list: ListName, item: ListItem): ListItem {
  if (list === "tools") return withValidName(readableTool(item));
  // Clients compare the entry of a skill with its files, so it stays unchanged.
  if (list === "skills") return item;
  const name = isText(item.name) ? item.name : item[LISTS[list].key];
  return withCorrections(item, ITEM, { name });
}

function withValidName(tool: ListItem): ListItem {
  const name = String(tool.name);
  if (isToolName(name) || name === "" || name.length > NAME_MAX) return tool;
  const { title = name, _meta } = tool;
  return { ...tool, name: toolSlug(name), title, _meta: { ...objectOf(_meta), [OWN_NAME]: name } };
}

/** Returns a tool that every client can read: the same object if nothing is corrected. */
function readableTool(tool: ListItem): ListItem {
  const { inputSchema, outputSchema, annotations } = tool;
  const schema = objectOf(inputSchema);
  // Arguments are always an object, whatever the schema allows.
  const input = schema.type === "object" ? schema : { ...schema, type: "object" };
  return withCorrections(tool, TOOL, {
    inputSchema: withCorrections(input, INPUT),
    outputSchema: isObject(outputSchema) ? withCorrections(outputSchema, OUTPUT) : outputSchema,
    annotations: isObject(annotations) ? withCorrections(annotations, ANNOTATIONS) : annotations,
  });
}

/**
 * Sets the members in `others`, and then removes members that are undefined or fail their check in
 * `kinds`. Returns the same object if nothing changes.
 */
function withCorrections(
  value: Readonly<Record<string, unknown>>,
  kinds: Readonly<Record<string, Predicate>>,
  others: Readonly<Record<string, unknown>> = {},
): ListItem {
  const isInvalid = (key: string) => value[key] !== undefined && kinds[key]?.(value[key]) === false;
  const all = { ...value, ...others };
  const isSame = Object.keys(all).every((key) => all[key] === value[key] && !isInvalid(key));
  if (isSame) return value as ListItem; // it came as JSON
  const entries = Object.entries(all).filter(([key, one]) => one !== undefined && !isInvalid(key));
  return Object.fromEntries(entries) as ListItem;
}
