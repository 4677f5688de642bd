/**
 * Reads one file of a configuration: its bytes once, its text with a parser, its values with a
 * schema.
 *
 * @module
 */

import { isUtf8 } from "node:buffer";
import { sha256Async } from "../core/hash.ts";
import { placeAt } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { RULES_FILE_MAX } from "../core/pattern.ts";
import { readRegular, whyUnread } from "../io/regular_file.ts";
import type { ConfigProblem, Report } from "./_problem.ts";
import type { ReportAt, Syntax } from "./_syntax.ts";
import { type Path, validateValue, type ValueSchema } from "../core/value_schema.ts";
import { pathExists } from "./workspace.ts";

/** A file that was read and is valid so far. */
export interface ConfigDocument<T> {
  readonly realPath: string;
  /** The hash of the exact bytes: `sha256-` and hexadecimal digits. */
  readonly hash: string;
  readonly content: T;
  /** Returns the value at a path with numbers that keep their text. */
  readonly exactAt: Syntax["exactAt"];
  /** Reports that the key at a path is wrong. */
  readonly problem: (path: Path, details: Pick<ConfigProblem, "found" | "wanted" | "code">) => void;
  /** Reports something that is not an error but that the user should know. */
  readonly warn: (message: string) => void;
  /** Returns whether a problem of this file was reported so far. */
  readonly hasProblems: () => boolean;
}

/** Parses the text of a file. Reports its errors. */
export type ParseText = (
  text: string,
  note: ReportAt,
) => Promise<Syntax | undefined> | Syntax | undefined;

const MOST_PROBLEMS = 100;

/** Reads files of one syntax. */
export class DocumentReader {
  readonly #parse: ParseText;
  readonly #report: Report;

  /** Takes the report that gets problems and warnings. */
  constructor(parse: ParseText, report: Report) {
    this.#parse = parse;
    this.#report = report;
  }

  /**
   * Reads a file. Returns undefined if the file is missing or invalid. Reports each of its problems.
   */
  async read<T>(path: string, schema: ValueSchema<T>): Promise<ConfigDocument<T> | undefined> {
    try {
      const document = await this.#read(path, schema);
      return document?.hasProblems() ? undefined : document;
    } catch (error) {
      // After any failure the file is invalid, and nothing may run.
      this.#report.problems.push({
        ...{ file: path, key: "", wanted: "a text file of at most 1 MB" },
        found: `an unreadable file (${whyUnread(error)})`,
      });
      return undefined;
    }
  }

  async #read<T>(path: string, schema: ValueSchema<T>): Promise<ConfigDocument<T> | undefined> {
    if (!pathExists(path)) return undefined;
    const report = this.#report;
    const realPath = await Deno.realPath(path);
    const { bytes } = readRegular(realPath, { most: RULES_FILE_MAX });
    const text = new TextDecoder().decode(bytes);
    const note = reporterFor(text, { file: path, problems: report.problems });
    if (!isUtf8(bytes)) {
      const found = "text that is not UTF-8";
      note(text.indexOf("\uFFFD"), { found, wanted: "UTF-8 text" });
      return undefined;
    }
    const syntax = await this.#parse(text, note);
    if (syntax === undefined) return undefined;
    const { value, offsetOf, exactAt } = syntax;
    const problem = (keys: Path, details: Omit<Parameters<ReportAt>[1], "path">) => {
      if (report.problems.length >= MOST_PROBLEMS) return;
      // A missing key is reported at the object that should contain it.
      const offset = offsetOf(keys) ?? offsetOf(keys.slice(0, -1)) ?? 0;
      note(offset, { path: keys, ...details });
    };
    const data = validateValue(value, { schema, problem });
    if (data === undefined) return undefined;
    return {
      realPath,
      hash: `sha256-${await sha256Async(bytes)}`,
      content: withTypes(data) as T, // it adds only types
      exactAt,
      problem,
      warn: (message) => report.warnings.push(`${quoted(path, 200)}: ${message}`),
      hasProblems: () => report.problems.some(({ file }) => file === path),
    };
  }
}

/** Adds missing types to a client's servers, by their other keys: clients may omit the type. */
export function withTypes(value: unknown): unknown {
  if (!isObject(value) || !isObject(value.mcpServers)) return value;
  const servers = Object.entries(value.mcpServers)
    .map(([name, server]) => [name, withType(server)]);
  return { ...value, mcpServers: Object.fromEntries(servers) };
}

/** Adds the type of a server if the other keys show it. */
export function withType(value: unknown): unknown {
  return isObject(value) ? { type: "url" in value ? "http" : "stdio", ...value } : value;
}

function reporterFor(
  text: string,
  from: { readonly file: string; readonly problems: ConfigProblem[] },
): ReportAt {
  const { file, problems } = from;
  return (offset, { path = [], ...details }) =>
    void problems.push({ file, ...placeAt(text, offset), key: visible(keyOf(path)), ...details });
}

function keyOf(path: Path): string {
  return path.reduce<string>((key, step) => {
    if (typeof step === "number") return `${key}[${step}]`;
    return key === "" ? String(step) : `${key}.${String(step)}`;
  }, "");
}
