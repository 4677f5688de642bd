import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { AuthorizationServer } from "./authorization_server.ts";
import { browse } from "./browser.ts";
import { ProtectedHttp } from "./protected_http.ts";
import { HttpSink } from "./sinks.ts";

const VERIFIER = "v".repeat(43);
const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");
const STATE = "s".repeat(22);

Deno.test("the authorization server issues tokens to a correct client", async () => {
  await using scene = new Scene();
  const { server, mcp } = scene;
  const { token } = await scene.signIn();
  const refused = await scene.call(undefined);
  assert.equal(refused.status, 401);
  const challenge = refused.headers.get("www-authenticate") ?? "";
  assert.match(challenge, /^Bearer scope="read", resource_metadata="[^"]*\/of\/resource"$/);
  const [, at = ""] = /resource_metadata="([^"]*)"/.exec(challenge) ?? [];
  const { resource, authorization_servers } = await (await fetch(at)).json();
  assert.deepEqual([resource, authorization_servers], [mcp.url, [server.issuer]]);
  assert.equal((await scene.call(token.access_token)).status, 200);
  const limited = await scene.call(token.access_token, "link");
  assert.equal(limited.status, 403);
  assert.match(
    limited.headers.get("www-authenticate") ?? "",
    /"insufficient_scope", scope="read w/,
  );
  server.tokens.expire();
  assert.equal((await scene.call(token.access_token)).status, 401);
  const next = await scene.refresh(token.refresh_token);
  assert.notEqual(next.refresh_token, token.refresh_token);
  assert.equal((await scene.call(next.access_token)).status, 200);
  assert.deepEqual([server.tokens.refreshes, server.tokens.reuses], [1, 0]);
  server.assertClean();
  const again = await scene.refresh(token.refresh_token);
  assert.equal(again.error, "invalid_grant");
  assert.equal((await scene.call(next.access_token)).status, 401);
  assert.equal(server.tokens.reuses, 1);
  assert.equal((await scene.refresh(next.refresh_token)).error, "invalid_grant");
});

Deno.test("the authorization server reports each fault of a client", async () => {
  await using scene = new Scene();
  const { server } = scene;
  const { id, back } = await scene.register();
  const usual = scene.query(id, back);
  const wrong: Readonly<Record<string, string>> = {
    code_challenge_method: "plain",
    response_type: "token",
    redirect_uri: back.replace("callback", "elsewhere"),
    resource: "https://example.com/",
    scope: "admin",
    state: "1",
    client_id: "nobody",
    access_token: "t",
  };
  for (const [name, value] of Object.entries(wrong)) {
    const response = await fetch(`${server.issuer}/authorize?${new URLSearchParams({
      ...usual,
      [name]: value,
    })}`);
    assert.ok(response.status >= 400, name);
    await response.body?.cancel();
  }
  assert.equal(server.violations.length, Object.keys(wrong).length + 1, `${server.violations}`);
  const { form } = await scene.signIn();
  assert.equal(
    (await scene.token({ ...form, code_verifier: "w".repeat(43) })).error,
    "invalid_grant",
  );
  assert.match(server.violations.at(-1) ?? "", /used before/);
  assert.ok(server.tokens.families[0]?.isRevoked);
  const bad = { redirect_uris: [back], grant_types: ["authorization_code"], client_name: "c" };
  assert.equal((await scene.asked(bad)).error, "invalid_client_metadata");
});

/** The servers, and a client that does each step without the kit. */
class Scene implements AsyncDisposable {
  readonly server = new AuthorizationServer({ scopes: ["read", "write"] });
  readonly mcp = new ProtectedHttp("modern", {
    server: this.server,
    scope: "read",
    toolScopes: { link: "write" },
  });
  readonly #page = new HttpSink(() => new Response("done"));
  #client = "";

  query(client_id: string, redirect_uri: string): Record<string, string> {
    return {
      ...{ client_id, redirect_uri, response_type: "code", scope: "read", resource: this.mcp.url },
      ...{ state: STATE, code_challenge: CHALLENGE, code_challenge_method: "S256" },
    };
  }

  async token(form: Record<string, string>) {
    const body = new URLSearchParams(form);
    return await (await fetch(`${this.server.issuer}/token`, { method: "POST", body })).json();
  }

  async register(): Promise<{ readonly id: string; readonly back: string }> {
    const back = `${this.#page.url}/callback`;
    const { client_id } = await this.asked({
      redirect_uris: [back],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
      client_name: "test",
    });
    return { id: String(client_id), back };
  }

  async asked(body: object) {
    const response = await fetch(`${this.server.issuer}/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await response.json();
  }

  async signIn() {
    const { id, back } = await this.register();
    this.#client = id;
    const asked = new URLSearchParams(this.query(id, back));
    const { address, text } = await browse(`${this.server.issuer}/authorize?${asked}`);
    assert.equal(text, "done");
    const said = new URL(address).searchParams;
    assert.deepEqual([said.get("state"), said.get("iss")], [STATE, this.server.issuer]);
    const form = {
      ...{ grant_type: "authorization_code", code: said.get("code") ?? "", client_id: id },
      ...{ redirect_uri: back, code_verifier: VERIFIER, resource: this.mcp.url },
    };
    return { token: await this.token(form), form };
  }

  async refresh(refresh_token: string) {
    const client_id = this.#client;
    const resource = this.mcp.url;
    return await this.token({ grant_type: "refresh_token", refresh_token, client_id, resource });
  }

  async call(bearer: string | undefined, name = "meta"): Promise<Response> {
    const meta = "io.modelcontextprotocol/";
    const _meta = {
      [`${meta}protocolVersion`]: "2026-07-28",
      [`${meta}clientCapabilities`]: {},
      [`${meta}clientInfo`]: { name: "t", version: "1" },
    };
    const params = { name, arguments: {}, _meta };
    const response = await fetch(this.mcp.url, {
      method: "POST",
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...{ "content-type": "application/json", "mcp-method": "tools/call", "mcp-name": name },
        ...{ accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28" },
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    await response.body?.cancel();
    return response;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mcp[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    await this.#page[Symbol.asyncDispose]();
  }
}
