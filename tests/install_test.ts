import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { fakeJsr } from "./kit/fake_jsr.ts";
import { HOSTILE } from "./kit/hostile.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { publishedFiles } from "./kit/published.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { TcpSink } from "./kit/sinks.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { definitions, Person, serverOf } from "./oauth_scene.ts";

/** Reads the files of the published package. */
async function readPackage(): Promise<Parameters<typeof fakeJsr>[0]> {
  const files = await publishedFiles();
  const contents = await Promise.all(
    files.map(async (path) => [path, await readFile(repoFile(path), "utf8")]),
  );
  const { name, version, exports, imports } = JSON.parse(
    await readFile(repoFile("deno.json"), "utf8"),
  );
  return { name, version, exports, imports, files: Object.fromEntries(contents) };
}

/** Creates the hostile folder, with a server that requires a sign-in. */
async function makeHostile(url: string): Promise<Workspace> {
  const pml = definitions({ notes: { url } });
  const permissions = { allow: ["filesystem:read_file", "notes:*"] };
  return await makeWorkspace({ files: HOSTILE, pml: { ...pml, permissions }, trusted: true });
}

/** Installs the package with the README's command. Returns the command and its environment. */
async function install(ws: Workspace): Promise<Installed> {
  await using jsr = fakeJsr(await readPackage());
  const env = {
    DENO_DIR: join(ws.root, "cache"),
    JSR_URL: `${jsr.url}/`,
    // The installed command finds Deno on PATH.
    PATH: [dirname(process.execPath), ws.env.PATH].join(delimiter),
  };
  const readme = await readFile(repoFile("README.md"), "utf8");
  const [, flags = ""] = /^deno install (-.+) -n pml jsr:@casys\/pml/m.exec(readme) ?? [];
  const own = ["-n", "pml", "--root", ws.root, "jsr:@casys/pml"];
  const args = ["install", ...flags.split(" "), ...own];
  const options = { command: [process.execPath], env, cwd: ws.root, ms: 240_000 } as const;
  const { code, stderr } = await runPml(ws, args, options);
  assert.equal(code, 0, stderr);
  return { command: [join(ws.root, "bin", "pml")], env };
}

/** The installed command, and its environment. */
interface Installed {
  readonly command: readonly [string];
  readonly env: Readonly<Record<string, string>>;
}

/** Asserts that a client of a revision gets answers, and that PML leaves nothing behind. */
async function assertServes(
  ws: Workspace,
  { era, command, env }: Installed & { readonly era: typeof ERAS[number] },
): Promise<void> {
  await using raw = new RawStdio(ws, { era, command: [...command, "stdio"], env });
  await raw.open();
  const { result } = await raw.request("tools/list", {});
  assert.match(JSON.stringify(result?.tools), /"name":"search"/, raw.stderr);
  const called = await raw.callTool("call", {
    tool: "filesystem:read_file",
    arguments: { path: "README.md" },
  });
  assert.match(JSON.stringify(called), /Hello from the workspace/);
  raw.assertAnswered();
  assert.equal((await raw.close()).code, 0);
  assert.doesNotMatch(raw.stderr, /EVIL/);
  await raw.watch.assertNothingLeft();
}

/** Asserts that no package of PML is missing. */
async function assertComplete(ws: Workspace, { command, env }: Installed): Promise<void> {
  const result = await runPml(ws, ["install", "--offline-ready", "--json"], { command, env });
  assert.equal(result.code, 0, result.stderr);
  const { ready, failed } = JSON.parse(result.stdout);
  assert.ok(ready.some(({ name }: { readonly name: string }) => name === "tldts"));
  assert.deepEqual(failed, []);
}

/** Asserts that a command's error names a package that was removed from the cache. */
async function assertNamesPackage(ws: Workspace, { command, env }: Installed): Promise<void> {
  const npm = join(env.DENO_DIR ?? "", "npm");
  for await (const { name } of Deno.readDir(npm)) {
    await rm(join(npm, name, "yaml"), { recursive: true, force: true });
  }
  // The user's file is YAML.
  await writeFile(join(ws.home, "config.yaml"), "limits:\n  children: 4\n");
  const result = await runPml(ws, ["list"], { command, env });
  assert.equal(result.code, 1, result.stderr);
  assert.match(result.stderr, /error: UPSTREAM_DOWN: Cannot load the package "yaml/);
  assert.match(result.stderr, /pml install --offline-ready/);
  assert.doesNotMatch(result.stderr, /BUG/);
}

Deno.test("pml installs with the documented command, and then works offline in a hostile folder", async (t) => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 0 });
  await using notes = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await makeHostile(notes.url);
  const installed = await install(ws);
  await using outside = new TcpSink();
  const proxy = `http://127.0.0.1:${outside.port}`;
  const { command } = installed;
  const env = { ...installed.env, HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: "" };

  await t.step("it prints its version", async () => {
    const { version } = JSON.parse(await readFile(repoFile("deno.json"), "utf8"));
    const result = await runPml(ws, ["--version"], { command, env });
    assert.deepEqual({ ...result, stdout: result.stdout.trim() }, {
      code: 0,
      stdout: version,
      stderr: "",
    });
  });

  await t.step("it calls a built-in tool", async () => {
    const args = ["call", "filesystem:read_file", "path=README.md"];
    const result = await runPml(ws, args, { command, env });
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stdout, /Hello from the workspace/);
  });

  for (const era of ERAS) {
    await t.step(`it serves ${era}`, async () => {
      await assertServes(ws, { era, command, env });
    });
  }

  await t.step("it refreshes a sign-in", async () => {
    using person = new Person(ws.home);
    await person.signIn(serverOf("notes", notes.url));
    server.options.expiresIn = 3_600;
    const result = await runPml(ws, ["call", "notes:link"], { command, env });
    assert.equal(result.code, 0, result.stderr);
    assert.ok(server.tokens.refreshes > 0);
    server.assertClean();
  });

  await t.step("it has every package that it loads later", async () => {
    await assertComplete(ws, { command, env });
  });

  outside.assertSilent();
  await ws.assertCanaries();

  await t.step("a package that cannot be fetched is a network error with a hint", async () => {
    const closed = { ...env, HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" };
    await assertNamesPackage(ws, { command, env: closed });
  });
});
