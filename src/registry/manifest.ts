/**
 * Parses the manifests of registries. Only this file converts their JSON.
 *
 * @module
 */

import { isLoopback } from "../core/address.ts";
import type { PmlError } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import type { Manifest } from "../servers/manifest.ts";
import type { ManifestReader, MemberKind } from "../servers/kind.ts";
import { codeManifest, kindOf, KINDS, manifestKindOf } from "../servers/kinds.ts";
import {
  combinePermissions,
  entryTools,
  type OmittedTool,
  type ParsedTools,
  permissionsOf,
} from "./_entry_tools.ts";
import {
  badEntryError,
  entryWarnings,
  isPlain,
  isSound,
  isTemplate,
  isVariable,
  MOST,
  referencesOf,
  requiredVariablesIn,
  shownText,
  sortedNames,
} from "./_entry_words.ts";
import { entryName, type Fqdn, fqdnOf, isVersion } from "./fqdn.ts";
import { canonicalHash, isIntegrity } from "../policy/integrity.ts";

export type { OmittedTool };

/** The options of `parseManifest`. */
export interface ManifestOptions {
  /** The URL of the registry that sent the manifest. */
  readonly url: string;
  /** The requested name. */
  readonly asked: Fqdn;
  /** Hosts of this machine, with their ports, that a server may use without TLS. */
  readonly plainHttpHosts?: ReadonlySet<string>;
  /** Receives the omitted tools, even if the entry itself is then refused. */
  readonly leftOut?: OmittedTool[];
}

type ManifestMembers = Readonly<Record<string, unknown>>;

/** The maximum depth of an entry, and the maximum length of an address, in characters. */
const DEEPEST = 64;
const LONGEST_URL = 2_000;

