/**
 * Decides by the definition of a tool whether it only reads. An answer can cover all tools of a
 * server that only read.
 *
 * @module
 */

import {
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  objectOf,
  quoted,
  textOf,
} from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** Whether a tool only reads, judged by its definition. */
export interface ToolReading {
  readonly reads: boolean;
  /** Why the tool does not count as reading, or a mark such as "reads the files it is given". */
  readonly note?: string;
}

/** The mark of a tool that takes a path to read. */
export const READS_FILES = "reads the files it is given";

/** An argument at any depth of a schema, or a part of its schema. */
interface Argument {
  readonly name: string;
  readonly schema: JsonObject;
}

/** Ends of names of arguments that only describe or count something, such as `url_count`. */
const TAILS = [
  ...["ids?", "uuid", "count", "limit", "length", "size", "type", "kind", "status", "format"],
  ...["mode", "version", "index", "language", "encoding", "schema", "tokens?", "glob", "pattern"],
].join("|");
/** Words before `code` that make it a short name, such as `country_code`. */
const CODES = [
  ...[
    "country",
    "language",
    "lang",
    "currency",
    "postal",
    "post",
    "zip",
    "area",
    "region",
    "state",
  ],
  ...["city", "station", "airport", "iata", "iso", "locale", "stock", "product", "status", "error"],
  ...["exit", "http", "time", "color"],
].join("|");

/** Effects besides reading, each with the names of arguments that can cause it. */
const EFFECTS: readonly (readonly [effect: string, names: RegExp])[] = [
  [
    "an address",
    namePattern(
      String
        .raw`[a-z\d]*(?:url|uri|iri|address)|addr|href|link|endpoint|webhook|callback|redirect|` +
        "web_?site|web_?page|feed|recipient|b?cc|connection_?string|dsn",
    ),
  ],
  [
    "a host",
    namePattern(
      String
        .raw`[a-z\d]*(?:host|domain)|host_?name|ip|ipv|port|prox[yi]|fqdn|name_?server|site|remote`,
    ),
  ],
  [
    "code",
    namePattern(
      `(?<!(?:${CODES})_)code|source_?code|java_?script|type_?script|script|js|python|lua|bash|eval|` +
        "expr|expression|snippet|program|function(?!_name$)|macro|lambda",
    ),
  ],
  ["SQL", namePattern("[a-z]{0,8}ql|cypher|statement|where")],
  ["a command", namePattern("command|cmd|arg|argv|argument|shell|exec|cli")],
  ["headers", namePattern("[a-z]*header|cookie|authorization|user_?agent")],
  [
    "an output file",
    namePattern(
      String.raw`out|[a-z\d]*output|dest|dst|destination|save|write|overwrite|export|download|` +
        String
          .raw`backup|dump|(?:out|[a-z\d]*output|save|write|export|download|backup|dump|target)_?` +
        "(?:file|path|dir|folder)|(?:save|write|export|dump)_?(?:to|as)|log_?file|" +
        String.raw`[a-z\d]*file_?name`,
    ),
  ],
];
const PATH = namePattern(String.raw`[a-z\d]*path|[a-z\d]*file|dir|directory|directorie|folder|cwd`);
/** Names of texts that are SQL if the tool or the argument mentions a query language. */
const QUERY = namePattern("query|querie");
const QUERY_LANGUAGE = /\b(?:[a-z]{0,8}sql|[a-z]{1,6}ql|cypher)\b/i;
/** Words in the description of a path that show that the tool writes there. */
const WRITES =
  /\b(?:sav(?:e[sd]?|ing)|writ(?:es?|ten|ing)|outputs?|export(?:s|ed)?|downloads?|stored?)\b/i;
/** Words in the name of a tool that returns secrets or the variables of its environment. */
const SECRET_NAME = new RegExp(
  String
    .raw`(?<=^|_)(?:(?:print_?)?env(?:s|iron|_?vars?)?|environment_var(?:iable)?s?|dotenv|secrets?|` +
    "credentials?|creds?|passwords?|passwd|passphrases?|(?:api|private|access|secret|ssh)_?keys?|" +
    "key_?chain|key_?ring|(?<!(?:count|max|design|page|input|output|estimate)_)" +
    "tokens?(?!_(?:count|usage|limit|budget|price|balance)))(?=_|$)",
);
/** A sentence in the description of such a tool: a word for reading before one for secrets. */
const SECRET_TEXT = new RegExp(
  String
    .raw`\b(?:return|list|get|read|show|print|fetch|retriev|dump|reveal|display|expos|view|export)` +
    String.raw`(?:e?s|ed|e|ing)?\b[^.\n]{0,80}?\b(env(?:ironment)?[ -]?var(?:iable)?s?|secrets?|` +
    "credentials?|passwords?|passphrases?|(?:api|private|access|ssh)[ -]keys?|" +
    String.raw`(?<!(?:\d|\b(?:max|maximum|number of|input|output|design|in|page|next)) )tokens?` +
    String.raw`(?! (?:count|usage|limit|budget|price|balance)))\b`,
  "i",
);
/** The first words of flags that choose a part of the result. */
const PART_OF_RESULT = /^(?:include|exclude|show|hide|with|return|minimal)_/;
const PLAIN_NAME = /^[\x20-\x7e]{1,128}$/;
/** Members with schemas that other parts refer to. */
const DEFINITIONS: ReadonlySet<string> = new Set(["$defs", "definitions"]);

/**
 * Returns whether a tool only reads: its server says so, it returns no secrets by its name and its
 * description, and no argument is named like something that could have another effect. Hints of honest servers are often wrong about such arguments: six
 * of seven reading tools of one browser server take the name of a file to write.
 */
