/**
 * Parses the arguments of the command line.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { PmlError, quoted } from "@casys/pml/registry";

/** A parsed command line. */
export interface CommandLine {
  /** The command: `serve`, `key add`. */
  readonly verb: string;
  /** The arguments after the verb, as many as the command requires. */
  readonly words: readonly string[];
  /** The first of `words`: a file, an id or a name. Empty if there is none. */
  readonly operand: string;
  /** The folder of the hub. */
  readonly data: string;
  /** The address on which `serve` listens. */
  readonly host: string;
  readonly port: number;
  /** The URL that clients configure; undefined if it is the address on which `serve` listens. */
  readonly url: string | undefined;
  /** The path of the private key with which entries are signed. */
  readonly keyFile: string | undefined;
  /** The URL of the hub to change, instead of the hub in `data`. */
  readonly to: string | undefined;
  readonly tag: string | undefined;
  /** The hash that the backup must have. */
  readonly checkpoint: string | undefined;
  /** Whether `publish` only shows the entry, and sends nothing. */
  readonly isDry: boolean;
  /** Whether `publish` asks no question. */
  readonly isYes: boolean;
  /** Why a version is hidden. */
  readonly reason: string;
  /** The hosts in private networks to which the hub may pass requests on. */
  readonly upstreams: readonly string[];
  /** Whether new versions wait until the operator accepts them. */
  readonly isModerated: boolean;
  /** Whether clients need keys to read. */
  readonly needsClientKeys: boolean;
  /** Whether a new key is for clients, not for a publisher. */
  readonly isClient: boolean;
  /** Whether a proxy at another address adds TLS. */
  readonly isBehindProxy: boolean;
  /** The port of the metrics; undefined if they are not served. */
  readonly metrics: number | undefined;
  /** Whether each request is logged as a line of JSON. */
  readonly isLogged: boolean;
  /** The maximum number of changes per minute and key. */
  readonly perMinute: number;
  /** Whether to print JSON. */
  readonly json: boolean;
  /** Whether to print only the version. */
  readonly isVersion: boolean;
  /** Whether to print only the help text. */
  readonly isHelp: boolean;
}

/** The arguments of each command after its verb. */
export const ARGUMENTS: Readonly<Record<string, string>> = {
  serve: "",
  import: "FOLDER",
  backup: "FILE",
  restore: "FILE",
  publish: "FILE",
  "key add": "ORGANISATION",
  "key list": "",
  "key revoke": "ID",
  give: "NAMESPACE ORGANISATION",
  owners: "",
  waiting: "",
  accept: "NAME@VERSION HASH",
  reject: "NAME@VERSION HASH",
  yank: "NAME@VERSION",
  unyank: "NAME@VERSION",
};

const OPTIONS = {
  data: { type: "string", default: "hub-data" },
  host: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "3005" },
  url: { type: "string" },
  key: { type: "string" },
  to: { type: "string" },
  tag: { type: "string" },
  checkpoint: { type: "string" },
  "dry-run": { type: "boolean", default: false },
  yes: { type: "boolean", default: false },
  reason: { type: "string", default: "" },
  upstream: { type: "string", multiple: true, default: [] as string[] },
  moderated: { type: "boolean", default: false },
  "require-api-key": { type: "boolean", default: false },
  client: { type: "boolean", default: false },
  "behind-proxy": { type: "boolean", default: false },
  metrics: { type: "string" },
  log: { type: "string" },
  rate: { type: "string", default: "60" },
  json: { type: "boolean", default: false },
  version: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Parses a command line. Throws `USAGE` if it is not valid. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parse(args);
  const { verb, words } = splitVerb(positionals);
  const runsCommand = Object.hasOwn(ARGUMENTS, verb) && !values.version && !values.help;
  const names = runsCommand ? ARGUMENTS[verb]?.split(" ").filter(Boolean) ?? [] : [];
  if (runsCommand && words.length !== names.length) {
    const usageText = `pml-hub ${[verb, ...names].join(" ")}`;
    throw usage(`Cannot run ${quoted(positionals.join(" "))}: write \`${usageText}\``);
  }
  const {
    data,
    host,
    url,
    key,
    json,
    reason,
    moderated,
    rate,
    to,
    tag,
    checkpoint,
    yes,
    version,
    help,
    metrics,
    log,
  } = values;
  return {
    verb,
    words,
    operand: words[0] ?? "",
    data,
    host,
    port: portOf(values.port),
    url: url === undefined ? undefined : urlOf(url, "--url"),
    keyFile: key,
    json,
    reason,
    to: to === undefined ? undefined : urlOf(to, "--to"),
    tag,
    checkpoint,
    isDry: values["dry-run"],
    isYes: yes,
    isModerated: moderated,
    needsClientKeys: values["require-api-key"],
    isClient: values.client,
    isBehindProxy: values["behind-proxy"],
    perMinute: rateOf(rate),
    upstreams: values.upstream.map(hostOf),
    isVersion: version,
    isHelp: help,
    metrics: metrics === undefined ? undefined : portOf(metrics),
    isLogged: parseLog(log),
  };
}

function parseLog(format: string | undefined): boolean {
  if (format === undefined || format === "json") return format === "json";
  throw usage(`Cannot log as ${quoted(format)}: the only format is json`, "Write `--log json`");
}

/** Splits the verb from its arguments. Some verbs have two words: `key add`. */
function splitVerb([first = "", second, ...rest]: readonly string[]) {
  const both = `${first} ${second}`;
  return Object.hasOwn(ARGUMENTS, both)
    ? { verb: both, words: rest }
    : { verb: first, words: second === undefined ? [] : [second, ...rest] };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw usage(`Cannot read the command line: ${error instanceof Error ? error.message : error}`);
  }
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usage(`Cannot listen at port ${quoted(text)}: it is not a number from 0 to 65535`);
}

function hostOf(text: string): string {
  const url = URL.parse(`http://${text}`);
  if (url !== null && `http://${text.toLowerCase()}/` === url.href) return url.host;
  throw usage(`Cannot allow the upstream ${quoted(text)}: write HOST or HOST:PORT`);
}

function rateOf(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw usage(`Cannot allow ${quoted(text)} changes a minute: it is not a number from 1 to 999999`);
}

function urlOf(text: string, option: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = /^https?:$/.test(url?.protocol ?? "") &&
    url?.username === "" && url.search === "" && url.hash === "";
  if (isPlain) return text.replace(/\/+$/, "");
  throw usage(
    `Cannot use the ${option}: it is not an address that begins with https:// or http://`,
  );
}

/** Returns a `USAGE` error. */
export function usage(message: string, hint = "Run `pml-hub --help`"): PmlError {
  return new PmlError("USAGE", message, { hint });
}
