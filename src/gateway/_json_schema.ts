/**
 * Checks values against JSON Schemas of others, of draft-04 to 2020-12, within a bound of steps.
 *
 * The SDK has validators for this: one makes code of a schema, the other takes as long as it takes.
 *
 * @module
 */

import { decoded, isObject, type JsonObject, visible } from "../core/json.ts";
import { keyIn } from "../core/schema_ref.ts";
import { KEYWORDS } from "./_keywords.ts";
import { type LinearEngine, type Pattern, readPattern } from "./_patterns.ts";
import { subschemas } from "./_safe_schema.ts";
import { FAILS, FITS, type Grade, type Place, Run, TooMuch } from "./_run.ts";

/** What came of checking a value. */
export type Checked =
  | { readonly kind: "fits" }
  | { readonly kind: "wrong"; readonly why: string }
  /** Nobody can tell: `keyword` cannot be checked, or without one all of it takes too long. */
  | { readonly kind: "unchecked"; readonly why: string; readonly keyword?: string };

/** The names of members or the indices of items that a schema has said something of. */
export type Seen = Set<string | number> | undefined;

/** Where a rule is applied. */
export interface Spot {
  readonly at: Place | undefined;
  readonly run: Run;
  readonly seen: Seen;
}

/** What a schema, or one keyword of it, says of a value. */
export type Rule = (value: unknown, spot: Spot) => Grade;

