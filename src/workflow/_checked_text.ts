/**
 * Combines code and the declarations of its tools into one text for the compiler, and translates
 * the compiler's errors into problems of the code.
 *
 * @module
 */

import { quoted, visible, withoutUndefined } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { signatureOf } from "../search/signature.ts";
import type { Diagnostic } from "./_language_server.ts";
import type { TypeProblem } from "./checked_code.ts";
import { keyText } from "./_schema_type.ts";
import { anyTool, type DeclaredServer, toolTypes } from "./declarations.ts";

/** The servers and tools that code can call. */
export interface CallableServers {
  /** The names of all servers. */
  readonly serverNames: readonly string[];
  /** The servers that the code uses, with all tools of each. */
  readonly usedServers: readonly DeclaredServer[];
}

/** The maximum numbers of servers, and of tools of one server, that are declared by name. */
const MOST_SERVERS = 1_000;
const MOST_TOOLS = 2_000;
/** The maximum number of names in a hint. */
const MOST_NAMED = 12;
/** The maximum number of names that are compared with an unknown name. */
const MOST_NEAR = 500;
/** The maximum number of compiler errors that are read, and of problems that are reported. */
const MOST_READ = 200;
const MOST_PROBLEMS = 20;
/** The maximum length of the types in one check, in characters. */
const LONGEST_TYPES = 300_000;
const LONGEST_MESSAGE = 300;
/** Compiler error numbers for undeclared names. */
const UNDECLARED = new Set([2304, 2552, 18004]);
/** Compiler error numbers for values of a wrong type. */
const TYPE_MISMATCHES = new Set([2322, 2345, 2353, 2559, 2739, 2740, 2741, 2820]);
/** The maximum number of characters searched backwards for the start of a call. */
const LONGEST_CALL = 20_000;
/** The maximum length of a server's and a tool's name before the bracket of a call. */
const LONGEST_CALLEE = 300;
/** A property access: `.name`, `?.name` or `["name"]`. */
const ACCESS = String.raw`(?:\??\.\s*([\w$]+)|(?:\?\.)?\[\s*["'\`]([^"'\`\n]+)["'\`]\s*\])`;
const CALLEE = new RegExp(`${ACCESS}?\\s*${ACCESS}$`);
/** The ranges of compiler error numbers for implicit types and for syntax. */
const IMPLICIT = { from: 7_000, to: 8_000 };
const SYNTAX = { from: 1_000, to: 2_000 };

/**
 * Words that could load other modules. In the text for the compiler, `_` replaces their first
 * letter.
 */
