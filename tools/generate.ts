/**
 * `deno task generate`: writes the pages and JSON Schemas that come from the tables of settings,
 * limits and commands. A test fails while one of them differs. `--check` only compares.
 *
 * @module
 */

import { policySchema, userConfigSchema, workspaceSchema } from "../src/config/settings.ts";
import { metaSchema } from "../src/protocol/tool.ts";
import type { ValueSchema } from "../src/core/value_schema.ts";
import { commandsPage } from "./generate/commands_page.ts";
import { jsonSchemaOf } from "./generate/json_schema.ts";
import { limitsPage, settingsPage } from "./generate/settings_page.ts";

const ROOT = new URL("../", import.meta.url);

/** Each generated file, and the function that returns its text. Some keep a part of the old text. */
export const GENERATED: Readonly<Record<string, (before: string) => string>> = {
  "config/config.schema.json": schemaFile(
    userConfigSchema,
    "config.yaml",
    "The settings of a user for all workspaces.",
  ),
  "config/module-meta.schema.json": schemaFile(
    metaSchema,
    "__meta__ of a module",
    "The metadata of a module. Keys that are not named here are kept for later versions; they grant nothing.",
  ),
  "config/pml.schema.json": schemaFile(
    workspaceSchema,
    ".pml.json",
    "The settings of a workspace. Comments and trailing commas are allowed.",
  ),
  "config/policy.schema.json": schemaFile(
    policySchema,
    "policy.yaml",
    "The policy of a company. Every key can only forbid, or require an answer of the user.",
  ),
  "docs/commands.md": commandsPage,
  "docs/limits.md": limitsPage,
  "docs/settings.md": settingsPage,
};

/** Returns the text of a generated file, as `deno fmt` writes it. */
export async function generate(name: string): Promise<string> {
  const text = GENERATED[name]?.(await Deno.readTextFile(new URL(name, ROOT)).catch(() => ""));
  const [extension] = name.split(".").slice(-1);
  const args = ["fmt", "-q", "--line-width", "100", "--ext", `${extension}`, "-"];
  const child = new Deno.Command(Deno.execPath(), { args, stdin: "piped", stdout: "piped" })
    .spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error(`\`deno fmt\` failed for ${name}`);
  return new TextDecoder().decode(stdout);
}

function schemaFile(
  schema: ValueSchema<unknown>,
  title: string,
  description: string,
): () => string {
  return () => JSON.stringify(jsonSchemaOf(schema.schema(), title, description), null, 2);
}

if (import.meta.main) {
  for (const name of Object.keys(GENERATED)) {
    const text = await generate(name);
    const file = new URL(name, ROOT);
    if (!Deno.args.includes("--check")) await Deno.writeTextFile(file, text);
    else if (text !== await Deno.readTextFile(file)) {
      console.error(`${name} does not match the tables: run \`deno task generate\``);
      Deno.exitCode = 1;
    }
  }
}
