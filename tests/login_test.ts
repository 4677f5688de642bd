/**
 * `pml login`, `pml logout` and `pml doctor` with servers that require a sign-in, as users and
 * scripts run them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { browse } from "./kit/browser.ts";
import { assertGolden } from "./kit/golden.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { beginLogin, signIn } from "./kit/sign_in.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** Creates a workspace with a server that requires a sign-in. */
async function workspaceOf(
  url: string,
  { trusted = true, more = {} } = {},
): Promise<Workspace> {
  return await makeWorkspace({
    trusted,
    pml: {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: {
        far: { type: "http", url },
        ...more,
      },
    },
  });
}

async function doctor(ws: Workspace): Promise<Record<string, { ok: boolean; message: string }>> {
  const { findings } = JSON.parse((await runPml(ws, ["doctor", "--json"])).stdout);
  return Object.fromEntries(findings.map((one: { name: string }) => [one.name, one]));
}

Deno.test("pml login signs in, calls work, pml doctor shows the sign-in, and pml logout revokes it", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await workspaceOf(mcp.url);
  const before = await runPml(ws, ["call", "far:meta"]);
  assert.equal(before.code, 1);
  assert.match(before.stderr, /LOGIN_REQUIRED: .*"far".*requires a sign-in.*\n.*pml login far/);
  const ran = await signIn(ws, "far");
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(ran.browsed.status, 200);
  assert.match(
    ran.stderr,
    new RegExp(`Sign in at ${new URL(server.origin).host}, .*"far" at ${mcp.url}`),
  );
  assert.match(
    ran.stdout,
    /^Signed in at far: http:\/\/127\.0\.0\.1:\d+, scopes read, until 20\d\d-/,
  );
  const call = await runPml(ws, ["call", "far:meta", "--json"]);
  assert.equal(call.code, 0, call.stderr);
  const found = await doctor(ws);
  assert.equal(found["sign-in far"]?.ok, true);
  assert.match(
    found["sign-in far"]?.message ?? "",
    /127\.0\.0\.1:\d+, scopes read, until .*renewed/,
  );
  assert.equal(found["server far"]?.ok, true);
  const out = await runPml(ws, ["logout", "far"]);
  assert.equal(out.code, 0, out.stderr);
  assert.match(out.stdout, /^far: signed out, token revoked/);
  // Not every authorization server revokes the access token with the refresh token.
  assert.deepEqual(
    server.to("/revoke").map(({ form }) => form.get("token")?.split("-")[0]),
    ["refresh", "access"],
  );
  const again = await runPml(ws, ["logout", "--all", "--json"]);
  assert.deepEqual([again.code, JSON.parse(again.stdout)], [0, { servers: [] }]);
  assert.equal((await doctor(ws))["sign-in far"], undefined);
  const after = await runPml(ws, ["call", "far:meta", "--json"]);
  assert.deepEqual(JSON.parse(after.stdout).error.code, "LOGIN_REQUIRED");
  server.assertClean();
});

Deno.test("pml login accepts the address at which a browser on another machine ended", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  await using login = await beginLogin(ws, "far", { args: ["--json"] });
  const { address } = await browse(login.address, { stops: true });
  await login.paste("https://somewhere.example/else");
  await login.paste("");
  await login.paste(`  ${address}  `);
  const { code, stdout, stderr } = await login.ended();
  assert.equal(code, 0, stderr);
  assert.match(stderr, /\nCopy all of it: .*http:\/\/127/);
  const { server: name, url, issuer } = JSON.parse(stdout);
  assert.deepEqual([name, url, issuer], ["far", mcp.url, server.issuer]);
  assert.equal((await runPml(ws, ["call", "far:meta"])).code, 0);
});

