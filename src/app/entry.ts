/**
 * Makes a server of what a registry says of it: how it is started or reached, what it gets, and what
 * a person is shown before its first use.
 *
 * @module
 */

import type { Config } from "../config/config.ts";
import type { Environment } from "../config/env.ts";
import type { Keys } from "../config/keys.ts";
import type { RegistryEntry } from "../config/registries.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { foundLines, serverText } from "../config/shown.ts";
import { confusableWith } from "../core/confusable.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { DenoManifest, Manifest } from "../core/manifest.ts";
import type { ServerIdentity } from "../core/server_identity.ts";
import { accessOf, type Grants, grantsOf } from "../permissions/grants.ts";
import { permissionLines } from "../permissions/permission_lines.ts";
import { pinnedOf } from "../registry/lock.ts";
import { requiredOf, variablesOf } from "../registry/manifest.ts";
import type { Found } from "../registry/registries.ts";
import { isProxy, keyRequired, keysMissing, upstreamLines } from "../remote/rpc.ts";
import { unpinnedPackages } from "../stdio/unpinned.ts";

/** A server that a registry has. */
export interface RegistryServer {
  readonly found: Found;
  readonly identity: ServerIdentity;
  /** Nothing where it runs in the cloud. */
  readonly definition: ServerDefinition | undefined;
}

/** What such a server is made in. */
export interface RegistryServerOptions {
  readonly config: Config;
  readonly environment: Environment;
  /** Every name that a person may know here. */
  readonly names: readonly string[];
  /** Returns where the code of a module is kept. */
  readonly codePath: Parameters<typeof definitionOf>[1];
}

/** Makes a server of what a registry was found to have. */
export function registryServer(
  found: Found,
  { config, environment, names, codePath }: RegistryServerOptions,
): RegistryServer {
  const { manifest } = found;
  const { name, fqdn } = manifest;
  const { workspace, grants, cloud } = config;
  const definition = definitionOf(manifest, codePath);
  const facts = factsOf(found, {
    definition,
    environment,
    workspace,
    grants: grantsOf(manifest, grants[name]),
    twin: confusableWith(name, names),
  });
  const identity: ServerIdentity = {
    // What is pinned of a capability is pinned by its whole name.
    name: fqdn,
    pinned: pinnedOf(manifest, found),
    facts: [...facts, ...accountLines(manifest, cloud?.url)],
    origin: "registry",
  };
  return { found, identity, definition };
}

function accountLines(manifest: Manifest, hub: string | undefined): readonly string[] {
  if (manifest.kind !== "cloud" || !isProxy(manifest.proxyTo, hub)) return [];
  return [`Your PML_API_KEY goes with all that is sent to ${new URL(manifest.proxyTo).host}`];
}

/** What a person is shown beside the entry itself. */
export interface Showing {
  readonly definition: ServerDefinition | undefined;
  readonly environment: Pick<Environment, "get">;
  readonly workspace: string;
  /** What it gets beyond the defaults. */
  readonly grants: Grants | undefined;
  /** Another name that this one could be taken for. */
  readonly twin: string | undefined;
}

/** Gives the definition of an entry; nothing for what runs in the cloud. */
export function definitionOf(
  manifest: Manifest,
  codePath: (manifest: DenoManifest) => string,
): ServerDefinition | undefined {
  const { kind, name } = manifest;
  switch (kind) {
    case "deno":
      return { kind, name, path: codePath(manifest) };
    case "stdio":
      return { kind, name, command: manifest.command, args: manifest.args, env: envOf(manifest) };
    case "http":
      return { kind, name, url: manifest.url, headers: manifest.headers };
    case "cloud":
      return undefined;
  }
}

/** Says line by line what a yes covers. */
export function factsOf(found: Found, showing: Showing): readonly string[] {
  const { manifest, source, vouched, older, gone } = found;
  const { definition, twin } = showing;
  const isCapability = manifest.fqdn !== manifest.name;
  const said = manifest.kind === "deno"
    ? [...isCapability ? ["a capability of a registry"] : [], ...codeLines(manifest, showing)]
    : definition === undefined
    ? [cloudText(manifest), ...manifest.kind === "cloud" ? upstreamLines(manifest) : []]
    : [
      ...definitionLines(definition),
      ...definition.kind === "stdio" ? foundLines(showing.environment) : [],
    ];
  return [
    `Yes lets PML use ${quoted(manifest.fqdn)} in this workspace. It is:`,
    ...said,
    `version ${quoted(manifest.version)} of the registry ${quoted(source, Infinity)}`,
    vouched,
    ...(twin === undefined ? [] : [`Its name looks like ${quoted(twin)}, which is another server`]),
    ...(gone ? ["Its registry does not have it any more"] : []),
    ...(older ? ["This is older than what its registry said before"] : []),
    ...keyLines(manifest),
    ...manifest.warnings.map((line) => `Its author warns: ${quoted(line, Infinity)}`),
  ];
}

