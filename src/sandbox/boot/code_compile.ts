/**
 * Compiles TypeScript code to a function, and finds the line and column of errors in it.
 *
 * @module
 */

import { lastExpression } from "./last_expression.ts";

/** A place in the code, counted from 1. */
export interface CodePosition {
  readonly line: number;
  readonly column: number;
}

/** Compiled code. */
export interface Compiled {
  readonly run: (...values: readonly unknown[]) => Promise<unknown>;
  /** Returns where in the code an error was thrown; undefined if that is unknown. */
  readonly placeOf: (error: unknown) => CodePosition | undefined;
}

/** The error of code that is not valid TypeScript, with the place of the problem. */
export class CodeError extends Error {
  readonly place: CodePosition | undefined;

  /** Creates an error with the message of the problem, and its place if it is known. */
  constructor(message: string, place?: CodePosition) {
    super(message);
    this.place = place;
  }
}

const AsyncFunction = (async () => {}).constructor as new (
  ...parametersAndBody: readonly string[]
) => Compiled["run"];
/** The name of the code in stack traces. */
const NAME = "pml-code";
const IN_STACK = new RegExp(`\\b${NAME}\\b[^\\n]*?:(\\d+):(\\d+)\\)?$`, "m");
/** The lines that a compiled function has above the code: its head, and "use strict". */
const LINES_ABOVE = 3;
const RETURN = "return (";
/** Variables of namespaces at the end of the output. They are moved before the last expression. */
const HOISTED = /(?:\nvar [^=;\n]+;)+\n*$/;
/** The lines above the code in the module that is compiled to find the place of a problem. */
const MODULE_ABOVE = 2;

/** Compiles code to a function with these parameters. Throws `CodeError` for invalid code. */
export async function compileCode(
  code: string,
  ...parameters: readonly string[]
): Promise<Compiled> {
  // A fence compiles, because it is a template without a function.
  if (/^\s*```/.test(code)) {
    throw new CodeError("It begins with a Markdown fence: send the code without the fence");
  }
  const { text, isMoved } = await withoutTypes(code);
  const last = lastExpression(text, compiles);
  const body = last === undefined
    ? text
    : `${text.slice(0, last.start)}${RETURN}${text.slice(last.start, last.end)}\n);`;
  const run = functionOf(body, parameters);
  const lastPlace = last && placeAt(text, last.start);
  const placeOf = (error: unknown) => {
    const [, line, column] = IN_STACK.exec(stackOf(error)) ?? [];
    if (line === undefined || isMoved) return undefined;
    const place = { line: Number(line) - LINES_ABOVE, column: Number(column) };
    const isShifted = place.line === lastPlace?.line &&
      place.column >= lastPlace.column + RETURN.length;
    return isShifted ? { ...place, column: place.column - RETURN.length } : place;
  };
  return { run, placeOf };
}

/** Returns the code without types. If possible, the other parts keep their lines and columns. */
async function withoutTypes(code: string): Promise<{ text: string; isMoved?: boolean }> {
  // `f<T>(x)` would be a comparison in JavaScript.
  const isGeneric = code.includes("<") && /[^=\s]\s*>\s*\(/.test(code);
  if (!isGeneric && compiles(code)) return { text: code };
  try {
    const text = await removeTypes(code);
    if (compiles(text)) return { text };
  } catch (error) {
    // Enums and similar syntax need a transformation, which moves code.
    if (/not supported in (?:strip-only|type strip) mode/.test(String(error))) {
      const text = await removeTypes(code, "transform");
      const [hoisted = ""] = HOISTED.exec(text) ?? [];
      return { text: hoisted + text.slice(0, text.length - hoisted.length), isMoved: true };
    }
  }
  throw importError(code) ?? await findSyntaxError(code);
}

/** Returns the error of invalid code that imports a module; undefined for other code. */
function importError(code: string): CodeError | undefined {
  const { index } = /^[ \t]*import\s[^;\n]*["'][^"'\n]+["'];?[ \t]*$/m.exec(code) ?? {};
  if (index === undefined) return undefined;
  const what =
    "Cannot use import: code has no files and packages. Call a tool: mcp.server.tool(args)";
  return new CodeError(what, placeAt(code, index));
}

async function removeTypes(code: string, mode?: "transform"): Promise<string> {
  // Loaded only for code with types, because this import takes longer than compiling.
  const { stripTypeScriptTypes } = await import("node:module") as unknown as {
    stripTypeScriptTypes(code: string, options?: { readonly mode: string }): string;
  };
  return stripTypeScriptTypes(code, mode && { mode });
}

function compiles(body: string): boolean {
  try {
    functionOf(body);
    return true;
  } catch {
    return false;
  }
}

/** Compiles the body of a function. A body that closes the function early is not valid. */
function functionOf(body: string, parameters: readonly string[] = []): Compiled["run"] {
  return new AsyncFunction(...parameters, `"use strict";\n${body}\n//# sourceURL=${NAME}`);
}

/** Finds the problem and its place: compiles the code as a module that cannot run. */
async function findSyntaxError(code: string): Promise<CodeError> {
  const text = `import "pml:never";\nexport default async () => {\n${code}\n};`;
  const url = URL.createObjectURL(new Blob([text], { type: "application/typescript" }));
  const error = await import(url).then(() => undefined, (reason: unknown) => reason);
  const message = error instanceof Error ? error.message : "";
  const [, what = "", line, column] =
    /^(?:SyntaxError: )?(.*?)(?:\n[^]*?)?(?: at|\n {4}at) blob:[^\n]*?:(\d+):(\d+)$/m
      .exec(message) ?? [];
  if (line === undefined) return new CodeError(syntaxMessage(code));
  const lines = code.split("\n");
  const codeLine = Number(line) - MODULE_ABOVE;
  if (codeLine <= lines.length) {
    return new CodeError(what, { line: codeLine, column: Number(column) });
  }
  const end = { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
  return new CodeError(`${what}: the code ends too early`, end);
}

function syntaxMessage(code: string): string {
  try {
    functionOf(code);
  } catch (error) {
    return (error as Error).message; // a SyntaxError
  }
  return "It is not valid";
}

function placeAt(text: string, index: number): CodePosition {
  const lines = text.slice(0, index).split("\n");
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

function stackOf(error: unknown): string {
  const stack: unknown = Object(error) === error ? (error as Error).stack : undefined;
  return typeof stack === "string" ? stack : "";
}
