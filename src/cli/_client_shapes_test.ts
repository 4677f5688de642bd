/**
 * Files with the features of those that people commit: comments before the first bracket, trailing
 * commas, odd indentation, other line ends, a byte order mark, empty sections and none at all.
 *
 * @module
 */

import assert from "node:assert/strict";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { clientFiles, type ClientName, readClientFile } from "../config/clients.ts";
import { Scratch } from "../config/_scratch_test.ts";
import { editClientText } from "./_client_file.ts";
import { canUseHttp, createForm } from "./_client_form.ts";

const SHAPES: readonly (readonly [client: ClientName, text: string, servers: readonly string[]])[] =
  [
    ["claude-code", '{\n\t"mcpServers": {}\n}', []],
    ["claude-code", '{"mcpServers":{"a":{"command":"x","args":[]}}}', ["a"]],
    ["cursor", '{\n  "mcpServers": {\n    "a": { "url": "https://a.example/mcp" },\n  },\n}\n', [
      "a",
    ]],
    [
      "cursor",
      '\uFEFF{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}\r\n',
      ["a"],
    ],
    ["gemini", '{\n  "theme": "dark",\n  "mcp": { "excluded": ["b"] } // not that one\n}\n', []],
    [
      "gemini",
      '{ "mcpServers": { "b": { "command": "x" } },\n    "mcp": { "excluded": ["b"] } }',
      ["b"],
    ],
    [
      "opencode",
      '{\n  "$schema": "https://opencode.ai/config.json",\n  "instructions": ["*.md"],\n  // later\n}\n',
      [],
    ],
    [
      "opencode",
      '{\n  "mcp": {\n    "a": { "type": "local", "command": ["x", "--"] },\n    "timeout": 1\n  }\n}\n',
      ["a"],
    ],
    [
      "opencode",
      '{\n "mcp": {\n  "servers": { "a": { "type": "remote", "url": "https://a.example/" } }\n }\n}\n',
      ["a"],
    ],
    [
      "vscode",
      '// the team\'s\n{\n    "inputs": [\n        { "type": "promptString", "id": "key", "password": true }\n    ],\n    "servers": {\n        "a": {\n            "url": "http://localhost:3000/mcp"\n        }\n    }\n}',
      ["a"],
    ],
    ["vscode", '{\n\t"servers": {\n\t\t"a": { "command": "x" }, "b": { "command": "y" }\n\t}\n}', [
      "a",
      "b",
    ]],
    ["windsurf", '{\n  "mcpServers": {\n\n  }\n}\n', []],
    [
      "zed",
      '// Folder-specific settings\n//\n// see the documentation\n{\n  "context_servers": {},\n  "theme": {\n    "mode": "system"\n  }\n}\n',
      [],
    ],
    ["zed", '{\n  "languages": { "JSON": {} },\n    "lsp": {\n      "x": { }\n    }\n}\n', []],
    ["codex", "", []],
    ["codex", "# mine\nmodel = 'x'\n\n[features]\nhooks = true", []],
    [
      "codex",
      'model = "x"\r\n[mcp_servers.a]\r\ncommand = "x"\r\nargs = [\r\n  "-y",\r\n  "b", # why\r\n]\r\n[mcp_servers.a.env]\r\nA = "b"\r\n',
      ["a"],
    ],
    [
      "codex",
      '\uFEFF[mcp_servers."a b"]\nurl = "https://a.example/mcp"\n\n[profiles.fast]\nmodel = "y"\n',
      ["a b"],
    ],
    ["codex", "[mcp_servers]\n\n[mcp_servers.a]\ncommand = 'x'\nenabled = false\n", ["a"]],
  ];

Deno.test("PML goes into files as people commit them, and nothing of theirs is another", async () => {
  for (const [client, text, servers] of SHAPES) {
    using scratch = new Scratch();
    const place = { environment: scratch.environment(), root: scratch.ws };
    const [file = assert.fail()] = clientFiles(client, place);
    const { path } = file;
    scratch.write(path.slice(scratch.root.length), text);
    const read = (await readClientFile(file, place)).map(({ name }) => name);
    assert.deepEqual(read, servers, text);
    const kinds = canUseHttp(client) ? [false, true, false] : [false];
    let now = text;
    const texts = [];
    for (const http of kinds) {
      const form = createForm(client, { http, text: now, command: "pml" });
      const edit = await editClientText(now, path, form);
      assert.ok(edit !== undefined && edit.other === undefined, `${client}: ${now}`);
      const [before, after] = [text, edit.text].map((one) => valueIn(one, path));
      assert.deepEqual(without(after, form.at), without(before, form.at), edit.text);
      for (const line of text.split(/\r?\n/)) assertKept(line, edit.text);
      assert.equal(edit.text.startsWith("\uFEFF"), text.startsWith("\uFEFF"));
      if (text.includes("\r\n")) assert.doesNotMatch(edit.text, /[^\r]\n/);
      assert.equal(await editClientText(edit.text, path, form), undefined, edit.text);
      texts.push(now = edit.text);
    }
    // The longer entry adds line breaks to an object on one line.
    const [first, last] = [texts[0], texts.at(-1)].map((one) => one?.replaceAll(/\s/g, ""));
    if (client !== "vscode") assert.equal(last, first);
  }
});

function valueIn(text: string, path: string): Record<string, unknown> {
  const bare = text.replace("\uFEFF", "");
  const value = path.endsWith(".toml")
    ? parseToml(bare)
    : parseJson(bare, [], { allowTrailingComma: true });
  return JSON.parse(JSON.stringify(value));
}

/** Returns a file without the entry of PML, the question for its token, and sections left empty. */
function without(file: Record<string, unknown> | undefined, at: readonly string[]): unknown {
  const copy = structuredClone(file ?? {});
  const inside = (at.reduce<unknown>((so, name) => (so as Record<string, unknown>)?.[name], copy) ??
    {}) as Record<string, unknown>;
  delete inside.pml;
  const [section = ""] = at;
  if (Object.keys(inside).length === 0) delete copy[section];
  if (Array.isArray(copy.inputs)) copy.inputs = copy.inputs.filter(({ id }) => id !== "pml-token");
  if (Array.isArray(copy.inputs) && copy.inputs.length === 0) delete copy.inputs;
  return copy;
}

/**
 * Asserts that a line is unchanged, except for commas, for line breaks in an object that was on one
 * line, and for the brackets around the entry.
 */
function assertKept(line: string, text: string): void {
  const [, own = ""] = /^(.*?)(?:\{\})?[}\]]*$/.exec(bare(line)) ?? [];
  assert.ok(bare(text).includes(own), `${JSON.stringify(line)} is not in ${text}`);
}

function bare(text: string): string {
  return text.replaceAll(/[\s,]/g, "");
}
