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
  /** PML can run none of the server's packages and remotes, for this reason. */
  | { readonly kind: "refused"; readonly why: string };

/** The variables without which the server does not start. */
type NeededVariables = Set<string>;

const OFFICIAL = "io.modelcontextprotocol.registry/official";
const NPM_NAME = /^(@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i;
const PYPI_NAME = /^[a-z0-9]([\w.-]*[a-z0-9])?$/i;
const NPM_VERSION = /^\d+\.\d+\.\d+([-+][\w.+-]*)?$/;
const PYPI_VERSION = /^(\d+!)?\d(?!.*\.x(\.|$))[\w.+-]*$/i;
/** Options of a package runner that do not change the program. */
const HARMLESS = ["-y", "--yes", "-q", "--quiet"];
/** A placeholder for references while the text around them is checked. */
const GAP = "\u0000";

/** The installers, by the type of the package. */
const INSTALLERS: Readonly<Record<string, PackageInstaller | undefined>> = {
  npm: {
    registryDomain: "npmjs",
    commands: { npx: ["npx", "-y"], bunx: ["bunx"] },
    name: NPM_NAME,
    version: NPM_VERSION,
  },
  pypi: {
    registryDomain: "pypi",
    commands: { uvx: ["uvx"] },
    name: PYPI_NAME,
    version: PYPI_VERSION,
  },
};

interface PackageInstaller {
  /** The second-level domain of the registry that the installer uses. */
  readonly registryDomain: string;
  /** The commands by the package's `runtimeHint`. The first one is the default. */
  readonly commands: Readonly<Record<string, readonly [string, ...string[]] | undefined>>;
  readonly name: RegExp;
  readonly version: RegExp;
}

/** Converts the name of a server in the registry to its name in PML. */
export function pmlName(name: string): string {
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
  const conversions = [
    ...listOf(entry.packages).map((offer) => () => packageEntry(objectOf(offer))),
    ...listOf(entry.remotes).map((offer) => () => remoteEntry(objectOf(offer))),
  ];
  const reasons: string[] = [];
  for (const convert of conversions) {
    try {
      const json = convert();
      const message = textOf(meta.statusMessage);
      return {
        kind: "entry",
        json: {
          fqdn: pmlName(textOf(entry.name)),
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
      reasons.push(error.message);
    }
  }
  return {
    kind: "refused",
    why: [...new Set(reasons)].join("; ") || "it has no package and no remote",
  };
}

function packageEntry(offer: JsonObject): JsonObject {
  const type = textOf(offer.registryType);
  const installer = memberOf(INSTALLERS, type);
  if (installer === undefined) throw unfitError(`PML installs no packages of type ${quoted(type)}`);
  const identifier = textOf(offer.identifier);
  const package_ = `the package ${quoted(identifier)}`;
  if (!installer.name.test(identifier)) throw unfitError(`${package_} has an invalid package name`);
  const transport = textOf(objectOf(offer.transport).type ?? "stdio");
  if (transport !== "stdio") throw unfitError(`${package_} uses ${quoted(transport)}, not stdio`);
  const version = textOf(offer.version);
  if (!installer.version.test(version)) {
    throw unfitError(`${package_} has no exact version, but ${quoted(version)}`);
  }
  const base = textOf(offer.registryBaseUrl);
  if (base !== "" && secondLevelDomain(base) !== installer.registryDomain) {
    throw unfitError(`${package_} comes from ${quoted(base)}, which PML does not use`);
  }
  const hint = textOf(offer.runtimeHint ?? Object.keys(installer.commands)[0]);
  const command = memberOf(installer.commands, hint);
  if (command === undefined) throw unfitError(`${package_} is run by ${quoted(hint)}`);
  const unsupported = listOf(offer.runtimeArguments).map((one) => {
    const { name, value } = objectOf(one);
    return textOf(name ?? value);
  }).find((one) => !HARMLESS.includes(one));
  if (unsupported !== undefined) {
    throw unfitError(`${package_} wants ${quoted(hint)} to get ${quoted(unsupported)}`);
  }
  const needed: NeededVariables = new Set();
  const [program, ...firstArguments] = command;
  const args = argumentsOf(listOf(offer.packageArguments), needed);
  const env = inputsOf(listOf(offer.environmentVariables), { needed, nameOf: (name) => name });
  return {
    type: "stdio",
    install: {
      command: program,
      args: [...firstArguments, `${identifier}@${version}`, ...args],
      env,
      env_required: [...needed],
    },
    env_required: [...needed],
  };
}

function remoteEntry(offer: JsonObject): JsonObject {
  const type = textOf(offer.type);
  if (type !== "streamable-http") {
    throw unfitError(`PML supports no remote of type ${quoted(type)}, only "streamable-http"`);
  }
  const variables = objectOf(offer.variables);
  const url = textOf(offer.url).replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const { value, default: defaultValue } = objectOf(memberOf(variables, name));
    const filled = value ?? defaultValue;
    if (filled !== undefined) return plainText(filled);
    throw unfitError(`its URL has the variable ${quoted(name)}, which PML does not replace`);
  });
  if (!url.startsWith("https://")) throw unfitError(`its address ${quoted(url)} is not https`);
  const needed: NeededVariables = new Set();
  const headers = inputsOf(listOf(offer.headers), { needed, nameOf: variableOf });
  return { type: "http", url, headers, env_required: [...needed] };
}

/** Returns the arguments of a program. A value is never split into several arguments. */
function argumentsOf(all: readonly unknown[], needed: NeededVariables): readonly string[] {
  const args: string[] = [];
  let isMissing = false;
  for (const input of all.map(objectOf)) {
    const isNamed = input.type === "named";
    const name = textOf(input.name);
    const valueName = textOf(input.valueHint) || name;
    const variable = () => variableOf(valueName);
    const text = inputOf(input, { needed, variable, isArgument: true });
    if (isNamed) {
      if (text === undefined && !isFlag(input)) continue;
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
    else if (isMissing) throw unfitError("an argument without a value precedes others");
    else args.push(text);
  }
  return args;
}

/** Returns whether an option takes no value. */
function isFlag(input: JsonObject): boolean {
  const valueKeys = ["valueHint", "choices", "placeholder", "variables"];
  return valueKeys.every((key) => input[key] === undefined) &&
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
  const { value, variables, isRequired, default: defaultValue } = withoutNull(input);
  if (value !== undefined) {
    return filledIn(plainText(value), { variables: objectOf(variables), needed });
  }
  if (isArgument && isRequired !== true && defaultValue === undefined) return undefined;
  return reference(variable(), { input, needed });
}

/** Replaces variable names in braces by references. Undeclared names stay unchanged. */
function filledIn(
  value: string,
  { variables, needed }: { readonly variables: JsonObject; readonly needed: NeededVariables },
): string {
  const references: string[] = [];
  const withGaps = literal(value).replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const value = memberOf(variables, name);
    if (!isObject(value)) return whole;
    if (value.value !== undefined) return literal(plainText(value.value));
    references.push(reference(variableOf(name), { input: objectOf(value), needed }));
    return GAP;
  });
  // The joined parts are checked, too, because together they could form a reference.
  return withGaps.split(GAP).map(literal).join(GAP).replaceAll(GAP, () => references.shift() ?? "");
}

