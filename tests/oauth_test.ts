/**
 * Servers over HTTP that require a sign-in, behind a spawned PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { FullHttp } from "./kit/full_http.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { SseServer } from "./kit/sse_server.ts";
import { HttpSink } from "./kit/sinks.ts";
import { until } from "./kit/wait.ts";
import { assertNowhere, definitions, Person, serverOf, signedWorkspace } from "./oauth_scene.ts";

const CALL = ["call", "notes:link"];

async function called(pml: RawStdio, tool = "notes:link"): Promise<string> {
  return textOf(await pml.callTool("call", { tool, arguments: {} }));
}

for (const era of ERAS) {
  Deno.test(`a session of ${era} signs in, calls, and continues after a refresh`, async () => {
    await using server = new AuthorizationServer({ scopes: ["read", "offline_access"] });
    await using legacy = new ProtectedHttp("legacy", { server, scope: "read" });
    await using modern = new ProtectedHttp("modern", { server, scope: "read", metadata: "path" });
    const servers = { legacy, modern };
    await using scene = await makeScene({ era, pml: definitions(servers) });
    const { pml, ws } = scene;
    using person = new Person(ws.home);
    for (const [name, mcp] of Object.entries(servers)) {
      const before = await called(pml, `${name}:link`);
      assert.match(before, new RegExp(`LOGIN_REQUIRED.*pml login ${name}`, "s"));
      await person.signIn(serverOf(name, mcp.url));
      assert.doesNotMatch(await called(pml, `${name}:link`), /LOGIN_REQUIRED/);
      server.tokens.expire();
      assert.doesNotMatch(await called(pml, `${name}:link`), /LOGIN_REQUIRED/);
    }
    assert.equal(server.tokens.refreshes, 2);
    server.assertClean();
    assert.equal((await pml.close()).code, 0);
    // The requests that open the stream and end the session contain the token, too.
    const sent = legacy.full.asked.filter(({ method, headers }) =>
      method !== "POST" && headers["mcp-session-id"] !== undefined
    );
    assert.deepEqual([...new Set(sent.map(({ method }) => method))], ["GET", "DELETE"]);
    assert.ok(sent.every(({ headers }) => /^Bearer /.test(headers.authorization ?? "")));
    const [first, last] = [sent[0], sent.at(-1)].map((each) => each?.headers.authorization);
    assert.notEqual(first, last, "the session ends with the token of the refresh");
    await assertNowhere(server.tokens.secrets, { ws, pml });
  });
}

Deno.test("a server of HTTP+SSE that refuses only the stream names the authorization server there", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using sse: SseServer = new SseServer(({ method, path, headers }) => {
    const metadata = { resource: sse.url, authorization_servers: [server.issuer] };
    if (path === "/of/sse") return Response.json(metadata);
    if (path !== "/sse" || method !== "GET") return undefined;
    const token = /^Bearer (\S+)$/.exec(headers.get("authorization") ?? "")?.[1];
    if (token !== undefined && server.tokens.access(token) !== undefined) return undefined;
    const challenge = `Bearer resource_metadata="${new URL("/of/sse", sse.url)}", scope="read"`;
    return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
  });
  server.resources.add(sse.url);
  await using ws = await signedWorkspace({ notes: { url: sse.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", sse.url));
  const [kept] = await person.signIns.all();
  assert.deepEqual(kept?.scopes, ["read"]);
  assert.equal((await runPml(ws, ["call", "notes:t"])).code, 0);
  server.assertClean();
});

Deno.test("a token is refreshed before it expires, and each refresh is made once for all calls", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 0 });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using scene = await makeScene({ pml: definitions({ notes: mcp }) });
  const { pml, ws } = scene;
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  server.options.expiresIn = 3_600;
  const all = await Promise.all(Array.from({ length: 12 }, () => called(pml)));
  assert.ok(all.every((text) => !/LOGIN_REQUIRED/.test(text)));
  assert.equal(server.tokens.refreshes, 1);
  assert.equal(mcp.refused[401], 1, "only the question of the sign-in was refused");
  server.assertClean();
});

Deno.test("a sign-in that the server revoked is over, and PML sends nothing more for it", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  for (const family of server.tokens.families) family.isRevoked = true;
  const since = Date.now();
  for (let round = 0; round < 2; round++) {
    const result = await runPml(ws, CALL);
    assert.match(
      result.stderr,
      /LOGIN_REQUIRED: Cannot use "notes": your sign-in has expired or ended/,
    );
    assert.match(result.stderr, /Run: pml login notes/);
  }
  assert.equal(server.to("/token").length, 2);
  const [{ isRenewable, until = 0 } = assert.fail()] = await person.signIns.all();
  assert.ok(!isRenewable && since <= until && until <= Date.now(), `${until}`);
  await person.signIn(serverOf("notes", mcp.url));
  assert.equal((await runPml(ws, CALL)).code, 0);
});

Deno.test("a call ends when its token is refused after a refresh, without another refresh", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using scene = await makeScene({ pml: definitions({ notes: mcp }) });
  const { pml, ws } = scene;
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  const refuse = () => new Response(null, { status: 401 });
  mcp.options.script = ({ method }) => method === "POST" ? refuse() : undefined;
  for (let round = 0; round < 3; round++) {
    assert.match(await called(pml), /LOGIN_REQUIRED.*does not accept your sign-in/s);
  }
  // One refused token may have expired during the call; two refused tokens mean a refusal.
  assert.equal(server.tokens.refreshes, 2);
});

Deno.test("a sign-in survives an outage of the authorization server, and a valid token is used", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 3_600 });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  server.options.script = ({ path }) =>
    path === "/token" ? new Response("busy", { status: 503 }) : undefined;
  const alive = await runPml(ws, CALL);
  assert.equal(alive.code, 0, alive.stderr);
  server.tokens.expire();
  const down = await runPml(ws, CALL);
  assert.match(down.stderr, /UPSTREAM_DOWN: Cannot .*"notes".* answered with the status 503/);
  server.options.script = undefined;
  const again = await runPml(ws, CALL);
  assert.equal(again.code, 0, again.stderr);
  server.assertClean();
});

Deno.test("two definitions of one service are two sign-ins", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await signedWorkspace({ home: { url: mcp.url }, work: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("home", mcp.url));
  assert.equal((await runPml(ws, ["call", "home:link"])).code, 0);
  const other = await runPml(ws, ["call", "work:link"]);
  assert.match(other.stderr, /Cannot use "work": it requires a sign-in/);
  await person.signIn(serverOf("work", mcp.url));
  assert.equal((await runPml(ws, ["call", "work:link"])).code, 0);
  const tokens = new Set(mcp.tokens.filter((each) => each !== undefined));
  assert.equal(tokens.size, 2);
  assert.equal(server.to("/register").length, 2, "each has its own client");
  assert.equal(
    await person.signIns.end(serverOf("home", mcp.url), AbortSignal.timeout(9e3)),
    "revoked",
  );
  assert.deepEqual((await person.signIns.all()).map((one) => one.server), ["work"]);
  assert.equal((await runPml(ws, ["call", "work:link"])).code, 0);
  server.assertClean();
});

Deno.test("no token goes to another origin: neither after a redirect nor to another server", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using other = new FullHttp("modern");
  await using sink = new HttpSink();
  await using ws = await signedWorkspace({ notes: { url: mcp.url }, other: { url: other.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  mcp.options.script = () =>
    new Response(null, { status: 307, headers: { location: `${sink.url}/mcp` } });
  const result = await runPml(ws, CALL);
  assert.match(result.stderr, /redirects.*follows no redirect/);
  assert.deepEqual(sink.received, []);
  assert.equal((await runPml(ws, ["call", "other:link"])).code, 0);
  assert.ok(other.asked.every(({ headers }) => headers.authorization === undefined));
  // The same name with another address is another server.
  await using moved = new FullHttp("modern");
  await using there = await signedWorkspace({ notes: { url: moved.url } });
  const again = await runPml(there, CALL, { env: { PML_HOME: ws.home } });
  assert.equal(again.code, 0, again.stderr);
  assert.ok(moved.asked.every(({ headers }) => headers.authorization === undefined));
});

Deno.test("a definition with an Authorization header uses that, and no sign-in", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  const headers = { authorization: "Bearer of-the-person" };
  await using ws = await signedWorkspace({ notes: { url: mcp.url, headers } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  const result = await runPml(ws, CALL);
  assert.match(result.stderr, /LOGIN_REQUIRED: .*"notes": .* 401/);
  assert.deepEqual([...new Set(mcp.tokens)], [undefined, "of-the-person"]);
});

Deno.test("a server without OAuth that requires a key is reported with a hint about the key", async () => {
  await using mcp = new FullHttp("modern", {
    guard: () =>
      Promise.resolve(
        new Response("no", { status: 401, headers: { "www-authenticate": "Bearer" } }),
      ),
  });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  const result = await runPml(ws, CALL);
  assert.match(result.stderr, / 401\n {2}Give it a key/);
  const login = await runPml(ws, ["login", "--no-browser", "notes"]);
  assert.match(login.stderr, /"http:.*" .*client registration/);
});

Deno.test("a refusal of the signed-in account suggests another sign-in, and not a key", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  mcp.options.script = () => new Response("no", { status: 403 });
  const result = await runPml(ws, CALL);
  assert.match(result.stderr, / 403\n {2}Your account.*pml login notes/);
});

Deno.test("a call that needs more scopes fails with a hint, and the next sign-in asks for them", async () => {
  await using server = new AuthorizationServer({ scopes: ["read", "write", "admin", "root"] });
  const toolScopes: Record<string, string> = { link: "write" };
  await using mcp = new ProtectedHttp("modern", { server, scope: "read", toolScopes });
  await using scene = await makeScene({ pml: definitions({ notes: mcp }) });
  const { pml, ws } = scene;
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  for (let round = 0; round < 4; round++) {
    assert.match(
      await called(pml),
      /LOGIN_REQUIRED.*it requires more permissions.*pml login notes/s,
    );
  }
  await person.signIn(serverOf("notes", mcp.url));
  assert.equal(server.to("/authorize").at(-1)?.query.get("scope"), "read write");
  assert.doesNotMatch(await called(pml), /LOGIN_REQUIRED/);
  toolScopes.link = "write admin";
  assert.match(await called(pml), /LOGIN_REQUIRED.*requires more permissions/s);
  await person.signIn(serverOf("notes", mcp.url));
  toolScopes.link = "write admin root";
  assert.match(await called(pml), /PERMISSION_DENIED.*more scopes/s);
  server.assertClean();
});

Deno.test("a refresh under way continues while PML ends at once", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 0 });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using scene = await makeScene({ pml: definitions({ notes: mcp }) });
  const { pml, ws } = scene;
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  server.options.expiresIn = 3_600;
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  server.options.after = async ({ path }, answer) => {
    if (path !== "/token") return answer;
    asked.resolve();
    await goOn.promise;
    return answer;
  };
  const lost = called(pml).catch(() => {});
  await asked.promise;
  await pml.close();
  await lost;
  goOn.resolve();
  server.options.after = undefined;
  await until(async () => (await person.signIns.all())[0]?.until !== undefined);
  const result = await runPml(ws, CALL);
  assert.equal(result.code, 0, result.stderr);
  assert.equal(server.tokens.refreshes, 1);
  server.assertClean();
});

Deno.test("a client of the configuration authenticates with the secret of a variable", async () => {
  const client = { id: "of-the-person", secret: "s3cret-of-the-client" };
  await using server = new AuthorizationServer({
    scopes: ["read"],
    expiresIn: 0,
    clients: [client],
  });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  const oauth = { client_id: client.id, client_secret: "${CLIENT_SECRET}", scopes: ["read"] };
  await using ws = await signedWorkspace({ notes: { url: mcp.url, oauth } });
  using person = new Person(ws.home);
  const filled = { ...oauth, client_secret: client.secret };
  await person.signIn(serverOf("notes", mcp.url, filled));
  server.options.expiresIn = 3_600;
  const result = await runPml(ws, CALL, { env: { CLIENT_SECRET: client.secret } });
  assert.equal(result.code, 0, result.stderr);
  assert.equal(server.tokens.refreshes, 1);
  const without = await runPml(ws, CALL);
  assert.match(without.stderr, /KEY_MISSING.*CLIENT_SECRET/);
  server.assertClean();
  await assertNowhere([client.secret], { ws });
});
