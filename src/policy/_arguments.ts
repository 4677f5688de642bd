/**
 * The arguments of a call in the forms that rules match. An allow rule matches only arguments whose
 * meaning is certain; a deny or ask rule also matches arguments that may have the meaning it names.
 *
 * @module
 */

import {
  decimalText,
  isExactNumber,
  withEqualNumbers,
  withRoundedNumbers,
} from "../core/exact_number.ts";
import { foldCase, type GlobSet } from "../core/glob.ts";
import { canonical, isObject, type Json, type JsonObject } from "../core/json.ts";
import { type PathRules, PATHS, POSIX } from "../core/paths.ts";
import { isPathName } from "../core/pattern.ts";
import { isSteering } from "../core/steering.ts";
import { type PathVariables, readingsOf } from "./_path_readings.ts";

/** One argument, in every form that a rule may use for it. */
interface ArgumentForms {
  /** The forms that an allow rule must all match; missing if no allow rule may match. */
  readonly clear?: readonly string[];
  /** The forms of which a deny or ask rule must match one; missing if each such rule matches. */
  readonly any?: readonly string[];
  /** Whether the argument is a path, which some file systems compare without case. */
  readonly isPath?: boolean;
  /** Whether the server may read a form as a pattern for names of files. */
  readonly isPattern?: boolean;
  /** Whether the argument may have a meaning that is in none of the forms. */
  readonly isOpen?: boolean;
  /** Whether the forms are names of variables. */
  readonly isEnvironment?: boolean;
}

/** The file system calls that resolve paths. */
export interface PathSystem {
  readonly rules: PathRules;
  /** Returns the real path of an existing file. Throws if the file does not exist. */
  realPath(path: string): string;
  /** Returns whether a path is a link. */
  isLink(path: string): boolean;
}

/** The system that PML runs on. */
const OWN_SYSTEM: PathSystem = {
  rules: PATHS,
  realPath: (path) => Deno.realPathSync(path),
  isLink,
};

/** The globs of a list that may match an argument; `every` if this cannot be decided. */
export type Covering = ReadonlySet<string> | "every";

