/**
 * Looks a schema over before it is used: one that is too large to be looked at is not used at all.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { turn } from "../io/waiting.ts";

const DEEPEST = 64;
const MOST_SUBSCHEMAS = 2_000;
const MOST_VALUES = 50_000;
const MOST_CHARACTERS = 1_000_000;
/** After so long a look others get their turn. */
const TURN_MS = 10;

/** Keywords whose value is a schema, or a list of them. */
const SCHEMAS = [
  ..."additionalItems additionalProperties allOf anyOf contains else if items not oneOf".split(" "),
  ..."prefixItems propertyNames then unevaluatedItems unevaluatedProperties".split(" "),
];
/** Keywords whose value has schemas by name, whatever the names are. */
const NAMED = "$defs definitions dependencies dependentSchemas patternProperties properties"
  .split(" ");

/** Gives the schemas right within a schema: by its keywords, because properties have any name. */
export function subschemas(schema: Readonly<Record<string, unknown>>): readonly unknown[] {
  return [
    ...SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
    ...NAMED.flatMap((keyword) => isObject(schema[keyword]) ? Object.values(schema[keyword]) : []),
  ];
}

/** Says why a schema cannot be used; undefined for a good one. */
export function unsafeSchema(schema: object): string | undefined {
  return tooLarge(schema) ?? tooNested(schema);
}

/** Finds the tools that cannot be used for their schemas, and says why; however many there are. */
export async function unusableTools(
  tools: readonly ToolDefinition[],
): Promise<ReadonlyMap<ToolDefinition, string>> {
  const found = new Map<ToolDefinition, string>();
  const turns = new Turns();
  for (const tool of tools) {
    const why = unusable(tool);
    if (why !== undefined) found.set(tool, why);
    await turns.next();
  }
  return found;
}

/** Lets others have their turn while much is looked at. */
export class Turns {
  #since = performance.now();

  /** Resolves at once, or after others had their turn. */
  async next(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await turn();
    this.#since = performance.now();
  }
}

function unusable(tool: ToolDefinition): string | undefined {
  const { inputSchema, outputSchema = {} } = tool;
  const large = tooLarge(tool);
  if (large !== undefined) return large;
  const why = [inputSchema, outputSchema]
    .map((schema) => isObject(schema) ? tooNested(schema) : "it is no object")
    .find((each) => each !== undefined);
  return why && `its schema cannot be used: ${why}`;
}

/** All that is done with a tool's definition takes as long as it is large. */
function tooLarge(value: object): string | undefined {
  const left: unknown[] = [value];
  let [values, characters] = [0, 0];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === "string") characters += next.length;
    const inner = typeof next === "object" && next !== null ? next : {};
    const names = Array.isArray(inner) ? [] : Object.keys(inner);
    values += Array.isArray(inner) ? inner.length : names.length;
    if (values > MOST_VALUES) return "it has too many values";
    if (Array.isArray(inner)) left.push(...inner);
    for (const name of names) {
      characters += name.length;
      left.push(Reflect.get(inner, name));
    }
    if (characters > MOST_CHARACTERS) return "it is too long";
  }
  return undefined;
}

function tooNested(schema: object): string | undefined {
  let level = [schema].filter(isObject);
  let left = MOST_SUBSCHEMAS;
  for (let depth = DEEPEST; level.length > 0; depth--) {
    if (depth === 0) return "it is nested too deep";
    if ((left -= level.length) < 0) return "it has too many subschemas";
    level = level.flatMap(subschemas).filter(isObject);
  }
  return undefined;
}
