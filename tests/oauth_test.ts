/**
 * Servers over HTTP that want a sign-in, behind a spawned PML.
 *
 * @module
 */

import assert from "node:assert/strict";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { runPml } from "./kit/run.ts";
import { Person, serverOf, signedWorkspace } from "./oauth_scene.ts";

Deno.test("A call goes with the token of the sign-in", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  const before = await runPml(ws, ["call", "notes:link"]);
  assert.match(before.stderr, /Cannot use "notes": it wants you to sign in/);
  assert.match(before.stderr, /pml login notes/);
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  const after = await runPml(ws, ["call", "notes:link"]);
  assert.equal(after.code, 0, after.stderr);
  server.assertClean();
});

Deno.test("A token that expired is refreshed before it is sent", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 0 });
  await using mcp = new ProtectedHttp("legacy", { server, scope: "read" });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  server.options.expiresIn = 3_600;
  const ran = await runPml(ws, ["call", "notes:link"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(server.tokens.refreshes, 1);
  assert.equal(mcp.refused[401], 1); // the sign-in's own question
  server.assertClean();
});

Deno.test("A token that is refused is refreshed once", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await signedWorkspace({ notes: { url: mcp.url } });
  using person = new Person(ws.home);
  await person.signIn(serverOf("notes", mcp.url));
  server.tokens.expire();
  const ran = await runPml(ws, ["call", "notes:link"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(server.tokens.refreshes, 1);
  server.assertClean();
});
