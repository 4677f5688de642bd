/** `pml pause` and `pml resume`: while a workspace is paused, every new call there is refused. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { chown } from "node:fs/promises";
import { pausePath } from "../src/config/pause.ts";
import { stampAt } from "../src/io/path_info.ts";
import { assertError, greeting } from "./cli_greeter.ts";
import { connect, type Connection } from "./kit/client.ts";
import { assertGolden } from "./kit/golden.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const YES = { action: "accept", content: { answer: "Yes" } } as const;
const GREET = ["call", "greeter:greet", "name=you"] as const;

/** Calls a tool, and returns the code of its error; undefined if it succeeds. */
async function call(
  { client }: Pick<Connection, "client">,
  tool: string,
  args: Record<string, unknown> = {},
): Promise<unknown> {
  const result = await client.callTool({ name: "call", arguments: { tool, arguments: args } });
  const [block] = result.content as readonly { readonly text?: string }[];
  return result.isError ? /\b[A-Z]+(_[A-Z]+)*(?=:)/.exec(block?.text ?? "")?.[0] : undefined;
}

async function pause(ws: Workspace): Promise<void> {
  const { code, stderr } = await runPml(ws, ["pause"]);
  assert.equal(code, 0, stderr);
}

async function resume(ws: Workspace): Promise<void> {
  const { code, stdout } = await runPmlOnTerminal(ws, ["resume"]);
  assert.equal(code, 0, stdout);
}

/** Returns the events of the journal, with their details. */
async function events(ws: Workspace) {
  const { stdout } = await runPml(ws, ["audit", "--json"]);
  return stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line))
    .filter(({ kind }) => kind === "event");
}

for (const era of ERAS) {
  Deno.test(`pml pause refuses each new call until pml resume (${era})`, async () => {
    await using ws = await greeting();
    await using pml = await connect(ws, { era });
    const greet = () => call(pml, "greeter:greet", { name: "you" });
    assert.equal(await greet(), undefined);
    await pause(ws);
    await until(async () => await greet() === "PAUSED");
    await resume(ws);
    await until(async () => await greet() === undefined);
    const channels = (await events(ws)).filter(({ event }) => /^(paused|resumed)$/.test(event))
      .map(({ event, about }) => [event, about.channel]);
    assert.deepEqual(channels, [["paused", "terminal"], ["resumed", "terminal"]]);
  });
}

Deno.test("a pause applies to commands and to every process of the workspace, and to no other", async () => {
  await using ws = await greeting();
  await using other = await greeting();
  await using one = await connect(ws);
  await using second = await servePml(ws);
  await using client = await second.connect();
  await using elsewhere = await connect({ ...other, env: { ...other.env, PML_HOME: ws.home } });
  const greet = (pml: Pick<Connection, "client">) => call(pml, "greeter:greet", { name: "you" });
  assert.deepEqual(await Promise.all([one, client, elsewhere].map(greet)), [
    undefined,
    undefined,
    undefined,
  ]);
  await pause(ws);
  assertError(await runPml(ws, GREET), { code: "PAUSED", exit: 1 });
  await until(async () => await greet(one) === "PAUSED" && await greet(client) === "PAUSED");
  assert.equal(await greet(elsewhere), undefined);
  await resume(ws);
  assert.equal((await runPml(ws, GREET)).code, 0);
});

