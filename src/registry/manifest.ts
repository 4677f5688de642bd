/**
 * Parses the manifests that registries send. Only this file converts their JSON.
 *
 * @module
 */

import { isLoopback } from "../core/address.ts";
import type { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import type { Manifest, ManifestUpstream } from "../core/manifest.ts";
import { parseToolId } from "../core/tool_id.ts";
import { permissionsOf, together, toolsOf, type ToolsRead } from "./_entry_tools.ts";
import {
  badEntry,
  isHeader,
  isPlain,
  isProgram,
  isSound,
  isTemplate,
  isVariable,
  MOST,
  neededIn,
  referencesOf,
  shownText,
  sorted,
  warningsOf,
} from "./_entry_words.ts";
import { entryName, type Fqdn, fqdnOf, isVersion } from "./fqdn.ts";
import { canonicalHash, isIntegrity } from "./integrity.ts";

/** The options of `parseManifest`. */
export interface ManifestOptions {
  /** The URL of the registry that sent it. */
  readonly url: string;
  /** The name that was asked for. */
  readonly asked: Fqdn;
  /** Hosts of this machine, with their ports, that a server may use without TLS. */
  readonly named?: ReadonlySet<string>;
  /** Is called for each tool that is left out, with the reason. */
  readonly onLeftOut?: (tool: string, reason: string) => void;
}

interface MemberKind<T> {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
  readonly as?: T;
}

/** Returns the value of a key if it is of a kind; throws otherwise. Null counts as missing. */
type ReadMember = <T>(key: string, value: unknown, kind: MemberKind<T>) => T;

type Texts = Readonly<Record<string, string>>;
type Members = Readonly<Record<string, unknown>>;

const DEEPEST = 64;
/** The type of a capability that somebody saved. It runs where a module does. */
export const CAPABILITY = "capability";
const LONGEST_URL = 2_000;

const ENTRY: MemberKind<Members> = { wanted: "an object", is: isObject };
const MEMBERS: MemberKind<Members | undefined> = {
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
const COMMAND: MemberKind<string> = {
  wanted: "the name of a program, without a path, that is no shell",
  is: (value) => typeof value === "string" && isProgram(value),
};
const TOOLS: MemberKind<readonly unknown[] | undefined> = {
  wanted: `an array of at most ${MOST.tools} tools`,
  is: (value) => value === undefined || Array.isArray(value) && value.length <= MOST.tools,
};
const ARGS = texts("plain texts", isPlain);
const HOST: MemberKind<string> = {
  wanted: "a host",
  is: (value) => typeof value === "string" && /^[\w.:[\]-]{1,255}$/.test(value),
};
const HEADERS = texts("names of headers", isHeader);
const CALLS = texts("names of tools", (name) => parseToolId(name) === name);
const VARIABLES = texts("names of variables that a server may ask for", isVariable);

/** Parses a registry entry. Throws REGISTRY_BAD_RESPONSE if it is not valid. */
export function parseManifest(json: unknown, options: ManifestOptions): Manifest {
  const { asked, onLeftOut = () => {} } = options;
  const wrong = (why: string) => refused(options, why);
  const read: ReadMember = (key, value, { wanted, is }) => {
    const found = value ?? undefined;
    if (is(found)) return found as never; // its kind was checked
    const said = found === undefined ? "missing" : quoted(JSON.stringify(found));
    throw wrong(`${key} is ${said}, wanted ${wanted}`);
  };
  if (!isSound(json, DEEPEST)) throw wrong("it is nested too deep, or is no valid JSON");
  const entry = read("it", json, ENTRY);
  const version = read("version", entry.version, VERSION);
  read("fqdn", entry.fqdn, nameKind(asked, version));
  // A number is an exact version. Anything else after the `@` is a tag.
  const { version: exact = "" } = asked;
  if (/^\d+\.\d/.test(exact)) {
    read("version", version, { wanted: quoted(exact), is: (value) => value === exact });
  }
  const listed = toolsOf(read("tools", entry.tools, TOOLS) ?? [], { asked, onLeftOut });
  const base = {
    fqdn: entryName(asked),
    name: asked.name,
    version,
    description: shownText(read("description", entry.description, DESCRIPTION)),
    tools: listed.tools,
    envRequired: sorted(read("env_required", entry.env_required, VARIABLES) ?? []),
    warnings: warningsOf(entry.warnings ?? undefined),
    routing: read("routing", entry.routing, ROUTING),
  };
  return { ...base, ...kindOf(entry, { read, options, listed, envRequired: base.envRequired }) };
}

function kindOf(
  entry: Members,
  { read, options, listed, envRequired }: {
    readonly read: ReadMember;
    readonly options: ManifestOptions;
    readonly listed: ToolsRead;
    readonly envRequired: readonly string[];
  },
) {
  const wrong = (why: string) => refused(options, why);
  switch (entry.type) {
    case options.asked.action && CAPABILITY:
    case "deno": {
      const own = permissionsOf(entry.permissions ?? {}, wrong);
      const permissions = together([own, ...listed.permissions], wrong);
      const integrity = read("integrity", entry.integrity, INTEGRITY);
      const isSaved = entry.type === CAPABILITY;
      const calls = isSaved && (read("tools_used", entry.tools_used, CALLS) ?? []);
      return { kind: "deno", integrity, permissions, ...(calls && { calls }) } as const;
    }
    case "stdio": {
      const install = read("install", entry.install, ENTRY);
      const more = read("install.env_required", install.env_required, VARIABLES) ?? [];
      return {
        kind: "stdio",
        envRequired: sorted([...envRequired, ...more]),
        command: read("install.command", install.command, COMMAND),
        args: read("install.args", install.args, ARGS) ?? [],
        env: values("install.env", install.env, { read, isName: isVariable }),
      } as const;
    }
    case "http": {
      const url = address("url", entry.url, { read, options });
      const headers = values("headers", entry.headers, { read, isName: isHeader });
      return { kind: "http", url, headers } as const;
    }
    case "cloud":
      return {
        kind: "cloud",
        proxyTo: address("proxy_to", entry.proxy_to, { read, options }),
        ...upstreamOf(read("upstream", entry.upstream, MEMBERS), read),
      } as const;
    default:
      return read<never>("type", entry.type, {
        wanted: "deno, stdio, http or cloud",
        is: () => false,
      });
  }
}

function upstreamOf(
  upstream: Members | undefined,
  read: ReadMember,
): { readonly upstream?: ManifestUpstream } {
  if (upstream === undefined) return {};
  const host = read("upstream.host", upstream.host, HOST);
  const headers = sorted(read("upstream.headers", upstream.headers, HEADERS) ?? []);
  return { upstream: { host, headers, hash: read("upstream.hash", upstream.hash, INTEGRITY) } };
}

/**
 * Returns the hash of everything in a manifest that an approval is bound to: all but its
 * description. The order of keys and tools does not matter.
 */
export function manifestHash({ description: _, ...manifest }: Manifest): string {
  const tools = manifest.tools.toSorted((a, b) => a.name < b.name ? -1 : 1);
  return canonicalHash({ ...manifest, tools });
}

/** Returns the names of all variables that a server uses, required or not. */
export function variablesOf(manifest: Manifest): readonly string[] {
  const asked = manifest.kind === "deno" ? manifest.permissions.env : [];
  const named = templatesOf(manifest).flatMap(referencesOf);
  return sorted([...manifest.envRequired, ...named, ...asked]);
}

/** Returns the names of the variables that a server requires. */
export function requiredOf(manifest: Manifest): readonly string[] {
  return sorted([...manifest.envRequired, ...templatesOf(manifest).flatMap(neededIn)]);
}

/** Returns the texts in which variables are replaced, arguments among them. */
function templatesOf(manifest: Manifest): readonly string[] {
  switch (manifest.kind) {
    case "stdio":
      return [...manifest.args, ...Object.values(manifest.env)];
    case "http":
      return Object.values(manifest.headers);
    case "deno":
    case "cloud":
      return [];
  }
}

/** Parses names with values, which may refer to variables. */
function values(
  key: string,
  said: unknown,
  { read, isName }: { readonly read: ReadMember; readonly isName: (text: string) => boolean },
): Texts {
  const members = Object.entries(read(key, said, MEMBERS) ?? {});
  const few: MemberKind<typeof members> = {
    wanted: `at most ${MOST.texts} of them`,
    is: () => members.length <= MOST.texts,
  };
  return Object.fromEntries(
    read(key, members, few).map(([name, value]) => [
      read(`a name in ${key}`, name, {
        wanted: "one that a server may set",
        is: () => isName(name),
      } as MemberKind<string>),
      read(`${key}.${name}`, value, {
        wanted: "a plain text; only ${NAME} and ${NAME:-default} are replaced",
        is: () => isTemplate(value),
      } as MemberKind<string>),
    ]),
  );
}

function address(
  key: string,
  said: unknown,
  { read, options: { named } }: { readonly read: ReadMember; readonly options: ManifestOptions },
): string {
  const url = typeof said === "string" && said.length <= LONGEST_URL && isPlain(said)
    ? URL.parse(said)
    : null;
  const isHere = url?.protocol === "http:" && isLoopback(url.hostname) &&
    named?.has(url.host) === true;
  const is = url !== null && (url.protocol === "https:" || isHere) &&
    url.username === "" && url.password === "" && !url.href.includes("#");
  const kind: MemberKind<string> = {
    wanted: "an https address without user and fragment",
    is: () => is,
  };
  read(key, said, kind);
  return url?.href ?? "";
}

function texts(
  what: string,
  is: (text: string) => boolean,
): MemberKind<readonly string[] | undefined> {
  return {
    wanted: `an array of at most ${MOST.texts} ${what}`,
    is: (value) =>
      value === undefined ||
      Array.isArray(value) && value.length <= MOST.texts &&
        value.every((one) => typeof one === "string" && is(one)),
  };
}

function nameKind(asked: Fqdn, version: string): MemberKind<string> {
  const wanted = entryName(asked);
  return {
    wanted: quoted(wanted),
    is: (value) => {
      const said = typeof value === "string" ? fqdnOf(value) : undefined;
      return said !== undefined && entryName(said) === wanted &&
        (said.version === undefined || said.version === version);
    },
  };
}

function refused({ url, asked }: ManifestOptions, why: string): PmlError {
  return badEntry({ name: entryName(asked), url, why });
}