function reference(
  name: string,
  { input, needed }: { readonly input: JsonObject; readonly needed: NeededVariables },
): string {
  const { default: defaultValue, isRequired } = withoutNull(input);
  const fallback = defaultValue === undefined ? undefined : plainText(defaultValue);
  if (fallback !== undefined && !/[{}\p{Cc}]/u.test(fallback)) return `\${${name}:-${fallback}}`;
  if (isRequired !== true) return `\${${name}:-}`;
  needed.add(name);
  return `\${${name}}`;
}

/** Throws if a literal text contains a reference that PML would replace. */
function literal(text: string): string {
  if (text.includes("${")) throw unfitError(`PML would replace a reference in ${quoted(text)}`);
  if (/\p{Cc}/u.test(text)) throw unfitError("a value contains a control character");
  return text;
}

function variableOf(name: string): string {
  const variable = name.replace(/^\W+/, "").replace(/\W+/g, "_").toUpperCase();
  if (/^[A-Z_]/.test(variable)) return variable;
  throw unfitError(`${quoted(name)} is not a valid variable name`);
}

/** Returns the second-level domain of a URL's host. */
function secondLevelDomain(url: string): string | undefined {
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
  throw unfitError("a value is not a text");
}

function unfitError(why: string): PmlError {
  return new PmlError("REGISTRY_BAD_RESPONSE", why);
}
