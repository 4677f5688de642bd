/**
 * Writes `docs/settings.md` and the table of `docs/limits.md` from the tables of settings.
 *
 * @module
 */

import { LIMIT_NAMES, limitKey, LIMITS } from "../../src/config/limits.ts";
import { policySchema, userConfigSchema, workspaceSchema } from "../../src/config/settings.ts";
import { isObject } from "../../src/core/json.ts";
import type { Schema } from "../../src/core/value_schema.ts";

/** The heading from which on the page is written by hand. */
const FIXED = "## Limits that are fixed";
/** The descriptions of keys whose own keys are in another section or page. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  limits: "The limits: [limits.md](limits.md).",
  mcpServers: "Servers in the format of MCP clients, by name: see [below](#servers-of-mcpservers).",
  private_mcps: "Servers, by name: see [below](#servers-of-private_mcps).",
};

/** A key of a file, and the part of the schema for its value. */
interface Row {
  readonly key: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Returns the page of limits with the limits from the table. Keeps the part written by hand. */
export function limitsPage(page: string): string {
  const rows = LIMIT_NAMES.map((name) => {
    const { about, written } = LIMITS[name];
    const [usual, least, most] = written.map(amount);
    return `| \`${limitKey(name)}\` | ${about} | ${usual} | ${least} to ${most} |`;
  });
  return [
    "# Limits",
    "",
    "PML limits time, sizes and numbers. You can set the limits of the first table under `limits` in",
    "`config.yaml` of the PML home, for example with `pml config set limits.call_ms 60000`. `pml config`",
    "shows the limits that are not the default. The end of a key is its unit: `_ms` milliseconds,",
    "`_bytes` bytes, `_mb` megabytes. The value of any other key is a count.",
    "",
    "## Limits that can be set",
    "",
    "| key | description | default | from, to |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    page.slice(page.indexOf(FIXED)),
  ].join("\n");
}

/** Returns the page of settings. */
export function settingsPage(): string {
  const entries = (file: Schema, key: string): readonly string[] => {
    const entry = Object(file.properties)[key].additionalProperties;
    return formsOf(entry).flatMap((form) => [
      `### \`"type": ${typesOf(form).map((type) => `"${type}"`).join(" or ")}\``,
      "",
      // `private_mcps` requires `type`, which each form leaves to the schema of all forms.
      ...tableOf({ ...form, required: [entry.required ?? [], form.required ?? []].flat(2) }),
      "",
    ]);
  };
  return [
    "# Settings",
    "",
    "This page lists all keys of the files that PML reads. A missing key has its default.",
    "`pml config set KEY VALUE` writes a key; other [commands](commands.md) write [rules](rules.md)",
    "and servers.",
    "In a key, `NAME` is any name, and `[]` is each item of a list.",
    "",
    "## `.pml.json`",
    "",
    "This file is in the workspace. It is JSON with comments, and",
    "[`pml.schema.json`](../config/pml.schema.json) describes it for editors.",
    "",
    ...tableOf(workspaceSchema.schema()),
    "",
    "## `config.yaml`",
    "",
    "This file is in the PML home, and applies to all workspaces. An editor with the YAML language",
    "server completes its keys if the first line is `# yaml-language-server: $schema=PATH`, with the path",
    "of [`config.schema.json`](../config/config.schema.json).",
    "",
    ...tableOf(userConfigSchema.schema()),
    "",
    "## `policy.yaml`",
    "",
    "This file is the [policy](policy.md) of a company.",
    "[`policy.schema.json`](../config/policy.schema.json) describes it for editors.",
    "",
    ...tableOf(policySchema.schema()),
    "",
    "## Servers of `mcpServers`",
    "",
    'Without `type`, an entry with `url` is `"http"` and any other is `"stdio"`. `ca`, `cert` and `key`',
    "are for your own `config.yaml` only.",
    "",
    ...entries(userConfigSchema.schema(), "mcpServers"),
    "## Servers of `private_mcps`",
    "",
    ...entries(workspaceSchema.schema(), "private_mcps"),
  ].join("\n");
}

/** Returns the table of the keys of a schema. */
export function tableOf(schema: Schema): readonly string[] {
  const rows = rowsOf(schema).map(({ key, schema, isRequired }) => {
    const { wanted, default: usual } = schema;
    const about = ELSEWHERE[key] ?? schema.description;
    const value = usual === undefined
      ? isRequired ? "required" : ""
      : `\`${JSON.stringify(usual)}\``;
    return `| \`${key}\` | ${cell(about)} | ${cell(wanted)} | ${value} |`;
  });
  return ["| key | description | value | default |", "| --- | --- | --- | --- |", ...rows];
}

/**
 * Returns the keys of an object and, after each key, the keys in its value. Leaves out keys that no
 * value can have.
 */
function rowsOf(schema: Schema, path = ""): readonly Row[] {
  const { properties, additionalProperties, items, anyOf } = schema;
  const nestedRows = [
    ...isObject(additionalProperties) ? [rowsOf(additionalProperties, `${path}.NAME`)] : [],
    ...isObject(items) ? [rowsOf(items, `${path}[]`)] : [],
    ...Array.isArray(anyOf) ? anyOf.map((form) => rowsOf(form, path)) : [],
  ].flat();
  const keys = Object.entries(Object(properties) as Record<string, Schema>);
  return [
    ...keys.filter(([key, { not }]) => /^[\w$]+$/.test(key) && not === undefined).flatMap(
      ([key, value]) => {
        const rowKey = path === "" ? key : `${path}.${key}`;
        const isRequired = [schema.required].flat().includes(key);
        const row = { key: rowKey, schema: value, isRequired };
        return Object.hasOwn(ELSEWHERE, rowKey) ? [row] : [row, ...rowsOf(value, rowKey)];
      },
    ),
    ...nestedRows,
  ];
}

/** Returns the schemas of the forms that an entry of `mcpServers` can have. */
function formsOf({ oneOf, then }: Schema): readonly Schema[] {
  return Array.isArray(oneOf) ? oneOf : formsOf(then as Schema);
}

function typesOf({ properties }: Schema): readonly string[] {
  return Object(properties).type.enum;
}

function cell(text: unknown): string {
  return String(text ?? "").replaceAll(/[*|<]/g, "\\$&");
}

function amount(value: string | number): string {
  const [number = "", unit = ""] = `${value}`.split(" ");
  return `${Number(number).toLocaleString("en-US")} ${unit}`.trim();
}
