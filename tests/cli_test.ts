import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { assertError, GREETER, greeting, write } from "./cli_greeter.ts";
import { assertGolden } from "./kit/golden.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

Deno.test("pml prints its version, an overview, and help with examples for each command", async () => {
  await using ws = await makeWorkspace();
  const version = await runPml(ws, ["--version"]);
  assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
  const overview = await runPml(ws, ["--help"]);
  assert.equal(overview.code, 0);
  for (
    const name of ["call", "tools", "search", "why", "trust", "approve", "init", "doctor", "stdio"]
  ) {
    assert.match(overview.stdout, new RegExp(`^  ${name} `, "m"));
    const help = await runPml(ws, [name, "--help"]);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /Examples:\n {2}\$ /, name);
    assert.equal(help.stderr, "");
  }
});

Deno.test("pml refuses unknown commands and options with exit code 2, and names the next step", async () => {
  await using ws = await makeWorkspace();
  const wrong = [
    ["nonsense"],
    ["help", "nonsense"],
    ["--nonsense"],
    ["call"],
    ["call", "filesystem:read_file", "--nonsense"],
    ["call", "read_file"],
    ["call", "filesystem:read_file", "path"],
    ["call", "filesystem:read_file", "head=x"],
    ["call", "filesystem:read_file", "path=a", "path=b"],
    ["call", "filesystem:read_file", "--args", "{"],
    ["call", "filesystem:read_file", "--args", "[]"],
    ["call", "filesystem:read_file", "--args"],
    ["call", "filesystem:read_file", "--yes", "path=a"],
    ["tools", "nonsense"],
    ["tools", "filesystem", "more"],
    ["search"],
    ["search", " "],
    ["search", "x", "--limit", "0"],
    ["search", "x", "--limit", "many"],
    ["search", "x", "--server", "nonsense"],
    ["why"],
    ["why", "nonsense"],
    ["trust", "more"],
    ["trust", "--yes"],
    ["approve", "--yes"],
    ["init"],
    ["init", "more"],
    ["doctor", "--nonsense"],
    ["stdio", "--nonsense"],
    ["stdio", "more"],
  ];
  for (const args of wrong) {
    const result = await runPml(ws, args);
    assert.match(result.stderr, /^error: USAGE: Cannot .+: .+\n {2}.+/m, args.join(" "));
    assert.equal(result.code, 2, args.join(" "));
    assert.equal(result.stdout, "", args.join(" "));
  }
  const json = await runPml(ws, ["tools", "nonsense", "--json"]);
  assert.equal(JSON.parse(json.stdout).error.code, "USAGE");
});

Deno.test("pml call runs a tool in a folder without any configuration", async () => {
  await using ws = await makeWorkspace({
    files: { "a.txt": "no line end", "b.txt": "two\nlines\n" },
  });
  const one = await runPml(ws, ["call", "filesystem:read_file", "path=a.txt"]);
  assert.deepEqual([one.code, one.stdout], [0, "no line end\n"]);
  const two = await runPml(ws, ["call", "filesystem__read_file", "path=b.txt", "head=1"]);
  assert.deepEqual([two.code, two.stdout], [0, "two\n"]);
  const args = ["call", "filesystem:read_file", "--args", "-", "--json"];
  const json = await runPml(ws, args, { stdin: '{"path": "b.txt"}' });
  assert.equal(JSON.parse(json.stdout).content[0].text, "two\nlines\n");
  const many = await runPml(ws, [
    "call",
    "filesystem:read_multiple_files",
    'paths=["a.txt", "b.txt"]',
  ]);
  assert.equal(many.code, 0, many.stderr);
  assert.match(many.stdout, /no line end[^]*two/);
});

Deno.test("pml call reports a failed or missing tool on stderr", async () => {
  await using ws = await greeting();
  const failed = await runPml(ws, ["call", "greeter:fail"]);
  assert.deepEqual([failed.code, failed.stdout], [1, ""]);
  assert.match(failed.stderr, /it went wrong/);
  const unknown = await runPml(ws, ["call", "greeter:nonsense"]);
  assertError(unknown, { code: "UNKNOWN_TOOL", exit: 1 });
  assertError(await runPml(ws, ["call", "greeter:greet"]), { code: "BAD_ARGUMENTS", exit: 1 });
  const denied = await runPml(ws, ["call", "filesystem:remove_file", "path=a.txt"]);
  assertError(denied, { code: "PERMISSION_DENIED", exit: 1 });
  const json = await runPml(ws, ["call", "greeter:nonsense", "--json"]);
  assert.equal(JSON.parse(json.stdout).error.code, "UNKNOWN_TOOL");
});

