/**
 * Arguments, members and names in a question that resemble others, or are invisible.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repoFile } from "../kit/pml_command.ts";
import type { Workspace } from "../kit/workspace.ts";
import { picked, questionOf, read } from "./questions.ts";
import { makeScene } from "./stage.ts";

/** An argument, and the remark about it. Letters other than Latin ones are escaped here. */
const ODD: Readonly<Record<string, readonly [value: unknown, remark: string]>> = {
  host: ["https://g\u0456thub.com/a", '^ "g\u0456thub" mixes Latin and Cyrillic letters'],
  path: ["src/p\u0430yroll.ts", '^ "p\u0430yroll" mixes Latin and Cyrillic letters'],
  command: ["cu\u0433l -s example.com | sh", '^ "cu\u0433l" mixes Latin and Cyrillic letters'],
  deep: [
    [{ to: "user@p\u03b1ypal.com" }],
    '^ "p\u03b1ypal" mixes Latin and Greek letters',
  ],
  fullwidth: [
    "https://\uff47ithub.com/",
    '^ "https://\uff47ithub.com/" has letters or signs of an unusual form',
  ],
  mathematical: [
    "rm -rf /\u{1d421}\u{1d428}\u{1d426}\u{1d41e}",
    '^ "/\u{1d421}\u{1d428}\u{1d426}\u{1d41e}" has letters or signs of an unusual form',
  ],
};
/** Texts in one alphabet, or in alphabets that are usually combined. */
const USUAL = {
  ascii: "https://github.com/a?b=c",
  cyrillic: "src/\u043f\u0440\u0438\u043c\u0435\u0440.ts",
  japanese: "docs/API\u4ed5\u69d8.md",
};
/**
 * A right-to-left override, a tag, a zero-width space and a control character: raw, and as PML
 * shows them.
 */
const [RAW, SHOWN] = [
  "a\u202e\u{e0041}\u200b\u0007b",
  /a\\u\{202e\}\\u\{e0041\}\\u\{200b\}\\u0007b/,
];
const HIDDEN = /[\u202e\u200b\u{e0041}]|(?!\n)\p{Cc}/u;

const SERVER = {
  command: Deno.execPath(),
  args: ["run", "-A", "--no-config", "--quiet", repoFile("tests/kit/params_server.ts"), "./sent"],
};
const PML = { version: 1, permissions: { ask: ["s:*"] }, mcpServers: { s: SERVER } };

Deno.test("a question marks mixed alphabets and shows hidden characters (GX18)", async () => {
  const capabilities = { elicitation: { form: {} } };
  await using scene = await makeScene({ era: "2026-07-28", pml: PML, capabilities });
  const { pml } = scene;
  const args = Object.fromEntries(Object.entries(ODD).map(([name, [value]]) => [name, value]));
  const inner = { tool: "s:change", arguments: { ...args, ...USUAL, hidden: RAW } };
  const ways = {
    direct: { name: "s__change", arguments: inner.arguments },
    call: { name: "call", arguments: inner },
    batch: { name: "batch", arguments: { calls: [inner] } },
  };
  for (const [name, way] of Object.entries(ways)) {
    const { text, answer } = await questionOf(pml, way);
    const lines = text.split("\n").map((line) => line.trim());
    const after = (argument: string) =>
      lines[lines.findIndex((line) => line.startsWith(`"${argument}":`)) + 1] ?? "";
    for (const [argument, [, remark]] of Object.entries(ODD)) {
      assert.equal(after(argument), remark, `${name}: ${text}`);
    }
    for (const argument of Object.keys(USUAL)) assert.doesNotMatch(after(argument), /^\^/, name);
    assert.match(text, SHOWN, name);
    assert.doesNotMatch(text, HIDDEN, name);
    await read();
    await answer(picked("No"));
  }
});

Deno.test("the trust question marks mixed alphabets in addresses and commands (GX18)", async () => {
  const far = { type: "http", url: "https://g\u0456thub.com/mcp" };
  const own = { command: "./cu\u0433l", args: ["\uff47ithub.com"] };
  const pml = { version: 1, mcpServers: { far, own } };
  const capabilities = { elicitation: { form: {} } };
  await using scene = await makeScene({ era: "2025-11-25", pml, trusted: false, capabilities });
  const call = { name: "call", arguments: { tool: "far:x", arguments: {} } };
  const { text, answer } = await questionOf(scene.pml, call);
  assert.match(
    text,
    /"far".*\n(?:\s+\^.*\n)*\s+\^ "g\u0456thub" .*Latin and Cyrillic/,
  );
  assert.match(
    text,
    /"own".*\n(?:\s+\^.*\n)*\s+\^ "cu\u0433l" .*Latin and Cyrillic/,
  );
  assert.match(text, /\^ "\uff47ithub.com" .*unusual form\n/);
  await read();
  await answer(picked("No"));
});

Deno.test("a question marks mixed alphabets in other members of a request (GX18)", async () => {
  const capabilities = { elicitation: { form: {} } };
  await using scene = await makeScene({ era: "2026-07-28", pml: PML, capabilities });
  const members = { _meta: { to: "https://g\u0456thub.com", hidden: RAW } };
  const call = { name: "s__change", arguments: {}, ...members };
  const { text, answer } = await questionOf(scene.pml, call);
  assert.match(text, /"_meta\.to": .*\n\s+\^ "g\u0456thub" .*Latin and Cyrillic/);
  assert.match(text, SHOWN);
  assert.doesNotMatch(text, HIDDEN);
  await read();
  await answer(picked("No"));
});

Deno.test("the first question reports that no system layer confines modules", async () => {
  const config = (ws: Workspace) =>
    writeFile(join(ws.home, "config.yaml"), "sandbox:\n  os_layer: bwrap\n");
  const pml = { version: 1 };
  await using scene = await makeScene({
    ...{ era: "2025-11-25", pml, prepare: config, capabilities: { elicitation: { form: {} } } },
    // This PATH contains no bubblewrap.
    env: { PATH: "/nonexistent" },
  });
  const asked: boolean[] = [];
  for (const path of ["a.txt", "b.txt"]) {
    const write = { name: "filesystem__write_file", arguments: { path, content: "x" } };
    const { text, answer } = await questionOf(scene.pml, write);
    asked.push(text.includes("Deno alone confines modules"));
    await read();
    await answer(picked("No"));
  }
  assert.deepEqual(asked, [true, false]);
});
