/**
 * Servers that name the authorization server of another: none gets a token with the consent that
 * the user gave for the other, and none ends its registration.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { sha256 } from "../../src/core/hash.ts";
import { AuthorizationServer } from "../kit/authorization_server.ts";
import type { AuthorizationServerOptions } from "../kit/oauth_endpoints.ts";
import { browse } from "../kit/browser.ts";
import { ProtectedHttp } from "../kit/protected_http.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { beginLogin, signIn } from "../kit/sign_in.ts";
import { HttpSink } from "../kit/sinks.ts";
import { type Beside, definitions } from "../oauth_scene.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";

/** Two servers of one authorization server, and a workspace that names them. */
class TwoServers implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  readonly server: AuthorizationServer;
  readonly good: ProtectedHttp;
  readonly evil: ProtectedHttp;
  readonly ws: Workspace;

  private constructor(
    { server, good, evil, ws }: Pick<TwoServers, "server" | "good" | "evil" | "ws">,
  ) {
    for (const each of [server, good, evil, ws]) this.#stack.use(each);
    [this.server, this.good, this.evil, this.ws] = [server, good, evil, ws];
  }

  static async make(
    options: AuthorizationServerOptions = {},
    oauth?: Beside["oauth"],
  ): Promise<TwoServers> {
    const server = new AuthorizationServer(options);
    const good = new ProtectedHttp("modern", { server });
    const evil = new ProtectedHttp("modern", { server });
    const servers = { good: { url: good.url, oauth }, evil: { url: evil.url, oauth } };
    const ws = await makeWorkspace({ pml: definitions(servers), trusted: true });
    return new TwoServers({ server, good, evil, ws });
  }

  /** The clients of the sign-ins, in order. */
  get clients(): readonly (string | null)[] {
    return this.server.to("/authorize").map(({ query }) => query.get("client_id"));
  }

  get registrations(): number {
    return this.server.to("/register").length;
  }

  get hosts(): { readonly good: string; readonly evil: string; readonly issuer: string } {
    const [good = "", evil = "", issuer = ""] = [this.good.url, this.evil.url, this.server.issuer]
      .map((url) => new URL(url).host);
    return { good, evil, issuer };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

Deno.test("each server has its own client at an authorization server (GX5)", async () => {
  await using scene = await TwoServers.make();
  const { server, ws, good, evil } = scene;
  for (const name of ["good", "evil", "good"]) assert.equal((await signIn(ws, name)).code, 0);
  const [first, second, third] = scene.clients;
  assert.notEqual(first, second);
  assert.equal(first, third, "a client is used again for its server");
  assert.equal(scene.registrations, 2);
  // The same address under another name, and the same name at another address.
  const other = definitions({ again: { url: good.url }, good: { url: evil.url } });
  await using there = await makeWorkspace({ pml: other, trusted: true });
  const env = { PML_HOME: ws.home };
  for (const name of ["again", "good"]) assert.equal((await signIn(there, name, { env })).code, 0);
  assert.equal(new Set(scene.clients).size, 4);
  server.assertClean();
});

Deno.test("a failed sign-in ends no registration of another server (GX5)", async () => {
  await using scene = await TwoServers.make();
  const { ws } = scene;
  assert.equal((await signIn(ws, "good")).code, 0);
  assert.equal((await signIn(ws, "evil", { answer: "deny" })).code, 1);
  assert.equal((await signIn(ws, "good")).code, 0);
  assert.equal(scene.registrations, 2);
  assert.equal((await signIn(ws, "evil", { answer: "deny" })).code, 1);
  assert.equal(scene.registrations, 3, "its own is made again");
  assert.equal((await runPml(ws, ["logout", "evil"])).code, 0);
  assert.equal((await signIn(ws, "good")).code, 0);
  assert.equal(scene.registrations, 3);
});

Deno.test("a failed sign-in ends no newer registration of its server (GX5)", async () => {
  await using scene = await TwoServers.make();
  const { ws } = scene;
  {
    await using first = await beginLogin(ws, "good");
    // The port of the first is in use, so the second has a separate client.
    assert.equal((await signIn(ws, "good")).code, 0);
    await browse(first.address, { answer: "deny" });
    assert.equal((await first.ended()).code, 1);
  }
  assert.equal(scene.registrations, 2);
  assert.equal((await signIn(ws, "good")).code, 0);
  assert.equal(scene.registrations, 2);
});

Deno.test("sign-ins from before each server had its own client stay valid (GX5)", async () => {
  await using scene = await TwoServers.make({ methods: ["client_secret_post"] });
  const { server, ws } = scene;
  assert.equal((await signIn(ws, "good")).code, 0);
  // In the format of the earlier version: one registration of the issuer.
  const folder = join(ws.home, "sign_ins");
  const names = () => [...Deno.readDirSync(folder)].map(({ name }) => name);
  const [own = ""] = names().filter((name) => /^client-\w+\.json$/.test(name));
  const shared = `client-${sha256(server.issuer).slice(0, 32)}.json`;
  await Deno.rename(join(folder, own), join(folder, shared));
  server.tokens.expire();
  const after = await runPml(ws, ["call", "good:meta"]);
  assert.equal(after.code, 0, after.stderr);
  assert.equal(server.tokens.refreshes, 1);
  assert.equal((await signIn(ws, "evil")).code, 0);
  assert.equal(scene.registrations, 2);
  assert.ok(!names().includes(shared), "nobody uses it");
  server.tokens.expire();
  for (const name of ["good", "evil"]) {
    assert.equal((await runPml(ws, ["call", `${name}:meta`])).code, 0);
  }
  assert.match((await runPml(ws, ["logout", "good"])).stdout, /token revoked/);
  server.assertClean();
});

Deno.test("a client that several servers share asks for consent, and both hosts are named (GX5)", async () => {
  await using page: HttpSink = new HttpSink(() => {
    const redirect_uris = ["http://127.0.0.1/callback"];
    return Response.json({ client_id: `${page.url}/pml.json`, client_name: "PML", redirect_uris });
  });
  await using scene = await TwoServers.make({ takesDocuments: true });
  const { server, ws, hosts } = scene;
  const config = `oauth:\n  client_metadata_url: ${page.url}/pml.json\n`;
  await Deno.writeTextFile(join(ws.home, "config.yaml"), config);
  for (const name of ["good", "evil"] as const) {
    const { code, stderr } = await signIn(ws, name);
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      new RegExp(`${hosts.issuer} .* ${hosts[name]} `),
    );
  }
  assert.deepEqual(scene.clients, [`${page.url}/pml.json`, `${page.url}/pml.json`]);
  const prompts = server.to("/authorize").map(({ query }) => query.get("prompt"));
  assert.deepEqual(prompts, ["consent", "consent"]);
  server.assertClean();
});

