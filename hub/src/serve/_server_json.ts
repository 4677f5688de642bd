/**
 * Converts an entry to a `server.json` of the official MCP Registry. When PML reads a `server.json`,
 * it converts the file to an entry.
 *
 * @module
 */

import { fqdnOf, type JsonObject, objectOf, publishedKind, textOf } from "@casys/pml/registry";
import type { StoredEntry } from "../store/store.ts";

/** The namespace for names without a dot: each name of the official API has a namespace. */
const PML_NAMESPACE = "pml";
const REGISTRY_TYPES: Readonly<Record<string, string>> = { npx: "npm", bunx: "npm", uvx: "pypi" };
const PACKAGE_ARGUMENT = /^((?:@[\w.-]+\/)?[\w.-]+)@(\d[\w.+!-]*)$/;
const REFERENCE = /\$\{(\w+)\}/g;

/** Returns the name of an entry in the official API; undefined if that API cannot express it. */
export function officialName(fqdn: string): string | undefined {
  if (fqdn.includes(":") || fqdn.startsWith(`${PML_NAMESPACE}.`)) return undefined;
  const lastDot = fqdn.lastIndexOf(".");
  return lastDot < 0
    ? `${PML_NAMESPACE}/${fqdn}`
    : `${fqdn.slice(0, lastDot)}/${fqdn.slice(lastDot + 1)}`;
}

/** Returns the entry's name for a name of the official API; undefined for an invalid name. */
export function fqdnOfOfficial(name: string): string | undefined {
  const lower = name.toLowerCase();
  const fqdn = lower.startsWith(`${PML_NAMESPACE}/`)
    ? lower.slice(PML_NAMESPACE.length + 1)
    : lower.replace("/", ".");
  return fqdnOf(fqdn) !== undefined && officialName(fqdn) === lower ? fqdn : undefined;
}

/** Returns the `server.json` of an entry; undefined if the format cannot express the entry. */
export function serverJson({ fqdn, version, manifest }: StoredEntry): JsonObject | undefined {
  const name = officialName(fqdn);
  const { official } = publishedKind(manifest.type) ?? {};
  const definition = official && CONVERTERS[official](manifest);
  if (name === undefined || definition === undefined) return undefined;
  return { name, description: textOf(manifest.description), version, ...definition };
}

/** Functions that create the `packages` or `remotes` of a `server.json` from a manifest. */
const CONVERTERS = { package: packageOf, remote: remoteOf };

function packageOf(manifest: JsonObject): JsonObject | undefined {
  const { command, args, env } = objectOf(manifest.install);
  const hint = textOf(command);
  const registryType = Object.hasOwn(REGISTRY_TYPES, hint) ? REGISTRY_TYPES[hint] : undefined;
  const texts = Array.isArray(args) ? args.map(textOf) : [];
  const [packageText = "", ...rest] = texts.slice(["-y", "--yes"].includes(texts[0] ?? "") ? 1 : 0);
  const [, identifier, version] = PACKAGE_ARGUMENT.exec(packageText) ?? [];
  const values = Object.entries(objectOf(env));
  // The format has no references in arguments, and none within a longer value.
  const isPlain = rest.every((argument) => !/[{}]/.test(argument)) &&
    values.every(([name, value]) => !/[{}]/.test(textOf(value).replace(`\${${name}}`, "")));
  if (registryType === undefined || identifier === undefined || version === undefined || !isPlain) {
    return undefined;
  }
  const required = new Set(requiredVariables(manifest));
  const fixed = values.filter(([name, value]) => value !== `\${${name}}` && !required.has(name));
  return {
    packages: [{
      registryType,
      identifier,
      version,
      runtimeHint: hint,
      transport: { type: "stdio" },
      packageArguments: rest.map((value) => ({ type: "positional", value })),
      environmentVariables: [
        ...[...required].map((name) => ({ name, isRequired: true, isSecret: true })),
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
    const names = [...textOf(value).matchAll(REFERENCE)].map(([, variable = ""]) => variable);
    const variables = Object.fromEntries(
      names.map((variable) => [variable, { isRequired: true, isSecret: true }]),
    );
    return { name, value: textOf(value).replace(REFERENCE, "{$1}"), variables };
  });
  return { remotes: [{ type: "streamable-http", url: textOf(manifest.url), headers: entries }] };
}

function requiredVariables(manifest: JsonObject): readonly string[] {
  const names = manifest.env_required;
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
}