const ENTRY: MemberKind<ManifestMembers> = { wanted: "an object", is: isObject };
const MEMBERS: MemberKind<ManifestMembers | undefined> = {
  wanted: "an object",
  is: (value) => value === undefined || isObject(value),
};
const INTEGRITY: MemberKind<string> = {
  wanted: '"sha256-" and 64 hexadecimal digits',
  is: isIntegrity,
};
const VERSION: MemberKind<string> = {
  wanted: "a version",
  is: (value) => typeof value === "string" && isVersion(value),
};
const DESCRIPTION: MemberKind<string | undefined> = {
  wanted: "a text",
  is: (value) => value === undefined || typeof value === "string",
};
const ROUTING: MemberKind<"local" | "cloud" | undefined> = {
  wanted: '"local" or "cloud"',
  is: (value) => value === undefined || value === "local" || value === "cloud",
};
const PLAIN = { what: "plain texts", is: isPlain };
const VARIABLE = { what: "names of variables that a server may ask for", is: isVariable };
const TOOLS: MemberKind<readonly unknown[] | undefined> = {
  wanted: `an array of at most ${MOST.tools} tools`,
  is: (value) => value === undefined || Array.isArray(value) && value.length <= MOST.tools,
};
/** Parses a registry entry. Throws REGISTRY_BAD_RESPONSE if it is not valid. */
export function parseManifest(json: unknown, options: ManifestOptions): Manifest {
  const { asked, leftOut = [] } = options;
  const reader = new EntryReader(options);
  if (!isSound(json, DEEPEST)) throw reader.wrong("it is nested too deep, or is not valid JSON");
  const entry = reader.read("it", json, ENTRY);
  const version = reader.read("version", entry.version, VERSION);
  reader.read("fqdn", entry.fqdn, nameKind(asked, version));
  // A number is an exact version. Anything else after the `@` is a tag.
  const { version: exact = "" } = asked;
  if (/^\d+\.\d/.test(exact)) {
    reader.read("version", version, { wanted: quoted(exact), is: (value) => value === exact });
  }
  const parsedTools = entryTools(reader.read("tools", entry.tools, TOOLS) ?? [], asked);
  leftOut.push(...parsedTools.leftOut);
  const base = {
    fqdn: entryName(asked),
    name: asked.name,
    version,
    description: shownText(reader.read("description", entry.description, DESCRIPTION)),
    tools: parsedTools.tools,
    envRequired: reader.variables("env_required", entry.env_required),
    warnings: entryWarnings(entry.warnings ?? undefined),
    routing: reader.read("routing", entry.routing, ROUTING),
  };
  const kinds = KINDS.flatMap(({ name, manifest }) => manifest ? [{ name, ...manifest }] : []);
  const kind = kinds.find(({ name, isAction = false }) =>
    name === entry.type && (!isAction || asked.action !== undefined)
  );
  const names = kinds.filter(({ isAction }) => !isAction).map(({ name }) => name);
  const expected = `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
  if (kind === undefined) {
    return reader.read("type", entry.type, {
      wanted: expected,
      is: () => false,
    });
  }
  const { envRequired: required } = base;
  const kindMembers = kind.read(
    reader.forKind(entry, { parsedTools, envRequired: required }),
  );
  const envRequired = sortedNames(kindMembers.envRequired ?? required);
  return { ...base, ...kindMembers, envRequired, kind: kind.name };
}

/** The parts of an entry that are parsed before the members of its kind. */
interface EntryParts {
  readonly parsedTools: ParsedTools;
  readonly envRequired: readonly string[];
}

/** Reads the members of an entry, and names the entry and its registry in errors. */
class EntryReader {
  readonly #options: ManifestOptions;

  constructor(options: ManifestOptions) {
    this.#options = options;
  }

  /** Returns the reader with which a kind of server reads its own members. */
  forKind(entry: ManifestMembers, { parsedTools, envRequired }: EntryParts): ManifestReader {
    return {
      entry,
      envRequired,
      read: (...args) => this.read(...args),
      object: (key, value) => this.read(key, value, ENTRY),
      objectIfAny: (key, value) => this.read(key, value, MEMBERS),
      integrity: (key, value) => this.read(key, value, INTEGRITY),
      texts: (key, value, item) => this.texts(key, value, item),
      variables: (key, value) => this.variables(key, value),
      plainTexts: (key, value) => this.texts(key, value, PLAIN),
      environment: (key, value) => this.values(key, value, isVariable),
      values: (key, value, isName) => this.values(key, value, isName),
      address: (key, value) => this.address(key, value),
      permissions: () => {
        const wrong = (why: string) => this.wrong(why);
        const ownPermissions = permissionsOf(entry.permissions ?? {}, wrong);
        return combinePermissions([ownPermissions, ...parsedTools.permissions], wrong);
      },
    };
  }

  /** Returns the error for an invalid entry. */
  wrong(why: string): PmlError {
    const { url, asked } = this.#options;
    return badEntryError({ name: entryName(asked), url, why });
  }

  /** Returns the value of a key if it is of a kind; throws otherwise. Null counts as missing. */
  read<T>(key: string, value: unknown, { wanted, is }: MemberKind<T>): T {
    const member = value ?? undefined;
    if (is(member)) return member as never; // its kind was checked
    const shownValue = member === undefined ? "missing" : visible(JSON.stringify(member), 80);
    throw this.wrong(`${key} is ${shownValue}, wanted ${wanted}`);
  }

  /** Returns a list of variable names. Throws if a server may not require one of them. */
  variables(key: string, value: unknown): readonly string[] {
    return this.texts(key, value, VARIABLE);
  }

  /** Returns a list of texts that each pass a test; empty if it is missing. */
  texts(
    key: string,
    value: unknown,
    { what, is }: { readonly what: string; readonly is: (text: string) => boolean },
  ): readonly string[] {
    const kind: MemberKind<readonly string[] | undefined> = {
      wanted: `an array of at most ${MOST.texts} ${what}`,
      is: (value) =>
        value === undefined ||
        Array.isArray(value) && value.length <= MOST.texts &&
          value.every((one) => typeof one === "string" && is(one)),
    };
    return this.read(key, value, kind) ?? [];
  }

  /** Returns names with values, which may refer to variables. */
  values(
    key: string,
    value: unknown,
    isName: (text: string) => boolean,
  ): Readonly<Record<string, string>> {
    const members = Object.entries(this.read(key, value, MEMBERS) ?? {});
    const few: MemberKind<typeof members> = {
      wanted: `at most ${MOST.texts} of them`,
      is: () => members.length <= MOST.texts,
    };
    return Object.fromEntries(
      this.read(key, members, few).map(([name, value]) => [
        this.read<string>(`a name in ${key}`, name, {
          wanted: "one that a server may set",
          is: () => isName(name),
        }),
        this.read<string>(`${key}.${name}`, value, {
          wanted: "a plain text; only ${NAME} and ${NAME:-default} are replaced",
          is: () => isTemplate(value),
        }),
      ]),
    );
  }

  /** Returns an address that PML may send requests to. */
  address(key: string, value: unknown): string {
    const { plainHttpHosts } = this.#options;
    const url = typeof value === "string" && value.length <= LONGEST_URL && isPlain(value)
      ? URL.parse(value)
      : null;
    const isPlainHttpAllowed = url?.protocol === "http:" && isLoopback(url.hostname) &&
      plainHttpHosts?.has(url.host) === true;
    const is = url !== null && (url.protocol === "https:" || isPlainHttpAllowed) &&
      url.username === "" && url.password === "" && !url.href.includes("#");
    const kind: MemberKind<string> = {
      wanted: "an https address without user and fragment",
      is: () => is,
    };
    this.read(key, value, kind);
    return url?.href ?? "";
  }
}

/**
 * Returns the hash of a manifest that approvals bind to. It covers everything but the description.
 * The order of keys and tools does not matter.
 */
export function manifestHash({ description: _, ...manifest }: Manifest): string {
  const tools = manifest.tools.toSorted((a, b) => a.name < b.name ? -1 : 1);
  return canonicalHash({ ...manifest, kind: kindOf(manifest).pinnedAs, tools });
}

/** Returns the names of all variables that a server uses, required or not. */
export function manifestVariables(manifest: Manifest): readonly string[] {
  const names = codeManifest(manifest)?.permissions.env ?? [];
  const referenced = templatesOf(manifest).flatMap(referencesOf);
  return sortedNames([...manifest.envRequired, ...referenced, ...names]);
}

/** Returns the names of the variables that a server requires. */
export function requiredVariables(manifest: Manifest): readonly string[] {
  return sortedNames([
    ...manifest.envRequired,
    ...templatesOf(manifest).flatMap(requiredVariablesIn),
  ]);
}

/** Returns the texts in which variables are replaced, including arguments. */
function templatesOf(manifest: Manifest): readonly string[] {
  return manifestKindOf(manifest).templates?.(manifest) ?? [];
}

function nameKind(fqdn: Fqdn, version: string): MemberKind<string> {
  const expected = entryName(fqdn);
  return {
    wanted: quoted(expected),
    is: (value) => {
      const parsed = typeof value === "string" ? fqdnOf(value) : undefined;
      return parsed !== undefined && entryName(parsed) === expected &&
        (parsed.version === undefined || parsed.version === version);
    },
  };
}
