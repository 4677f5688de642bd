import assert from "node:assert/strict";
import { parse } from "jsonc-parser";
import type { ClientName } from "../config/clients.ts";
import { listOf, objectOf } from "../core/json.ts";
import { editClientText as edit, withListText, withMembers, withValue } from "./_client_file.ts";
import { createForm } from "./_client_form.ts";

const FORM = createForm("claude-code", { http: false, command: "pml" });
const ENTRY = FORM.entry;
/** Options of an entry for stdio, which replaces the one for HTTP. */
const REPLACED = { http: false, command: "pml" };

function editClientText(text: string, path: string, form = FORM): ReturnType<typeof edit> {
  return edit(text, path, form);
}

async function edited(text: string): Promise<string> {
  const edit = await editClientText(text, ".mcp.json");
  assert.ok(edit !== undefined);
  return edit.text;
}

function bare(text: string): string {
  return text.replace(/\s/g, "");
}

/** Returns whether a text equals the original without PML's entry and the comma next to it. */
function isLeft(text: string, from: { readonly in: string }): boolean {
  const entry = `"pml":${bare(JSON.stringify(ENTRY))}`;
  const whole = [`"mcpServers":{${entry}}`, entry].find((piece) => from.in.includes(piece)) ?? "";
  const list = text.includes('"mcpServers"') ? entry : whole;
  const left = from.in.replace(list, () => "");
  const without = [...left.matchAll(/,/g)].map(({ index }) =>
    left.slice(0, index) + left.slice(index + 1)
  );
  return [left, ...without].includes(text);
}

Deno.test("editClientText() adds PML and leaves every other character alone", async () => {
  const gh = '{ "command": "npx", "args": ["-y", "gh"] }';
  const texts = [
    "{}",
    "{ /* mine */ }",
    '{"mcpServers":{}}',
    `{"mcpServers":{"gh":${gh}}}`,
    `{\n\t"mcpServers": {\n\t\t"gh": ${gh}\n\t},\n\t"z": [1,2]\n}\n`,
    `{\n  // a\n  "mcpServers": {\n    "gh": ${gh}, // b\n  },\n  "z": [1,2]\n}`,
    `{\r\n  "mcpServers": {\r\n    "gh": ${gh} // ,\r\n  }\r\n}\r\n`,
    '\uFEFF{\n    "z": 1,\n    "a": [ ]\n}\n',
  ];
  for (const text of texts) {
    const after = await edited(text);
    const options = { allowTrailingComma: true };
    const value = parse(after.replace("\uFEFF", ""), [], options);
    assert.deepEqual(value.mcpServers.pml, ENTRY, text);
    delete value.mcpServers.pml;
    const before = parse(text.replace("\uFEFF", ""), [], options);
    assert.deepEqual(value, { mcpServers: {}, ...before }, text);
    assert.ok(isLeft(bare(text), { in: bare(after) }), after);
    assert.equal(await editClientText(after, ".mcp.json"), undefined, after);
  }
});

