import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { greeting } from "./cli_greeter.ts";
import { pmlCommand, repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { END_MS, until, waitUntil } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";

Deno.test("pml ends quietly when the reader closes its output", async () => {
  await using ws = await greeting();
  const line = [...pmlCommand(), "tools"].join(" ");
  const result = await runPml(ws, ["-c", `${line} | true; echo " $\{PIPESTATUS[0]}"`], {
    command: ["bash"],
  });
  assert.match(result.stdout, /^ 0\n$/);
  assert.equal(result.stderr, "");
});

Deno.test("pml reports that its output cannot be written", { ignore: !hasFull() }, async () => {
  await using ws = await makeWorkspace();
  for (const json of ["", "--json"]) {
    const line = `${pmlCommand().join(" ")} tools ${json} > /dev/full`;
    const result = await runPml(ws, ["-c", line], { command: ["bash"] });
    assert.equal(result.code, 2);
    assert.match(result.stderr, /error: USAGE: Cannot write to stdout: .+/);
  }
});

function hasFull(): boolean {
  return Deno.build.os === "linux";
}

Deno.test("pml call ends its tool at a signal, and leaves no process", async () => {
  await using ws = await greeting();
  // A signal ends it.
  await using call = new RawStdio(ws, { ownProcess: true, args: ["call", "greeter:wait"] });
  const runs = async () => (await call.watch.remember(call.pid)).length > 1;
  assert.ok(await waitUntil(runs), `no child was started: ${call.stderr}`);
  const ended = await call.kill("SIGTERM");
  assert.deepEqual([ended.code, ended.signal], [143, null], call.stderr);
  await call.watch.assertNothingLeft();
});

Deno.test("pml stdio loads neither the SDK for a usual call nor modules for terminals", async () => {
  await using ws = await makeWorkspace({ files: { "a.txt": "text" } });
  const { imports, workspace: _w, ...config } = JSON.parse(
    await Deno.readTextFile(repoFile("deno.json")),
  );
  const { commander: _, "@modelcontextprotocol/server": __, ...others } = imports;
  // Not in the folder that contains the home: PML would take that for a workspace.
  const path = `${ws.root}/tmp/deno.json`;
  await Deno.writeTextFile(path, JSON.stringify({ ...config, imports: others, lint: {} }));
  const command = [Deno.execPath(), "run", "-A", "--config", path, repoFile("mod.ts")] as const;
  assert.equal((await runPml(ws, ["--help"], { command })).code, 0, "the help needs none of them");
  assert.equal((await runPml(ws, ["help"], { command })).code, 1);
  await using client = new RawStdio(ws, { command: [...command, "stdio"] });
  await client.open();
  const call = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  const answer = await client.callTool("call", call);
  assert.deepEqual(answer.result?.content, [{ type: "text", text: "text" }], client.stderr);
  assert.equal((await client.close()).code, 0);
});

Deno.test("pml stdio serves until the client disconnects or a signal comes", async () => {
  await using ws = await greeting();
  const ends: [Deno.Signal | undefined, number][] = [
    [undefined, 0],
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ];
  for (const [signal, code] of ends) {
    // A signal ends it.
    await using client = new RawStdio(ws, { ownProcess: true });
    await client.open();
    const answer = await client.callTool("call", {
      tool: "greeter:greet",
      arguments: { name: "x" },
    });
    assert.deepEqual(answer.result?.content, [{ type: "text", text: "hello x" }]);
    const ended = signal === undefined ? await client.close() : await client.kill(signal);
    // It ended by itself: a signal that kills leaves the same number as code.
    assert.deepEqual([ended.code, ended.signal], [code, null], client.stderr);
    assert.ok(ended.ms < END_MS, `${ended.ms} ms`);
    await client.watch.assertNothingLeft();
  }
});

Deno.test("pml stdio starts with a broken configuration, logs the error, and returns it for each call", async () => {
  await using ws = await makeWorkspace({ pml: "{" });
  await using client = new RawStdio(ws);
  await client.open();
  const answer = await client.callTool("search", { query: "x" });
  assert.match(JSON.stringify(answer), /CONFIG_INVALID/);
  await until(() => /costs a client about \d+ tokens/.test(client.stderr));
  assert.equal((await client.close()).code, 0);
  assert.match(client.stderr, /error CONFIG_INVALID/);
  assert.match(client.stderr, /info {2}Serving on stdio/);
});

Deno.test("the library opens the same gateway", async () => {
  await using ws = await greeting();
  const program = `import { openGateway, PmlError } from ${
    JSON.stringify(new URL("../mod.ts", import.meta.url).href)
  };
    await using gateway = await openGateway();
    const { content } = await gateway.callTool("greeter:greet", { name: "you", times: 2 });
    const { hits } = await gateway.search("greet somebody");
    const tools = (await gateway.listTools()).map(({ name }) => name);
    const refused = await gateway.callTool("filesystem:remove_directory", { path: "x" })
      .catch((error) => error instanceof PmlError ? error.code : error);
    console.log(JSON.stringify({ content, first: hits[0]?.id, tools, refused }));`;
  const source = `data:text/typescript;base64,${Buffer.from(program).toString("base64")}`;
  const config = new URL("../deno.json", import.meta.url).pathname;
  const command = [Deno.execPath(), "run", "-A", "--config", config] as const;
  const result = await runPml(ws, [source], { command });
  assert.equal(result.code, 0, result.stderr);
  const said = JSON.parse(result.stdout);
  assert.equal(said.content[0].text, "hello hello you");
  assert.equal(said.first, "greeter:greet");
  assert.ok(said.tools.includes("filesystem:read_file"));
  assert.ok(!said.tools.includes("filesystem:remove_file"));
  assert.equal(said.refused, "APPROVAL_REQUIRED");
});