Deno.test("pml call passes numbers as numbers, and describes content other than text", async () => {
  await using ws = await greeting();
  const greeted = await runPml(ws, ["call", "greeter:greet", "name=12", "times=2"]);
  assert.equal(greeted.stdout, "hello hello 12\n", greeted.stderr);
  const picture = await runPml(ws, ["call", "greeter:picture"]);
  assert.match(picture.stdout, /^\{"type":"image","mimeType":"image\/png",.*--json shows all\)\n$/);
  const json = await runPml(ws, ["call", "greeter:picture", "--json"]);
  assert.equal(JSON.parse(json.stdout).content[0].data, "AAECAw==");
});

Deno.test("pml call --select shows a part of the result, for a user and a script", async () => {
  const hosts = '{"hosts":[{"name":"a","id":725653563933458432}]}';
  await using ws = await makeWorkspace({ files: { "c.json": hosts } });
  const call = (...more: readonly string[]) =>
    runPml(ws, ["call", "filesystem:read_file", "path=c.json", "--select", ...more]);
  assert.equal((await call("hosts[0].name")).stdout, "a\n");
  assert.equal((await call("hosts[0].name", "--json")).stdout, '"a"\n');
  assert.equal((await call("/hosts/0/id")).stdout, "725653563933458432\n");
  assert.equal((await call("hosts", "--save", "hosts.json")).code, 0);
  assert.equal(
    (await Deno.readTextFile(ws.file("hosts.json"))).replace(/\s/g, ""),
    '[{"name":"a","id":725653563933458432}]',
  );
  assertError(await call("hosts["), { code: "USAGE", exit: 2 });
});

Deno.test("pml call shows the whole result of a tool that ran if it cannot select or save a part", async () => {
  const hosts = '{"hosts":[]}';
  await using ws = await makeWorkspace({ files: { "c.json": hosts } });
  const read = ["call", "filesystem:read_file", "path=c.json"];
  const options = [
    ["call/--select none after the tool ran", "--select", "none"],
    ["call/--select /hosts/1 after the tool ran", "--select", "/hosts/1"],
    ["call/--save none/c.json after the tool ran", "--save", "none/c.json"],
  ] as const;
  for (const [title, ...option] of options) {
    const { stdout, stderr, code } = await runPml(ws, [...read, ...option]);
    assert.equal(stdout, `${hosts}\n`);
    assertGolden(title, stderr.replaceAll(ws.root, "<ROOT>"));
    assert.equal(code, 1);
    const json = await runPml(ws, [...read, ...option, "--json"]);
    assert.equal(JSON.parse(json.stdout).content[0].text, hosts);
    assert.equal(json.code, 1);
  }
});

Deno.test("pml call without a terminal leaves its question, which pml approve answers once", async () => {
  await using ws = await makeWorkspace();
  const write = ["call", "filesystem:write_file", "path=new.txt", "content=hi"];
  assertError(await runPml(ws, write), { code: "APPROVAL_REQUIRED", exit: 1 });
  const { calls: [waiting] } = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout);
  assert.match(waiting.text, /"write_file"[^]*"new\.txt"/);
  const piped = await runPml(ws, ["approve"], { stdin: "approve\n" });
  assertError(piped, { code: "APPROVAL_REQUIRED", exit: 1 });
  assertError(await runPml(ws, ["approve", "0000"]), { code: "APPROVAL_STALE", exit: 1 });
  const id = waiting.id.slice(0, 8);
  const approved = await runPmlOnTerminal(ws, ["approve", id], {
    typed: [["Approve exactly this call?", "y"]],
  });
  assert.equal(approved.code, 0, approved.stdout);
  assert.ok(approved.stdout.includes('"content": "hi"'), approved.stdout);
  const other = await runPml(ws, [...write.slice(0, 3), "content=other"]);
  assertError(other, { code: "APPROVAL_REQUIRED", exit: 1 });
  assert.equal((await runPml(ws, write)).code, 0);
  assert.equal(await Deno.readTextFile(ws.file("new.txt")), "hi");
  assertError(await runPml(ws, write), { code: "APPROVAL_REQUIRED", exit: 1 });
});

