/**
 * The registries that PML asks: the list of the environment, or else the list of the workspace
 * file, or else the list of the user's file, or else PML's default.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ConfigProblem } from "./_problem.ts";
import type { Environment } from "./env.ts";

/** A registry. */
export interface RegistryEntry {
  /** The URL. */
  readonly url: string;
  /** The variable that contains the token. */
  readonly tokenEnv?: string | undefined;
  /** The public key for the signatures of its manifests. */
  readonly publicKey?: string | undefined;
  /** Whether it is the default registry, which PML asks if no other is configured. */
  readonly isDefault?: boolean;
}

/** The hosts that lead to this machine. */
const THIS_MACHINE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
/** The beginnings of URLs of registries: in PML's own format, and in the MCP Registry's format. */
export const REGISTRY_BEGINNINGS = ["https://", "mcp+https://"] as const;

const DEFAULT: readonly RegistryEntry[] = [{ url: "https://pml.casys.ai/mcp", isDefault: true }];

type WrittenRegistry = string | {
  readonly url: string;
  readonly token_env?: string | undefined;
  readonly public_key?: string | undefined;
};

/** Converts the registries of a file. */
export function registriesOf(
  entries: readonly WrittenRegistry[] | undefined,
): readonly RegistryEntry[] | undefined {
  return entries?.map((entry) =>
    typeof entry === "string"
      ? { url: entry }
      : { url: entry.url, tokenEnv: entry.token_env, publicKey: entry.public_key }
  );
}

/** Returns the registries that are asked, in order. */
export function askedRegistries(
  { registries }: Environment,
  ...lists: readonly (readonly RegistryEntry[] | undefined)[]
): readonly RegistryEntry[] {
  const ofEnvironment = registries && entriesOf(registries);
  return [ofEnvironment, ...lists].find((list) => list !== undefined) ?? DEFAULT;
}

// Returns the same list for the same environment. Another list would create new registry clients.
const entriesOf = memoized((urls: readonly string[]): readonly RegistryEntry[] =>
  urls.map((url) => ({ url }))
);

/** Returns the problems of `PML_REGISTRIES`: texts that are not URLs of registries. */
export function registryProblems({ registries = [] }: Environment): ConfigProblem[] {
  const begins = REGISTRY_BEGINNINGS.join(" or ");
  const wanted = `"none", or URLs that begin ${begins}, without a user name or password`;
  return registries.filter((url) => !isAllowedAddress(url, REGISTRY_BEGINNINGS))
    .map((url) => ({ file: "PML_REGISTRIES", key: "", found: quoted(url, 200), wanted }));
}

/**
 * Returns whether a text is a URL without a user name or password that begins with one of these
 * texts or names this machine.
 */
export function isAllowedAddress(text: string, beginnings: readonly string[]): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return beginnings.includes(`${url.protocol}//`) ||
    /^(mcp\+)?http:$/.test(url.protocol) && THIS_MACHINE.test(url.hostname);
}