export function readingOf(tool: ToolDefinition): ToolReading {
  const { readOnlyHint, destructiveHint } = objectOf(tool.annotations);
  if (destructiveHint === true) return notReading("its server says that it destroys");
  if (readOnlyHint !== true) return notReading("its server does not say that it only reads");
  const args = argumentsOf(tool.inputSchema);
  if (args === undefined) return notReading("its definition does not name all of its arguments");
  const secret = secretOf(tool);
  // guard: reading-secrets
  if (secret !== undefined) return notReading(`it may return secrets: its ${secret}`);
  let isOfFiles = false;
  for (const argument of args) {
    const shown = quoted(argument.name, 64);
    // Look-alikes of Latin letters are refused here, and the patterns get only short names.
    if (!PLAIN_NAME.test(argument.name)) return notReading(`PML cannot read the name ${shown}`);
    const name = snakeCase(argument.name);
    const effect = effectOf(argument.schema, { name, tool });
    // guard: reading-names
    if (effect !== undefined) return notReading(`${shown} may be ${effect}`);
    isOfFiles ||= PATH.test(name);
  }
  return isOfFiles ? { reads: true, note: READS_FILES } : { reads: true };
}

/**
 * Returns how the name or the description of a tool shows that it returns secrets; undefined if they
 * do not.
 */
function secretOf({ name, description }: ToolDefinition): string | undefined {
  const [word] = SECRET_NAME.exec(snakeCase(name)) ?? [];
  if (word !== undefined) return `name contains ${quoted(word, 40)}`;
  const [, mentioned] = SECRET_TEXT.exec(textOf(description)) ?? [];
  return mentioned && `description mentions ${quoted(mentioned, 40)}`;
}

/** Returns the effect besides reading that an argument can cause; undefined if there is none. */
function effectOf(
  schema: JsonObject,
  { name, tool }: { readonly name: string; readonly tool: ToolDefinition },
): string | undefined {
  // A definition contains all values of a fixed list, so the user has seen them.
  if (Array.isArray(schema.enum) || schema.const !== undefined) return undefined;
  if (schema.type === "boolean" && PART_OF_RESULT.test(name)) return undefined;
  const [effect] = EFFECTS.find(([, names]) => names.test(name)) ?? [];
  // A flag does not contain an address or a host.
  const isAddressOrHost = effect === "an address" || effect === "a host";
  if (effect !== undefined && !(isAddressOrHost && schema.type === "boolean")) return effect;
  if (/^(?:ur[il]|iri|(?:idn-)?hostname|ipv\d)/.test(textOf(schema.format))) return "an address";
  const description = textOf(schema.description);
  const isQuery = QUERY.test(name) &&
    (QUERY_LANGUAGE.test(description) ||
      QUERY_LANGUAGE.test(snakeCase(tool.name).replaceAll("_", " ")));
  if (isQuery) return "SQL";
  return PATH.test(name) && WRITES.test(description) ? "an output file" : undefined;
}

/** Returns all arguments of a schema, at any depth; undefined if it does not name all of them. */
function argumentsOf(root: JsonObject): readonly Argument[] | undefined {
  const args: Argument[] = [];
  const parts: { readonly name?: string | undefined; readonly schema: Json | undefined }[] = [
    { schema: root },
  ];
  const seen = new Set<Json>();
  for (let next = parts.pop(); next !== undefined; next = parts.pop()) {
    const { name, schema } = next;
    // Not spread: a list can have more values than a function takes arguments.
    if (Array.isArray(schema)) schema.forEach((part) => parts.push({ name, schema: part }));
    if (!isObject(schema) || seen.has(schema as JsonObject)) continue;
    seen.add(schema as JsonObject);
    // The format of an optional argument is in one of its alternatives.
    if (name !== undefined) args.push({ name, schema: objectOf(schema) });
    const { $ref = "#", $dynamicRef = "#", properties, required, ...rest } = objectOf(schema);
    const targets = [$ref, $dynamicRef].map((pointer) => partAt(root, textOf(pointer)));
    if (targets.includes(undefined) || "patternProperties" in rest) return undefined;
    for (const target of targets) parts.push({ name, schema: target });
    const described = objectOf(properties);
    for (const [name, schema] of Object.entries(described)) {
      args.push({ name, schema: objectOf(schema) });
      parts.push({ name, schema });
    }
    for (const name of Array.isArray(required) ? required.map(textOf) : []) {
      if (!Object.hasOwn(described, name)) args.push({ name, schema: {} });
    }
    for (const [key, schema] of Object.entries(rest)) {
      // Definitions that nothing refers to describe no argument.
      if (!DEFINITIONS.has(key)) parts.push({ name, schema });
    }
  }
  return args;
}

/** Returns a part of a schema by a pointer such as `#/$defs/name`; undefined if there is none. */
function partAt(root: JsonObject, pointer: string): Json | undefined {
  if (pointer === "#") return root;
  if (!pointer.startsWith("#/")) return undefined;
  let part: Json | undefined = root;
  for (const step of pointer.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    part = Array.isArray(part) ? part[Number(key)] : memberOf(objectOf(part), key);
  }
  return part;
}

/** Returns a pattern for names in snake case that contain one of these words. */
function namePattern(words: string): RegExp {
  return new RegExp(String.raw`(?:^|_)(?:${words})(?:e?s|\d+)?(?:$|_(?!(?:${TAILS})$))`);
}

function snakeCase(name: string): string {
  return name.replace(/([A-Z]{2,})s(?![a-z])/g, "$1S").replace(/([a-z\d])([A-Z])/g, "$1_$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2").toLowerCase().replace(/[^a-z\d]+/g, "_");
}

function notReading(note: string): ToolReading {
  return { reads: false, note };
}
