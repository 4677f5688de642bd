/**
 * Decides which servers of clients PML can import, how PML writes them, and why it cannot import
 * the others.
 *
 * @module
 */

import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isObject, listOf, textOf, withoutUndefined } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { type ClientDefinition, convertEntry, type OmittedKey } from "./_client_entry.ts";
import { isLoopback } from "../core/address.ts";
import { addressProblem } from "../core/server_address.ts";
import { ImportVariables, type NeededVariable, type SecretFinder } from "./_client_secrets.ts";
import { clientServersSchema } from "./settings.ts";
import type { Issue } from "../core/value_schema.ts";
import type { ClientEntry, ClientPlace } from "./clients.ts";
import type { ProgramDefinition, RemoteDefinition } from "../servers/kind.ts";

export type { ClientDefinition, OmittedKey } from "./_client_entry.ts";
export type { NeededVariable } from "./_client_secrets.ts";

/** A server that can be imported. */
export interface ImportableServer {
  readonly entry: ClientEntry;
  /** The name in PML. */
  readonly name: string;
  readonly definition: ClientDefinition;
  /** The keys of the client's entry that PML leaves out. */
  readonly left: readonly OmittedKey[];
  readonly variables: readonly NeededVariable[];
}

/** A server that cannot be imported. */
export interface SkippedServer {
  readonly entry: ClientEntry;
  readonly why: string;
  /**
   * The server that PML has with the same definition, or that it imported with this one, and the
   * variables that it needs.
   */
  readonly same?: OwnServer;
  /** Whether PML has another server of this name. */
  readonly isNameTaken?: boolean;
}

/** A server that PML has, with its definition in the client's file. */
interface OwnServer extends Pick<ImportableServer, "name" | "definition" | "variables"> {
  /** Whether PML's definition changed since the import. */
  readonly isChanged: boolean;
  /** Whether PML's definition uses the same variables for the same values. */
  readonly isExact: boolean;
  /** The path of PML's file that has it; undefined for the file that an import writes. */
  readonly otherPath?: string | undefined;
}

/** The servers of one of PML's files. */
export interface FileServers {
  /** The servers that the file defines, by title. */
  readonly definitions?: Readonly<Record<string, unknown>>;
  /** The definitions of earlier imports, by the name in PML. */
  readonly imported?: ReadonlyMap<string, readonly unknown[]>;
}

/** The servers of both of PML's files: those of the file that the import writes, and `other`. */
export interface PresentServers extends FileServers {
  /** The servers of PML's other file. An import leaves out a server that this file has already. */
  readonly other?: FileServers & { readonly path: string } | undefined;
  /** Returns the value of a variable; by default only of variables in the environment. */
  readonly get?: ((name: string) => string | undefined) | undefined;
}

/** The servers that can be imported, and the servers that cannot. */
export interface PickResult {
  readonly taken: readonly ImportableServer[];
  readonly skipped: readonly SkippedServer[];
  /** The values of the variables in the clients' files. They are never shown. */
  readonly values: ReadonlyMap<string, string>;
}

interface Candidate {
  readonly entry: ClientEntry;
  readonly name: string;
  readonly definition: ClientDefinition;
  readonly left: readonly OmittedKey[];
}

/** The servers of one of PML's files, by name. */
interface PresentFile extends Pick<FileServers, "imported"> {
  readonly path?: string;
  readonly present: Map<string | undefined, unknown>;
}

/** Picks the servers that PML can import. */
export class ServerPicker {
  readonly #place: ClientPlace;
  readonly #redact: SecretFinder["redact"];
  readonly #builtins: ReadonlySet<string>;

  /** Takes the names of the servers that ship with PML. */
  constructor(
    place: ClientPlace,
    redact: SecretFinder["redact"],
    builtins: ReadonlySet<string>,
  ) {
    this.#place = place;
    this.#redact = redact;
    this.#builtins = builtins;
  }

