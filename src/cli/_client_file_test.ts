import assert from "node:assert/strict";
import { parse } from "jsonc-parser";
import { editClientText, ENTRY } from "./_client_file.ts";

async function edited(text: string): Promise<string> {
  const edit = await editClientText(text, ".mcp.json");
  assert.ok(edit !== undefined);
  return edit.text;
}

function bare(text: string): string {
  return text.replace(/\s/g, "");
}

/** Tells whether a text is what is left without the entry, and without the comma that it may need. */
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

Deno.test("editClientText() tells another server of the name pml, and can replace it", async () => {
  const text = '{"mcpServers": {"pml": {"command": "./evil"}, "b": {}}}';
  const edit = await editClientText(text, ".mcp.json");
  assert.ok(edit !== undefined);
  assert.equal(edit.before, '{"command":"./evil"}');
  assert.deepEqual(JSON.parse(edit.text), { mcpServers: { pml: ENTRY, b: {} } });
});

Deno.test("editClientText() takes its own entry in any order for its own", async () => {
  const { env, args, command, type } = ENTRY;
  const text = JSON.stringify({ mcpServers: { pml: { env, args, command, type } } });
  assert.equal(await editClientText(text, ".mcp.json"), undefined);
});

Deno.test("editClientText() takes what starts PML for its own, and nothing else", async () => {
  const edit = (pml: unknown) => editClientText(JSON.stringify({ mcpServers: { pml } }), "x.json");
  const { args, command } = ENTRY;
  assert.equal(await edit({ type: "stdio", command, args }), undefined);
  assert.equal(await edit({ command, args, env: { PML_LOG_LEVEL: "debug" } }), undefined);
  const others = [
    { command: "./pml", args },
    { command, args: ["stdio", "more"] },
    { command },
    { type: "http", command, args },
  ];
  for (const other of others) assert.ok(await edit(other) !== undefined, JSON.stringify(other));
});

Deno.test("editClientText() says in words what is wrong, and in which line", async () => {
  await assert.rejects(editClientText('{\n  "a": }', "x.json"), {
    message: 'Cannot use "x.json": line 2 is not JSON (value expected)',
  });
});

Deno.test("editClientText() refuses what it cannot edit without another change", async () => {
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

Deno.test("editClientText() names the key and never holds one", async () => {
  const after = await edited("{}\n");
  assert.equal(JSON.parse(after).mcpServers.pml.env.PML_API_KEY, "${PML_API_KEY:-}");
  assert.equal(after, `${JSON.stringify({ mcpServers: { pml: ENTRY } }, null, 2)}\n`);
});
