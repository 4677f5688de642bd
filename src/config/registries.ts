/**
 * Where servers are looked up: what the environment says, else the workspace file, else the person's
 * own, else PML's.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { isAddress } from "./_address.ts";
import type { Problem } from "./_problem.ts";
import type { Environment } from "./env.ts";

/** Where servers are looked up. */
export interface RegistryEntry {
  /** Its address. */
  readonly url: string;
  /** The variable that holds the token. */
  readonly tokenEnv?: string | undefined;
  /** The key that its manifests are signed with. */
  readonly publicKey?: string | undefined;
}

/** How the address of a registry begins: PML's own format, or that of the MCP Registry. */
export const REGISTRY_BEGINNINGS = ["https://", "mcp+https://"] as const;

const DEFAULT: readonly RegistryEntry[] = [{ url: "https://pml.casys.ai/mcp" }];

type Written = string | {
  readonly url: string;
  readonly token_env?: string | undefined;
  readonly public_key?: string | undefined;
};

/** Reads what a file says of registries. */
export function registriesOf(
  said: readonly Written[] | undefined,
): readonly RegistryEntry[] | undefined {
  return said?.map((entry) =>
    typeof entry === "string"
      ? { url: entry }
      : { url: entry.url, tokenEnv: entry.token_env, publicKey: entry.public_key }
  );
}

/** Gives the registries that are asked, in order. */
export function askedRegistries(
  { registries }: Environment,
  ...said: readonly (readonly RegistryEntry[] | undefined)[]
): readonly RegistryEntry[] {
  const ofEnvironment = registries && entriesOf(registries);
  return [ofEnvironment, ...said].find((list) => list !== undefined) ?? DEFAULT;
}

// The same list for the same environment: what asks registries is made anew where the list is another.
const entriesOf = memoized((urls: readonly string[]): readonly RegistryEntry[] =>
  urls.map((url) => ({ url }))
);

/** Tells what of `PML_REGISTRIES` is no address. */
export function registryProblems({ registries = [] }: Environment): Problem[] {
  const begins = REGISTRY_BEGINNINGS.join(" or ");
  const wanted = `"none", or URLs that begin ${begins}, without a user name or password`;
  return registries.filter((url) => !isAddress(url, REGISTRY_BEGINNINGS))
    .map((url) => ({ file: "PML_REGISTRIES", key: "", found: quoted(url, 200), wanted }));
}