function codeLines(
  { integrity, permissions, calls }: DenoManifest,
  { workspace, grants }: Showing,
): readonly string[] {
  if (calls !== undefined) {
    const lines = calls.map((tool) => `It says that it calls ${tool}, which is judged by itself`);
    return [
      "code or a plan that calls tools, and nothing else",
      `its code: ${integrity}`,
      ...lines,
    ];
  }
  const access = accessOf(permissions, { workspace, grants });
  const lines = permissionLines(permissions, access, workspace).map((line) => `It ${line}`);
  return ["a module in the sandbox", `its code: ${integrity}`, ...lines];
}

/** Shows values whole: a registry wrote them, so they are no keys, and one may be an address. */
function definitionLines(definition: ServerDefinition): readonly string[] {
  const lines = (values: Readonly<Record<string, string>>, [what, sign]: readonly string[]) =>
    Object.entries(values).map((pair) => visible(`It is ${what} ${pair.join(sign)}`, Infinity));
  switch (definition.kind) {
    case "deno":
      return [serverText(definition)];
    case "stdio":
      return [
        serverText({ ...definition, env: {} }),
        ...unpinnedPackages(definition).map(unpinnedText),
        ...lines(definition.env, ["given", "="]),
      ];
    case "http":
      return [
        serverText({ ...definition, headers: {} }),
        ...lines(definition.headers, ["sent the header", ": "]),
      ];
  }
}

function unpinnedText(spec: string): string {
  return `It installs the newest ${spec} there is, whatever version its registry says`;
}

/** A program finds in its environment what its registry says that it needs. */
function envOf({ env, envRequired }: Extract<Manifest, { kind: "stdio" }>): Record<string, string> {
  const needed = envRequired.filter((name) => !Object.hasOwn(env, name));
  return { ...Object.fromEntries(needed.map((name) => [name, `\${${name}}`])), ...env };
}

function cloudText(manifest: Manifest): string {
  const url = manifest.kind === "cloud" ? manifest.proxyTo : "";
  return `a server in the cloud: each call goes to ${quoted(url, Infinity)}, whose operator can ` +
    "read it and the keys that go with it";
}

/** Where each key goes; what a program, a module or a header is given is said with it. */
function keyLines(manifest: Manifest): readonly string[] {
  if (manifest.kind !== "cloud") return [];
  const { host } = new URL(manifest.proxyTo);
  return manifest.envRequired.map((name) => `Your key ${name} goes with each call to ${host}`);
}

/** The token of a registry goes to that registry alone: whoever writes entries would have it sent on. */
export function misusedToken(
  { manifest, source }: Found,
  registries: readonly RegistryEntry[],
): PmlError | undefined {
  const tokens = registries.flatMap(({ tokenEnv }) => tokenEnv?.toUpperCase() ?? []);
  // In some systems the case of a name does not count.
  const token = variablesOf(manifest).find((each) => tokens.includes(each.toUpperCase()));
  if (token === undefined) return undefined;
  const what = `Cannot use what ${quoted(source, 200)} says of ${quoted(manifest.name)}`;
  const why = `${what}: it names ${token}, the token of a registry`;
  return new PmlError("REGISTRY_BAD_RESPONSE", why, {
    hint: "Give the registry's token another name",
  });
}

/** What a call would lack is said before anybody is asked about it. */
export function assertKeys(manifest: Manifest, keys: Pick<Keys, "cloud" | "find">): void {
  const { kind, name } = manifest;
  if (kind === "cloud" && keys.cloud() === undefined) throw keyRequired(name);
  const missing = requiredOf(manifest).filter((each) => keys.find(each) === undefined);
  if (missing.length > 0) throw keysMissing(name, missing);
}
