/**
 * Parses the arguments of the command line.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { PmlError, quoted } from "@casys/pml/registry";

/** A command line. */
export interface Typed {
  /** The command: `serve`, `key add`. */
  readonly verb: string;
  /** The words after the verb: as many as the command needs. */
  readonly words: readonly string[];
  /** The first of them: the file or folder that the command names. */
  readonly file: string;
  readonly data: string;
  readonly host: string;
  readonly port: number;
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** The hub elsewhere that is changed, in place of the folder. */
  readonly to: string | undefined;
  readonly tag: string | undefined;
  /** The hash that a backup must have. */
  readonly checkpoint: string | undefined;
  readonly isDry: boolean;
  readonly isYes: boolean;
  readonly reason: string;
  /** Hosts of servers behind the hub that may be in a private network. */
  readonly upstreams: readonly string[];
  readonly isModerated: boolean;
  /** Whether clients need keys to read. */
  readonly needsClientKeys: boolean;
  /** Whether a new key is for clients, not for a publisher. */
  readonly isClient: boolean;
  /** Whether a proxy at another address does TLS. */
  readonly isBehindProxy: boolean;
  /** The port of the metrics, if they are wanted. */
  readonly metrics: number | undefined;
  /** Whether each request is written down, as a line of JSON. */
  readonly isLogged: boolean;
  /** How many changes each key may make a minute. */
  readonly perMinute: number;
  readonly json: boolean;
  readonly isVersion: boolean;
  readonly isHelp: boolean;
}

/** The arguments of each command after its verb. */
export const NEEDED: Readonly<Record<string, string>> = {
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

/** Reads a command line. Throws `USAGE` if it makes no sense. */
export function typedOf(args: readonly string[]): Typed {
  const { values, positionals } = parsed(args);
  const { verb, words } = commandOf(positionals);
  const isRun = Object.hasOwn(NEEDED, verb) && !values.version && !values.help;
  const needed = isRun ? NEEDED[verb]?.split(" ").filter(Boolean) ?? [] : [];
  if (isRun && words.length !== needed.length) {
    const usageText = `pml-hub ${[verb, ...needed].join(" ")}`;
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
    file: words[0] ?? "",
    data,
    host,
    port: portOf(values.port),
    url: url === undefined ? undefined : urlOf(url, "--url"),
    key,
    json,
    reason,
    ...{
      to: to === undefined ? undefined : urlOf(to, "--to"),
      tag,
      checkpoint,
      isDry: values["dry-run"],
      isYes: yes,
    },
    ...{
      isModerated: moderated,
      needsClientKeys: values["require-api-key"],
      isClient: values.client,
      isBehindProxy: values["behind-proxy"],
      perMinute: rateOf(rate),
      upstreams: values.upstream.map(hostOf),
      isVersion: version,
      isHelp: help,
    },
    metrics: metrics === undefined ? undefined : portOf(metrics),
    isLogged: isLogged(log),
  };
}

function isLogged(form: string | undefined): boolean {
  if (form === undefined || form === "json") return form === "json";
  throw usage(`Cannot log as ${quoted(form)}: there is only one form`, "Write `--log json`");
}

/** Some commands have two words: `key add`. */
function commandOf([first = "", second, ...rest]: readonly string[]) {
  const both = `${first} ${second}`;
  return Object.hasOwn(NEEDED, both)
    ? { verb: both, words: rest }
    : { verb: first, words: second === undefined ? [] : [second, ...rest] };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw usage(`Cannot read the command line: ${error instanceof Error ? error.message : error}`);
  }
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usage(`Cannot listen at port ${quoted(text)}: it is not a number up to 65535`);
}

function hostOf(text: string): string {
  const url = URL.parse(`http://${text}`);
  if (url !== null && `http://${text.toLowerCase()}/` === url.href) return url.host;
  throw usage(`Cannot allow the upstream ${quoted(text)}: write HOST or HOST:PORT`);
}

function rateOf(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw usage(`Cannot allow ${quoted(text)} changes a minute: it is no number above 0`);
}

function urlOf(text: string, option: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = /^https?:$/.test(url?.protocol ?? "") &&
    url?.username === "" && url.search === "" && url.hash === "";
  if (isPlain) return text.replace(/\/+$/, "");
  throw usage(`Cannot use the ${option}: it is no address that begins with https:// or http://`);
}

/** Returns a `USAGE` error. */
export function usage(message: string, hint = "Run `pml-hub --help`"): PmlError {
  return new PmlError("USAGE", message, { hint });
}
