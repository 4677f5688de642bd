/**
 * Published clients start `pml stdio` and use it: the Inspector's command line, mcporter, mcp-cli
 * and the official SDK's client, which also answers questions.
 *
 * @module
 */

import assert from "node:assert/strict";

import { type FoundClients, type ProgramOutput, runClient } from "./kit/found_clients.ts";
import { denoCommand, pmlCommand, repoFile } from "./kit/pml_command.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const READ = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
const WRITE = { tool: "filesystem:write_file", arguments: { path: "b.txt", content: "x" } };
const META = ["call", "search", "schema"];

interface At {
  readonly ws: Workspace;
  readonly clients: FoundClients;
}

const CLIENTS: Readonly<
  Record<string, {
    readonly list: (config: string) => readonly string[];
    readonly call: (config: string, given: typeof READ | typeof WRITE) => readonly string[];
  }>
> = {
  "mcp-inspector": {
    list: (config) => ["--cli", "--config", config, "--server", "pml", "--method", "tools/list"],
    call: (config, given) => [
      ...["--cli", "--config", config, "--server", "pml", "--method", "tools/call"],
      ...["--tool-name", "call", "--tool-arg", `tool=${given.tool}`],
      ...["--tool-arg", `arguments=${JSON.stringify(given.arguments)}`],
    ],
  },
  mcporter: {
    list: (config) => ["--config", config, "list", "pml", "--json"],
    call: (config, given) => [
      ...["--config", config, "call", "pml.call", "--args", JSON.stringify(given)],
      ...["--output", "json"],
    ],
  },
  "mcp-cli": {
    list: () => [],
    call: (config, given) => [
      ...["--config", config, "call-tool", "pml:call", "--args", JSON.stringify(given)],
    ],
  },
};

async function useOf(name: string, { ws, clients }: At): Promise<void> {
  const config = `${ws.root}/${name}.json`;
  const [command, ...args] = pmlCommand();
  const pml = { command, args: [...args, "stdio"], env: ws.env, cwd: ws.path };
  await Deno.writeTextFile(config, JSON.stringify({ mcpServers: { pml } }));
  const ask = (words: readonly string[]): Promise<ProgramOutput> =>
    runClient([...clients.start(name), ...words], { cwd: ws.path, env: { HOME: ws.root } });
  const { list, call } = CLIENTS[name] ?? assert.fail(name);
  const listing = list(config);
  if (listing.length > 0) {
    const listed = await ask(listing);
    assert.equal(listed.code, 0, listed.stderr);
    for (const tool of META) assert.match(listed.stdout, new RegExp(`"name": ?"${tool}"`), name);
  }
  const read = await ask(call(config, READ));
  assert.match(read.stdout, /hello/, read.stderr);
  // A client that cannot be asked gets the next step as text, and nothing is written.
  const write = await ask(call(config, WRITE));
  assert.match(write.stdout + write.stderr, /pml approve/);
  await assert.rejects(Deno.stat(ws.file("b.txt")), Deno.errors.NotFound);
}

/** Returns a server of the kit. */
function kitServer(file: string, ...more: readonly string[]) {
  const [command, ...args] = denoCommand(`tests/kit/${file}`);
  return { command, args: [...args, ...more], env: { DENO_DIR: "${DENO_DIR}" } };
}

/** Lets the Inspector verify a skill, and find the page of a tool. */
async function inspectExtensions({ start }: FoundClients): Promise<void> {
  const head = "---\nname: a\ndescription: Describes a\n---\n";
  await using ws = await makeAttackWorkspace({
    files: { "skills/a/SKILL.md": head, "skills/a/references/b.md": "b" },
    pml: {
      version: 1,
      permissions: { allow: ["s:*", "p:*"] },
      mcpServers: {
        s: kitServer("skills_server.ts", "legacy", "./skills"),
        p: kitServer("app_server.ts", "p"),
      },
    },
    limits: { first_list_ms: 60_000 },
  });
  const config = `${ws.root}/servers.json`;
  const [command, ...args] = pmlCommand();
  const pml = { command, args: [...args, "stdio"], env: ws.env, cwd: ws.path };
  await Deno.writeTextFile(config, JSON.stringify({ mcpServers: { pml } }));
  const ask = async (...words: readonly string[]) => {
    const common = ["--cli", "--config", config, "--server", "pml", "--quiet", "--method"];
    const line = [...start("mcp-inspector"), ...common, ...words];
    const { code, stdout, stderr } = await runClient(line, {
      cwd: ws.path,
      env: { HOME: ws.root },
    });
    assert.equal(code, 0, stdout + stderr);
    return stdout.trim().split("\n").map((one) => JSON.parse(one));
  };
  const uri = "skill://s/a/SKILL.md";
  const [skill] = await ask("skills/get", "--uri", uri, "--verify");
  assert.deepEqual([skill.uri, skill.outcome, skill.files.length], [uri, "verified", 2]);
  const tools = await ask("tools/list", "--advertise-apps", "--app-info");
  const pages = tools.filter(({ hasApp }) => hasApp);
  assert.deepEqual(pages.map(({ toolName, resourceUri }) => [toolName, resourceUri]), [
    ["p__get-time", "ui://p/get-time/app.html"],
  ]);
}

/** Lets each client list and call tools of `pml stdio`. */
export async function useOverStdio(t: Deno.TestContext, clients: FoundClients): Promise<void> {
  await using ws = await makeWorkspace({ files: { "a.txt": "hello" } });
  for (const name of Object.keys(CLIENTS)) {
    await t.step(`${name} over stdio`, () => useOf(name, { ws, clients }));
  }
  await t.step("the Inspector verifies skills and finds pages over stdio", async () => {
    await inspectExtensions(clients);
  });
  await t.step("the SDK's client over stdio answers questions of PML", async () => {
    const script = `${clients.folder}/sdk_client.mjs`;
    await Deno.copyFile(repoFile("tests/clients/sdk_client.mjs"), script);
    const run = (answer: string) =>
      runClient(
        [clients.node, script, answer, ...pmlCommand(), "stdio"],
        { cwd: ws.path, env: ws.env },
      );
    const no = await run("No");
    assert.equal(no.code, 0, no.stderr);
    const refused = JSON.parse(no.stdout);
    assert.equal(refused.asked.length, 1);
    assert.match(refused.asked[0], /Tool: "write_file"/);
    await assert.rejects(Deno.stat(ws.file("b.txt")), Deno.errors.NotFound);
    const yes = JSON.parse((await run("Yes")).stdout);
    for (const tool of META) assert.ok(yes.tools.includes(tool));
    assert.deepEqual(yes.read.content, [{ type: "text", text: "hello" }]);
    assert.equal(await Deno.readTextFile(ws.file("b.txt")), "written");
  });
}
