/**
 * Converts a `server.json` of the official MCP Registry to an entry of PML's own API.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { numberText } from "../core/exact_number.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  memberOf,
  objectOf,
  quoted,
  textOf,
} from "../core/json.ts";

/** The result of converting a `server.json`. */
export type Offer =
  | { readonly kind: "entry"; readonly json: JsonObject }
  /** The server was deleted. */
  | { readonly kind: "deleted" }
  /** PML can run none of its packages and remotes; with the reason. */
  | { readonly kind: "refused"; readonly why: string };

/** The variables without which the server does not start. */
type NeededVariables = Set<string>;

const OFFICIAL = "io.modelcontextprotocol.registry/official";
const NPM_NAME = /^(@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i;
const PYPI_NAME = /^[a-z0-9]([\w.-]*[a-z0-9])?$/i;
const NPM_VERSION = /^\d+\.\d+\.\d+([-+][\w.+-]*)?$/;
const PYPI_VERSION = /^(\d+!)?\d(?!.*\.x(\.|$))[\w.+-]*$/i;
/** Options of a package runner that do not change the program. */
const IDLE = ["-y", "--yes", "-q", "--quiet"];
/** A placeholder for references while the text around them is checked. */
const GAP = "\u0000";

/**
 * The installers of package types. `home` is the second-level domain of the registry that they use.
 */
const INSTALLERS: Readonly<Record<string, PackageInstaller | undefined>> = {
  npm: {
    home: "npmjs",
    runs: { npx: ["npx", "-y"], bunx: ["bunx"] },
    name: NPM_NAME,
    version: NPM_VERSION,
  },
  pypi: {
    home: "pypi",
    runs: { uvx: ["uvx"] },
    name: PYPI_NAME,
    version: PYPI_VERSION,
  },
};

interface PackageInstaller {
  readonly home: string;
  /** The commands by the package's `runtimeHint`. The first one is the default. */
  readonly runs: Readonly<Record<string, readonly [string, ...string[]] | undefined>>;
  readonly name: RegExp;
  readonly version: RegExp;
}

/** Converts the name of a server in the registry to its name in PML. */
export function nameHere(name: string): string {
  return name.toLowerCase().replace("/", ".");
}

/**
 * Converts one version of a server. Uses the first package that PML can install, or else the first
 * remote.
 */
export function offerOf(response: unknown): Offer {
  const { server, _meta } = objectOf(response);
  const entry = objectOf(server);
  const meta = objectOf(objectOf(_meta ?? entry._meta)[OFFICIAL]);
  const status = textOf(meta.status ?? entry.status);
  if (status === "deleted") return { kind: "deleted" };
  const ways = [
    ...listOf(entry.packages).map((one) => () => packaged(objectOf(one))),
    ...listOf(entry.remotes).map((one) => () => remote(objectOf(one))),
  ];
  const why: string[] = [];
  for (const way of ways) {
    try {
      const json = way();
      const message = textOf(meta.statusMessage);
      return {
        kind: "entry",
        json: {
          fqdn: nameHere(textOf(entry.name)),
          version: textOf(entry.version),
          description: textOf(entry.description),
          tools: [],
          warnings: status === "deprecated" ? [`deprecated${message && `: ${message}`}`] : [],
          routing: "local",
          ...json,
        },
      };
    } catch (error) {
      if (!(error instanceof PmlError)) throw error;
      why.push(error.message);
    }
  }
  return {
    kind: "refused",
    why: [...new Set(why)].join("; ") || "it has no package and no remote",
  };
}

function packaged(offer: JsonObject): JsonObject {
  const type = textOf(offer.registryType);
  const installer = memberOf(INSTALLERS, type);
  if (installer === undefined) throw unfit(`PML installs no packages of type ${quoted(type)}`);
  const identifier = textOf(offer.identifier);
  const package_ = `the package ${quoted(identifier)}`;
  if (!installer.name.test(identifier)) throw unfit(`${package_} has an invalid package name`);
  const transport = textOf(objectOf(offer.transport).type ?? "stdio");
  if (transport !== "stdio") throw unfit(`${package_} uses ${quoted(transport)}, not stdio`);
  const version = textOf(offer.version);
  if (!installer.version.test(version)) {
    throw unfit(`${package_} has no exact version, but ${quoted(version)}`);
  }
  const base = textOf(offer.registryBaseUrl);
  if (base !== "" && homeOf(base) !== installer.home) {
    throw unfit(`${package_} comes from ${quoted(base)}, which PML does not use`);
  }
  const hint = textOf(offer.runtimeHint ?? Object.keys(installer.runs)[0]);
  const command = memberOf(installer.runs, hint);
  if (command === undefined) throw unfit(`${package_} is run by ${quoted(hint)}`);
  const odd = listOf(offer.runtimeArguments).map((one) => {
    const { name, value } = objectOf(one);
    return textOf(name ?? value);
  }).find((one) => !IDLE.includes(one));
  if (odd !== undefined) throw unfit(`${package_} wants ${quoted(hint)} to get ${quoted(odd)}`);
  const needed: NeededVariables = new Set();
  const [program, ...first] = command;
  const args = argumentsOf(listOf(offer.packageArguments), needed);
  const env = inputsOf(listOf(offer.environmentVariables), { needed, nameOf: (name) => name });
  return {
    type: "stdio",
    install: {
      command: program,
      args: [...first, `${identifier}@${version}`, ...args],
      env,
      env_required: [...needed],
    },
    env_required: [...needed],
  };
}

function remote(offer: JsonObject): JsonObject {
  const type = textOf(offer.type);
  if (type !== "streamable-http") {
    throw unfit(`PML supports no remote of type ${quoted(type)}, only "streamable-http"`);
  }
  const variables = objectOf(offer.variables);
  const url = textOf(offer.url).replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const { value, default: otherwise } = objectOf(memberOf(variables, name));
    const filled = value ?? otherwise;
    if (filled !== undefined) return plainText(filled);
    throw unfit(`its URL has the variable ${quoted(name)}, which PML does not replace`);
  });
  if (!url.startsWith("https://")) throw unfit(`its address ${quoted(url)} is not https`);
  const needed: NeededVariables = new Set();
  const headers = inputsOf(listOf(offer.headers), { needed, nameOf: variableOf });
  return { type: "http", url, headers, env_required: [...needed] };
}

