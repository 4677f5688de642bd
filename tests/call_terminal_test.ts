/**
 * `pml call` on a terminal: the user answers a server's questions there, and results are saved in
 * files.
 *
 * @module
 */

import assert from "node:assert/strict";
import { full, KINDS } from "./full_scene.ts";
import { assertError } from "./cli_greeter.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const ANSWER = /Answer it\?.*\[N\] no/s;

function withFull(kind: string, rules: Readonly<Record<string, unknown>> = {}): Promise<Workspace> {
  const permissions = { allow: [`${kind}:*`], ...rules };
  return makeWorkspace({ pml: { version: 1, permissions, mcpServers: { [kind]: full(kind) } } });
}

async function called(
  ws: Workspace,
  tool: string,
  typed: readonly TerminalInput[],
): Promise<string> {
  const result = await runPmlOnTerminal(ws, ["call", tool], { typed });
  return result.stdout;
}

for (const kind of KINDS) {
  Deno.test(`the terminal of pml call shows a server's form and takes the answer, ${kind}`, async () => {
    await using ws = await withFull(kind);
    const text = await called(ws, `${kind}:ask_name`, [[ANSWER, "y"], [/Name \(string\)/, "Ada"]]);
    assert.match(text, new RegExp(`Server ${kind} asks`));
    assert.match(text, /"action":"accept".*"name":"Ada"/);
    const no = await called(ws, `${kind}:ask_name`, [[ANSWER, "n"]]);
    assert.match(no, /"action":"decline"/);
    const script = await runPml(ws, ["call", `${kind}:ask_name`]);
    assert.notEqual(script.code, 0);
    assert.doesNotMatch(script.stdout, /accept/);
  });

  Deno.test(`the terminal of pml call shows a server's page, ${kind}`, async () => {
    await using ws = await withFull(kind);
    const text = await called(ws, `${kind}:ask_page`, [[/127\.0\.0\.1\/x.*are done:.*no/s, "y"]]);
    assert.match(text, /"action":"accept"/);
  });

  Deno.test(`a server that may not ask does not reach the terminal of pml call, ${kind}`, async () => {
    await using ws = await withFull(kind, { deny: [`${kind}:@elicitation`] });
    const text = await called(ws, `${kind}:ask_name`, []);
    assert.doesNotMatch(text, /Answer it/);
    assert.match(text, /Cannot run ".*:@elicitation": a deny rule matches/);
  });
}

Deno.test("pml call asks for each field of a form until its value is valid", async () => {
  const properties = {
    name: { type: "string", title: "Your name" },
    age: { type: "integer" },
    size: { type: "string", enum: ["S", "M"], default: "M" },
    ok: { type: "boolean", description: "Agreed?" },
    colours: { type: "array", items: { anyOf: [{ const: "red" }, { const: "blue" }] } },
    more: { type: "string" },
  };
  const schema = { type: "object", properties, required: ["name", "age", "ok"] };
  await using ws = await makeWorkspace();
  const typed: readonly TerminalInput[] = [
    [/Fill this in\r?\nplease\\u\{1b\}.*Answer it\?.*\[N\] no/s, "y"],
    [/Your name \(string\): $/, ""],
    [/an answer is needed.*Your name \(string\): $/s, "Ada"],
    [/age \(integer\): $/, "1.5"],
    [/That is not integer.*age \(integer\): $/s, "36"],
    [/size \(.* S, M, .*"M"\): $/, "L"],
    [/one of S, M.*size .*: $/s, ""],
    [/ok \(boolean\) Agreed\?: $/, "maybe"],
    [/That is not boolean.*ok .*: $/s, "yes"],
    [/colours \(.* red, blue; .*\): $/, "red, blue"],
    [/more \(string, .*\): $/, ""],
  ];
  const command = [...denoCommand("tests/kit/form_asker.ts"), JSON.stringify(schema)] as const;
  const result = await runPmlOnTerminal(ws, [], { command, typed });
  const said = JSON.parse(/answer: (.*?)\r?$/m.exec(result.stdout)?.[1] ?? "null");
  assert.deepEqual(said, {
    action: "accept",
    content: { name: "Ada", age: 36, size: "M", ok: true, colours: ["red", "blue"] },
  });
  const off = await runPmlOnTerminal(ws, [], {
    command,
    typed: [[ANSWER, "y"], [/Your name/, "\x03"]],
  });
  assert.doesNotMatch(off.stdout, /"accept"/);
});

Deno.test("pml call asks for fields whose labels are odd values", async () => {
  const odd = { toString: 1 };
  const properties = {
    a: { type: odd, title: odd, description: odd },
    b: { enum: [odd, "S"], default: [odd] },
  };
  await using ws = await makeWorkspace();
  const schema = JSON.stringify({ type: "object", properties });
  const result = await runPmlOnTerminal(ws, [], {
    command: [...denoCommand("tests/kit/form_asker.ts"), schema],
    typed: [
      [ANSWER, "y"],
      [/a \(text, .*\): $/, "x"],
      [/b \(.* S, .*\): $/, "S"],
    ],
  });
  assert.match(result.stdout, /answer: .*"a":"x","b":"S"/);
});

Deno.test("pml call --save writes images as they are and replaces no file", async () => {
  const bytes = Uint8Array.from({ length: 3_000 }, (_, at) => at % 256);
  await using ws = await makeWorkspace({ files: { "a.txt": "hello", "there.png": "mine" } });
  await Deno.writeFile(ws.file("in.png"), bytes);
  const call = ["call", "filesystem:read_media_file", "path=in.png", "--save"];
  const result = await runPml(ws, [...call, "out.png"]);
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(await Deno.readFile(ws.file("out.png")), bytes);
  assert.match(result.stderr, /^Saved out\.png: 3000 bytes$/m);
  const there = await runPml(ws, [...call, "there.png"]);
  assertError(there, { code: "USAGE", exit: 2 });
  assert.equal(await Deno.readTextFile(ws.file("there.png")), "mine");
  const json = await runPml(ws, [...call, "more.png", "--json"]);
  assert.deepEqual(JSON.parse(json.stdout), { files: ["more.png"] });
  const text = await runPml(ws, ["call", "filesystem:read_file", "path=a.txt", "--save", "b.txt"]);
  assert.equal(text.stdout, "");
  assert.equal(await Deno.readTextFile(ws.file("b.txt")), "hello");
  // The tool ran, so its result is not lost.
  const nowhere = await runPml(ws, [...call, "no/such/folder.png"]);
  assert.deepEqual([nowhere.code, nowhere.stdout !== ""], [1, true], nowhere.stderr);
});
