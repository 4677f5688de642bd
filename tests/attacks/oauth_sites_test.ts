/**
 * Authorization servers whose metadata contain endpoints of another site: no code, token or
 * registration goes there, neither at a sign-in nor later.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AuthorizationServer } from "../kit/authorization_server.ts";
import { assertGolden } from "../kit/golden.ts";
import { EACH_WAY, RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { beginLogin, signIn } from "../kit/sign_in.ts";
import { HttpSink } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import { call, toldCode } from "./evil_servers.ts";
import { textOf } from "./oracles.ts";
import { Signing } from "./signing_in.ts";

const KINDS = ["authorization", "token", "registration", "revocation"];

/** Returns metadata with one endpoint on another origin. */
function amended(kind: string, origin: string) {
  const name = `${kind}_endpoint`;
  return (usual: Record<string, unknown>) => ({ ...usual, [name]: `${origin}/x` });
}

/** Returns a pattern for a text that names both hosts. */
function naming(issuer: string, other: string): RegExp {
  const [one, two] = [issuer, other].map((url) => RegExp.escape(new URL(url).host));
  return new RegExp(`${one}.*endpoint.*${two}`);
}

/** Changes the files of the sign-ins of a PML home. */
async function rewrite(
  { home }: Workspace,
  change: (kept: Record<string, unknown>) => Record<string, unknown>,
): Promise<void> {
  const folder = join(home, "sign_ins");
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => /^\w{32}\.json$/.test(name));
  assert.ok(names.length > 0);
  for (const name of names) {
    const at = join(folder, name);
    await Deno.writeTextFile(at, JSON.stringify(change(JSON.parse(await Deno.readTextFile(at)))));
  }
}

Deno.test("a sign-in whose issuer names an endpoint on another site is refused (GX4)", async () => {
  for (const kind of KINDS) {
    await using sink = new HttpSink();
    await using scene = await Signing.make();
    const { server } = scene;
    server.options.amend = amended(kind, sink.url);
    await scene.assertRefused("PERMISSION_DENIED", naming(server.issuer, sink.url));
    sink.assertSilent();
    const asked = ["/register", "/authorize", "/token"].flatMap((path) => server.to(path));
    assert.deepEqual(asked, [], kind);
  }
});

Deno.test("an endpoint that is not a string is refused, even if it can be converted to a URL (GX4)", async () => {
  for (const kind of KINDS) {
    await using sink = new HttpSink();
    await using scene = await Signing.make();
    const { server } = scene;
    server.options.amend = (usual) => ({ ...usual, [`${kind}_endpoint`]: [`${sink.url}/x`] });
    await scene.assertRefused("PERMISSION_DENIED", new RegExp(`its ${kind} endpoint on another`));
    sink.assertSilent();
    assert.deepEqual([...server.to("/register"), ...server.to("/token")], [], kind);
  }
});

Deno.test("the page of a sign-in may be on the site of the MCP server, the other endpoints not (GX4)", async () => {
  await using scene = await Signing.make();
  const { server, mcp, ws } = scene;
  const { origin } = new URL(mcp.url);
  server.options.amend = amended("authorization", origin);
  {
    await using login = await beginLogin(ws, "far");
    assert.equal(new URL(login.address).origin, origin);
  }
  for (const kind of ["token", "registration", "revocation"]) {
    server.options.amend = amended(kind, origin);
    await scene.assertRefused("PERMISSION_DENIED", naming(server.issuer, origin));
  }
});

Deno.test("an authorization server that changes its token endpoint gets no further sign-in (GX4)", async () => {
  await using sink = new HttpSink();
  await using scene = await Signing.make({ mcp: { scope: "read" } });
  const { server, mcp, ws } = scene;
  await scene.signIn();
  server.options.amend = amended("token", sink.url);
  mcp.options.toolScopes = { meta: "more" };
  for (const { door, era } of EACH_WAY) {
    await using pml = new RawStdio(ws, {
      ...{ door, era, capabilities: { elicitation: { form: {}, url: {} } } },
      answer: () => assert.fail("it opens a page"),
    });
    await pml.open();
    const answer = await call(pml, "far:meta");
    assert.match(toldCode(answer) ?? "", /PERMISSION_DENIED|LOGIN_REQUIRED/);
    assert.match(textOf(answer), naming(server.issuer, sink.url));
    await pml.close();
  }
  const { code, stdout, stderr } = await scene.tried();
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, naming(server.issuer, sink.url));
  sink.assertSilent();
});

Deno.test("an existing sign-in with endpoints on another site is neither refreshed nor revoked there (GX4)", async () => {
  await using sink = new HttpSink();
  await using scene = await Signing.make();
  const { server, ws } = scene;
  await scene.signIn();
  await rewrite(ws, (kept) => ({
    ...kept,
    tokenEndpoint: `${sink.url}/token`,
    revocationEndpoint: `${sink.url}/revoke`,
  }));
  const alive = await runPml(ws, ["call", "far:meta"]);
  assert.equal(alive.code, 0, alive.stderr);
  server.tokens.expire();
  const { code, stdout, stderr } = await runPml(ws, ["call", "far:meta"]);
  assert.equal(code, 1);
  assert.match(stdout + stderr, /PERMISSION_DENIED/);
  assert.match(stdout + stderr, naming(server.issuer, sink.url));
  assert.match(stderr, /oauth\.issuer_hosts/);
  const out = await runPml(ws, ["logout", "far"]);
  assertGolden("logout/a token that is not revoked", out.stdout);
  sink.assertSilent();
});

Deno.test("a host that the user allows for an issuer receives codes and tokens of this issuer alone (GX4)", async () => {
  await using scene = await Signing.make();
  const { server, ws } = scene;
  await using relay = new HttpSink(({ method, path, headers, body }) =>
    fetch(`${server.issuer}${path}`, {
      method,
      body,
      headers: { "content-type": headers["content-type"] ?? "", accept: "application/json" },
    })
  );
  server.options.amend = (usual) => ({
    ...usual,
    token_endpoint: `${relay.url}/token`,
    revocation_endpoint: `${relay.url}/revoke`,
  });
  const set = async (issuer: string) => {
    const hosts = { [issuer]: [new URL(relay.url).host] };
    await writeFile(
      join(ws.home, "config.yaml"),
      JSON.stringify({ oauth: { issuer_hosts: hosts } }),
    );
  };
  await set("https://other.example");
  assert.match((await scene.tried()).stderr, naming(server.issuer, relay.url));
  await set(server.issuer);
  assert.equal((await signIn(ws, "far")).code, 0);
  server.tokens.expire();
  assert.equal((await runPml(ws, ["call", "far:meta"])).code, 0);
  assert.equal(server.tokens.refreshes, 1);
  assert.match((await runPml(ws, ["logout", "far"])).stdout, /token revoked/);
  assert.deepEqual(
    relay.received.map(({ path }) => path),
    ["/token", "/token", "/revoke", "/revoke"],
  );
  server.assertClean();
});

Deno.test("a workspace file cannot allow a host for an issuer (GX4)", async () => {
  await using server = new AuthorizationServer();
  await using scene = await Signing.make();
  const hosts = { issuer_hosts: { [server.issuer]: ["127.0.0.1:1"] } };
  for (
    const part of [{ oauth: hosts }, { mcpServers: { far: { url: scene.mcp.url, oauth: hosts } } }]
  ) {
    await writeFile(scene.ws.file(".pml.json"), JSON.stringify({ version: 1, ...part }));
    const { code, stdout, stderr } = await scene.tried();
    assert.notEqual(code, 0);
    assert.match(stdout + stderr, /CONFIG_INVALID/);
  }
});
