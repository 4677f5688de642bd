/**
 * Reads one file of a configuration: its bytes once, its text with a parser, its values with a
 * schema.
 *
 * @module
 */

import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { sha256 } from "../core/hash.ts";
import { quoted, visible } from "../core/json.ts";
import { RULES_FILE_MAX } from "../core/pattern.ts";
import { readRegular, whyUnread } from "../io/regular_file.ts";
import type { Problem, Report } from "./_problem.ts";
import type { Zod } from "./_schema.ts";
import type { Note, Path, Syntax } from "./_syntax.ts";
import { exists } from "./workspace.ts";

/** A file that was read and is valid so far. */
export interface ConfigDocument<T> {
  readonly realPath: string;
  /** The hash of the exact bytes: `sha256-` and hexadecimal digits. */
  readonly hash: string;
  readonly said: T;
  /** Reports that the key at a path is wrong. */
  readonly problem: (path: Path, said: Pick<Problem, "found" | "wanted" | "code">) => void;
  /** Reports something that is not an error but that the person should know. */
  readonly warn: (said: string) => void;
  /** Returns whether something wrong was reported so far. */
  readonly isBad: () => boolean;
}

interface DocumentOptions<T> {
  readonly report: Report;
  readonly parse: (text: string, note: Note) => Promise<Syntax | undefined>;
  /** Returns the schema. The schema library is loaded only if there is a file. */
  readonly schema: (zod: Zod) => Promise<z.ZodType<T>>;
}

const MOST_PROBLEMS = 100;

/**
 * Reads a file. Returns undefined if it is missing, or if something is wrong with it; the report
 * says what.
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
  if (!exists(path)) return undefined;
  const { report, parse, schema } = reading;
  const realPath = await Deno.realPath(path);
  const { bytes } = readRegular(realPath, { most: RULES_FILE_MAX });
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const note = noteIn(text, { file: path, problems: report.problems });
  if (!isUtf8(bytes)) {
    const found = "no UTF-8 text";
    note(text.indexOf("\uFFFD"), { found, wanted: "UTF-8 text" });
    return undefined;
  }
  const syntax = await parse(text, note);
  if (syntax === undefined) return undefined;
  const { value, offsetOf } = syntax;
  const problem = (keys: Path, said: Omit<Parameters<Note>[1], "path">) => {
    if (report.problems.length >= MOST_PROBLEMS) return;
    // A missing key is reported at the object that should contain it.
    const offset = offsetOf(keys) ?? offsetOf(keys.slice(0, -1)) ?? 0;
    note(offset, { path: keys, ...said });
  };
  const { z } = await import("zod");
  const { data, error } = (await schema(z)).safeParse(value, { error: wantedBy });
  for (const issue of error?.issues ?? []) {
    for (const path of pathsOf(issue)) {
      const unknown = issue.code === "unrecognized_keys" || issue.code === "invalid_key";
      const found = unknown ? "an unknown key" : described(value, path);
      problem(path, { found, wanted: issue.message });
    }
  }
  if (data === undefined) return undefined;
  return {
    realPath,
    hash: `sha256-${sha256(bytes)}`,
    said: data,
    problem,
    warn: (said) => report.warnings.push(`${quoted(path, 200)}: ${said}`),
    isBad: () => report.problems.some(({ file }) => file === path),
  };
}

function noteIn(text: string, from: { readonly file: string; readonly problems: Problem[] }): Note {
  const { file, problems } = from;
  return (offset, { path = [], ...said }) => {
    const before = text.slice(0, offset).split("\n");
    const place = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
    problems.push({ file, ...place, key: visible(keyOf(path)), ...said });
  };
}

/** Returns what a schema requires, for issues that do not say so themselves. */
export function wantedBy(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "invalid_key") return issue.issues[0]?.message;
  const choice = issue.code === "invalid_value" ? issue.values : issue.options;
  return Array.isArray(choice) ? `one of ${choice.join(", ")}` : "an object";
}

/** Returns the paths of an issue. An unknown key has its own path, not that of its object. */
function pathsOf(issue: z.core.$ZodIssue): readonly Path[] {
  // No key in a text is a symbol.
  const path = issue.path as Path;
  return issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...path, key]) : [path];
}

/** Describes the value at a path. Values that may be secret are not repeated. */
function described(whole: unknown, path: Path): string {
  const value: unknown = path.reduce((part, key) => Object(part)[key], whole);
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  // A whole text may be another file, a URL may have a password before its "@" and a key after its
  // "?", and keys have lines.
  const secret = path.length === 0 ||
    ["oauth", "env", "headers", "arguments"].some((key) => path.includes(key)) ||
    (/[@?\n]/.test(String(value)) && !path.includes("permissions"));
  if (secret) return `a ${typeof value}`;
  return `${typeof value === "string" ? quoted(value) : value} (a ${typeof value})`;
}

function keyOf(path: Path): string {
  return path.reduce<string>((key, step) => {
    if (typeof step === "number") return `${key}[${step}]`;
    return key === "" ? String(step) : `${key}.${String(step)}`;
  }, "");
}
