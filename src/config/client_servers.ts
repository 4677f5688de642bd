/**
 * Decides which servers of clients PML can import, how PML writes them, and why it cannot import
 * the others.
 *
 * @module
 */

import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { defined, isObject, listOf, textOf } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { type ClientDefinition, converted, type LeftOut } from "./_client_entry.ts";
import { addressProblem } from "../core/server_address.ts";
import { ImportVariables, type NeededVariable, type SecretFinder } from "./_client_secrets.ts";
import { clientServersSchema } from "./settings.ts";
import type { Issue } from "../core/wanted.ts";
import type { ClientEntry, ClientPlace } from "./clients.ts";
import type { ProgramDefinition, RemoteDefinition } from "../servers/kind.ts";

export type { ClientDefinition, LeftOut } from "./_client_entry.ts";
export type { NeededVariable } from "./_client_secrets.ts";

/** A server that can be imported. */
export interface ImportableServer {
  readonly entry: ClientEntry;
  /** The name in PML. */
  readonly name: string;
  readonly definition: ClientDefinition;
  /** The keys of the client's entry that PML leaves out. */
  readonly left: readonly LeftOut[];
  readonly variables: readonly NeededVariable[];
}

/** A server that cannot be imported. */
export interface SkippedServer {
  readonly entry: ClientEntry;
  readonly why: string;
  /** The server that PML has with the same definition, and the variables that it needs. */
  readonly same?: Pick<ImportableServer, "name" | "definition" | "variables">;
}

/** The servers that can be imported, and those that cannot. */
export interface PickResult {
  readonly taken: readonly ImportableServer[];
  readonly skipped: readonly SkippedServer[];
  /** The values of the variables in the clients' files. They are never shown. */
  readonly values: ReadonlyMap<string, string>;
}

/** The options of `pickServers`. */
export interface PickOptions extends ClientPlace {
  readonly redact: SecretFinder["redact"];
  /** The servers that the file to be written already contains. */
  readonly present: Readonly<Record<string, unknown>>;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string>;
}

interface Candidate {
  readonly entry: ClientEntry;
  readonly name: string;
  readonly definition: ClientDefinition;
  readonly left: readonly LeftOut[];
}

/**
 * Checks every server. Of several with one name the one that the client prefers is checked first.
 */
export function pickServers(
  entries: readonly ClientEntry[],
  options: PickOptions,
): PickResult {
  const skipped: SkippedServer[] = [];
  const candidates = [...entries].sort((one, other) => one.near - other.near)
    .flatMap((entry): Candidate[] => {
      const result = candidateOf(entry, options);
      if (!("why" in result)) return [result];
      skipped.push({ entry, why: result.why });
      return [];
    });
  const { redact, environment } = options;
  const variables = new ImportVariables({ redact, get: (name) => environment.get(name) });
  for (const { definition } of candidates) variables.reserve(definition);
  const taken: ImportableServer[] = [];
  const present = new Map(
    Object.entries(options.present).map(([name, definition]) => [slug(name), definition]),
  );
  for (const candidate of candidates) {
    const done = settled(candidate, { variables, present });
    if ("why" in done) skipped.push({ entry: candidate.entry, ...done });
    else {
      taken.push(done);
      present.set(done.name, done.definition);
    }
  }
  return { taken, skipped, values: variables.exact };
}

/** Returns a definition as questions show it. */
export function shownDefinition(
  { name, definition }: ImportableServer,
): ProgramDefinition | RemoteDefinition {
  const { command, args = [], env = {}, cwd, envFile, url = "", headers = {}, oauth } = definition;
  if (command === undefined) return { kind: "http", name, url, headers, oauth };
  return { kind: "stdio", name, command, args, env, ...defined({ cwd, envFile }) };
}

function candidateOf(
  entry: ClientEntry,
  options: PickOptions,
): Candidate | { readonly why: string } {
  if (isPml(entry)) return { why: "it is PML itself" };
  if (entry.disabled) return { why: "it is disabled" };
  const name = slug(entry.name);
  if (name === undefined) return { why: "PML allows no such name" };
  if (options.builtins.has(name)) {
    return { why: `PML has a server "${name}" built in; give it another name` };
  }
  const result = converted(entry, options);
  return "why" in result ? result : { entry, name, ...result };
}

function settled(
  candidate: Candidate,
  { variables, present }: {
    readonly variables: ImportVariables;
    readonly present: ReadonlyMap<string | undefined, unknown>;
  },
): ImportableServer | Omit<SkippedServer, "entry"> {
  const { entry, name, definition: raw } = candidate;
  const wrong = problemOf(entry.name, raw) ?? urlProblemOf(raw);
  if (wrong !== undefined) return { why: wrong };
  const at = `${entry.path}, ${entry.key.join(".")}`;
  const definition = variables.withoutSecrets(raw, { name, at });
  const current = present.get(name);
  if (current !== undefined) {
    const same = isDeepStrictEqual(nameless(current), nameless(definition));
    return {
      why: `there is a server "${name}" already, with ${same ? "the same" : "another"} definition`,
      ...same && { same: { name, definition, variables: variables.of(definition) } },
    };
  }
  if (variables.holdsSecret(JSON.stringify([entry.name, definition]))) {
    return {
      why: "it contains a text that looks like a key, at a place where no variable is allowed",
    };
  }
  return { ...candidate, definition, variables: variables.of(definition) };
}

/** Returns the parts that PML's schema does not accept, by key and never by value. */
function problemOf(title: string, definition: ClientDefinition): string | undefined {
  const issues: Issue[] = [];
  clientServersSchema({ [title]: definition }, { path: [], wrong: (issue) => issues.push(issue) });
  const [issue] = issues;
  if (issue === undefined) return undefined;
  const key = issue.path.slice(1, 2).join("");
  return `PML requires ${issue.wanted}${key === "" ? "" : ` as its ${key}`}`;
}

/** Returns why an address can never be valid: it would keep a password in the file, or fail. */
function urlProblemOf({ url }: ClientDefinition): string | undefined {
  const problem = url === undefined ? undefined : addressProblem(url);
  return problem === undefined ? undefined : `its url is not ${problem}`;
}

/** Returns whether an entry is PML, by its name or its command. */
export function isPml({ name, said: { command, args } }: ClientEntry): boolean {
  const words = [command, ...listOf(args)].map(textOf);
  return name.toLowerCase() === "pml" || words.some((word) => word.includes("@casys/pml")) ||
    /^pml(\.exe|\.cmd)?$/i.test(basename(words[0]?.replaceAll("\\", "/") ?? ""));
}

function slug(name: string): string | undefined {
  try {
    return serverSlug(name);
  } catch {
    return undefined; // the caller reports it
  }
}

/** Returns a definition without the names of its variables, to compare definitions. */
function nameless(definition: unknown): unknown {
  if (!isObject(definition)) return definition;
  const { disabled: _, ...rest } = definition;
  return JSON.parse(JSON.stringify(rest).replace(/\$\{\w+/g, "${"));
}