const MODULE_WORDS = /(?<!(?<!\.)\.)\b(?:import|export|require|module)\b/g;
/** A letter written as a Unicode escape. */
const ESCAPED_LETTER = /\\u(?=\{?0*[4-7][0-9a-f])/gi;
/** A module word after the replacement. */
const REPLACED_WORD = /\b_(?:mport|xport|equire|odule)\b/;

/**
 * Globals whose types are missing from the compiler's libraries, or in a library that takes too
 * long to load.
 */
const UNTYPED = (
  "AbstractWorkerEventMap AllowSharedBufferSource Buffer BufferSource Cache CacheStorage CustomEvent " +
  "CustomEventInit DOMStringList DedicatedWorkerGlobalScope ErrorEvent ErrorEventInit Lock " +
  "LockManager Location Navigator NavigatorUAData Performance PerformanceEntry PerformanceEntryList " +
  "PerformanceMark PerformanceMarkOptions PerformanceMeasure PerformanceMeasureOptions " +
  "PerformanceObserver PerformanceObserverEntryList PromiseRejectionEvent " +
  "PromiseRejectionEventInit VoidFunction WebAssembly WebSocketStream Window Worker WorkerGlobalScope " +
  "WorkerLocation WorkerNavigator WorkerOptions addEventListener alert caches clearImmediate " +
  "clearInterval clearTimeout close closed confirm dispatchEvent global location name navigator " +
  "onbeforeunload onerror onload onmessage onunhandledrejection onunload performance postMessage " +
  "process prompt queueMicrotask removeEventListener self setImmediate setInterval setTimeout window"
).split(" ");

const GLOBALS = [
  ...UNTYPED.map((name) => `declare const ${name}: any; type ${name} = any;`),
  "declare const args: any;",
  "declare const progress: any;",
  "declare class ToolError extends Error { readonly code: string; readonly hint?: string; " +
  "readonly tool: string; readonly result: any; }",
];

/** The text for the compiler. */
export class CheckedText {
  readonly text: string;
  /** The tools whose types are on each line. */
  readonly #toolsByLine = new Map<number, DeclaredTool>();
  /** The tools by the number in the names of their types. */
  readonly #toolsByNumber: DeclaredTool[] = [];
  readonly #types: string[] = [];
  readonly #callable: CallableServers;
  readonly #body: readonly string[];
  readonly #lines: string[] = [...GLOBALS];

  /** Builds the text. */
  constructor(code: string, callable: CallableServers) {
    this.#callable = callable;
    this.#declareServers(new Words(code));
    const body = code
      .replace(MODULE_WORDS, (word) => `_${word.slice(1)}`)
      .replace(ESCAPED_LETTER, "_u");
    this.#body = body.split("\n");
    this.text = [...this.#lines, "export default async function () {", body, "}"].join("\n");
  }

  /** Returns the problems that are surely errors, or the reason why the code cannot be checked. */
  problemsOf(diagnostics: readonly Diagnostic[]): readonly TypeProblem[] | string {
    const first = this.#lines.length + 1;
    const inCode = diagnostics.filter(({ line }) => line >= first);
    const syntaxError = inCode.find(({ code }) => code >= SYNTAX.from && code < SYNTAX.to);
    if (syntaxError !== undefined) {
      const message = visible(syntaxError.message, LONGEST_MESSAGE);
      return `TypeScript cannot parse code:${syntaxError.line - first + 1}: ${message}`;
    }
    // Reading all errors takes too long, and the answer shows only a few.
    return inCode.values().take(MOST_READ).flatMap((diagnostic) => {
      const isReplaced = REPLACED_WORD.test(diagnostic.message);
      const problem = isReplaced ? undefined : this.#toProblem(diagnostic);
      return problem === undefined ? [] : [{ line: diagnostic.line - first + 1, ...problem }];
    }).take(MOST_PROBLEMS).toArray();
  }

  #declareServers(words: Words): void {
    const { serverNames: names, usedServers } = this.#callable;
    let remaining = LONGEST_TYPES;
    usedServers.forEach(({ name: server, tools }, at) => {
      this.#lines.push(`interface $Server${at} {`);
      // Declarations cost time, so only the tools that the code names are declared.
      const namedTools = tools.filter((tool) => words.has(tool.name));
      for (const tool of namedTools.slice(0, MOST_TOOLS)) {
        const isTyped = remaining > 0;
        const line = isTyped ? this.#declareTool({ server, tool }) : anyTool(tool.name);
        if (isTyped) remaining -= this.#types.at(-1)?.length ?? 0;
        this.#lines.push(line);
      }
      this.#lines.push(namedTools.length > MOST_TOOLS ? "[tool: string]: any; }" : "}");
    });
    this.#toolsByNumber.forEach((tool, at) => this.#toolsByLine.set(this.#lines.length + at, tool));
    this.#lines.push(...this.#types);
    const typed = new Map(usedServers.map(({ name }, at) => [name, `$Server${at}`]));
    const members = names.slice(0, MOST_SERVERS)
      .map((name) => `${keyText(name)}: ${typed.get(name) ?? "any"};`);
    if (names.length > MOST_SERVERS) members.push("[server: string]: any;");
    this.#lines.push(`interface $Mcp { ${members.join(" ")} }`, "declare const mcp: $Mcp;");
  }

  /** Returns a tool and its types on one line. */
  #declareTool(declared: DeclaredTool): string {
    const { server, tool } = declared;
    const { args, output, isOptional } = toolTypes(server, tool, { isLenient: true });
    const number = this.#toolsByNumber.push(declared) - 1;
    this.#types.push(`type $Args${number} = ${args}; type $Output${number} = ${output};`);
    this.#toolsByLine.set(this.#lines.length, declared);
    const [key, promise] = [keyText(tool.name), `Promise<$Output${number}>`];
    // The compiler reports better errors for two signatures than for an optional argument.
    const bare = isOptional ? `${key}(): ${promise}; ` : "";
    return `${bare}${key}(args: $Args${number}): ${promise};`;
  }

  #toProblem(diagnostic: Diagnostic): Omit<TypeProblem, "line"> | undefined {
    const { code, message } = diagnostic;
    if (code >= IMPLICIT.from && code < IMPLICIT.to) return undefined;
    if (UNDECLARED.has(code)) return { message: visible(message, LONGEST_MESSAGE) };
    const [, name = "", type = ""] =
      /^Property '(.+)' does not exist on type '\$(Mcp|Server\d+)'/.exec(message) ?? [];
    if (type !== "") return this.#toMissingProblem(name, type);
    // Only errors about declared types of tools are reported. Other errors may be a matter of
    // style.
    const last = message.split("\n").at(-1)?.trim() ?? "";
    const tool = this.#toolOf(diagnostic);
    const isAboutTools = tool !== undefined || /\$(?:Mcp|Server\d)/.test(message);
    if (!isAboutTools || isUncertain(message)) return undefined;
    const hint = tool && `${tool.server}: ${signatureOf(tool.tool)}`;
    return { message: this.#toReadable(last), ...withoutUndefined({ hint }) };
  }

  /** Finds the tool that an error is about: by type, by line, or by the call at its position. */
  #toolOf({ code, message, line, column, related }: Diagnostic): DeclaredTool | undefined {
    const [, number] = /\$(?:Args|Output)(\d+)/.exec(message) ?? [];
    if (number !== undefined) return this.#toolsByNumber[Number(number)];
    const declared = related.find((relatedLine) => this.#toolsByLine.has(relatedLine));
    if (declared !== undefined) return this.#toolsByLine.get(declared);
    if (!TYPE_MISMATCHES.has(code)) return undefined;
    const index = line - this.#lines.length - 1;
    const lastLine = (this.#body[index] ?? "").slice(0, column);
    const before = [...this.#body.slice(0, index), lastLine].join("\n");
    const [server, name] = findOpenCall(before) ?? [];
    const sameName = this.#toolsByNumber.filter(({ tool }) => tool.name === name);
    return sameName.find((declaredTool) => declaredTool.server === server) ?? sameName[0];
  }

  #toMissingProblem(
    name: string,
    type: string,
  ): Omit<TypeProblem, "line"> | undefined {
    const server = this.#callable.usedServers[Number(/\d+/.exec(type)?.[0] ?? -1)];
    const names = server?.tools.map((tool) => tool.name) ?? this.#callable.serverNames;
    // The tool exists, but the code writes its name with escapes, so it was not declared.
    if (names.includes(name)) return undefined;
    const near = nearName(name, names.slice(0, MOST_NEAR));
    const list = names.slice(0, MOST_NAMED).map((one) => visible(one, 64)).join(", ");
    const more = names.length > MOST_NAMED ? ", …" : "";
    const what = server === undefined
      ? `There is no server ${quoted(name)}`
      : `The server ${quoted(server.name)} has no tool ${quoted(name)}`;
    return {
      message: what,
      hint: near === undefined ? `There is ${list}${more}` : `Did you mean ${quoted(near)}?`,
    };
  }

  #toReadable(message: string): string {
    const text = message.replace(/\$(Args|Output|Server)(\d+)/g, (_, kind: string, at: string) => {
      if (kind === "Server") return this.#callable.usedServers[Number(at)]?.name ?? "";
      const { server = "", tool = undefined } = this.#toolsByNumber[Number(at)] ?? {};
      return `${kind === "Args" ? "arguments" : "output"} of ${server}:${tool?.name}`;
    });
    return visible(text.replaceAll("$Mcp", "mcp"), LONGEST_MESSAGE);
  }
}