Deno.test("editClientText() writes as the file is written: indentation and line ends", async () => {
  const tabs = await edited('{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n');
  assert.match(tabs, /\n\t\t"a": \{\},\n\t\t"pml": \{\n\t\t\t"type": "stdio",/);
  const windows = await edited('{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n');
  assert.ok(!/[^\r]\n/.test(windows), JSON.stringify(windows));
});

Deno.test("editClientText() reports another server with the name pml, and does not change it", async () => {
  const text = '{"mcpServers": {"pml": {"command": "./evil"}, "b": {}}}';
  const edit = await editClientText(text, ".mcp.json");
  assert.ok(edit !== undefined);
  assert.deepEqual(edit, { text, added: [], removed: [], other: { command: "./evil" } });
});

Deno.test("editClientText() takes its own entry in any order for its own", async () => {
  const { args, command, type } = ENTRY;
  const text = JSON.stringify({ mcpServers: { pml: { args, command, type } } });
  assert.equal(await editClientText(text, ".mcp.json"), undefined);
});

Deno.test("editClientText() replaces entries that start PML, and no others", async () => {
  const edit = (pml: unknown) => editClientText(JSON.stringify({ mcpServers: { pml } }), "x.json");
  const { args, command } = ENTRY;
  assert.equal(await edit({ type: "stdio", command, args }), undefined);
  assert.equal(await edit({ command, args, env: { PML_LOG_LEVEL: "debug" } }), undefined);
  assert.equal(await edit({ command: "/opt/bin/pml", args }), undefined);
  assert.equal(await edit({ command: "npx", args: ["-y", "@casys/pml", "stdio"] }), undefined);
  const others = [
    { command: "./pml", args },
    { command: "npx", args: ["-y", "@other/pml", "stdio"] },
    { command, args: ["stdio", "more"] },
    { command },
    { type: "http", command, args },
  ];
  for (const other of others) assert.ok(await edit(other) !== undefined, JSON.stringify(other));
});

Deno.test("createForm() starts pml.cmd on Windows as each client can", () => {
  const script = "C:\\Users\\Me\\AppData\\Roaming\\npm\\pml.cmd";
  const starts = (client: ClientName, command: string) => {
    const { entry } = createForm(client, { http: false, command, os: "windows" });
    return [entry.command, ...listOf(entry.args)].flat();
  };
  for (const client of ["claude-code", "claude-desktop", "zed", "windsurf", "continue"] as const) {
    assert.deepEqual(starts(client, script), ["cmd", "/c", script, "stdio"], client);
    assert.deepEqual(starts(client, "pml"), ["cmd", "/c", "pml", "stdio"], client);
  }
  for (const client of ["codex", "cursor", "gemini", "opencode", "qwen", "vscode"] as const) {
    assert.deepEqual(starts(client, script), [script, "stdio"], client);
  }
  assert.deepEqual(starts("claude-code", "D:\\pml.exe"), ["D:\\pml.exe", "stdio"]);
  // `cmd` would end the path at the bracket, or replace the variable.
  for (
    const odd of [
      "C:\\Program Files (x86)\\npm\\pml.cmd",
      "C:\\a&calc\\pml.cmd",
      "C:\\%A%\\pml.cmd",
    ]
  ) {
    assert.deepEqual(starts("claude-code", odd), ["cmd", "/c", "pml", "stdio"], odd);
  }
});

Deno.test("editClientText() takes its own entry of Windows for its own, in any folder", async () => {
  const form = createForm("claude-code", {
    http: false,
    command: "C:\\a b\\pml.cmd",
    os: "windows",
  });
  const args = (path: string) => ["/c", path, "stdio"];
  const entry = (command: string, args: readonly string[]) =>
    JSON.stringify({ mcpServers: { pml: { type: "stdio", command, args } } });
  assert.equal(await edit(entry("cmd", args("D:\\tools\\pml.cmd")), "f.json", form), undefined);
  assert.equal(await edit(entry("cmd", args("pml")), "f.json", form), undefined);
  const ofNpm = entry("cmd", ["/c", "npx", "-y", "@casys/pml", "stdio"]);
  assert.equal(await edit(ofNpm, "f.json", form), undefined);
  // Claude Code cannot start the script without `cmd`.
  const other = await edit(entry("pml", ["stdio"]), "f.json", form);
  assert.equal(objectOf(other?.other).command, "pml");
  const evil = await edit(entry("cmd", args("D:\\tools\\pml2.cmd")), "f.json", form);
  assert.match(JSON.stringify(evil?.other), /pml2/);
});

Deno.test("editClientText() reports errors with their line", async () => {
  await assert.rejects(editClientText('{\n  "a": }', "x.json"), {
    message:
      'Cannot read "x.json:2:8": found invalid JSON (value expected), wanted JSON with comments',
  });
});

Deno.test("editClientText() refuses files that it cannot edit without another change", async () => {
  const texts = [
    "",
    "{",
    "[]",
    "null",
    '{"mcpServers": []}',
    '{"mcpServers": 1}',
    '{"mcpServers": {}, "mcpServers": {"a": {}}}',
    '{"mcpServers": {"pml": 1, "pml": 2}}',
    '{"a": }',
  ];
  for (const text of texts) {
    await assert.rejects(editClientText(text, "x.json"), { code: "CONFIG_INVALID" }, text);
  }
});

Deno.test("editClientText() writes an entry that names no variable: clients warn of unset ones", async () => {
  const after = await edited("{}\n");
  assert.doesNotMatch(after, /\$\{|PML_/);
  assert.equal(after, `${JSON.stringify({ mcpServers: { pml: ENTRY } }, null, 2)}\n`);
});

Deno.test("withValue() removes a value, and returns a text without it unchanged", async () => {
  const text = '{\n  "a": { "b": 1, "c": 2 } // kept\n}\n';
  for (const at of [["b"], ["a", "d"], ["b", "c"], ["b", "c", "d"]] as const) {
    const now = await withValue(text, { path: "f", at, entry: undefined }).catch(String);
    assert.equal(now, text, at.join());
  }
  const now = await withValue(text, { path: "f", at: ["a", "b"], entry: undefined });
  assert.match(now, /"a": \{ *"c": 2 \} \/\/ kept/);
});

Deno.test("withValue() edits a list in place, and what stays keeps its comments", async () => {
  const cases: readonly (readonly [before: string, list: readonly string[], after: string])[] = [
    ['{"a": []}', ["x"], '{"a": ["x"]}'],
    ['{"a": ["x"]}', ["x", "y"], '{"a": ["x", "y"]}'],
    ['{"a": ["x",]}', ["x", "y"], '{"a": ["x", "y",]}'],
    [
      '{\n  "a": [\n    "x" // why, x\n  ]\n}\n',
      ["x", "y", "z"],
      '{\n  "a": [\n    "x", // why, x\n    "y",\n    "z"\n  ]\n}\n',
    ],
    [
      '{\r\n\t"a": [\r\n\t\t"x", /* last */\r\n\t]\r\n}',
      ["x", "y"],
      '{\r\n\t"a": [\r\n\t\t"x", /* last */\n\t\t"y"\r\n\t]\r\n}',
    ],
    ['{"a": ["x", "y" /* b */, "z"]}', ["y", "z"], '{"a": ["y" /* b */, "z"]}'],
  ];
  for (const [before, list, after] of cases) {
    const now = await withValue(before, { path: "f", at: ["a"], entry: list });
    assert.equal(now.replaceAll("\r\n", "\n"), after.replaceAll("\r\n", "\n"));
  }
});

Deno.test("editClientText() leaves a comment behind the server that it is about", async () => {
  const text = '{\n  "mcpServers": {\n    "gh": { "command": "gh" } // mine\n  }\n}\n';
  const after = await edited(text);
  assert.match(after, /"gh": \{ "command": "gh" \}, \/\/ mine\n {4}"pml": \{\n/);
  assert.ok(after.endsWith("\n  }\n}\n"), after);
  const open = '{\n  "mcpServers": {\n    "gh": {}, /* mine */ // too\n  },\n  "x": 1\n}\n';
  assert.match(await edited(open), /"gh": \{\}, \/\* mine \*\/ \/\/ too\n {4}"pml": \{/);
  const tabs = '{\r\n\t"mcpServers": {\r\n\t\t"gh": {} // mine\r\n\t}\r\n}\r\n';
  assert.match(await edited(tabs), /"gh": \{\}, \/\/ mine\r\n\t\t"pml": \{\r\n\t\t\t"type"/);
});

Deno.test("editClientText() adds one input for the token to VS Code's inputs", async () => {
  const form = createForm("vscode", { http: true, command: "pml" });
  const ask =
    '{ "type": "promptString", "id": "pml-token", "description": "PML_TOKEN", "password": true }';
  const other = '{"id": "gh", "type": "promptString"}';
  const cases: readonly (readonly [before: string, inputs: string])[] = [
    ["{}", ask],
    [`{"inputs": [${other}], "servers": {}}`, `${other}, ${ask}`],
    [`{\n\t"inputs": [\n\t\t${other}, // mine\n\t],\n}`, `${other}, // mine\n\t\t${ask}\n\t`],
  ];
  for (const [before, inputs] of cases) {
    const { text = "", added = [] } = await editClientText(before, "x.json", form) ?? {};
    assert.ok(bare(text).includes(`"inputs":[${bare(inputs)}]`), text);
    assert.ok(added.every((line) => !line.includes("gh")), added.join("\n"));
    const value = parse(text, [], { allowTrailingComma: true });
    assert.deepEqual(value.servers.pml, form.entry);
    assert.equal(await editClientText(text, "x.json", form), undefined);
    const others = text.replace(`"pml":`, `"else":`);
    const { text: again = "" } = await editClientText(others, "x.json", form) ?? {};
    assert.equal(again.match(/"id": "pml-token"/g)?.length, 1, again);
  }
  const text = '{"inputs": {}}';
  await assert.rejects(editClientText(text, "x.json", form), /"inputs" is not a list/);
});

Deno.test("editClientText() distinguishes entries of other addresses from its own", async () => {
  for (const client of ["claude-code", "cursor", "gemini", "opencode", "windsurf"] as const) {
    const form = createForm(client, { http: true, command: "pml" });
    const [section] = form.at;
    const own = JSON.stringify(form.entry);
    const edit = (pml: string) => editClientText(`{"${section}": {"pml": ${pml}}}`, "x.json", form);
    assert.equal(await edit(own), undefined, client);
    const other = await edit(own.replace("3003", "3004"));
    assert.ok(JSON.stringify(other?.other).includes("3004"), client);
    const replaced = await edit(JSON.stringify(form.replaceableEntries[0]));
    assert.equal(replaced?.other, undefined, client);
    assert.deepEqual(JSON.parse(replaced?.text ?? "")[section].pml, form.entry);
    assert.deepEqual(
      replaced?.removed,
      [`"pml": ${JSON.stringify(form.replaceableEntries[0])}`],
      client,
    );
  }
});

Deno.test("editClientText() returns each line of the entry that it replaces, in JSON and TOML", async () => {
  const texts = { codex: "# mine\n[other]\na = 1\n", "claude-code": '{\n  "a": 1\n}\n' } as const;
  for (const [client, file] of [["codex", "x.toml"], ["claude-code", "x.json"]] as const) {
    const stdio = createForm(client, { http: false, command: "pml" });
    const first = await edit(texts[client], file, stdio);
    assert.deepEqual(first?.removed, []);
    const http = createForm(client, { text: first?.text, http: true, command: "pml" });
    const second = await edit(first?.text ?? "", file, http);
    assert.ok(second !== undefined);
    assert.ok(second.removed.some((line) => line.includes("stdio")), client);
    assert.ok(second.removed.every((line) => first?.text.includes(line)), client);
    assert.ok(second.added.some((line) => line.includes("127.0.0.1")), client);
    const back = await edit(
      second.text,
      file,
      createForm(client, { ...REPLACED, text: second.text }),
    );
    assert.deepEqual([back?.removed, back?.added], [second.added, second.removed], client);
  }
});

Deno.test("withMembers() adds members at the end of a TOML table, or refuses", async () => {
  const at = ["mcp_servers"] as const;
  const members = { mode: "approve", parallel: true };
  const add = (text: string) => withMembers(text, "config.toml", { at, members });
  const lines = 'mode = "approve"\nparallel = true\n';
  const table = '[mcp_servers.pml]\ncommand = "pml"\n';
  const texts: readonly (readonly [before: string, after: string])[] = [
    [table, table + lines],
    [table.trimEnd(), table + lines.trimEnd()],
    [`a = 1\n${table}\n# next\n[b]\nc = 2\n`, `a = 1\n${table}${lines}\n# next\n[b]\nc = 2\n`],
    [
      "[mcp_servers.pml]\r\nx = 1\r\n# next\r\n[b]\r\n",
      `[mcp_servers.pml]\r\nx = 1\r\n${lines.replaceAll("\n", "\r\n")}# next\r\n[b]\r\n`,
    ],
    [
      `[mcp_servers.pml] # mine\nx = 1\n\n[b]\n`,
      `[mcp_servers.pml] # mine\nx = 1\n${lines}\n[b]\n`,
    ],
    [
      `${table}[mcp_servers.pml.env]\nA = "b"\n`,
      `${table}${lines}[mcp_servers.pml.env]\nA = "b"\n`,
    ],
    [`${table}args = [\n  "stdio",\n]\n`, `${table}args = [\n  "stdio",\n]\n${lines}`],
  ];
  for (const [before, after] of texts) assert.equal((await add(before)).text, after);
  assert.deepEqual((await add(table)).added, ['mode = "approve"', "parallel = true"]);
  const refused = [
    'mcp_servers = { pml = { command = "pml" } }\n',
    '[mcp_servers]\npml = { command = "pml" }\n',
    '[mcp_servers."pml"]\ncommand = "pml"\n',
    'a = """\n[mcp_servers.pml]\n"""\n[mcp_servers.pml]\ncommand = "pml"\n',
    `${table}args = [\n[1],\n]\n`,
  ];
  for (const text of refused) await assert.rejects(add(text), { code: "CONFIG_INVALID" }, text);
});

Deno.test("withListed() adds a text to a list that is there or missing, and keeps the rest", async () => {
  const add = (text: string) =>
    withListText(text, "x.json", { at: ["permissions", "allow"], listed: "a" });
  const texts: readonly (readonly [before: string, list: readonly string[]])[] = [
    ["{}", ["a"]],
    ['{"permissions": {}}', ["a"]],
    ['{"permissions": {"allow": []}, "x": [1,2]}', ["a"]],
    ['\ufeff{ // mine\n"permissions": {"allow": ["b", /* c */ "d"],}}', ["b", "d", "a"]],
    ['{"permissions": {"allow": [1, {"x": 2}]}}', [1, { x: 2 }, "a"] as never],
  ];
  for (const [before, list] of texts) {
    const { text } = await add(before);
    const { permissions, x } = parse(text.replace("\ufeff", ""));
    assert.deepEqual(permissions.allow, list);
    if (before.includes("[1,2]")) {
      assert.deepEqual([text.includes('"x": [1,2]'), x], [true, [1, 2]]);
    }
    for (const comment of before.match(/\/\/ mine|\/\* c \*\//g) ?? []) {
      assert.ok(text.includes(comment));
    }
  }
  for (const text of ['{"permissions": {"allow": "x"}}', "[]", "{"]) {
    await assert.rejects(add(text), { code: "CONFIG_INVALID" });
  }
});
