/**
 * Describes a workspace file line by line, for the user who is asked to trust it.
 *
 * @module
 */

import { variablesIn } from "../core/folder_variables.ts";
import { quoted, visible } from "../core/json.ts";
import { REDACTED } from "../core/key_kinds.ts";
import { maybeSecret, withoutSecrets } from "../core/secret_words.ts";
import { networkEnvironment } from "./child_environment.ts";
import type { Environment } from "./env.ts";
import type { WorkspaceFile } from "./file.ts";
import { gatewaySection } from "./gateway_section.ts";
import type { ServerDefinition, TrialBounds } from "../servers/kind.ts";
import { definitionKindOf, programOf } from "../servers/kinds.ts";

/** The line for a server with the name of a built-in. */
export const REPLACES = "replaces the built-in server of PML, which runs in the sandbox";
/** No limit on the length: the user would trust a truncated part without seeing it. */
const WHOLE = Infinity;
const GETS_KEY = " (is sent your PML_API_KEY with calls of cloud tools, and as a registry)";

/** How the values of a definition are shown. */
export interface ValueOptions {
  /**
   * Whether the user wrote the definition. Then values that look like secrets are hidden. In other
   * definitions, values are always shown in full: a value that looks like a secret may be an
   * address.
   */
  readonly isOfUser?: boolean;
  /** Is called with each shown value that looks like a secret, so that logs redact it. */
  readonly register?: ((value: string) => void) | undefined;
  /**
   * The names of the variables in the server's `envFile`; undefined if the file was not read,
   * because the workspace file that names it is not trusted yet.
   */
  readonly fileNames?: readonly string[] | undefined;
  /** Returns the value of a variable in the host of an address. */
  readonly plain?: ((name: string) => string | undefined) | undefined;
  /** The running trial of `pml learn` for the server. */
  readonly trial?: TrialBounds | undefined;
}

/**
 * Returns a line for everything that is ignored until the file is trusted, and for the network
 * variables that its servers get. Values of the file are shown in full.
 */
export function shownLines(
  { permissions, servers, sections }: WorkspaceFile,
  { builtins, register, plain, ...environment }: Pick<Environment, "get"> & {
    readonly builtins?: ReadonlySet<string>;
    readonly register?: ValueOptions["register"];
    readonly plain?: ValueOptions["plain"];
  },
): readonly string[] {
  const { gateway } = sections;
  const asWritten = { ...sections, gateway: gateway && gatewaySection(gateway) };
  const entries = Object.entries(asWritten).filter(([, value]) => value !== undefined);
  // A rule that is also in another list asks, or denies.
  const otherRules = [...permissions?.ask ?? [], ...permissions?.deny ?? []].map(textOfRule);
  const allowRules = (permissions?.allow ?? []).map(textOfRule)
    .filter((rule) => !otherRules.includes(rule));
  return [
    ...servers.map((server) =>
      `${lineStart(server.name)}${serverText(server, { register, plain })}`
    ),
    ...servers.filter(({ name }) => builtins?.has(name)).map(({ name }) => `"${name}" ${REPLACES}`),
    ...servers.flatMap((server) => settingLines(server, { register })),
    ...servers.some((server) => programOf(server) !== undefined) ? networkLines(environment) : [],
    ...allowRules.map(allowedLine),
    ...entries.map(([name, value]) =>
      `${name}: ${visible(JSON.stringify(value), WHOLE)}${name === "cloud" ? GETS_KEY : ""}`
    ),
  ];
}

function textOfRule({ pattern }: { readonly pattern: { readonly text: string } }): string {
  return pattern.text;
}

/** Returns the line of a rule that lets tools run unasked. */
export function allowedLine(rule: string): string {
  return `runs unasked: ${rule}`;
}

/**
 * Returns a line with the network variables that a started server gets; empty if there are none.
 */
export function networkLines(environment: Pick<Environment, "get">): readonly string[] {
  const lines = Object.entries(networkEnvironment(environment)).map(([name, value]) => {
    // Everything before the host may be a password, or a part of one.
    const safeValue = /^(?!no_).*proxy$/i.test(name)
      ? value.replace(/^([a-z][\w+.-]*:\/\/)?.*@/is, `$1${REDACTED}@`)
      : value;
    return `${name}=${visible(JSON.stringify(withoutSecrets(name, safeValue)), WHOLE)}`;
  });
  return lines.length === 0 ? [] : [
    `each program that PML starts gets these variables of your environment: ${lines.join(", ")}`,
  ];
}

/** Returns a full description of a server with its command or address. */
export function serverText(server: ServerDefinition, options: ValueOptions = {}): string {
  const { plain, fileNames, trial } = options;
  const describe = (what: string, values: Readonly<Record<string, string>>) =>
    valuesText(what, { values, ...options });
  return definitionKindOf(server).describe(server, {
    describeValues: describe,
    plain,
    fileNames,
    trial,
  });
}

/** Returns a line for each tool of a server that has settings. */
function settingLines(
  { name, settings }: ServerDefinition,
  options: ValueOptions,
): readonly string[] {
  return [...settings?.of ?? []].map(([tool, { disabled, rename, description, ...setting }]) => {
    const fixed = Object.entries(setting.arguments ?? {}).map(([key, value]) =>
      [key, typeof value === "string" ? value : JSON.stringify(value)] as const
    );
    const changes = [
      disabled === true ? "is left out" : "",
      rename === undefined ? "" : `is called ${quoted(rename)}`,
      description === undefined ? "" : `is described as ${quoted(description, WHOLE)}`,
      valuesText("arguments", { values: Object.fromEntries(fixed), ...options }).slice(2),
    ].filter(Boolean);
    const which = tool === "*" ? "every other tool" : `the tool ${quoted(tool, WHOLE)}`;
    return `${lineStart(name)}${which} ${changes.join(", ") || "stays as it is"}`;
  });
}

/** Returns whether a line of `shownLines()` is about a server. */
export function isLineOf(line: string, server: string): boolean {
  return line.startsWith(lineStart(server));
}

function lineStart(server: string): string {
  return `server "${server}": `;
}

/**
 * Returns the values of a definition as they were written, because they may be code or addresses. A
 * value that consists of variables only is shown as the names of these variables.
 */
function valuesText(
  what: string,
  { values, isOfUser = false, register }: ValueOptions & {
    readonly values: Readonly<Record<string, string>>;
  },
): string {
  const texts = Object.entries(values).map(([name, value]) => {
    const keys = variablesIn(value);
    const from = keys.length === 0
      ? ""
      : ` with your ${keys.length === 1 ? "key" : "keys"} ${keys.join(" and ")}`;
    const isFilled = keys.length > 0 && value.replaceAll(/\$\{\w+\}/g, "") === "";
    if (isFilled) return name + from;
    if (!isOfUser && maybeSecret(name, value)) register?.(value);
    const text = isOfUser ? withoutSecrets(name, value) : value;
    return `${name}=${visible(JSON.stringify(text), WHOLE)}${from}`;
  });
  const noun = texts.length === 1 ? what.replace(/s$/, "") : what;
  return texts.length === 0 ? "" : `, receives the ${noun} ${texts.join(", ")}`;
}