interface DeclaredTool {
  readonly server: string;
  readonly tool: ToolDefinition;
}

/** The words of code. They include the names of all servers and tools that the code may use. */
export class Words {
  readonly #code: string;
  readonly #words: ReadonlySet<string>;

  /** Collects the words. */
  constructor(code: string) {
    this.#code = code;
    this.#words = new Set(code.match(/[A-Za-z0-9_$]+/g));
  }

  /** Returns whether a name occurs anywhere in the code. */
  has(name: string): boolean {
    return /^[A-Za-z0-9_$]+$/.test(name) ? this.#words.has(name) : this.#code.includes(name);
  }

  /** Returns the names that follow `mcp` in the code. */
  servers(): ReadonlySet<string> {
    const matches = this.#code.matchAll(
      /\bmcp(?:\??\.([\w$]+)|(?:\?\.)?\[["'`]([^"'`\n]{1,128})["'`])/g,
    );
    return new Set([...matches].map(([, plain, inQuotes]) => plain ?? inQuotes ?? ""));
  }
}

/** Finds the call whose arguments are incomplete at the end of a text: its server and its tool. */
function findOpenCall(text: string): readonly (string | undefined)[] | undefined {
  const from = Math.max(0, text.length - LONGEST_CALL);
  for (let at = text.length - 1, depth = 0; at >= from; at--) {
    const character = text[at] ?? "";
    if (")]}".includes(character)) depth++;
    if (!"([{".includes(character) || depth-- > 0) continue;
    depth = 0;
    const before = text.slice(Math.max(0, at - LONGEST_CALLEE), at).trimEnd();
    if (character === "{" && /(?:=>|\))$/.test(before)) return undefined;
    if (character === "(") {
      return CALLEE.exec(before)?.slice(1).filter((name) => name !== undefined);
    }
  }
  return undefined;
}

/**
 * Returns whether the code may still be correct when it runs: a value is perhaps not undefined, a
 * string is perhaps one of the allowed strings, or a list perhaps has the right length.
 */
function isUncertain(message: string): boolean {
  if (/source may have (?:fewer|more)/.test(message)) return true;
  const pattern = /ype '(.+)' is not assignable to (?:parameter of )?type '(.+)'\.?$/;
  const lines = message.split("\n").map((line) => pattern.exec(line.trim()));
  const [, from = "", to = ""] = lines.at(-1) ?? [];
  if (/^(?:unknown|object|\{\})$/.test(from)) return true;
  if (/^(?:undefined|null)$/.test(from)) return lines.some((one) => one?.[1]?.includes(" | "));
  const literal = { string: /^(?:"|.*\| ")/, number: /^(?:-?\d|.*\| -?\d)/, boolean: /true|false/ };
  return Object.entries(literal).some(([plain, literals]) => from === plain && literals.test(to));
}
