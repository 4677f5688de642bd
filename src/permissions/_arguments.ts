/**
 * The arguments of a call as rules see them: an allow rests only on what is clear, a deny and an
 * ask also hold for what is not.
 *
 * @module
 */

import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { fold } from "../core/glob.ts";
import { canonical, type Json, type JsonObject } from "../core/json.ts";
import { type Condition, isPathName } from "../core/pattern.ts";

/** One argument in every form in which a rule may mean it. */
interface Seen {
  /** The forms that an allow has to cover all; missing where none may rest on it. */
  readonly clear?: readonly string[];
  /** The forms of which a deny or an ask has to cover one; missing where each holds. */
  readonly any?: readonly string[];
  /** The same as a file system that folds names takes them. */
  readonly folded?: readonly string[];
}

const UNCLEAR: Seen = {};
/** What is longer is no path, and no command that a person meant by a glob. */
const TEXT_MAX = 4_096;
const CONTROL = /[\p{Cc}\p{Cs}]/u;
const SHELL = /[;&|<>$`(){}[\]*?!#~"'\\%^]/;
/** A tool may take these for another place than this one: a home folder, a URL. */
const ELSEWHERE = /^~|^[a-z][a-z\d+.-]+:/i;

/** The arguments of one call. Each is looked at once, and only if a rule asks for it. */
export class SeenArguments {
  readonly #args: JsonObject;
  readonly #workspace: string | undefined;
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

  /** Tells whether an argument is clear, and covered in all its forms. */
  surely({ name, glob }: Condition): boolean {
    return this.#look(name).clear?.every((form) => glob.matches(form)) ?? false;
  }

  /** Tells whether an argument is unclear, or covered in one of its forms. */
  perhaps({ name, glob }: Condition): boolean {
    const { any, folded = [] } = this.#look(name);
    return any === undefined || any.some((form) => glob.matches(form)) ||
      folded.some((form) => glob.matchesFolded(form));
  }

  #look(name: string): Seen {
    let seen = this.#seen.get(name);
    if (seen === undefined) {
      // What an object has by birth is no scalar, and so as good as missing.
      seen = look(name, textOf(this.#args[name]), this.#workspace);
      this.#seen.set(name, seen);
    }
    return seen;
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

function look(name: string, text: string | undefined, workspace: string | undefined): Seen {
  if (text === undefined || text.length > TEXT_MAX || CONTROL.test(text)) return UNCLEAR;
  if (name === "command" && SHELL.test(text)) return UNCLEAR;
  if (!isPathName(name)) return { clear: [text], any: [text] };
  return workspace === undefined || ELSEWHERE.test(text) ? UNCLEAR : lookAtPath(text, workspace);
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
  // A folder counts as what lies in it: who may not touch `x/**` may not move `x` away either.
  const any = [...new Set(forms.flatMap((form) => [form, `${form}/`]))];
  const clear = ways.map((way) => way.replaceAll(sep, "/"));
  return { ...(inside ? { clear } : {}), any, folded: any.map(fold) };
}

/** Gives the real path of what exists of a path, with the rest as written, if that can be known. */
function realPathOf(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound) || isLink(path)) return undefined;
    const folder = realPathOf(dirname(path));
    return folder && join(folder, basename(path));
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
