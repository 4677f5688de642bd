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
import type { Note, Syntax } from "./_syntax.ts";
import { type Path, validated, type ValueSchema } from "../core/wanted.ts";
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
  /** Returns whether something wrong was reported so far. */
  readonly isBad: () => boolean;
}

/** How a file is read. */
export interface DocumentOptions<T> {
  readonly report: Report;
  readonly parse: (text: string, note: Note) => Promise<Syntax | undefined> | Syntax | undefined;
  readonly schema: ValueSchema<T>;
}

const MOST_PROBLEMS = 100;

/**
 * Reads a file. Returns undefined if it is missing, or if it contains an error, which it
 * reports.
 */
export async function readDocument<T>(
  path: string,
  reading: DocumentOptions<T>,
): Promise<ConfigDocument<T> | undefined> {
  const { problems } = reading.report;
  try {
    const document = await read(path, reading);
    return document?.isBad() ? undefined : document;
  } catch (error) {
    // After any failure the file is invalid, and nothing may run.
    const found = `an unreadable file (${whyUnread(error)})`;
    problems.push({ file: path, key: "", found, wanted: "a text file of at most 1 MB" });
    return undefined;
  }
}

async function read<T>(
  path: string,
  reading: DocumentOptions<T>,
): Promise<ConfigDocument<T> | undefined> {
  if (!pathExists(path)) return undefined;
  const { report, parse, schema } = reading;
  const realPath = await Deno.realPath(path);
  const { bytes } = readRegular(realPath, { most: RULES_FILE_MAX });
  const text = new TextDecoder().decode(bytes);
  const note = noteIn(text, { file: path, problems: report.problems });
  if (!isUtf8(bytes)) {
    const found = "no UTF-8 text";
    note(text.indexOf("\uFFFD"), { found, wanted: "UTF-8 text" });
    return undefined;
  }
  const syntax = await parse(text, note);
  if (syntax === undefined) return undefined;
  const { value, offsetOf, exactAt } = syntax;
  const problem = (keys: Path, details: Omit<Parameters<Note>[1], "path">) => {
    if (report.problems.length >= MOST_PROBLEMS) return;
    // A missing key is reported at the object that should contain it.
    const offset = offsetOf(keys) ?? offsetOf(keys.slice(0, -1)) ?? 0;
    note(offset, { path: keys, ...details });
  };
  const data = validated(value, { schema, problem });
  if (data === undefined) return undefined;
  return {
    realPath,
    hash: `sha256-${await sha256Async(bytes)}`,
    content: withTypes(data) as T, // types are all that it adds
    exactAt,
    problem,
    warn: (message) => report.warnings.push(`${quoted(path, 200)}: ${message}`),
    isBad: () => report.problems.some(({ file }) => file === path),
  };
}

/** Adds the types of a client's servers where the other keys show them: clients may omit them. */
export function withTypes(value: unknown): unknown {
  if (!isObject(value) || !isObject(value.mcpServers)) return value;
  const servers = Object.entries(value.mcpServers).map(([name, one]) => [name, withType(one)]);
  return { ...value, mcpServers: Object.fromEntries(servers) };
}

/** Adds the type of a server if the other keys show it. */
export function withType(value: unknown): unknown {
  return isObject(value) ? { type: "url" in value ? "http" : "stdio", ...value } : value;
}

function noteIn(
  text: string,
  from: { readonly file: string; readonly problems: ConfigProblem[] },
): Note {
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
