/**
 * Checks a file of a configuration with its schema, and says what is wrong with it.
 *
 * @module
 */

import { dirname } from "node:path";
import { type z, z as zod } from "zod";
import { canonical, type Json, quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import { keepFile, prune } from "../io/kept.ts";
import { type Checking, withTypes } from "./_document.ts";
import type { Path } from "./_syntax.ts";

/** How many marks of each kind of file are kept. */
const MOST_MARKS = 32;

/**
 * Returns what the schema makes of a value; undefined if something is wrong, which is reported.
 * Leaves the mark of a valid file, so that it is not checked again.
 */
export async function validated<T>(
  value: unknown,
  { schema, problem }: Checking<T>,
  mark?: string,
): Promise<T | undefined> {
  const { data, error } = (await schema(zod)).safeParse(value, { error: wantedBy });
  for (const issue of error?.issues ?? []) {
    for (const path of pathsOf(issue)) {
      const unknown = issue.code === "unrecognized_keys" || issue.code === "invalid_key";
      const found = unknown ? "an unknown key" : described(value, path);
      // The message lists the keys that there are, behind "one of".
      const near = issue.code === "unrecognized_keys" &&
        nearName(`${path.at(-1)}`, issue.message.slice(7).split(", "));
      problem(path, { found, wanted: near ? quoted(near) : issue.message });
    }
  }
  if (mark !== undefined && data !== undefined) leave(mark, isSame(data, withTypes(value)));
  return data;
}

function isSame(made: unknown, said: unknown): boolean {
  try {
    return canonical(made as Json) === canonical(said as Json);
  } catch {
    return false; // it is no JSON, as YAML can say it
  }
}

function leave(mark: string, isPlain: boolean): void {
  if (!isPlain) return;
  try {
    keepFile(mark, "");
    prune(dirname(mark), { like: mark, most: MOST_MARKS });
  } catch {
    // The file is checked at each start then.
  }
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
