/**
 * Writes TypeScript declarations of tools for code and programs, with the types of arguments and
 * outputs.
 *
 * @module
 */

import { isObject, type JsonObject } from "../core/json.ts";
import { referredIn } from "../core/schema_ref.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { comment, keyText, schemaType, type TypeOptions } from "./_schema_type.ts";

/** A server and its tools, with the names that clients see. */
export interface DeclaredServer {
  readonly name: string;
  readonly tools: readonly ToolDefinition[];
}

/** Returns the schema of the observed outputs of a tool; undefined without one. */
export type Observed = (server: string, tool: ToolDefinition) => JsonObject | undefined;

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
const LONGEST = 1_000_000;
const LONGEST_DOC = 1_000;

/** Returns the types of a tool. The output of a tool that declares none is `any`. */
export function toolTypes(
  server: string,
  tool: ToolDefinition,
  { observed, ...options }: TypeOptions & { readonly observed?: Observed | undefined },
): ToolTypes {
  const args = schemaType(tool.inputSchema, { ...options, takesBigInts: options.isOpen === true });
  const schema = tool.outputSchema === undefined ? observed?.(server, tool) : undefined;
  // Outputs may have more members than the observed ones.
  const output = schemaType(
    tool.outputSchema ?? schema,
    schema ? { ...options, isOpen: true } : {
      ...options,
      isOpen: false,
    },
  );
  return {
    args: args.text,
    output: output.text,
    isOptional: !requiresMore(tool.inputSchema),
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
  observed?: Observed,
): string {
  let remaining = LONGEST;
  const blocks = servers.map(({ name, tools }) => {
    const lines = tools.map((tool) => {
      const line = toolLine(name, tool, observed);
      remaining -= line.length;
      return remaining > 0 ? line : `    ${anyTool(tool.name)} // not shown`;
    });
    return [`  ${keyText(name)}: {`, ...lines, "  };"].join("\n");
  });
  return blocks.join("\n");
}

function toolLine(server: string, tool: ToolDefinition, observed?: Observed): string {
  const types = toolTypes(server, tool, { observed, docs: true });
  const { args, output, isOptional, isCut } = types;
  const doc = comment(tool.description, LONGEST_DOC).trim();
  const call = `${keyText(tool.name)}(args${isOptional ? "?" : ""}: ${args}): Promise<${output}>;`;
  const lines = [...(doc === "" ? [] : [doc]), `${call}${isCut ? " // too large: see any" : ""}`];
  return lines.map((line) => `    ${line}`).join("\n");
}

/** Returns whether a schema requires properties. */
function requiresMore(schema: unknown): boolean {
  const target = isObject(schema) && typeof schema.$ref === "string"
    ? referredIn(schema, schema.$ref)
    : schema;
  return isObject(target) && Array.isArray(target.required) && target.required.length > 0;
}