/** Returns the arguments of a program. No argument is split or joined. */
function argumentsOf(all: readonly unknown[], needed: NeededVariables): readonly string[] {
  const args: string[] = [];
  let isMissing = false;
  for (const one of all.map(objectOf)) {
    const isNamed = one.type === "named";
    const name = textOf(one.name);
    const own = textOf(one.valueHint) || name;
    const text = inputOf(one, { needed, variable: () => variableOf(own), isArgument: true });
    if (isNamed) {
      if (text === undefined && !isFlag(one)) continue;
      // The value of a short option is the next argument.
      const isLong = name.startsWith("--");
      args.push(
        ...text === undefined
          ? [literal(name)]
          : isLong
          ? [`${literal(name)}=${text}`]
          : [literal(name), text],
      );
    } else if (text === undefined) isMissing = true;
    else if (isMissing) throw unfit("an argument without a value precedes others");
    else args.push(text);
  }
  return args;
}

/** Returns whether an option takes no value. */
function isFlag(input: JsonObject): boolean {
  const filled = ["valueHint", "choices", "placeholder", "variables"];
  return filled.every((key) => input[key] === undefined) &&
    (input.format === undefined || input.format === "boolean");
}

/** Returns the values of variables or headers. */
function inputsOf(
  all: readonly unknown[],
  { needed, nameOf }: {
    readonly needed: NeededVariables;
    readonly nameOf: (name: string) => string;
  },
): Readonly<Record<string, string>> {
  return Object.fromEntries(all.map((one) => {
    const input = objectOf(one);
    const name = textOf(input.name);
    return [name, inputOf(input, { needed, variable: () => nameOf(name) }) ?? ""];
  }));
}

/**
 * Returns a fixed value or a reference to a variable; undefined for an argument that has neither.
 */
function inputOf(
  input: JsonObject,
  { needed, variable, isArgument = false }: {
    readonly needed: NeededVariables;
    readonly variable: () => string;
    readonly isArgument?: boolean;
  },
): string | undefined {
  const { value, variables, isRequired, default: otherwise } = withoutNull(input);
  if (value !== undefined) {
    return filledIn(plainText(value), { variables: objectOf(variables), needed });
  }
  if (isArgument && isRequired !== true && otherwise === undefined) return undefined;
  return reference(variable(), { input, needed });
}

/** Replaces variable names in braces by references. Undeclared names stay unchanged. */
function filledIn(
  value: string,
  { variables, needed }: { readonly variables: JsonObject; readonly needed: NeededVariables },
): string {
  const references: string[] = [];
  const gapped = literal(value).replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const value = memberOf(variables, name);
    if (!isObject(value)) return whole;
    if (value.value !== undefined) return literal(plainText(value.value));
    references.push(reference(variableOf(name), { input: objectOf(value), needed }));
    return GAP;
  });
  // Joined parts could form an undeclared reference.
  return gapped.split(GAP).map(literal).join(GAP).replaceAll(GAP, () => references.shift() ?? "");
}

function reference(
  name: string,
  { input, needed }: { readonly input: JsonObject; readonly needed: NeededVariables },
): string {
  const { default: otherwise, isRequired } = withoutNull(input);
  const fallback = otherwise === undefined ? undefined : plainText(otherwise);
  if (fallback !== undefined && !/[{}\p{Cc}]/u.test(fallback)) return `\${${name}:-${fallback}}`;
  if (isRequired !== true) return `\${${name}:-}`;
  needed.add(name);
  return `\${${name}}`;
}

/** Throws if a literal text contains a reference that PML would replace. */
function literal(text: string): string {
  if (text.includes("${")) throw unfit(`PML would replace a reference in ${quoted(text)}`);
  if (/\p{Cc}/u.test(text)) throw unfit("a value contains a control character");
  return text;
}

function variableOf(name: string): string {
  const variable = name.replace(/^\W+/, "").replace(/\W+/g, "_").toUpperCase();
  if (/^[A-Z_]/.test(variable)) return variable;
  throw unfit(`${quoted(name)} is not a valid variable name`);
}

/** Returns the second-level domain of a URL's host. */
function homeOf(url: string): string | undefined {
  return URL.parse(url)?.hostname.split(".").at(-2);
}

function withoutNull(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, value]) => value !== null));
}

/** Converts a value to text: some servers publish numbers and booleans instead of strings. */
function plainText(value: unknown): string {
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  const number = numberText(value);
  if (number !== undefined) return number;
  throw unfit("a value is not a text");
}

function unfit(why: string): PmlError {
  return new PmlError("REGISTRY_BAD_RESPONSE", why);
}
