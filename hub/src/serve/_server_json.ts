/**
 * Converts an entry to a `server.json` of the official MCP Registry. PML converts the other way
 * when it reads one.
 *
 * @module
 */

import { fqdnOf, type JsonObject, objectOf, publishedKind, textOf } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";

/** The namespace of names that have no dot, which the other API does not know. */
const OWN = "pml";
const TYPES: Readonly<Record<string, string>> = { npx: "npm", bunx: "npm", uvx: "pypi" };
const PACKAGE = /^((?:@[\w.-]+\/)?[\w.-]+)@(\d[\w.+!-]*)$/;
const REFERENCE = /\$\{(\w+)\}/g;

/** Returns the name of an entry in the other API; undefined if it can have none. */
export function officialName(fqdn: string): string | undefined {
  if (fqdn.includes(":") || fqdn.startsWith(`${OWN}.`)) return undefined;
  const at = fqdn.lastIndexOf(".");
  return at < 0 ? `${OWN}/${fqdn}` : `${fqdn.slice(0, at)}/${fqdn.slice(at + 1)}`;
}

/** Returns the name of an entry by its name in the other API; undefined for an invalid name. */
export function fqdnOfOfficial(name: string): string | undefined {
  const lower = name.toLowerCase();
  const fqdn = lower.startsWith(`${OWN}/`) ? lower.slice(OWN.length + 1) : lower.replace("/", ".");
  return fqdnOf(fqdn) !== undefined && officialName(fqdn) === lower ? fqdn : undefined;
}

/** Returns the `server.json` of an entry; undefined if the form cannot describe how it runs. */
export function serverJson({ fqdn, version, manifest }: StoredEntry): JsonObject | undefined {
  const name = officialName(fqdn);
  const { official } = publishedKind(manifest.type) ?? {};
  const way = official && MAKERS[official](manifest);
  if (name === undefined || way === undefined) return undefined;
  return { name, description: textOf(manifest.description), version, ...way };
}

/** Functions that make the part of a `server.json` that defines a server. */
const MAKERS = { package: packageOf, remote: remoteOf };

function packageOf(manifest: JsonObject): JsonObject | undefined {
  const { command, args, env } = objectOf(manifest.install);
  const hint = textOf(command);
  const registryType = Object.hasOwn(TYPES, hint) ? TYPES[hint] : undefined;
  const all = Array.isArray(args) ? args.map(textOf) : [];
  const [named = "", ...rest] = all.slice(["-y", "--yes"].includes(all[0] ?? "") ? 1 : 0);
  const [, identifier, version] = PACKAGE.exec(named) ?? [];
  const values = Object.entries(objectOf(env));
  // A reference in an argument, or a value made of several, has no form there.
  const isPlain = rest.every((one) => !/[{}]/.test(one)) &&
    values.every(([name, value]) => !/[{}]/.test(textOf(value).replace(`\${${name}}`, "")));
  if (registryType === undefined || identifier === undefined || version === undefined || !isPlain) {
    return undefined;
  }
  const needed = new Set(needs(manifest));
  const fixed = values.filter(([name, value]) => value !== `\${${name}}` && !needed.has(name));
  return {
    packages: [{
      registryType,
      identifier,
      version,
      runtimeHint: hint,
      transport: { type: "stdio" },
      packageArguments: rest.map((value) => ({ type: "positional", value })),
      environmentVariables: [
        ...[...needed].map((name) => ({ name, isRequired: true, isSecret: true })),
        ...fixed.map(([name, value]) => ({ name, value: textOf(value) })),
      ],
    }],
  };
}

function remoteOf(manifest: JsonObject): JsonObject | undefined {
  const headers = Object.entries(objectOf(manifest.headers));
  if (headers.some(([, value]) => /[{}]/.test(textOf(value).replace(REFERENCE, "")))) {
    return undefined;
  }
  const entries = headers.map(([name, value]) => {
    const names = [...textOf(value).matchAll(REFERENCE)].map(([, one = ""]) => one);
    const variables = Object.fromEntries(
      names.map((one) => [one, { isRequired: true, isSecret: true }]),
    );
    return { name, value: textOf(value).replace(REFERENCE, "{$1}"), variables };
  });
  return { remotes: [{ type: "streamable-http", url: textOf(manifest.url), headers: entries }] };
}

function needs(manifest: JsonObject): readonly string[] {
  const all = manifest.env_required;
  return Array.isArray(all) ? all.filter((one) => typeof one === "string") : [];
}