  /**
   * Checks every server. If several servers have one name, the server that the client prefers is
   * checked first, and the others are skipped.
   */
  pick(
    entries: readonly ClientEntry[],
    { definitions, imported, other, get = (name) => this.#place.environment.get(name) }:
      PresentServers,
  ): PickResult {
    const skipped: SkippedServer[] = [];
    const candidates = [...entries].sort((one, other) => one.rank - other.rank)
      .flatMap((entry): Candidate[] => {
        const result = this.#candidateOf(entry);
        if (!("why" in result)) return [result];
        skipped.push({ entry, why: result.why });
        return [];
      });
    const variables = new ImportVariables({ redact: this.#redact, get });
    for (const { definition } of candidates) variables.reserve(definition);
    const taken: ImportableServer[] = [];
    const present = bySlug(definitions);
    const files: readonly PresentFile[] = [
      { present, imported },
      ...other === undefined ? [] : [{ ...other, present: bySlug(other.definitions) }],
    ];
    for (const candidate of candidates) {
      const result = checkCandidate(candidate, variables, files);
      if ("why" in result) skipped.push({ entry: candidate.entry, ...result });
      else taken.push(result);
      const own = "why" in result ? result.same : result;
      // A second server of this name is another one.
      if (own !== undefined && !present.has(own.name)) present.set(own.name, own.definition);
    }
    return { taken, skipped, values: variables.exact };
  }

  #candidateOf(entry: ClientEntry): Candidate | { readonly why: string } {
    if (isPml(entry)) return { why: "it is PML itself" };
    if (entry.disabled) return { why: "it is disabled" };
    const name = slug(entry.name);
    if (name === undefined) return { why: "PML does not allow this name" };
    if (this.#builtins.has(name)) {
      return { why: `PML has a server "${name}" built in; give it another name` };
    }
    const result = convertEntry(entry, this.#place);
    return "why" in result ? result : { entry, name, ...result };
  }
}

/** Returns a definition as questions show it. */
export function shownDefinition(
  { name, definition }: ImportableServer,
): ProgramDefinition | RemoteDefinition {
  const { command, args = [], env = {}, cwd, envFile, url = "", headers = {}, oauth } = definition;
  if (command === undefined) return { kind: "http", name, url, headers, oauth };
  return { kind: "stdio", name, command, args, env, ...withoutUndefined({ cwd, envFile }) };
}

function checkCandidate(
  candidate: Candidate,
  variables: ImportVariables,
  files: readonly PresentFile[],
): ImportableServer | Omit<SkippedServer, "entry"> {
  const { entry, name, definition: raw } = candidate;
  const problem = problemOf(entry.name, raw) ?? urlProblemOf(raw);
  if (problem !== undefined) return { why: problem };
  const at = `${entry.path}, ${entry.key.join(".")}`;
  const definition = variables.withoutSecrets(raw, { name, at });
  for (const file of files) {
    const same = sameServer({ name, definition }, file, variables);
    if (same !== undefined) return same;
  }
  if (files[0]?.present.has(name)) {
    return {
      why: `there is a server "${name}" already, with another definition`,
      isNameTaken: true,
    };
  }
  if (variables.containsSecret(JSON.stringify([entry.name, definition]))) {
    return {
      why: "it contains a text that looks like a key, at a place where no variable is allowed",
    };
  }
  return { ...candidate, definition, variables: variables.variablesOf(definition) };
}

/** Returns the server that a file has with this definition, or imported with it; otherwise undefined. */
function sameServer(
  { name, definition }: Pick<Candidate, "name" | "definition">,
  { path, present, imported }: PresentFile,
  variables: ImportVariables,
): Pick<SkippedServer, "why" | "same"> | undefined {
  const current = present.get(name);
  if (current === undefined) return undefined;
  const isSame = (one: unknown) =>
    isDeepStrictEqual(withoutVariableNames(one), withoutVariableNames(definition));
  const isChanged = !isSame(current);
  // After the import, the user or `pml learn` may have changed PML's definition, so the definition
  // at the time of the import counts, too.
  if (isChanged && imported?.get(name)?.some(isSame) !== true) return undefined;
  const where = path === undefined ? "" : `, in ${path}`;
  const why = isChanged
    ? `PML imported it; PML's definition of "${name}" changed since${where}`
    : `there is a server "${name}" already, with the same definition${where}`;
  const definitions = [current, ...imported?.get(name) ?? []];
  const isExact = definitions.some((one) => isDeepStrictEqual(withoutState(one), definition));
  // PML's definition has other variables if their values changed in PML since the import.
  const usedVariables = variables.variablesOf(
    isExact || isChanged ? definition : current as ClientDefinition,
  );
  return {
    why,
    same: { name, definition, variables: usedVariables, isChanged, isExact, otherPath: path },
  };
}

/** Returns why PML's schema does not accept a definition. The text never contains a value. */
function problemOf(title: string, definition: ClientDefinition): string | undefined {
  const issues: Issue[] = [];
  clientServersSchema({ [title]: definition }, { path: [], wrong: (issue) => issues.push(issue) });
  const [issue] = issues;
  if (issue === undefined) return undefined;
  const key = issue.path.slice(1, 2).join("");
  return `PML requires ${issue.wanted}${key === "" ? "" : ` as its ${key}`}`;
}

/**
 * Returns why an address is not valid, or why PML would not connect to it. A password in it would be
 * written to the file.
 */
function urlProblemOf({ url }: ClientDefinition): string | undefined {
  if (url === undefined) return undefined;
  const problem = addressProblem(url);
  if (problem !== undefined) return `its url is not ${problem}`;
  // Only the value of a variable may show the host.
  const address = URL.parse(url);
  return address?.protocol === "http:" && !isLoopback(address.hostname.replace(/\.$/, ""))
    ? "its url must begin with https://: PML uses http only for addresses of this machine"
    : undefined;
}

/** Returns whether an entry is PML, by its name or its command. */
export function isPml({ name, fields: { command, args } }: ClientEntry): boolean {
  const words = [command, ...listOf(args)].map(textOf);
  return name.toLowerCase() === "pml" || words.some((word) => word.includes("@casys/pml")) ||
    /^pml(\.exe|\.cmd)?$/i.test(basename(words[0]?.replaceAll("\\", "/") ?? ""));
}

function bySlug(servers: FileServers["definitions"] = {}): PresentFile["present"] {
  return new Map(Object.entries(servers).map(([name, definition]) => [slug(name), definition]));
}

function slug(name: string): string | undefined {
  try {
    return serverSlug(name);
  } catch {
    return undefined; // the caller reports it
  }
}

/** Returns a definition without the names of its variables, to compare definitions. */
function withoutVariableNames(definition: unknown): unknown {
  const text = JSON.stringify(withoutState(definition)) ?? "null";
  return JSON.parse(text.replace(/\$\{\w+/g, "${"));
}

/** Returns a definition without the setting that disables the server. */
function withoutState(definition: unknown): unknown {
  if (!isObject(definition)) return definition;
  const { disabled: _, ...rest } = definition;
  return rest;
}