Deno.test("a call that runs goes on in a pause, and one that was asked about does not begin", async () => {
  // A call ends when the test creates a file.
  const slow = `method !== "tools/call" ? 0 : new Promise((resolve) => {
    const { existsSync, writeFileSync } = process.getBuiltinModule("node:fs");
    writeFileSync("begun", "");
    const timer = setInterval(() => {
      if (!existsSync("end")) return;
      clearInterval(timer);
      resolve(1);
    }, 20);
  })`;
  await using ws = await makeWorkspace({
    files: { "slow.mjs": tinyServer(slow) },
    pml: {
      version: 1,
      permissions: { allow: ["slow:*", "filesystem:list_directory"] },
      mcpServers: { slow: { command: "node", args: ["slow.mjs"] } },
    },
  });
  const form = Promise.withResolvers<typeof YES>();
  let forms = 0;
  await using pml = await connect(ws, {
    elicit: ({ message }) => {
      if (!message.includes("write_file")) return YES;
      forms++;
      return form.promise;
    },
  });
  const writing = call(pml, "filesystem:write_file", { path: "b.txt", content: "b" });
  const running = call(pml, "slow:tell");
  for (const each of [writing, running]) each.catch(() => {});
  await until(() => forms > 0);
  await until(() => stampAt(ws.file("begun")) !== undefined);
  await pause(ws);
  const list = () => call(pml, "filesystem:list_directory", { path: "." });
  await until(async () => await list() === "PAUSED");
  form.resolve(YES);
  assert.equal(await writing, "PAUSED");
  await assert.rejects(Deno.stat(ws.file("b.txt")), Deno.errors.NotFound);
  await Deno.writeTextFile(ws.file("end"), "");
  assert.equal(await running, undefined);
});

Deno.test("only a user at a terminal can end a pause, and pml shows it", async () => {
  await using ws = await greeting();
  await pause(ws);
  const refused = await runPml(ws, ["resume"]);
  assertError(refused, { code: "APPROVAL_REQUIRED", exit: 1 });
  const paused = await runPml(ws, GREET);
  assertError(paused, { code: "PAUSED", exit: 1 });
  assertGolden("pause/a call", paused.stderr);
  const status = (await runPml(ws, [])).stdout;
  assert.match(status, /^ {2}paused +\S/m);
  assert.match(status, /^Next: pml resume/m);
  const doctor = JSON.parse((await runPml(ws, ["doctor", "--json"])).stdout);
  assert.ok(
    doctor.findings.some(({ name, warns }: Record<string, unknown>) =>
      name === "pause" && warns === true
    ),
  );
  const again = JSON.parse((await runPml(ws, ["pause", "--json"])).stdout);
  assert.equal(again.paused, true);
  assertGolden("pause/pml pause", (await runPml(ws, ["pause"])).stdout);
  for (const title of ["pml resume", "pml resume without a pause"]) {
    assertGolden(`pause/${title}`, (await runPmlOnTerminal(ws, ["resume"])).stdout);
  }
});

Deno.test({
  name: "a pause file of another user pauses nothing, and one that is not readable does",
  ignore: Deno.build.os === "windows" || Deno.uid() !== 0,
  async fn() {
    await using ws = await greeting();
    await pause(ws);
    const path = pausePath(ws.home, ws.path);
    await Deno.writeTextFile(path, "{");
    assertError(await runPml(ws, GREET), { code: "PAUSED", exit: 1 });
    await chown(path, 12_345, 12_345);
    const { code, stderr } = await runPml(ws, GREET);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^warning: .*paused/m);
  },
});

Deno.test("a program that uses the library is refused in a pause", async () => {
  await using ws = await greeting();
  const program = `import { openGateway } from ${JSON.stringify(import.meta.resolve("../mod.ts"))};
    await using gateway = await openGateway();
    const call = gateway.callTool("greeter:greet", { name: "you" });
    console.log(await call.then(() => "ran", (error) => error.code));`;
  const source = `data:text/typescript;base64,${Buffer.from(program).toString("base64")}`;
  const command = denoCommand("mod.ts").slice(0, -1) as [string, ...string[]];
  const run = async () => (await runPml(ws, [source], { command })).stdout.trim();
  assert.equal(await run(), "ran");
  await pause(ws);
  assert.equal(await run(), "PAUSED");
});

Deno.test("a workspace that is paused stays paused for the next start", async () => {
  await using ws = await makeWorkspace();
  await pause(ws);
  await using pml = await connect(ws);
  assert.equal(await call(pml, "filesystem:list_directory", { path: "." }), "PAUSED");
});