Deno.test("pml login --scope asks for these scopes", async () => {
  await using server = new AuthorizationServer({ scopes: ["read", "write"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await workspaceOf(mcp.url);
  const ran = await signIn(ws, "far", { args: ["--scope", "read,write"] });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /scopes read write/);
  server.assertClean();
});

Deno.test("pml login opens the browser with a program from outside the workspace, and no shell", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  const seen = join(ws.root, "opened.txt");
  const bin = join(ws.root, "bin");
  for (const [folder, text] of [[ws.path, "evil"], [bin, '$# $1" "$SECRET']]) {
    await Deno.mkdir(folder ?? "", { recursive: true });
    const script = `#!/bin/sh\nprintf '%s\\n' "${text}" >> '${seen}'\n`;
    await writeFile(join(folder ?? "", "xdg-open"), script, { mode: 0o755 });
  }
  const env = { PATH: `${ws.path}:${bin}:${ws.env.PATH}`, SECRET: "not-for-browsers" };
  const going = runPmlOnTerminal(ws, ["login", "far"], { env });
  const opened = () => readFile(seen, "utf8").catch(() => "");
  await until(async () => (await opened()).endsWith("\n"));
  const [, count, address = ""] = /^(\d+) (\S+)/.exec(await opened()) ?? [];
  assert.equal(count, "1", await opened());
  assert.doesNotMatch(await opened(), /evil|not-for-browsers/);
  assert.equal((await browse(address)).status, 200);
  const { code, stdout } = await going;
  assert.equal(code, 0, stdout);
  assert.match(stdout, /open this address/);
  assert.match(stdout, /Signed in at far/);
});

Deno.test("pml login ends when the user refuses, and stores nothing", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  const ran = await signIn(ws, "far", { answer: "deny" });
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /error: \w+: Cannot sign in at "far": .*access_denied/);
  assert.equal((await doctor(ws))["sign-in far"], undefined);
});

Deno.test("pml login ends at once when it is interrupted, and stores nothing", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  // A signal ends it.
  await using login = await beginLogin(ws, "far", { ownProcess: true });
  Deno.kill(login.pid, "SIGINT");
  const { code, stdout, stderr } = await login.ended();
  assert.deepEqual([code, stdout], [130, ""]);
  assert.doesNotMatch(stderr, /error:/);
  await assert.rejects(browse(login.address), "its page is still there");
  assert.equal((await doctor(ws))["sign-in far"], undefined);
});

Deno.test("pml login shows no page whose address is unsafe", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  const pages = [
    server.origin.replace("//", "//someone@"),
    `${server.origin}/${"x".repeat(4_000)}`,
    "http://accounts.example",
    "file:///etc/passwd",
    "javascript:alert(1)",
  ];
  for (const page of pages) {
    server.options.amend = (usual) => ({ ...usual, authorization_endpoint: `${page}/authorize` });
    const { code, stderr } = await runPml(ws, ["login", "--no-browser", "far"]);
    assert.match(stderr, /UPSTREAM_PROTOCOL: Cannot sign in at "far": .*page/, page);
    assert.equal(code, 1);
    assert.doesNotMatch(stderr, /Open this address/);
  }
});

Deno.test("pml login and pml logout report problems with the next step", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  const headers = { authorization: "Bearer ${SOME_TOKEN:-none}" };
  const more = { keyed: { type: "http", url: mcp.url, headers }, near: { command: "near" } };
  await using ws = await workspaceOf(mcp.url, { more });
  await using untrusted = await workspaceOf(mcp.url, { trusted: false });
  const failing = async (args: readonly string[], said: RegExp, { at = ws, exit = 1 } = {}) => {
    const { code, stderr } = await runPml(at, args);
    assert.match(stderr, said, args.join(" "));
    assert.equal(code, exit, stderr);
  };
  const options = { exit: 2 };
  await failing(["login", "far"], /there is no terminal\n.*--no-browser/, options);
  for (const name of ["fra", "near", "filesystem"]) {
    // Another option would not help, so the first problem is the name.
    const { error } = JSON.parse((await runPml(ws, ["login", name, "--json"])).stdout);
    assert.equal(error.hint, "See `pml list`");
    await failing(["login", "--no-browser", name], /no server over HTTP has this name/, options);
  }
  await failing(["login", "--no-browser", "keyed"], /has an Authorization header/, options);
  await failing(["login"], /missing required argument/, options);
  await failing(["login", "--no-browser", "far"], /WORKSPACE_UNTRUSTED: .*pml trust/, {
    at: untrusted,
  });
  await failing(["logout"], /a server, or use --all/, options);
  await failing(["logout", "far", "--all"], /a server, or use --all/, options);
  await failing(["logout", "fra"], /no server over HTTP has this name/, options);
  assert.equal(server.asked.length, 0);
  const out = await runPml(ws, ["logout", "far"]);
  assert.deepEqual([out.code, out.stdout], [0, "far: not signed in\n"]);
});

