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
import { canonicalJson, isObject, type Json, type JsonObject } from "../core/json.ts";
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
  readonly isUndecidable?: boolean;
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
/** The maximum length of a text that is compared. A longer text is hardly a path or a command. */
const TEXT_MAX = 4_096;
const ASCII = /^[\0-\x7f]*$/;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
const SHELL = /[;&|<>$`(){}[\]*?!#~"'\\%^]/;
/** Texts that a tool may not read as a path in the workspace: in a home folder, or a URL. */
const ELSEWHERE = /^~|^[a-z][a-z\d+.-]+:/i;

/**
 * The limit of steps for matching the globs of one call. One step compares one character at one
 * position. A call that needs more counts as undecided, so that it cannot block other calls.
 */
const STEPS = 600_000;
/** The number of steps that the lookup of one path counts as. */
const LOOKUP_STEPS = 20_000;
/** The names under which tools that run programs take environment variables. */
const ENVIRONMENT = /^(?:extra_?)?env(?:ironment)?(?:_?var(?:iable)?s)?$/i;
/** Variables that PML sets itself. It ignores values for them. */
const SET_BY_PML = ["PATH", "HOME"];

/** The arguments of one call. Each is examined once, and only if a rule needs it. */
export class MatchableArguments {
  readonly #args: JsonObject;
  readonly #workspace: string | undefined;
  readonly #variables: PathVariables | undefined;
  readonly #system: PathSystem;
  readonly #base: string | undefined;
  readonly #steps = { remaining: STEPS };
  readonly #seen = new Map<string, ArgumentForms>();
  #names: ReadonlyMap<string, readonly string[]> | undefined;
  #canonical: string | undefined | null = null;
  #rounded: string | undefined | null = null;

  /** Takes the arguments as the client sent them. */
  constructor(args: JsonObject, { workspace, variables, base, system = OWN_SYSTEM }: {
    /** The folder that paths are relative to. Without it, the meaning of no path is certain. */
    readonly workspace?: string | undefined;
    /** The variables of a server that may expand paths; without them, paths are literal. */
    readonly variables?: PathVariables | undefined;
    /**
     * The name of the argument with the folder where the other paths start, if the tool has one.
     */
    readonly base?: string | undefined;
    readonly system?: PathSystem | undefined;
  }) {
    this.#args = args;
    this.#workspace = workspace;
    this.#variables = variables;
    this.#system = system;
    this.#base = base;
  }

  /** The text that is the same for equal arguments; undefined if they are not valid JSON. */
  get canonical(): string | undefined {
    if (this.#canonical === null) this.#canonical = canonicalOf(withEqualNumbers(this.#args));
    return this.#canonical;
  }

  /** The same text with rounded numbers; undefined if a server may round a number to infinity. */
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
    return names.filter((name) => isSteering(name) && !SET_BY_PML.includes(name));
  }

  /**
   * Returns a function that checks whether the globs of one rule certainly match an argument. Each
   * glob must match every form of the argument. If the argument sets environment variables, each
   * name must match one glob; a variable that changes how programs run must be named exactly.
   */
  certainMatcher(name: string, globs: GlobSet): (wanted: readonly string[]) => boolean {
    const { clear, isEnvironment = false, isPath = false } = this.#formsOf(name);
    const { rules } = this.#system;
    const [ownGlobs, fold] = isPath && rules !== POSIX
      ? [globs.foldedBy(rules.fold), rules.fold]
      : [globs, POSIX.fold];
    const forms = clear?.map((form) =>
      isEnvironment && isSteering(form)
        ? new Set([form])
        : ownGlobs.findMatches(fold(form), { steps: this.#steps })
    );
    return (ruleGlobs) =>
      forms?.every((found) =>
        isEnvironment
          ? ruleGlobs.some((glob) => found?.has(glob))
          : ruleGlobs.every((glob) => found?.has(glob))
      ) ?? false;
  }

  /** Returns the globs that match a form of an argument, or may match it. */
  possibleGlobs(name: string, globs: GlobSet): Covering {
    const { any, isPath: within = false, isPattern = false } = this.#formsOf(name);
    if (any === undefined) return "every";
    const steps = this.#steps;
    const values = new Set<string>();
    for (const form of any) {
      // If the path is ASCII, the folded globs below match everything that these globs match.
      const plain = within && ASCII.test(form)
        ? values
        : globs.findMatches(form, { steps, within });
      const folded = within
        ? globs.foldedBy(foldCase).findMatches(foldCase(form), { steps, within })
        : values;
      if (plain === undefined || folded === undefined) return "every";
      const matched = isPattern && /[*?[]/.test(form)
        ? globs.foldedBy(foldCase).findMatches(foldCase(form), { steps, within, isPattern })
        : values;
      if (matched === undefined) return "every";
      for (const glob of [...plain, ...folded, ...matched]) values.add(glob);
    }
    return values;
  }

  /** Returns whether a path may mean something that cannot be decided. */
  isUndecidable(name: string): boolean {
    return this.#formsOf(name).isUndecidable === true;
  }

  #formsOf(name: string): ArgumentForms {
    let seen = this.#seen.get(name);
    if (seen === undefined) {
      // Inherited properties are functions or objects, which count as missing.
      const value = this.#args[name];
      seen = this.#isAmbiguous(name)
        ? UNCLEAR
        : ENVIRONMENT.test(name) && isObject(value)
        ? formsOfNames(Object.keys(value))
        : Array.isArray(value)
        ? this.#formsOfList(name, value)
        : isExactNumber(value)
        ? formsOfNumber(value.rawJSON)
        : this.#formsOfText(name, textOf(value));
      this.#seen.set(name, seen);
    }
    return seen;
  }

  /** Returns whether a server may read another argument as this one. */
  #isAmbiguous(name: string): boolean {
    this.#names ??= Map.groupBy(Object.keys(this.#args), comparableName);
    return this.#names.get(comparableName(name))?.some((other) => other !== name) === true;
  }

  /**
   * Returns the forms of a list of paths. An allow rule must match each path; a deny or ask rule
   * matches every list. No allow rule matches any other list, or a list for a server that may
   * expand paths.
   */
  #formsOfList(name: string, list: readonly Json[]): ArgumentForms {
    // guard: listed-paths
    if (list.length === 0 || !isPathName(name) || this.#variables !== undefined) return UNCLEAR;
    const clear: string[] = [];
    for (const text of list) {
      const place = typeof text === "string" ? this.#formsOfText(name, text) : UNCLEAR;
      if (place.clear === undefined) return UNCLEAR;
      clear.push(...place.clear);
    }
    return { clear: [...new Set(clear)], isPath: true };
  }

  /** Returns whether a path may start at another folder than the workspace. */
  #isMoved(name: string): boolean {
    if (this.#base === undefined || !/paths?$/i.test(name)) return false;
    const folder = this.#args[this.#base];
    return folder !== undefined && folder !== ".";
  }

  #formsOfText(name: string, text: string | undefined): ArgumentForms {
    if (text === undefined || text.length > TEXT_MAX || CONTROL.test(text)) return UNCLEAR;
    if (name === "command" && SHELL.test(text)) return UNCLEAR;
    // If one text has several variables and values, a glob for one would also match the others.
    if (ENVIRONMENT.test(name) && text.includes("=")) return UNCLEAR;
    if (!isPathName(name)) return { clear: [text], any: [text] };
    // guard: moved-paths
    if (this.#workspace === undefined || this.#isMoved(name)) return UNCLEAR;
    return this.#formsOfPaths(text, this.#workspace);
  }

  /** Returns the forms of every path that the server may expand a text to. */
  #formsOfPaths(text: string, workspace: string): ArgumentForms {
    const { rules } = this.#system;
    const { texts, isCertain } = this.#variables === undefined
      ? { texts: [text], isCertain: true }
      : readingsOf(text, this.#variables, rules);
    const places: ArgumentForms[] = [];
    for (const each of texts) {
      if (CONTROL.test(each) || ELSEWHERE.test(each)) return UNCLEAR;
      this.#steps.remaining -= LOOKUP_STEPS;
      const place = this.#steps.remaining < 0
        ? UNCLEAR
        : formsOfPath(each, workspace, this.#system);
      if (place.any === undefined) return UNCLEAR;
      places.push(place);
    }
    const isInside = isCertain && places.every(({ clear }) => clear !== undefined);
    return {
      ...isInside && { clear: [...new Set(places.flatMap(({ clear = [] }) => clear))] },
      any: [...new Set(places.flatMap(({ any = [] }) => any))],
      isPath: true,
      isPattern: this.#variables !== undefined,
      isUndecidable: !isCertain,
    };
  }
}

/**
 * Returns the name of an argument as servers compare it: Go's `encoding/json` ignores the case of
 * letters, and other libraries take `filePath` for `file_path`.
 */
function comparableName(name: string): string {
  return foldCase(name.normalize("NFKC")).replace(/[\s_-]/g, "");
}

function canonicalOf(args: JsonObject): string | undefined {
  try {
    return canonicalJson(args);
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
function formsOfNumber(text: string): ArgumentForms {
  if (text.length > TEXT_MAX) return UNCLEAR;
  const decimal = decimalText(text);
  const near = Number(text);
  const digits = Number.isInteger(near) ? BigInt(near).toString() : decimal;
  return { clear: [decimal], any: [...new Set([decimal, text, String(near), digits])] };
}

function formsOfNames(names: readonly string[]): ArgumentForms {
  const isClear = names.length > 0 && names.every((name) => /^[A-Za-z_]\w{0,127}$/.test(name));
  return isClear ? { clear: names, isEnvironment: true } : UNCLEAR;
}

/** Returns whether Windows may open another path than the text of a path shows. */
function isUnclear(text: string, rules: PathRules): boolean {
  const plain = rules.whyNotLocal(text) === undefined ? rules.plain(text) : undefined;
  if (plain === undefined) return true;
  const names = rules.namesOf(plain).filter((name, at) =>
    name !== "." && name !== ".." && (at > 0 || !/^[A-Z]:$/.test(name))
  );
  return names.some((name) => rules.whyUnsafeName(name) !== undefined);
}

/**
 * Returns a path in three forms: as written, its real path, and the real path of the text before
 * `..` is resolved.
 */
function formsOfPath(text: string, workspace: string, system: PathSystem): ArgumentForms {
  const { rules } = system;
  const { isAbsolute, relative, resolve, sep } = rules.node();
  if (rules !== POSIX && isUnclear(text, rules)) return UNCLEAR;
  const whole = isAbsolute(text) ? text : `${workspace}${sep}${text}`;
  // Windows uses the workspace's drive for a path without a drive, and resolves `..` before links.
  const raw = rules === POSIX ? whole : resolve(workspace, text);
  const places = [resolve(raw), realPathOf(resolve(raw), system), realPathOf(raw, system)];
  if (places.includes(undefined)) return UNCLEAR;
  const absolute = places.filter((place) => place !== undefined);
  const relativePaths = absolute.map((place) => relative(workspace, place) || ".");
  // On Windows, a path on another drive has no relative form and stays absolute.
  const isInside = relativePaths.every((path) => path.split(sep)[0] !== ".." && !isAbsolute(path));
  const forms = [text, ...relativePaths, ...absolute].map((form) => form.replaceAll(sep, "/"));
  const clear = [...new Set(relativePaths.map((path) => path.replaceAll(sep, "/")))];
  // `isPath` makes `possibleGlobs` match with `within`: a rule for the files in a folder covers the
  // folder, too, so that a client that may not change `x/**` may not move `x` away.
  return { ...(isInside ? { clear } : {}), any: [...new Set(forms)], isPath: true };
}

/**
 * Returns a path whose existing part is replaced by its real path; undefined if the real path is
 * unknown.
 */
function realPathOf(path: string, system: PathSystem): string | undefined {
  const lookUp = (path: string) => findRealPath(path, system);
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
function findRealPath(path: string, system: PathSystem): string | null | undefined {
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
