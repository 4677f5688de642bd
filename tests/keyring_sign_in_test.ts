/**
 * Sign-ins whose tokens are in a keyring: a real one (Secret Service, in its own session), and a
 * fake program that is locked or that kills its caller after a write.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { call } from "./attacks/evil_servers.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { FakeKeyring } from "./kit/fake_keyring.ts";
import { inSession } from "./kit/keyring_session.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { type CommandResult, runPml, runPmlOnTerminal } from "./kit/run.ts";
import { signIn } from "./kit/sign_in.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

async function workspaceOf(url: string): Promise<Workspace> {
  return await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url } },
    },
  });
}

/** Asserts that no file of the PML home contains any of these texts. */
async function assertNowhere(ws: Workspace, secrets: readonly string[]): Promise<void> {
  assert.ok(secrets.length > 1, "there are tokens to look for");
  for (const entry of await readdir(ws.home, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const text = await readFile(join(entry.parentPath, entry.name), "utf8");
    for (const secret of secrets) assert.ok(!text.includes(secret), `${entry.name} has a token`);
  }
}

async function doctorLine(
  run: (args: readonly string[]) => Promise<CommandResult>,
): Promise<string> {
  return /^.*sign-in far: .*$/m.exec((await run(["doctor"])).stdout)?.[0] ?? "";
}

Deno.test("tokens of a sign-in are in the keyring only, also after a refresh, until pml logout or pml uninstall", async () => {
  await using server = new AuthorizationServer({ methods: ["client_secret_post"] });
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  await mkdir(join(ws.root, "run"), { mode: 0o700 });
  const env = { XDG_RUNTIME_DIR: join(ws.root, "run") };
  const command = inSession(pmlCommand());
  const run = (args: readonly string[], stdin = "") => runPml(ws, args, { command, env, stdin });
  const inKeyring = async () => {
    const find = inSession(["secret-tool", "search", "--all", "service", "pml"]);
    const { stdout } = await runPml(ws, [], { command: find, env });
    return stdout.match(/^secret = .*$/gm) ?? [];
  };
  const secrets = () => [...server.tokens.secrets, ...server.clients.secrets];
  const ran = await signIn(ws, "far", { command, env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /renewed .*in the keyring\n$/);
  await assertNowhere(ws, secrets());
  assert.equal((await inKeyring()).length, 2, "the tokens, and the secret of the client");
  assert.match(await doctorLine(run), /^ok .*, in the keyring$/);
  for (const expiry of [0, 1]) {
    if (expiry > 0) server.tokens.expire();
    const called = await run(["call", "far:meta"]);
    assert.equal(called.code, 0, called.stderr);
    assert.equal(server.tokens.refreshes, expiry);
    await assertNowhere(ws, secrets());
  }
  const without = await runPml(ws, ["call", "far:meta"]);
  assert.match(without.stderr, /KEY_MISSING: .*cannot get your sign-in from the keyring: /);
  assert.match(without.stderr, /keyring.*`pml login`/);
  const out = await run(["logout", "far"]);
  assert.match(out.stdout, /^far: signed out, token revoked/, out.stderr);
  assert.deepEqual(await inKeyring(), []);
  assert.equal(await doctorLine(run), "");

  assert.equal((await signIn(ws, "far", { command, env })).code, 0);
  await run(["key", "set", "SOME_KEY", "--stdin"], "of-the-keyring\n");
  assert.equal((await inKeyring()).length, 3);
  const lines: string[] = JSON.parse((await run(["uninstall", "--json"])).stdout).keyring;
  assert.equal(lines.filter((name) => /^(?:SOME_KEY|sign-in-\w{32})$/.test(name)).length, 3);
  const typed = [["for good?", "y"]] as const;
  const gone = await runPmlOnTerminal(ws, ["uninstall"], { command, env, typed });
  assert.match(gone.stdout, /^In the keyring: SOME_KEY, sign-in-\w+, sign-in-\w+\r?$/m);
  assert.equal(gone.code, 0, gone.stdout);
  assert.deepEqual(await inKeyring(), []);
  assert.deepEqual(await readdir(ws.home).catch(() => []), []);
});

Deno.test("a running PML reads the keyring once for all its calls, and once more after a refresh", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  await using keyring = await FakeKeyring.make();
  const env = { PATH: keyring.path };
  const ran = await signIn(ws, "far", { env });
  assert.match(ran.stdout, /in the keyring\n$/, ran.stderr);
  const looks = async () => (await keyring.asked()).filter((line) => /^lookup/.test(line)).length;
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  const before = await looks();
  await Promise.all(Array.from({ length: 4 }, () => call(pml, "far:meta")));
  for (let turn = 0; turn < 5; turn++) await call(pml, "far:meta");
  assert.equal(await looks() - before, 1);
  server.tokens.expire();
  await call(pml, "far:meta");
  assert.equal(server.tokens.refreshes, 1);
  const refreshed = await looks();
  for (let turn = 0; turn < 5; turn++) await call(pml, "far:meta");
  assert.equal(await looks(), refreshed);
  assert.equal((await pml.close()).code, 0);
  const argued = (await keyring.asked()).join("\n");
  for (const secret of server.tokens.secrets) assert.ok(!argued.includes(secret), argued);
  await assertNowhere(ws, server.tokens.secrets);
});

Deno.test("a refresh that is killed after its write to the keyring loses nothing", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  await using keyring = await FakeKeyring.make();
  const env = { PATH: keyring.path };
  assert.equal((await signIn(ws, "far", { env })).code, 0);
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  await call(pml, "far:meta");
  const read = async () => {
    const [name = ""] = (await readdir(join(ws.home, "sign_ins")))
      .filter((one) => /^\w{32}\.json$/.test(one));
    return await readFile(join(ws.home, "sign_ins", name), "utf8");
  };
  const before = await read();
  await keyring.killAfterStore("refresh_child");
  server.tokens.expire();
  await call(pml, "far:meta").catch(() => {}); // the call may fail
  assert.equal(server.tokens.refreshes, 1);
  assert.equal(await read(), before, "it was killed before the file was touched");
  const later = await call(pml, "far:meta");
  assert.notEqual(Object(later.result).isError, true, JSON.stringify(later));
  assert.equal((await runPml(ws, ["call", "far:meta"], { env })).code, 0);
  assert.deepEqual([server.tokens.refreshes, server.tokens.reuses], [1, 0]);
});