Deno.test("pml logout reports a token that could not be revoked, and removes it here all the same", async () => {
  await using server = new AuthorizationServer({ revokes: false });
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  assert.equal((await signIn(ws, "far")).code, 0);
  const out = await runPml(ws, ["logout", "--all"]);
  assertGolden("logout/a token that is not revoked", out.stdout);
  assert.equal((await runPml(ws, ["call", "far:meta"])).code, 1);
  server.options.revokes = true;
  assert.equal((await signIn(ws, "far")).code, 0);
  server.options.script = ({ path }) =>
    path === "/revoke" ? Response.json({ error: "invalid_client" }, { status: 400 }) : undefined;
  const refused = await runPml(ws, ["logout", "far"]);
  assertGolden("logout/a token that is not revoked", refused.stdout);
});

Deno.test("a token with a lifetime beyond any date breaks no command", async () => {
  await using server = new AuthorizationServer({ expiresIn: 1e300 });
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  const { code, stderr } = await signIn(ws, "far");
  assert.equal(code, 0, stderr);
  assert.match((await doctor(ws))["sign-in far"]?.message ?? "", /until 20\d\d-/);
  assert.equal((await runPml(ws, ["call", "far:meta"])).code, 0);
});

Deno.test("an invalid stored sign-in is reported, and breaks nothing", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  assert.equal((await signIn(ws, "far")).code, 0);
  const folder = `${ws.home}/sign_ins`;
  const [kept = ""] = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => /^\w{32}\.json$/.test(name));
  for (const text of ["[]", "{}", "null", '"x"']) {
    await Deno.writeTextFile(`${folder}/${kept}`, text);
    const { stderr, stdout } = await runPml(ws, ["doctor"]);
    assert.match(stderr, /Cannot use .*it is not a sign-in/, text);
    assert.doesNotMatch(stdout + stderr, /bug in PML|sign-in far/, text);
    assert.match((await runPml(ws, ["call", "far:meta"])).stderr, /pml login far/, text);
  }
  assert.equal((await signIn(ws, "far")).code, 0);
  assert.equal((await runPml(ws, ["call", "far:meta"])).code, 0);
});

Deno.test("pml logout signs out also where a configuration has an error", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  assert.equal((await signIn(ws, "far")).code, 0);
  await Deno.writeTextFile(`${ws.home}/config.yaml`, "limits: 5\n");
  const out = await runPml(ws, ["logout", "--all"]);
  assert.equal(out.code, 0, out.stderr);
  assert.match(out.stdout, /^far: signed out/);
});