Deno.test("a configured client asks for consent if a sign-in at another address uses it (GX5)", async () => {
  const client = { id: "of-the-user", redirects: ["http://127.0.0.1/callback"] };
  await using scene = await TwoServers.make({ clients: [client] }, { client_id: client.id });
  const { server, ws, hosts } = scene;
  for (const name of ["good", "evil"] as const) {
    const { stderr } = await signIn(ws, name);
    const named = stderr.includes(`lets ${hosts[name]} use your account`);
    assert.equal(named, name === "evil", stderr);
  }
  const prompts = server.to("/authorize").map(({ query }) => query.get("prompt"));
  assert.deepEqual(prompts, [null, "consent"]);
});

Deno.test("a configured client asks for consent also after the other sign-in has ended (GX5)", async () => {
  const client = { id: "of-the-user", redirects: ["http://127.0.0.1/callback"] };
  await using scene = await TwoServers.make({ clients: [client] }, { client_id: client.id });
  const { server, ws, hosts } = scene;
  assert.equal((await signIn(ws, "good")).code, 0);
  assert.equal((await runPml(ws, ["logout", "good"])).code, 0);
  // The authorization server remembers the consent for the client.
  const { stderr } = await signIn(ws, "evil");
  assert.ok(stderr.includes(`lets ${hosts.evil} use your account`), stderr);
  assert.equal((await signIn(ws, "good")).code, 0);
  const prompts = server.to("/authorize").map(({ query }) => query.get("prompt"));
  assert.deepEqual(prompts, [null, "consent", "consent"]);
});

Deno.test("the question of a sign-in names issuer and receivers (GX4, GX5)", async () => {
  await using scene = await TwoServers.make({ path: "/tenant" });
  const { server, ws, hosts } = scene;
  const seen: string[] = [];
  await using pml = new RawStdio(ws, {
    ...{ era: "2025-11-25", capabilities: { elicitation: { form: {}, url: {} } } },
    answer: (_, { message }) => {
      seen.push(String(message));
      return { action: "decline" };
    },
  });
  await pml.open();
  await pml.callTool("call", { tool: "evil:meta", arguments: {} });
  await pml.close();
  const receivers = `Issuer "${server.issuer}"; ${hosts.issuer} receives the code, ` +
    `${hosts.evil} the token`;
  assert.ok(seen[0]?.includes(receivers), seen[0]);
  await using login = await beginLogin(ws, "evil");
  await browse(login.address, { answer: "deny" });
  assert.ok((await login.ended()).stderr.includes(receivers));
});