const MOST_NODES = 4_000;
/** How many steps may be taken to where references lead. */
const MOST_OF_REFERENCES = 100_000;
/** Beyond so many characters in all, patterns take long to read. */
const MOST_OF_PATTERNS = 20_000;
const OLD = /draft-0[4-7]/;
const DIALECT =
  /^(https?:\/\/json-schema\.org\/((draft-0[4-7]|draft\/20(19-09|20-12))\/)?schema#?)?$/;

/** A schema that values can be checked against. */
export class JsonSchema {
  /** The keywords that cannot be checked, each with what it says. */
  readonly unchecked: ReadonlySet<string>;
  readonly #root: Rule;
  readonly #engine: LinearEngine | undefined;
  readonly #prepared = new WeakSet<Pattern>();

  private constructor(reader: SchemaReader, root: Rule, engine: LinearEngine | undefined) {
    this.unchecked = reader.unchecked;
    this.#root = root;
    this.#engine = engine;
  }

  /** Reads a schema, and loads what its patterns need. */
  static async read(schema: JsonObject): Promise<JsonSchema> {
    const reader = new SchemaReader(schema);
    const root = reader.whole(schema, schema.$schema ?? "");
    return new JsonSchema(reader, root, reader.isLinear ? await import("re2js") : undefined);
  }

  /** Checks a value; `taken` is told how many steps that was. */
  check(value: unknown, taken: (steps: number) => void = () => {}): Checked {
    const run = new Run(this.#engine, this.#prepared);
    try {
      if (!run.isWritable(value)) {
        return { kind: "wrong", why: "there is a number too large for JSON to carry on" };
      }
      const grade = this.#root(value, { at: undefined, run, seen: undefined });
      if (grade === FITS) return { kind: "fits" };
      if (grade === FAILS) {
        return { kind: "wrong", why: visible([...new Set(run.errors)].join("; "), 500) };
      }
      const { unchecked: keyword = "" } = run;
      return { kind: "unchecked", keyword, why: `${keyword} cannot be checked` };
    } catch (error) {
      // A stack that is too small for what is left of it is the same.
      if (!(error instanceof TooMuch || error instanceof RangeError)) throw error;
      return { kind: "unchecked", why: `it cannot be checked: ${error.message}` };
    } finally {
      taken(run.taken);
    }
  }

  /** Tells whether a text matches a pattern of the schema. */
  matches(text: string, source: string): boolean {
    const pattern = readPattern(source);
    try {
      return pattern !== undefined &&
        new Run(this.#engine, this.#prepared).matches(pattern, text) ===
          true;
    } catch {
      return false; // it would take too long
    }
  }
}

/** Makes rules of a schema's keywords, once for each subschema. */
export class SchemaReader {
  readonly unchecked = new Set<string>();
  /** Whether there are patterns for the linear engine. */
  isLinear = false;
  readonly #nodes = new Map<object, Rule>();
  /** A set that grows while it is gone through. */
  readonly #later = new Set<() => Rule>();
  readonly #anchors = new Map<object, ReadonlyMap<unknown, unknown>>();
  /** Whether it matters what other keywords have said something of. */
  readonly #tracks: boolean;
  readonly #isOld: boolean;
  #leftOfPatterns = MOST_OF_PATTERNS;
  #leftOfReferences = MOST_OF_REFERENCES;

  constructor(schema: JsonObject) {
    this.#tracks = JSON.stringify(schema).includes('"unevaluated');
    this.#isOld = OLD.test(String(schema.$schema));
  }

  /** Gives the rule of a schema and makes those that it refers to. */
  whole(schema: object, dialect: unknown): Rule {
    if (typeof dialect !== "string" || !DIALECT.test(dialect)) {
      // Its words may mean anything.
      return this.cannot("$schema", dialect);
    }
    const node = this.node(schema, schema);
    for (const make of this.#later) make();
    return node;
  }

  /** Gives the rule of a schema that is referred to: it may be the one that is being made. */
  later(schema: unknown, root: object): Rule {
    const node = () => this.node(schema, root);
    this.#later.add(node);
    return (value, spot) => node()(value, spot);
  }

  /** Gives the rule of a schema; `root` is the schema that its references start at. */
  node(schema: unknown, root: object): Rule {
    if (schema === false) return NOTHING;
    if (!isObject(schema)) return ANYTHING;
    const known = this.#nodes.get(schema);
    if (known !== undefined) return known;
    if (this.#nodes.size >= MOST_NODES) throw new TooMuch("it has too many subschemas");
    const rules: Rule[] = [];
    const node = together(rules, this.#tracks);
    this.#nodes.set(schema, node);
    const { $id, id = $id } = schema;
    const own = typeof id === "string" && !id.startsWith("#") ? schema : root;
    const around = { schema, root: own, reader: this, node: (one: unknown) => this.node(one, own) };
    for (const [keyword, make] of KEYWORDS) {
      // Before 2019-09 nothing counts beside a reference.
      if (this.#isOld && typeof schema.$ref === "string" && keyword !== "$ref") continue;
      const said = schema[keyword];
      const rule = said === undefined ? undefined : make(said, around);
      if (rule !== undefined) rules.push(rule);
    }
    return node;
  }

  /** Makes a rule of a keyword that cannot be checked. */
  cannot(keyword: string, said: unknown): Rule {
    const told = `${keyword} ${visible(JSON.stringify(said) ?? "", 80)}`;
    this.unchecked.add(told);
    return (_, { run }) => run.unknown(told);
  }

  /** Reads a pattern; undefined for one that cannot be run. */
  pattern(source: string): Pattern | undefined {
    const pattern = (this.#leftOfPatterns -= source.length) < 0 ? undefined : readPattern(source);
    this.isLinear ||= pattern?.isLinear === true;
    return pattern;
  }

  /** Finds what a reference of this document means, and where references start there. */
  pointed(reference: string, root: object): readonly [schema: unknown, root: object] | undefined {
    const [, pointer] = /^#((?:\/.*)?)$/s.exec(reference) ?? [];
    if (pointer === undefined) {
      const anchors = this.#anchors.get(root) ?? this.#anchorsOf(root);
      this.#anchors.set(root, anchors);
      const named = reference.startsWith("#") ? anchors.get(reference.slice(1)) : undefined;
      return named === undefined ? undefined : [named, root];
    }
    let found: unknown = root;
    let base = root;
    const parts = decoded(pointer).split("/").slice(1);
    this.#refer(parts.length);
    for (const part of parts) {
      const name = keyIn(part);
      if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) {
        return undefined;
      }
      found = Reflect.get(found, name);
      if (isObject(found) && typeof found.$id === "string") base = found;
    }
    return isObject(found) || typeof found === "boolean" ? [found, base] : undefined;
  }

  /** Finds the schemas that have a name; undefined is one that two have. */
  #anchorsOf(root: object): ReadonlyMap<unknown, unknown> {
    const found = new Map<unknown, unknown>();
    const left: unknown[] = [root];
    while (left.length > 0) {
      const next = left.pop();
      if (!isObject(next)) continue;
      const { $anchor, $dynamicAnchor = $anchor, $id, id = $id } = next;
      const name = $dynamicAnchor ?? (/^#(.+)/.exec(String(id)) ?? [])[1];
      if (name !== undefined) found.set(name, found.has(name) ? undefined : next);
      const inner = subschemas(next);
      // Each schema with an id has a look of its own at all that is in it.
      this.#refer(10 + inner.length);
      left.push(...inner);
    }
    return found;
  }

  #refer(steps: number): void {
    if ((this.#leftOfReferences -= steps) < 0) throw new TooMuch("its references lead too far");
  }
}

const ANYTHING: Rule = () => FITS;
const NOTHING: Rule = (_, { at, run }) => run.fail(at, () => "nothing is allowed here");

/** Makes one rule of all; `tracks` says whether it matters what they have said something of. */
function together(rules: readonly Rule[], tracks: boolean): Rule {
  return (value, { at, run, seen }) => {
    run.enter(1 + rules.length / 2);
    const { unchecked } = run;
    const own: Seen = tracks ? new Set() : undefined;
    const spot = { at, run, seen: own };
    let grade: Grade = FITS;
    for (const rule of rules) {
      const said = rule(value, spot);
      if (said < grade) grade = said;
      if (grade === FAILS && run.quiet > 0) break;
    }
    run.leave();
    // What decides nothing need not be told.
    if (grade === FITS) run.unchecked = unchecked;
    if (grade !== FAILS && own !== undefined && seen !== undefined) {
      run.spend(own.size * 2);
      for (const key of own) seen.add(key);
    }
    return grade;
  };
}
