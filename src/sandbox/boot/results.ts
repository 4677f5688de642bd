/**
 * Checks the results of a module against its schemas, in the module's own thread.
 *
 * @module
 */

import type { ResultSchemas } from "./message.ts";

/** Returns why a result, as plain JSON, does not match the schema of its tool. */
export type ResultCheck = (value: unknown) => string | undefined;

/** Returns a URL from which code can be imported. */
export function urlOf(code: string): string {
  return URL.createObjectURL(new Blob([code], { type: "application/typescript" }));
}

/** Loads the code that checks values. Returns a check for each function with a schema. */
export async function resultChecks(
  { code, schemas }: ResultSchemas,
): Promise<ReadonlyMap<string, ResultCheck>> {
  const { JsonSchema }: typeof import("./schemas.ts") = await import(urlOf(code));
  const checkOf = (schema: object): ResultCheck => {
    let compiled: InstanceType<typeof JsonSchema> | undefined;
    return (value) => {
      try {
        return structuredProblem(compiled ??= new JsonSchema({ ...schema }), value);
      } catch (error) {
        return `it cannot be used: ${error instanceof Error ? error.message : error}`;
      }
    };
  };
  return new Map(Object.entries(schemas).map(([name, schema]) => [name, checkOf(schema)]));
}

function structuredProblem(
  schema: { findProblem(value: unknown): string | undefined },
  value: unknown,
): string | undefined {
  const { content, structuredContent, isError } = Object(value);
  const isResult = Array.isArray(content);
  if (isResult && isError === true) return undefined;
  const structured = isResult ? structuredContent : value;
  // A text is the content of a result, not structured content.
  const hasNoContent = structured === undefined || structured === null ||
    typeof structured === "string";
  return hasNoContent ? "there is no structured content" : schema.findProblem(structured);
}
