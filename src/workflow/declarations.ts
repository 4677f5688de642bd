/**
 * Writes TypeScript declarations of tools for code and programs, with the types of arguments and
 * outputs.
 *
 * @module
 */

import { isObject, type JsonObject } from "../core/json.ts";
import { resolveRef } from "../core/schema_ref.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { keyText, schemaType, toComment, type TypeOptions } from "./_schema_type.ts";

/** A server and its tools, with the names that clients see. */
export interface DeclaredServer {
  readonly name: string;
  readonly tools: readonly ToolDefinition[];
}

/** Returns the schema of the observed outputs of a tool; undefined if none was observed. */
export type ObservedOutput = (server: string, tool: ToolDefinition) => JsonObject | undefined;

/** The types of a tool. */
export interface ToolTypes {
  readonly args: string;
  readonly output: string;
  /** Whether it can be called without arguments. */
  readonly isOptional: boolean;
  /** Whether the types were shortened because they are too large. */
  readonly isCut: boolean;
}

/** The maximum length of all declarations together, in characters. */
const TOTAL_MAX = 1_000_000;
/** The maximum length of a tool's description, in characters. */
const DOC_MAX = 1_000;

/** Returns the types of a tool. Without a declared or an observed schema, the output is `any`. */
export function toolTypes(
  server: string,
  tool: ToolDefinition,
  { observed, ...options }: TypeOptions & { readonly observed?: ObservedOutput | undefined },
): ToolTypes {
  const args = schemaType(tool.inputSchema, {
    ...options,
    takesBigInts: options.isLenient === true,
  });
  const schema = tool.outputSchema === undefined ? observed?.(server, tool) : undefined;
  // Later outputs may have more members than the observed outputs.
  const output = schemaType(
    tool.outputSchema ?? schema,
    schema ? { ...options, isLenient: true } : {
      ...options,
      isLenient: false,
    },
  );
  return {
    args: args.text,
    output: output.text,
    isOptional: !requiresArguments(tool.inputSchema),
    isCut: args.isCut || output.isCut,
  };
}

/** Returns the declaration of a tool with arguments and an output of any type. */
export function anyTool(name: string): string {
  return `${keyText(name)}(args?: any): Promise<any>;`;
}

/** Returns the declarations of servers: `server: { tool(args: …): Promise<…> }`. */
export function declarationsOf(
  servers: readonly DeclaredServer[],
  observed?: ObservedOutput,
): string {
  let remaining = TOTAL_MAX;
  const blocks = servers.map(({ name, tools }) => {
    const lines = tools.map((tool) => {
      const line = toolLine(name, tool, observed);
      remaining -= line.length;
      return remaining > 0 ? line : `    ${anyTool(tool.name)} // types are not shown`;
    });
    return [`  ${keyText(name)}: {`, ...lines, "  };"].join("\n");
  });
  return blocks.join("\n");
}

function toolLine(server: string, tool: ToolDefinition, observed?: ObservedOutput): string {
  const types = toolTypes(server, tool, { observed, hasComments: true });
  const { args, output, isOptional, isCut } = types;
  const doc = toComment(tool.description, DOC_MAX).trim();
  const call = `${keyText(tool.name)}(args${isOptional ? "?" : ""}: ${args}): Promise<${output}>;`;
  const lines = [
    ...(doc === "" ? [] : [doc]),
    `${call}${isCut ? " // too large: any replaces a part" : ""}`,
  ];
  return lines.map((line) => `    ${line}`).join("\n");
}

/** Returns whether a schema requires properties. */
function requiresArguments(schema: unknown): boolean {
  const target = isObject(schema) && typeof schema.$ref === "string"
    ? resolveRef(schema, schema.$ref)
    : schema;
  return isObject(target) && Array.isArray(target.required) && target.required.length > 0;
}
