/**
 * Servers with false sign-in metadata: PML sends nothing to the addresses in it, and signs in no
 * user.
 *
 * @module
 */

import assert from "node:assert/strict";
import { HttpSink } from "../kit/sinks.ts";
import { pmlOf, Signing } from "./signing_in.ts";
import { signIn } from "../kit/sign_in.ts";
import { AuthorizationServer } from "../kit/authorization_server.ts";
import { ProtectedHttp } from "../kit/protected_http.ts";
import { makeAttackWorkspace } from "./stage.ts";

const MB = 1 << 20;

/** Metadata of resources that are refused, with the text of the refusal. */
const RESOURCES: readonly (readonly [string, (usual: Fields) => Fields, RegExp])[] = [
  ["another origin", () => ({ resource: "http://127.0.0.1:9/mcp" }), /127\.0\.0\.1:9/],
  ["another path", ({ resource }) => ({ resource: `${resource}/other` }), /other/],
  ["half a name", ({ resource }) => ({ resource: String(resource).slice(0, -1) }), /\/mc"/],
  ["no text", () => ({ resource: 1 }), /metadata/],
  ["nothing", () => ({ resource: undefined }), /metadata/],
];

type Fields = Record<string, unknown>;

Deno.test("metadata of another resource, or at another origin, sign in no user (SX1)", async () => {
  await using sink = new HttpSink(() => Response.json({}));
  await using scene = await Signing.make();
  const { mcp, server } = scene;
  for (const [what, amend, like] of RESOURCES) {
    mcp.options.amend = (usual) => ({ ...usual, ...amend(usual) });
    await scene.assertRefused("UPSTREAM_PROTOCOL", like);
    assert.deepEqual(server.asked, [], what);
  }
  delete mcp.options.amend;
  mcp.options.challenge = () => `Bearer resource_metadata="${sink.url}/of/resource"`;
  await scene.assertRefused("PERMISSION_DENIED", /its metadata are at/);
  mcp.options.challenge = () => `Bearer resource_metadata="file:///etc/passwd"`;
  await scene.assertRefused("PERMISSION_DENIED", /its metadata are at/);
  sink.assertSilent();
  assert.deepEqual(server.asked, []);
});

Deno.test("an issuer with another identifier than its address signs in no user", async () => {
  await using sink = new HttpSink(() => Response.json({}));
  await using scene = await Signing.make();
  const { server } = scene;
  const wrong = [sink.url, `${server.issuer}/other`, 1, undefined];
  for (const issuer of wrong) {
    server.options.amend = (usual) => ({ ...usual, issuer });
    await scene.assertRefused("UPSTREAM_PROTOCOL", /./);
  }
  // No PKCE, or a method without protection.
  for (const methods of [undefined, ["plain"]]) {
    server.options.amend = (usual) => ({ ...usual, code_challenge_methods_supported: methods });
    await scene.assertRefused("UPSTREAM_PROTOCOL", /PKCE/);
  }
  assert.deepEqual(
    [server.to("/register"), server.to("/authorize"), server.to("/token")].flat(),
    [],
  );
  sink.assertSilent();
});

Deno.test("a browser response with another issuer, or without a promised one, brings no token", async () => {
  await using scene = await Signing.make();
  const { server } = scene;
  const issuers = ["http://127.0.0.1:9", `${server.issuer}/`, `${server.issuer}#`, "", undefined];
  for (const issuer of issuers) {
    server.options.after = ({ path }, answer) => {
      if (path !== "/decide") return answer;
      const to = new URL(answer.headers.get("location") ?? "");
      if (issuer === undefined) to.searchParams.delete("iss");
      else to.searchParams.set("iss", issuer);
      return new Response(null, { status: 302, headers: { location: String(to) } });
    };
    await scene.assertRefused("UPSTREAM_PROTOCOL", /iss/);
  }
  assert.deepEqual(server.to("/token"), [], "a code was sent");
  // An issuer that is not promised may be present, and must then be right.
  server.options.amend = (usual) => ({
    ...usual,
    authorization_response_iss_parameter_supported: undefined,
  });
  server.options.after = ({ path }, answer) => {
    if (path !== "/decide") return answer;
    const to = new URL(answer.headers.get("location") ?? "");
    to.searchParams.set("iss", "https://example.com");
    return new Response(null, { status: 302, headers: { location: String(to) } });
  };
  await scene.assertRefused("UPSTREAM_PROTOCOL", /iss/);
  assert.deepEqual(server.to("/token"), [], "a code was sent");
});

Deno.test("a server that names the authorization server of another gets no token of that one (SX1)", async () => {
  await using server = new AuthorizationServer();
  await using good = new ProtectedHttp("modern", { server });
  await using evil = new ProtectedHttp("modern", { server });
  const pml = pmlOf({
    good: { type: "http", url: good.url },
    evil: { type: "http", url: evil.url },
  });
  await using ws = await makeAttackWorkspace({ pml });
  assert.equal((await signIn(ws, "good")).code, 0);
  // It requests a token for the other one.
  evil.options.amend = (usual) => ({ ...usual, resource: good.url });
  await assert.rejects(signIn(ws, "evil"), /UPSTREAM_PROTOCOL: .*its metadata are those of/);
  delete evil.options.amend;
  // It may get its own: the authorization server distinguishes their resources.
  assert.equal((await signIn(ws, "evil")).code, 0);
  const [first, second] = server.tokens.families;
  assert.deepEqual([first?.resource, second?.resource], [good.url, evil.url]);
  server.assertClean();
});

Deno.test("no redirect of metadata, registration or token endpoint is followed", async () => {
  await using sink = new HttpSink(() => Response.json({}));
  await using scene = await Signing.make();
  const { server, mcp } = scene;
  const away = (status: number) =>
    new Response(null, { status, headers: { location: `${sink.url}/stolen` } });
  mcp.options.script = ({ url }) => url.endsWith("/of/resource") ? away(302) : undefined;
  await scene.tried();
  delete mcp.options.script;
  const paths = ["/.well-known/oauth-authorization-server", "/register", "/token"];
  for (const path of paths) {
    server.options.script = (request) => request.path === path ? away(307) : undefined;
    await scene.assertRefused("UPSTREAM_PROTOCOL", /./);
  }
  sink.assertSilent();
});

Deno.test("an authorization endpoint that is not a valid web address is not opened (NI4)", async () => {
  await using scene = await Signing.make();
  const { server } = scene;
  const pages = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://example.com/authorize",
    "data:text/html,x",
    "//127.0.0.1/authorize",
    "https://user:secret@example.com/",
    1,
    undefined,
  ];
  for (const page of pages) {
    server.options.amend = (usual) => ({ ...usual, authorization_endpoint: page });
    await scene.assertRefused("UPSTREAM_PROTOCOL|PERMISSION_DENIED", /./);
  }
  // No client is registered yet.
  await using fresh = await Signing.make();
  for (const place of ["http://169.254.169.254/register", "https://[::1]:1/register"]) {
    fresh.server.options.amend = (usual) => ({ ...usual, registration_endpoint: place });
    await fresh.assertRefused("UPSTREAM_PROTOCOL|PERMISSION_DENIED|UPSTREAM_DOWN", /./);
  }
  for (const place of ["http://169.254.169.254/token", "file:///token"]) {
    server.options.amend = (usual) => ({ ...usual, token_endpoint: place });
    await scene.assertRefused("UPSTREAM_PROTOCOL|PERMISSION_DENIED", /./);
  }
});

Deno.test("endless and oversized documents end a sign-in, and affect no other", async () => {
  await using scene = await Signing.make();
  const { server, mcp } = scene;
  const giant = () => Response.json({ issuer: server.issuer, pad: "x".repeat(8 * MB) });
  mcp.options.script = ({ url }) => url.endsWith("/of/resource") ? endless() : undefined;
  await scene.assertRefused("UPSTREAM_PROTOCOL|RESULT_TOO_LARGE", /./);
  delete mcp.options.script;
  for (const path of ["/.well-known/oauth-authorization-server", "/register", "/token"]) {
    const answer = path === "/token" ? giant : endless;
    server.options.script = (request) => request.path === path ? answer() : undefined;
    await scene.assertRefused("UPSTREAM_PROTOCOL|RESULT_TOO_LARGE", /./);
  }
  // A challenge of the maximum length of a header.
  delete server.options.script;
  mcp.options.challenge = (usual) => `${usual}, ${'a="b", '.repeat(1_000)}c="d"`;
  await scene.signIn();
});

/** Returns an endless JSON text. */
function endless(): Response {
  const piece = new TextEncoder().encode(" ".repeat(64 * 1024));
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(piece),
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}
