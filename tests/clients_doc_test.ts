/**
 * The entries in docs/clients.md and in the table of README.md are those that `pml init` writes.
 *
 * @module
 */

import assert from "node:assert/strict";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { canUseHttp, createForm } from "../src/cli/_client_form.ts";
import { type ClientName, CLIENTS } from "../src/config/clients.ts";
import { blocksIn } from "./kit/pages.ts";
import { repoFile } from "./kit/pml_command.ts";
import { REAL_CLIENTS } from "./real_clients/clients.ts";

const README = await Deno.readTextFile(repoFile("README.md"));
const PAGE = await Deno.readTextFile(repoFile("docs/clients.md"));

/** The clients, by their names on the pages. */
const NAMES: Readonly<Record<string, ClientName>> = {
  "Claude Code": "claude-code",
  "Claude Desktop": "claude-desktop",
  Cline: "cline",
  Codex: "codex",
  Continue: "continue",
  "Copilot CLI": "copilot",
  Cursor: "cursor",
  "Gemini CLI": "gemini",
  opencode: "opencode",
  "Qwen Code": "qwen",
  "VS Code": "vscode",
  Windsurf: "windsurf",
  Zed: "zed",
};

/** Returns the file of a client with the entry of PML only, as JSON. */
function fileOf(client: ClientName, http: boolean): unknown {
  const { at: [section], entry, input } = createForm(client, { http, command: "pml" });
  if (client === "continue") return { [section]: [entry] };
  const file = { ...(input && { inputs: [input] }), [section]: { pml: entry } };
  return JSON.parse(JSON.stringify(file));
}

function shown(text: string, language: string): unknown {
  if (language === "yaml") return parseYaml(text);
  return JSON.parse(JSON.stringify(language === "toml" ? parseToml(text) : JSON.parse(text)));
}

Deno.test("docs/clients.md has the entry of each client, on stdio and over HTTP", () => {
  const [, stdio = "", http = ""] =
    /\n## The entries\n([^]*?)\n## [^]*?\n## Over HTTP\n([^]*?)\n## /
      .exec(PAGE) ?? [];
  const wanted = CLIENTS.map((client) => fileOf(client, false));
  const overHttp = CLIENTS.filter(canUseHttp).map((client) => fileOf(client, true));
  for (const [section, files] of [[stdio, wanted], [http, overHttp]] as const) {
    const blocks = blocksIn("docs/clients.md", section)
      .map(({ text, language }) => shown(text, language));
    const texts = (all: readonly unknown[]) => [...new Set(all.map((one) => JSON.stringify(one)))];
    assert.deepEqual(texts(blocks).sort(), texts(files).sort());
  }
  for (const [name, client] of Object.entries(NAMES)) {
    assert.ok(stdio.includes(name), name);
    assert.ok(http.includes(name), name);
    assert.ok(PAGE.includes(`| \`${client}\``), client);
  }
});

Deno.test("docs/clients.md shows each tested client at its current version", () => {
  const [, table = ""] = /<!-- clients -->([^]*)<!-- \/clients -->/.exec(PAGE) ?? [];
  const lines = [...table.matchAll(/^\| (\S.*? \d[\w.]+) +\|/gm)].map(([, client]) => client);
  // `deno task clients --write` writes the table.
  assert.deepEqual(lines, REAL_CLIENTS.map(({ title, version }) => `${title} ${version}`));
});

Deno.test("the table of README.md has the entry of each client", () => {
  const rows = [...README.matchAll(/^\| ((?:[A-Z]|opencode).*?) +\| (`.*`) *\|$/gm)];
  const named = rows.flatMap(([, names = "", entry = ""]) => {
    const texts = [...entry.matchAll(/`([^`]*)`/g)].map(([, text]) => text);
    const [first = ""] = texts;
    const file = first.startsWith("[")
      ? shown(texts.join("\n"), "toml")
      : shown(`{${first}}`, "yaml"); // a line of YAML, or JSON, which is YAML
    return names.split(", ").map((name) => {
      const client = NAMES[name] ?? assert.fail(name);
      assert.deepEqual(file, fileOf(client, false), name);
      return name;
    });
  });
  assert.deepEqual(named.sort(), Object.keys(NAMES).sort());
});