Deno.test("pml logout ends sign-ins whose definition was removed", async () => {
  await using server = new AuthorizationServer({
    clients: [{ id: "mine", redirects: ["http://127.0.0.1/callback"], method: "none" }],
  });
  await using mcp = new ProtectedHttp("modern", { server });
  const own = { type: "http", url: mcp.url, oauth: { client_id: "mine" } };
  await using ws = await workspaceOf(mcp.url, { more: { own } });
  const before = await Deno.readTextFile(ws.file(".pml.json"));
  for (const args of [["--all"], ["far"]]) {
    await Deno.writeTextFile(ws.file(".pml.json"), before);
    for (const name of ["far", "own"]) assert.equal((await signIn(ws, name)).code, 0);
    await Deno.writeTextFile(ws.file(".pml.json"), JSON.stringify({ version: 1 }));
    assert.equal(Object.keys(await doctor(ws)).filter((name) => /^sign-in/.test(name)).length, 2);
    const { stdout } = await runPml(ws, ["logout", ...args, "--json"]);
    const own = args[0] === "--all" ? { own: "revoked" } : {};
    const { servers } = JSON.parse(stdout);
    const states = servers.map(({ name, state }: Record<string, string>) => [name, state]);
    assert.deepEqual(Object.fromEntries(states), { far: "revoked", ...own });
    await runPml(ws, ["logout", "--all"]);
  }
});

Deno.test("pml doctor reports a sign-in that expired for good", async () => {
  await using server = new AuthorizationServer({ renews: "never", expiresIn: 1 });
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await workspaceOf(mcp.url);
  assert.equal((await signIn(ws, "far")).code, 0);
  await until(async () => (await doctor(ws))["sign-in far"]?.ok === false);
  const { code, stdout } = await runPml(ws, ["doctor"]);
  assert.equal(code, 1);
  assert.match(stdout, /FAIL sign-in far: expired: .*\n.*pml login far/);
});

Deno.test("pml import keeps servers that require a sign-in, and their settings for it", async () => {
  const secret = "s3cr3t-of-the-client-4711";
  const servers = {
    plain: { url: "https://plain.example/mcp" },
    older: { type: "sse", url: "https://older.example/sse" },
    claude: {
      type: "http",
      url: "https://claude.example/mcp",
      oauth: {
        clientId: "me",
        callbackPort: 4711,
        scopes: "read write",
        authServerMetadataUrl: "x",
      },
    },
    cursor: {
      url: "https://cursor.example/mcp",
      auth: { CLIENT_ID: "me", CLIENT_SECRET: secret, scopes: ["read"] },
    },
  };
  const file = { "clients.json": JSON.stringify({ mcpServers: servers }) };
  await using ws = await makeWorkspace({ files: file });
  const { stdout } = await runPml(ws, ["import", "clients.json", "--dry-run"]);
  for (const name of Object.keys(servers)) {
    assert.ok(stdout.includes(`\`pml login ${name}\``), stdout);
  }
  assert.match(stdout, /its client must allow http:\/\/127\.0\.0\.1:4711\/callback/);
  assert.match(stdout, /left out: "authServerMetadataUrl"/);
  assert.match(stdout, /it needs CURSOR_CLIENT_SECRET, which is not set/);
  assert.ok(!stdout.includes(secret));
  const result = await runPmlOnTerminal(ws, ["import", "clients.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Store CURSOR_CLIENT_SECRET .*\[N\] no/, "n"]],
    ifAsked: [/Start th.* now, /, "n"],
  });
  assert.equal(result.code, 0, result.stdout);
  const written = await readFile(join(ws.home, "config.yaml"), "utf8");
  assert.ok(!written.includes(secret));
  const { take } = JSON.parse((await runPml(ws, ["import", "clients.json", "--json"])).stdout);
  assert.deepEqual(take, []);
  const { parse } = await import("yaml");
  const { mcpServers } = parse(written);
  assert.deepEqual(mcpServers.claude.oauth, {
    client_id: "me",
    redirect_port: 4711,
    scopes: ["read", "write"],
  });
  assert.deepEqual(mcpServers.cursor.oauth, {
    client_id: "me",
    client_secret: "${CURSOR_CLIENT_SECRET}",
    scopes: ["read"],
  });
  assert.equal(mcpServers.older.type, "sse");
  const output = await runPml(ws, ["tools", "--json"], { command: pmlCommand() });
  assert.equal(output.code, 0, output.stderr);
});