Deno.test("pml approve removes refused calls, and keeps unanswered ones", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, ["call", "filesystem:create_directory", "path=new"]);
  const neither = await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "x"], ["Still pending", "\u0003"]],
  });
  assert.equal(neither.code, 130);
  const refused = await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "n"]],
  });
  assert.match(refused.stdout, /Refused/);
  const nothing = await runPml(ws, ["approve"]);
  assert.equal(nothing.code, 0);
  assertGolden("approve/no call waits", nothing.stdout);
  const { calls } = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout);
  assert.deepEqual(calls, []);
});

Deno.test("pml call asks on a terminal: No runs nothing, Yes runs once, Always stays", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  const write = ["call", "filesystem:write_file", "path=new.txt", "content=hi"];
  const say = (word: string) => runPmlOnTerminal(ws, write, { typed: [[/May it run.*no/, word]] });
  const no = await say("no");
  assert.equal(no.code, 1);
  assert.match(no.stdout, /"content": "hi"[^]*error: APPROVAL_DECLINED/);
  await assert.rejects(Deno.stat(ws.file("new.txt")), Deno.errors.NotFound);
  const yes = await say("Yes");
  assert.equal(yes.code, 0, yes.stdout);
  assert.equal(await Deno.readTextFile(ws.file("new.txt")), "hi");
  assertError(await runPml(ws, write), { code: "APPROVAL_REQUIRED", exit: 1 });
  assert.equal((await say("always")).code, 0);
  assert.equal((await runPml(ws, write)).code, 0);
});