const UNCLEAR: ArgumentForms = {};
/** A longer text is neither a path nor a command that a user covers with a glob. */
const TEXT_MAX = 4_096;
const ASCII = /^[\0-\x7f]*$/;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
const SHELL = /[;&|<>$`(){}[\]*?!#~"'\\%^]/;
/** Paths that a tool may read as another place: a home folder or a URL. */
const ELSEWHERE = /^~|^[a-z][a-z\d+.-]+:/i;

/**
 * The limit of steps for matching the globs of one call. One step compares one character at one
 * position. A call that needs more counts as undecided, so that it cannot block other calls.
 */
const STEPS = 600_000;
/** How many of these steps one path lookup counts as. */
const LOOK_STEPS = 20_000;
/** The names under which tools that run programs take environment variables. */
const ENVIRONMENT = /^(?:extra_?)?env(?:ironment)?(?:_?var(?:iable)?s)?$/i;
/** Variables that PML sets itself. It ignores values for them. */
const SET = ["PATH", "HOME"];

/** The arguments of one call. Each is examined once, and only if a rule needs it. */
export class SeenArguments {
  readonly #args: JsonObject;
  readonly #workspace: string | undefined;
  readonly #variables: PathVariables | undefined;
  readonly #system: PathSystem;
  readonly #steps = { left: STEPS };
  readonly #seen = new Map<string, ArgumentForms>();
  #names: ReadonlyMap<string, readonly string[]> | undefined;
  #canonical: string | undefined | null = null;
  #rounded: string | undefined | null = null;

  /** Takes the arguments as the client sent them. */
  constructor(args: JsonObject, { workspace, variables, system = OWN_SYSTEM }: {
    /** The folder that paths are relative to. Without it, the meaning of no path is certain. */
    readonly workspace?: string | undefined;
    /** The variables of a server that may expand paths; without them, paths are literal. */
    readonly variables?: PathVariables | undefined;
    readonly system?: PathSystem | undefined;
  }) {
    this.#args = args;
    this.#workspace = workspace;
    this.#variables = variables;
    this.#system = system;
  }

  /** The text that is the same for equal arguments; undefined if they are not valid JSON. */
  get canonical(): string | undefined {
    if (this.#canonical === null) this.#canonical = canonicalOf(withEqualNumbers(this.#args));
    return this.#canonical;
  }

  /** The same text with rounded numbers; undefined if a server may round one to infinity. */
  get rounded(): string | undefined {
    if (this.#rounded === null) {
      const near = withRoundedNumbers(this.#args);
      this.#rounded = near === this.#args ? this.canonical : canonicalOf(near);
    }
    return this.#rounded;
  }

  /** The names of the arguments that set environment variables for a program. */
  get environments(): readonly string[] {
    return Object.keys(this.#args).filter((name) => {
      if (!ENVIRONMENT.test(name)) return false;
      const value = this.#args[name] ?? "";
      return typeof value === "object" ? Object.keys(value).length > 0 : value !== "";
    });
  }

  /** The variables in `env` that change how programs run, except those that PML sets itself. */
  get steering(): readonly string[] {
    const { env } = this.#args;
    const names = isObject(env) ? Object.keys(env) : [];
    return names.filter((name) => isSteering(name) && !SET.includes(name));
  }

  /**
   * Returns a function that checks whether the globs of one rule certainly match an argument. Each
   * glob must match every form of the argument. If the argument sets environment variables, each
   * name must match one glob; a variable that changes how programs run must be named exactly.
   */
  surely(name: string, globs: GlobSet): (wanted: readonly string[]) => boolean {
    const { clear, isEnvironment = false, isPath = false } = this.#look(name);
    const { rules } = this.#system;
    const [own, spelled] = isPath && rules !== POSIX
      ? [globs.foldedBy(rules.fold), rules.fold]
      : [globs, POSIX.fold];
    const forms = clear?.map((form) =>
      isEnvironment && isSteering(form)
        ? new Set([form])
        : own.covering(spelled(form), { steps: this.#steps })
    );
    return (wanted) =>
      forms?.every((found) =>
        isEnvironment
          ? wanted.some((glob) => found?.has(glob))
          : wanted.every((glob) => found?.has(glob))
      ) ?? false;
  }

  /** Returns the globs that match a form of an argument, or may match it. */
  perhaps(name: string, globs: GlobSet): Covering {
    const { any, isPath: within = false, isPattern = false } = this.#look(name);
    if (any === undefined) return "every";
    const steps = this.#steps;
    const values = new Set<string>();
    for (const form of any) {
      // For ASCII letters only, the folded globs match everything that the globs themselves match.
      const plain = within && ASCII.test(form) ? values : globs.covering(form, { steps, within });
      const folded = within
        ? globs.foldedBy(foldCase).covering(foldCase(form), { steps, within })
        : values;
      if (plain === undefined || folded === undefined) return "every";
      const matched = isPattern && /[*?[]/.test(form)
        ? globs.foldedBy(foldCase).covering(foldCase(form), { steps, within, isPattern })
        : values;
      if (matched === undefined) return "every";
      for (const glob of [...plain, ...folded, ...matched]) values.add(glob);
    }
    return values;
  }

  /** Returns whether a path may mean something that cannot be decided. */
  isOpen(name: string): boolean {
    return this.#look(name).isOpen === true;
  }

  #look(name: string): ArgumentForms {
    let seen = this.#seen.get(name);
    if (seen === undefined) {
      // Inherited properties are functions or objects, which count as missing.
      const value = this.#args[name];
      seen = this.#isTwice(name)
        ? UNCLEAR
        : ENVIRONMENT.test(name) && isObject(value)
        ? lookAtNames(Object.keys(value))
        : isExactNumber(value)
        ? lookAtNumber(value.rawJSON)
        : this.#lookAtText(name, textOf(value));
      this.#seen.set(name, seen);
    }
    return seen;
  }

  /** Returns whether a server may read another argument as this one. */
  #isTwice(name: string): boolean {
    this.#names ??= Map.groupBy(Object.keys(this.#args), sameName);
    return this.#names.get(sameName(name))?.some((other) => other !== name) === true;
  }

  #lookAtText(name: string, text: string | undefined): ArgumentForms {
    if (text === undefined || text.length > TEXT_MAX || CONTROL.test(text)) return UNCLEAR;
    if (name === "command" && SHELL.test(text)) return UNCLEAR;
    // If one text has several variables and values, a glob for one would also match the others.
    if (ENVIRONMENT.test(name) && text.includes("=")) return UNCLEAR;
    if (!isPathName(name)) return { clear: [text], any: [text] };
    return this.#workspace === undefined ? UNCLEAR : this.#lookAtPaths(text, this.#workspace);
  }

  /** Returns the forms of every path that the server may expand a text to. */
  #lookAtPaths(text: string, workspace: string): ArgumentForms {
    const { rules } = this.#system;
    const { texts, isCertain } = this.#variables === undefined
      ? { texts: [text], isCertain: true }
      : readingsOf(text, this.#variables, rules);
    const places: ArgumentForms[] = [];
    for (const each of texts) {
      if (CONTROL.test(each) || ELSEWHERE.test(each)) return UNCLEAR;
      this.#steps.left -= LOOK_STEPS;
      const place = this.#steps.left < 0 ? UNCLEAR : lookAtPath(each, workspace, this.#system);
      if (place.any === undefined) return UNCLEAR;
      places.push(place);
    }
    const isInside = isCertain && places.every(({ clear }) => clear !== undefined);
    return {
      ...isInside && { clear: [...new Set(places.flatMap(({ clear = [] }) => clear))] },
      any: [...new Set(places.flatMap(({ any = [] }) => any))],
      isPath: true,
      isPattern: this.#variables !== undefined,
      isOpen: !isCertain,
    };
  }
}

/**
 * Returns the name of an argument as servers compare it: Go's `encoding/json` ignores the case of
 * letters, and other libraries take `filePath` for `file_path`.
 */
function sameName(name: string): string {
  return foldCase(name.normalize("NFKC")).replace(/[\s_-]/g, "");
}

function canonicalOf(args: JsonObject): string | undefined {
  try {
    return canonical(args);
  } catch {
    return undefined; // the rules treat it as uncertain
  }
}

function textOf(value: Json | undefined): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return JSON.stringify(value);
  return typeof value === "string" ? value : undefined;
}

/**
 * Returns the forms of a number that keeps its text. Many servers round it, so that a deny rule for
 * the rounded number matches, too.
 */
function lookAtNumber(text: string): ArgumentForms {
  if (text.length > TEXT_MAX) return UNCLEAR;
  const decimal = decimalText(text);
  const near = Number(text);
  const digits = Number.isInteger(near) ? BigInt(near).toString() : decimal;
  return { clear: [decimal], any: [...new Set([decimal, text, String(near), digits])] };
}

function lookAtNames(names: readonly string[]): ArgumentForms {
  const isClear = names.length > 0 && names.every((name) => /^[A-Za-z_]\w{0,127}$/.test(name));
  return isClear ? { clear: names, isEnvironment: true } : UNCLEAR;
}

/** Returns whether Windows may open another path than the text of a path shows. */
function isUnclear(text: string, rules: PathRules): boolean {
  const plain = rules.whyOdd(text) === undefined ? rules.plain(text) : undefined;
  if (plain === undefined) return true;
  const names = rules.namesOf(plain).filter((name, at) =>
    name !== "." && name !== ".." && (at > 0 || !/^[A-Z]:$/.test(name))
  );
  return names.some((name) => rules.whyTrick(name) !== undefined);
}

/**
 * Returns a path in three forms: as written, its real path, and the real path of the text before
 * `..` is resolved.
 */
function lookAtPath(text: string, workspace: string, system: PathSystem): ArgumentForms {
  const { rules } = system;
  const { isAbsolute, relative, resolve, sep } = rules.node();
  if (rules !== POSIX && isUnclear(text, rules)) return UNCLEAR;
  const whole = isAbsolute(text) ? text : `${workspace}${sep}${text}`;
  // Windows takes the drive of the folder for a path without one, and resolves `..` by the text.
  const raw = rules === POSIX ? whole : resolve(workspace, text);
  const places = [resolve(raw), realPathOf(resolve(raw), system), realPathOf(raw, system)];
  if (places.includes(undefined)) return UNCLEAR;
  const absolute = places.filter((place) => place !== undefined);
  const ways = absolute.map((place) => relative(workspace, place) || ".");
  const inside = ways.every((way) => way.split(sep)[0] !== ".." && !isAbsolute(way));
  const forms = [text, ...ways, ...absolute].map((form) => form.replaceAll(sep, "/"));
  const clear = [...new Set(ways.map((way) => way.replaceAll(sep, "/")))];
  // A rule for the files in a folder also covers the folder: a client that may not change `x/**`
  // may not move `x` away.
  return { ...(inside ? { clear } : {}), any: [...new Set(forms)], isPath: true };
}

/**
 * Returns the real path of the existing part of a path, with the rest unchanged; undefined if it is
 * unknown.
 */
function realPathOf(path: string, system: PathSystem): string | undefined {
  const lookUp = (path: string) => lookedUp(path, system);
  const whole = lookUp(path);
  if (whole !== null) return whole;
  const { join, sep } = system.rules.node();
  const parts = path.split(sep);
  const head = (count: number) => parts.slice(0, count).join(sep);
  // All folders above an existing path exist, so a binary search finds the existing part: ten steps
  // for a thousand folders.
  let [found, missing] = [1, parts.length];
  while (missing - found > 1) {
    const middle = (found + missing) >> 1;
    if (lookUp(head(middle) + sep) === null) missing = middle;
    else found = middle;
  }
  const real = system.isLink(head(missing)) ? undefined : lookUp(head(found) + sep);
  return real ? join(real, ...parts.slice(found)) : undefined;
}

/**
 * Returns the real path of an existing path; null if it does not exist, undefined if this is
 * unknown.
 */
function lookedUp(path: string, system: PathSystem): string | null | undefined {
  try {
    return system.realPath(path);
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? null : undefined;
  }
}

/**
 * Returns whether a path is a link. A link without a target counts, because the target may be
 * created later.
 */
function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false; // nothing exists there
  }
}