Deno.test("with a locked keyring, a call reports it, and a sign-in or a refresh is stored in the file", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  await using keyring = await FakeKeyring.make();
  const env = { PATH: keyring.path };
  const run = (args: readonly string[]) => runPml(ws, args, { env });
  assert.equal((await signIn(ws, "far", { env })).code, 0);
  await keyring.lock(true);
  const locked = await run(["call", "far:meta"]);
  assert.equal(locked.code, 1);
  assert.match(
    locked.stderr,
    /KEY_MISSING: .*keyring is locked\n.*pml login/,
  );
  assert.match(await doctorLine(run), /^ok .*, in the keyring$/);
  const again = await signIn(ws, "far", { env });
  assert.match(again.stdout, /, in a file\n$/, again.stderr);
  await keyring.lock(false);
  server.tokens.expire();
  assert.equal((await run(["call", "far:meta"])).code, 0);
  assert.match(await doctorLine(run), /^ok .*, in a file$/);
  assert.equal(server.tokens.refreshes, 1);
  assert.equal((await signIn(ws, "far", { env })).code, 0);
  assert.match(await doctorLine(run), /^ok .*, in the keyring$/);
  await assertNowhere(ws, server.tokens.secrets);
  // A refresh that the keyring cannot store is not lost.
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  await call(pml, "far:meta");
  await keyring.lockAfterLookups(2);
  server.tokens.expire();
  await call(pml, "far:meta");
  assert.equal(server.tokens.refreshes, 2);
  await keyring.lock(false);
  assert.equal((await run(["call", "far:meta"])).code, 0);
  assert.match(await doctorLine(run), /^ok .*, in a file$/);
  assert.equal(Object.keys(await keyring.kept()).length, 1, "what is over could not be removed");
  const out = await run(["logout", "--all"]);
  assert.match(out.stdout, /^far: signed out, token revoked/, out.stderr);
  assert.deepEqual(await keyring.kept(), {});
});