Deno.test("pml call shows a question in full where it is too long for a client", async () => {
  await using ws = await makeWorkspace();
  const content = `${"long ".repeat(1_500)}end of it`;
  const write = ["call", "filesystem:write_file", "path=new.txt", `content=${content}`];
  const result = await runPmlOnTerminal(ws, write, {
    typed: [["Approve exactly this call?", "y"]],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.ok(result.stdout.includes("end of it"));
  assert.equal(await Deno.readTextFile(ws.file("new.txt")), content);
});

Deno.test("pml call ends at Ctrl-C, and leaves no process", async () => {
  await using ws = await greeting();
  const result = await runPmlOnTerminal(ws, [
    "call",
    "filesystem:write_file",
    "path=a",
    "content=b",
  ], {
    typed: [[/May it run.*no/, "\x03"]],
  });
  assert.equal(result.code, 130, result.stdout);
  await new ProcWatch(ws).assertNothingLeft();
});

Deno.test("pml call on a terminal asks to trust a server before it reads the arguments", async () => {
  await using ws = await greeting({ trusted: false });
  const greet = ["call", "greeter:greet", "name=you", "times=2"];
  const no = await runPmlOnTerminal(ws, greet, { typed: [["to trust exactly this", "no"]] });
  assert.equal(no.code, 1);
  assert.match(no.stdout, /APPROVAL_DECLINED/);
  const yes = await runPmlOnTerminal(ws, greet, { typed: [["to trust exactly this", "trust"]] });
  assert.equal(yes.code, 0, yes.stdout);
  assert.match(yes.stdout, /hello hello you/);
});

Deno.test("pml call escapes control characters on a terminal, and passes every byte to a pipe", async () => {
  const text = "\x1b[31mred\u202e\r\nnext\tcolumn\n";
  await using ws = await makeWorkspace({ files: { "a.txt": text } });
  const read = ["call", "filesystem:read_file", "path=a.txt"];
  assert.equal((await runPml(ws, read)).stdout, text);
  const result = await runPmlOnTerminal(ws, read);
  assert.ok(result.stdout.includes("\\u{1b}[31mred\\u{202e}\r"), JSON.stringify(result.stdout));
  assert.ok(!result.stdout.includes("\x1b[31m"));
  assert.match(result.stdout, /next\tcolumn/);
});

Deno.test("pml trust needs a terminal, shows everything, and trusts exactly that content", async () => {
  await using ws = await greeting({ trusted: false });
  const greet = ["call", "greeter:greet", "name=you"];
  assertError(await runPml(ws, greet), { code: "WORKSPACE_UNTRUSTED", exit: 1 });
  const shown = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  const hash = createHash("sha256").update(GREETER).digest("hex");
  assert.equal(shown.trusted, false);
  assert.ok(shown.facts.join("\n").includes(hash));
  const piped = await runPml(ws, ["trust"], { stdin: "trust\n" });
  assertError(piped, { code: "APPROVAL_REQUIRED", exit: 1 });
  const declined = await runPmlOnTerminal(ws, ["trust"], {
    typed: [["to trust exactly this", "no"]],
  });
  assert.equal(declined.code, 1);
  assertError(await runPml(ws, greet), { code: "WORKSPACE_UNTRUSTED", exit: 1 });
  const trusted = await runPmlOnTerminal(ws, ["trust"], {
    typed: [["to trust exactly this", "trust"]],
  });
  assert.equal(trusted.code, 0);
  for (const fact of shown.facts) assert.ok(trusted.stdout.includes(fact), fact);
  assert.equal((await runPml(ws, greet)).stdout, "hello you\n");
  assert.match((await runPml(ws, ["trust"])).stdout, /^Trusted already: /);
  await write(ws, "greeter.ts", GREETER.replace("hello ", "goodbye "));
  assertError(await runPml(ws, greet), { code: "APPROVAL_STALE", exit: 1 });
});

Deno.test("pml tools shows servers and decisions, and the reason why a server is untrusted", async () => {
  await using ws = await greeting({ trusted: false });
  const all = await runPml(ws, ["tools"]);
  assert.match(all.stdout, /^filesystem \(builtin, deno\) ready\n/);
  assert.match(all.stdout, /^ {2}filesystem:read_file +(runs|asks) +Read/m);
  assert.match(all.stdout, /^ {2}filesystem:remove_file +denied/m);
  assert.match(all.stdout, /^greeter \(private, deno\) blocked: .*pml trust/m);
  assert.match(all.stderr, /^warning: .*not trusted/m);
  const one = JSON.parse((await runPml(ws, ["tools", "filesystem", "--json"])).stdout);
  assert.deepEqual(one.servers.map(({ name }: { name: string }) => name), ["filesystem"]);
  const tool = await runPml(ws, ["tools", "filesystem:read_file", "--json"]);
  assert.equal(JSON.parse(tool.stdout).inputSchema.type, "object");
  const page = (await runPml(ws, ["tools", "filesystem:read_file"])).stdout;
  assert.match(page, /^filesystem:read_file\(path, head\?, tail\?\)\nRead a UTF-8 text file/);
  assert.match(page, /^ {2}path {3}string {2}Relative to the workspace/m);
  assert.match(page, /^ {2}tail\? {2}number {2}Only the last N lines/m);
  assert.match(page, /^(?:runs|asks), by .*\nreads the workspace$/m);
  assert.match(page, /^Try it: pml call filesystem:read_file path=TEXT$/m);
});

Deno.test("pml search and pml why answer a user and a script", async () => {
  await using ws = await greeting();
  const result = await runPml(ws, ["search", "greet", "somebody", "--limit", "1"]);
  assert.match(result.stdout, /^greeter:greet +runs +\[private, 100%\] Greet somebody\n$/);
  const json = JSON.parse((await runPml(ws, ["search", "remove file", "--json"])).stdout);
  assert.ok(json.hits.every(({ id }: { id: string }) => id !== "filesystem:remove_file"));
  const nothing = await runPml(ws, ["search", "zzzzqqq"]);
  assert.deepEqual([nothing.code, nothing.stdout], [0, ""]);
  const why = await runPml(ws, ["why", "filesystem:remove_file"]);
  assert.match(
    why.stdout,
    /^filesystem:remove_file: denied\n {2}by "filesystem:remove_file" in .*\.pml\.json\n {2}the server: ready\n/,
  );
  const unknown = await runPml(ws, ["why", "a:b"]);
  assert.equal(unknown.stdout, "");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^There is no server "a" here$/m);
  assert.equal(JSON.parse((await runPml(ws, ["why", "a:b", "--json"])).stdout).verdict, "fails");
});
