/**
 * The arguments of a call as rules see them: an allow rests only on what is clear, a deny and an
 * ask also hold for what is not.
 *
 * @module
 */

import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { fold, type GlobSet } from "../core/glob.ts";
import { canonical, isObject, type Json, type JsonObject } from "../core/json.ts";
import { isPathName } from "../core/pattern.ts";
import { isSteering } from "../core/steering.ts";

/** One argument in every form in which a rule may mean it. */
interface Seen {
  /** The forms that an allow has to cover all; missing where none may rest on it. */
  readonly clear?: readonly string[];
  /** The forms of which a deny or an ask has to cover one; missing where each holds. */
  readonly any?: readonly string[];
  /** Whether it is a path, which some file systems take in any case of letters. */
  readonly isPath?: boolean;
  /** Whether the forms are the names of variables. */
  readonly isEnvironment?: boolean;
}

/** The globs of a list that may cover an argument; `every` where that cannot be told. */
export type Covering = ReadonlySet<string> | "every";

const UNCLEAR: Seen = {};
/** What is longer is no path, and no command that a person meant by a glob. */
const TEXT_MAX = 4_096;
const ASCII = /^[\0-\x7f]*$/;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
const SHELL = /[;&|<>$`(){}[\]*?!#~"'\\%^]/;
/** A tool may take these for another place than this one: a home folder, a URL. */
const ELSEWHERE = /^~|^[a-z][a-z\d+.-]+:/i;

/**
 * What the globs of one call may cost, in words of 32 places for each character, so that no file
 * and no argument holds up others. What is beyond it cannot be told.
 */
const STEPS = 600_000;
/** What looking up where a path leads may cost, in the same measure. */
const LOOK_STEPS = 20_000;
/** Names under which tools that run programs take the variables for them. */
const ENVIRONMENT = /^(?:extra_?)?env(?:ironment)?(?:_?var(?:iable)?s)?$/i;
/** What PML sets itself, so that a value for it is passed over. */
const SET = ["PATH", "HOME"];

/** The arguments of one call. Each is looked at once, and only if a rule asks for it. */
export class SeenArguments {
  readonly #args: JsonObject;
  readonly #workspace: string | undefined;
  readonly #steps = { left: STEPS };
  readonly #seen = new Map<string, Seen>();
  #canonical: string | undefined | null = null;

  /** Takes the arguments as they came. Without a workspace no path is clear. */
  constructor(args: JsonObject, workspace: string | undefined) {
    this.#args = args;
    this.#workspace = workspace;
  }

  /** The text that equal arguments share; undefined where they are no JSON that can be sent. */
  get canonical(): string | undefined {
    if (this.#canonical === null) this.#canonical = canonicalOf(this.#args);
    return this.#canonical;
  }

  /** The names of the arguments that give variables to a program. */
  get environments(): readonly string[] {
    return Object.keys(this.#args).filter((name) => {
      if (!ENVIRONMENT.test(name)) return false;
      const value = this.#args[name] ?? "";
      return typeof value === "object" ? Object.keys(value).length > 0 : value !== "";
    });
  }

  /** The variables of `env` that change how programs run, but for those that PML sets itself. */
  get steering(): readonly string[] {
    const { env } = this.#args;
    const names = isObject(env) ? Object.keys(env) : [];
    return names.filter((name) => isSteering(name) && !SET.includes(name));
  }

  /**
   * Tells whether globs of one rule surely cover an argument: each of them every form of it. Of
   * variables for a program the names are compared, and each name needs one of the globs; what
   * steers programs is covered by its name alone.
   */
  surely(name: string, globs: GlobSet): (wanted: readonly string[]) => boolean {
    const { clear, isEnvironment = false } = this.#look(name);
    const forms = clear?.map((form) =>
      isEnvironment && isSteering(form)
        ? new Set([form])
        : globs.covering(form, { steps: this.#steps })
    );
    return (wanted) =>
      forms?.every((found) =>
        isEnvironment
          ? wanted.some((glob) => found?.has(glob))
          : wanted.every((glob) => found?.has(glob))
      ) ?? false;
  }

  /** Gives the globs that cover an argument in one of its forms, or may do so. */
  perhaps(name: string, globs: GlobSet): Covering {
    const { any, isPath: within = false } = this.#look(name);
    if (any === undefined) return "every";
    const steps = this.#steps;
    const found = new Set<string>();
    for (const form of any) {
      // Of plain letters the folded form is covered by whatever covers the form itself.
      const plain = within && ASCII.test(form) ? found : globs.covering(form, { steps, within });
      const folded = within ? globs.folded.covering(fold(form), { steps, within }) : found;
      if (plain === undefined || folded === undefined) return "every";
      for (const glob of [...plain, ...folded]) found.add(glob);
    }
    return found;
  }

  #look(name: string): Seen {
    let seen = this.#seen.get(name);
    if (seen === undefined) {
      // What an object has by birth is no scalar, and so as good as missing.
      const value = this.#args[name];
      seen = ENVIRONMENT.test(name) && isObject(value)
        ? lookAtNames(Object.keys(value))
        : this.#lookAtText(name, textOf(value));
      this.#seen.set(name, seen);
    }
    return seen;
  }

  #lookAtText(name: string, text: string | undefined): Seen {
    if (text === undefined || text.length > TEXT_MAX || CONTROL.test(text)) return UNCLEAR;
    if (name === "command" && SHELL.test(text)) return UNCLEAR;
    // Variables with their values in one text: a glob would cover one, and what stands beside it.
    if (ENVIRONMENT.test(name) && text.includes("=")) return UNCLEAR;
    if (!isPathName(name)) return { clear: [text], any: [text] };
    if (this.#workspace === undefined || ELSEWHERE.test(text)) return UNCLEAR;
    this.#steps.left -= LOOK_STEPS;
    return this.#steps.left < 0 ? UNCLEAR : lookAtPath(text, this.#workspace);
  }
}

function canonicalOf(args: JsonObject): string | undefined {
  try {
    return canonical(args);
  } catch {
    return undefined; // the rules decide what that means
  }
}

function textOf(value: Json | undefined): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return JSON.stringify(value);
  return typeof value === "string" ? value : undefined;
}

function lookAtNames(names: readonly string[]): Seen {
  const isClear = names.length > 0 && names.every((name) => /^[A-Za-z_]\w{0,127}$/.test(name));
  return isClear ? { clear: names, isEnvironment: true } : UNCLEAR;
}

/** By its text, by where that really leads, and by where the text as it is really leads. */
function lookAtPath(text: string, workspace: string): Seen {
  const raw = isAbsolute(text) ? text : `${workspace}${sep}${text}`;
  const places = [resolve(raw), realPathOf(resolve(raw)), realPathOf(raw)];
  if (places.includes(undefined)) return UNCLEAR;
  const absolute = places.filter((place) => place !== undefined);
  const ways = absolute.map((place) => relative(workspace, place) || ".");
  const inside = ways.every((way) => way.split(sep)[0] !== ".." && !isAbsolute(way));
  const forms = [text, ...ways, ...absolute].map((form) => form.replaceAll(sep, "/"));
  const clear = [...new Set(ways.map((way) => way.replaceAll(sep, "/")))];
  // A folder counts as what lies in it: who may not touch `x/**` may not move `x` away either.
  return { ...(inside ? { clear } : {}), any: [...new Set(forms)], isPath: true };
}

/** Gives the real path of what exists of a path, with the rest as written, if that can be known. */
function realPathOf(path: string): string | undefined {
  const whole = lookUp(path);
  if (whole !== null) return whole;
  const parts = path.split(sep);
  const head = (count: number) => parts.slice(0, count).join(sep);
  // Where a beginning is there, each shorter one is: a path of a thousand folders takes ten looks.
  let [found, missing] = [1, parts.length];
  while (missing - found > 1) {
    const middle = (found + missing) >> 1;
    if (lookUp(head(middle) + sep) === null) missing = middle;
    else found = middle;
  }
  const real = isLink(head(missing)) ? undefined : lookUp(head(found) + sep);
  return real ? join(real, ...parts.slice(found)) : undefined;
}

/** Gives the real path of what is there; null where nothing is, undefined where nobody can tell. */
function lookUp(path: string): string | null | undefined {
  try {
    return Deno.realPathSync(path);
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? null : undefined;
  }
}

/** A link to nothing leads somewhere as soon as somebody makes that. */
function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false; // there is nothing, as the caller knows
  }
}
