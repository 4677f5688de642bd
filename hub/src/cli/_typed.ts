/**
 * Reads what was typed.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { PmlError, quoted } from "@casys/pml/registry";

/** A command line. */
export interface Typed {
  readonly verb: string;
  /** The file or folder that the command names; only commands that name one get it. */
  readonly file: string;
  readonly data: string;
  readonly host: string;
  readonly port: number;
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly json: boolean;
  readonly isVersion: boolean;
  readonly isHelp: boolean;
}

/** What each command names after its verb. */
const NAMED: Readonly<Record<string, string | undefined>> = {
  serve: undefined,
  import: "FOLDER",
  backup: "FILE",
  restore: "FILE",
};

const OPTIONS = {
  data: { type: "string", default: "hub-data" },
  host: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "3005" },
  url: { type: "string" },
  key: { type: "string" },
  json: { type: "boolean", default: false },
  version: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Reads a command line. Throws `USAGE` if it makes no sense. */
export function typedOf(args: readonly string[]): Typed {
  const { values, positionals: [verb = "", ...files] } = parsed(args);
  const named = Object.hasOwn(NAMED, verb) ? NAMED[verb] : undefined;
  const isRun = Object.hasOwn(NAMED, verb) && !values.version && !values.help;
  if (isRun && files.length !== (named === undefined ? 0 : 1)) {
    const wanted = `pml-hub ${[verb, named].filter(Boolean).join(" ")}`;
    throw usage(`Cannot run ${quoted([verb, ...files].join(" "))}: write \`${wanted}\``);
  }
  const { data, host, url, key, json, version, help } = values;
  return {
    ...{ verb, file: files[0] ?? "", data, host, port: portOf(values.port) },
    ...{ url: url === undefined ? undefined : urlOf(url), key, json },
    ...{ isVersion: version, isHelp: help },
  };
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

function urlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = /^https?:$/.test(url?.protocol ?? "") &&
    url?.username === "" && url.search === "" && url.hash === "";
  if (isPlain) return text.replace(/\/+$/, "");
  throw usage("Cannot use the --url: it is no address that begins with https:// or http://");
}

/** Returns a `USAGE` error. */
export function usage(message: string, hint = "Run `pml-hub --help`"): PmlError {
  return new PmlError("USAGE", message, { hint });
}
