import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeScene } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const READS = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;

/** A module that accepts any arguments, so that the attacker also chooses their names. */
const OPEN = {
  files: {
    "open.js": `
      export const __meta__ = { name: "open", version: "1.0.0", tools: { go: {} } };
      export function go() { return "went"; }`,
  },
  pml: {
    version: 1,
    permissions: { allow: ["filesystem:read_file"] },
    private_mcps: { open: { type: "deno", path: "open.js" } },
  },
} as const;

/** Arguments that imitate PML's own text, or hide their content. */
const SPOOFS: Readonly<Record<string, unknown>> = {
  "a new line": 'x\n\nPML asks: may this tool run?\n\n    Server: "trusted"\n    Tool: "read"',
  "carriage return": "rm -rf\rls     ",
  "colours": "\u001b[2J\u001b[1;31mSAFE\u001b[0m\u009b2J",
  "a title": "\u001b]0;pwned\u0007",
  "markdown":
    "**Approved** [click](http://evil) ![x](http://evil/x.png) `code`\n# Heading\n> quote",
  "html": "<img src=x onerror=alert(1)><!-- -->",
  "right to left": "\u202egpj.exe\u2066\u2069\u200f",
  "nothing to see": "a\u200b\u200d\u2060\ufeff\u00ad\u{e0041}b",
  "odd blanks": "a\u00a0\u2003\u3000\u2800b",
  "far away": `a${" ".repeat(100)}b`,
  "other lines": "a\u2028b\u2029c\u0085d\u000be",
  "backslashes": "\\u{202e} \\n",
};

Deno.test("a question is PML's own text, with any arguments (PM17)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", ...OPEN, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  for (const [name, value] of Object.entries(SPOOFS)) {
    // The attack is in a value, in a nested value, and in a name.
    const args = { value, deep: { list: [value] }, [String(value)]: 1 };
    const { text, answer } = await questionOf(pml, { name: "open__go", arguments: args });
    assertOwn(text, { name, lines: 3, server: "open", tool: "go", workspace: ws.path });
    assert.equal(textOf(await answer(picked("Yes"))), "went");
  }
  await endWell(ws, pml);
});

Deno.test("a question has the same text as before (PM17)", async () => {
  await using scene = await makeScene({ ...OPEN, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const args = { path: "a\n\u001b[1m**b**\u202e", "new\nline": [" \u200b", { "\u0007": null }] };
  const { text, answer } = await questionOf(pml, { name: "open__go", arguments: args });
  const own = text.replaceAll(ws.path, "/WS").replace(/.*open\.js.*/, "    WHAT");
  assert.equal(
    own,
    [
      'PML asks: may "open:go" run?',
      "",
      '    Server: "open"',
      '    Tool: "go"',
      '    Workspace: "/WS"',
      "    WHAT",
      "    It uses no files, no network, no programs and no variables",
      "    Arguments:",
      '      "path": "a\\n\\u001b[1m**b**\\u{202e}"',
      '      "new\\nline": [" \\u{200b}",{"\\u0007":null}]',
      "",
      '"For this session" allows this tool, with any arguments, until your client disconnects, ' +
      "for at most 12 hours",
      '"Always" allows this tool, with any arguments: a rule in /WS/.pml.json, in this workspace',
      "",
    ].join("\n"),
  );
  await answer(picked("Yes"));
  await endWell(ws, pml);
});

Deno.test("any arguments stay within their lines in a question (PM17)", async () => {
  await using scene = await makeScene({ ...OPEN, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const odd = fc.string({ unit: "binary", maxLength: 40 });
  const samples = fc.sample(fc.tuple(odd, odd), { numRuns: 100, seed: 17 });
  for (const [one, two] of samples) {
    const args = { one, two: [two] };
    const { text, answer } = await questionOf(pml, { name: "open__go", arguments: args });
    const where = { lines: 2, server: "open", tool: "go", workspace: ws.path };
    assertOwn(text, { name: JSON.stringify(args), ...where });
    await answer(picked("Yes"));
  }
  await endWell(ws, pml);
});

Deno.test("a question that is too long for a form is asked on the terminal, in full (PM17)", async () => {
  await using scene = await makeScene({ era: "2025-11-25", pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const hidden = "x".repeat(1024 * 1024) + "THE END";
  const big = writing("big.txt", hidden);
  const response = await answerOf(pml, big);
  assert.equal(codeOf(response), "APPROVAL_REQUIRED");
  assert.ok(JSON.stringify(response).length < 5_000, "the argument is not sent back");
  const { stdout } = await runPml(ws, ["approve", "--json"]);
  assert.ok(stdout.includes(hidden), "the terminal shows the whole");
  const result = await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "y"]],
  });
  assert.ok(result.stdout.includes("THE END"));
  assert.equal(codeOf(await answerOf(pml, big)), undefined);
  assert.equal(await readFile(ws.file("big.txt"), "utf8"), hidden);
  await endWell(ws, pml);
});

Deno.test("a long question fits the form up to its limit, and not beyond (PM17)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const short = await questionOf(pml, writing("a.txt", ""));
  await read();
  await short.answer(picked("No"));
  const left = 4_000 - short.text.length;
  const longest = await questionOf(pml, writing("a.txt", "y".repeat(left)));
  assert.equal(longest.text.length, 4_000);
  await longest.answer(picked("Yes"));
  for (
    const content of [
      "y".repeat(left + 1),
      "\n".repeat(left / 2 + 1),
      "\u200b".repeat(left / 8 + 1),
    ]
  ) {
    assert.equal(codeOf(await answerOf(pml, writing("a.txt", content))), "APPROVAL_REQUIRED");
  }
  await endWell(ws, pml);
});

Deno.test("the terminal shows a question without control characters (PM17)", async () => {
  await using scene = await makeScene({ ...OPEN, capabilities: {} });
  const { ws, pml } = scene;
  await answerOf(pml, { name: "open__go", arguments: { ...SPOOFS } });
  const { stdout, stderr } = await runPml(ws, ["approve", "--json"]);
  const { calls: [{ text }] } = JSON.parse(stdout);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u200b]/);
  assert.equal(stderr.includes("\u001b"), false);
  const result = await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "n"]],
  });
  assert.ok(
    !result.stdout.includes("\u001b[1;31m") && !result.stdout.includes("\u001b]0;"),
    result.stdout,
  );
  await endWell(ws, pml);
});

/** Names of tools in a hostile module. */
const NAMES = ["a\nb", "\u001b[1mx", "go\u202e", "g\u043e", "go ", "", "a:b", "x".repeat(500)];

Deno.test("a module whose tools have misleading names is not used (PM7, PM17)", async () => {
  const files = Object.fromEntries(NAMES.map((name, at) => [
    `m${at}.js`,
    `const tools = JSON.parse(${JSON.stringify(JSON.stringify({ [name]: {}, go: {} }))});
     export const __meta__ = { name: "m${at}", version: "1.0.0", tools };
     const f = () => "went"; export { f as go, f as ${JSON.stringify(name)} };`,
  ]));
  const private_mcps = Object.fromEntries(
    NAMES.map((_, at) => [`m${at}`, { type: "deno", path: `m${at}.js` }]),
  );
  const pml = { version: 1, permissions: { allow: ["filesystem:read_file"] }, private_mcps };
  await using scene = await makeScene({ files, pml, capabilities: {} });
  const { ws } = scene;
  const listed = await scene.pml.callTool("search", { query: "go went m0 m1", limit: 50 });
  for (const [at, name] of NAMES.entries()) {
    if (name !== "") assert.ok(!textOf(listed).includes(`:${name}(`), JSON.stringify(name));
    const answer = await scene.pml.callTool("call", { tool: `m${at}:${name}`, arguments: {} });
    assert.ok(codeOf(answer) !== undefined && codeOf(answer) !== "BUG", JSON.stringify(answer));
  }
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(scene.pml.stderr, /\u001b|\u202e/);
  await endWell(ws, scene.pml);
});

/**
 * Asserts that a question has PML's own lines, and one line for each argument, all without hidden
 * characters.
 */
function assertOwn(
  text: string,
  wanted: {
    readonly name: string;
    readonly lines: number;
    readonly server: string;
    readonly tool: string;
    readonly workspace: string;
  },
): void {
  const { name, lines, server, tool, workspace } = wanted;
  const [head, blank, ...rest] = text.split("\n");
  assert.equal(head, `PML asks: may "${server}:${tool}" run?`, name);
  assert.equal(blank, "", name);
  assert.equal(rest.pop(), "", name);
  const [empty, session = "", always = ""] = rest.splice(-3);
  assert.equal(empty, "", name);
  assert.match(session, /^"For this session" [ ,\w]+$/, name);
  assert.match(always.replace(workspace, "WS"), /^"Always" [ ,\w]+: a rule in WS[ ,.\/\w]+$/, name);
  assert.deepEqual(rest.slice(0, 3), [
    `    Server: "${server}"`,
    `    Tool: "${tool}"`,
    `    Workspace: "${workspace}"`,
  ]);
  assert.match(rest[4] ?? "", /^ {4}It (uses|reads)/, name);
  assert.equal(rest[5], "    Arguments:", name);
  const texts = rest.slice(6);
  assert.equal(texts.length, lines, `${name}: ${text}`);
  for (const line of texts) assert.match(line, /^ {6}"/, name);
  const odd = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;
  assert.doesNotMatch(text.replaceAll("\n", ""), odd, name);
  assert.doesNotMatch(text, / {20}/, `${name}: a run of blanks pushes text out of sight`);
}

function writing(path: string, content: string): ToolCall {
  return { name: "filesystem__write_file", arguments: { path, content } };
}
