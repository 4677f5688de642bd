/**
 * Tokens that PML stores: none goes to another server, none appears in output or files, and a
 * server that requests ever more scopes, or floods, is refused.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { AuthorizationServer } from "../kit/authorization_server.ts";
import { ProtectedHttp } from "../kit/protected_http.ts";
import { EACH_WAY, RawStdio } from "../kit/raw_stdio.ts";
import { signIn } from "../kit/sign_in.ts";
import { assertNoLeak, HttpSink } from "../kit/sinks.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { call, toldCode } from "./evil_servers.ts";
import { endWell, textOf } from "./oracles.ts";
import { pmlOf, Signing } from "./signing_in.ts";
import { makeAttackWorkspace } from "./stage.ts";

Deno.test("tokens of two servers never mix: alternating calls, refusals, new sessions, another start (SX1)", async () => {
  await using one = new AuthorizationServer();
  await using two = new AuthorizationServer();
  await using first = new ProtectedHttp("modern", { server: one });
  await using second = new ProtectedHttp("legacy", { server: two });
  await using plain = new HttpSink(() => new Response(null, { status: 503 }));
  const pml = pmlOf({
    first: { type: "http", url: first.url },
    second: { type: "http", url: second.url },
    plain: { type: "http", url: `${plain.url}/mcp` },
  });
  await using ws = await makeAttackWorkspace({ pml });
  for (const name of ["first", "second"]) assert.equal((await signIn(ws, name)).code, 0);
  for (const { door, era } of EACH_WAY) {
    await using started = new RawStdio(ws, { door, era });
    await started.open();
    for (let round = 0; round < 10; round++) {
      const calls = Array.from({ length: 10 }, (_, at) => {
        const name = at % 2 === 0 ? "first" : "second";
        return call(started, `${name}:meta`);
      });
      if (round === 3) one.tokens.expire();
      if (round === 5) two.tokens.expire();
      if (round === 7) await second.full.forget();
      for (const response of await Promise.all(calls)) {
        // A call that ran while its session ended may not be repeated.
        const code = toldCode(response);
        assert.ok(code === undefined || round === 7, `${code}: ${textOf(response)}`);
      }
      await call(started, "plain:any");
    }
    await started.close();
  }
  const sent = [...new Set([...first.tokens, ...second.tokens])].filter((one) => one !== undefined);
  assert.ok(sent.length >= 4, "tokens were renewed");
  const other = plain.received.map(({ headers, body }) => JSON.stringify(headers) + body).join();
  for (const secret of [...one.tokens.secrets, ...two.tokens.secrets]) {
    assert.ok(!other.includes(secret), "a server without a sign-in got a token");
  }
  for (const server of [one, two]) server.assertClean();
});

Deno.test("no token follows a redirect of its server (SX2)", async () => {
  await using sink = new HttpSink();
  await using scene = await Signing.make();
  const { mcp, server, ws } = scene;
  await scene.signIn();
  await using pml = new RawStdio(ws, { door: "stdio" });
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  for (const status of [301, 302, 303, 307, 308]) {
    mcp.options.script = ({ headers }) =>
      headers.has("authorization")
        ? new Response(null, { status, headers: { location: `${sink.url}/stolen` } })
        : undefined;
    assert.equal(toldCode(await call(pml, "far:meta")), "UPSTREAM_PROTOCOL", `${status}`);
  }
  delete mcp.options.script;
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  sink.assertSilent();
  server.assertClean();
  await endWell(ws, pml);
});

Deno.test("a token that its server repeats appears in results only (SX5)", async () => {
  await using scene = await Signing.make();
  const { mcp, server, ws } = scene;
  await scene.signIn();
  const env = { PML_LOG_LEVEL: "debug" };
  await using pml = new RawStdio(ws, { door: "http", env });
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  const messages: string[] = [];
  const codes: (string | undefined)[] = [];
  for (const status of [400, 401, 403, 404, 418, 500, 503]) {
    mcp.options.script = (request) => echo(request, status);
    const response = await call(pml, "far:meta");
    messages.push(JSON.stringify(response));
    codes.push(toldCode(response));
  }
  assert.ok(codes.every((code) => code !== undefined), `${codes}`);
  delete mcp.options.script;
  const secrets = server.tokens.secrets;
  assert.ok(secrets.length >= 2);
  await pml.close();
  const files = await textsOf(ws);
  for (const secret of secrets) {
    assertNoLeak(secret, { errors: messages.join("\n"), stderr: pml.stderr, ...files });
  }
  await assertPrivate(ws, secrets);
});

Deno.test("a server that requests ever more scopes is refused after two, with a clear message", async () => {
  await using scene = await Signing.make({ mcp: { scope: "base" } });
  const { mcp, server, ws } = scene;
  await scene.signIn();
  await using pml = new RawStdio(ws);
  await pml.open();
  let wanted = 0;
  // Lists are requested with each token, too: each of these requires another scope.
  const tokens = new Set<string>();
  mcp.options.script = (request) => {
    const token = request.headers.get("authorization");
    if (token === null) return undefined;
    wanted++;
    tokens.add(token);
    const challenge = `Bearer error="insufficient_scope", scope="more-${tokens.size}"`;
    return new Response(null, { status: 403, headers: { "www-authenticate": challenge } });
  };
  const codes: (string | undefined)[] = [];
  for (let round = 0; round < 5; round++) {
    const response = await call(pml, "far:meta");
    codes.push(toldCode(response));
    if (codes.at(-1) !== "LOGIN_REQUIRED") {
      assert.match(textOf(response), /scope/);
      break;
    }
    const [missing] = response.result?.structuredContent?.error?.detail
      ?.scopes as unknown as string[];
    await scene.signIn();
    const { scopes = [] } = server.tokens.families.at(-1) ?? {};
    assert.ok(scopes.includes(String(missing)), "it asks for what is missing");
    assert.ok(scopes.includes("base"), "and for what it had");
  }
  assert.deepEqual(codes.slice(0, 2), ["LOGIN_REQUIRED", "LOGIN_REQUIRED"]);
  assert.equal(codes.length, 3, `${codes}`);
  assert.ok(wanted < 10, `${wanted} requests`);
  server.assertClean();
});

for (const { door, era, on } of EACH_WAY) {
  Deno.test(`a signed-in server that asks for a secret is shown with its name and a warning, on ${on} (SX13)`, async () => {
    const kind = era === "2025-11-25" ? "legacy" : "modern";
    await using scene = await Signing.make({ era: kind });
    await scene.signIn();
    const seen: string[] = [];
    await using pml = new RawStdio(scene.ws, {
      ...{ door, era },
      answer: (_, { message }) => {
        seen.push(String(message));
        return { action: "accept", content: { name: "typed" } };
      },
    });
    await pml.open();
    await call(pml, "far:ask_secret");
    assert.match(seen[0] ?? "", /^Server far asks: Type .*\n\(PML notes: .*secret/);
    await pml.close();
  });
}

Deno.test("a flood of calls to a signed-in server is refused at once, and makes one refresh (RX5)", async () => {
  const limits = { concurrent_calls: 16, queued_calls: 16 };
  await using scene = await Signing.make({ scene: { limits } });
  const { mcp, server, ws } = scene;
  const far = { far: { type: "http", url: mcp.url } };
  await Deno.writeTextFile(ws.file(".pml.json"), JSON.stringify(pmlOf(far)));
  await scene.signIn();
  await using pml = new RawStdio(ws, { door: "http" });
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  const held = Promise.withResolvers<void>();
  server.tokens.expire();
  server.options.after = async (_, answer) => {
    await held.promise;
    return answer;
  };
  const ended: (string | undefined)[] = [];
  const all = Array.from({ length: 1_000 }, async () => {
    ended.push(toldCode(await call(pml, "far:meta")));
  });
  await until(() => ended.length >= 1_000 - 32);
  assert.deepEqual(new Set(ended), new Set(["OVERLOADED"]), "the refusals waited");
  held.resolve();
  await Promise.all(all);
  assert.equal(ended.filter((code) => code === undefined).length, 32);
  assert.equal(server.tokens.refreshes, 1);
  server.assertClean();
  await endWell(ws, pml);
});

Deno.test("a token endpoint that fails temporarily loses nothing, and a refusal ends the sign-in", async () => {
  await using scene = await Signing.make();
  const { server, ws } = scene;
  await scene.signIn();
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  server.tokens.expire();
  for (const status of [500, 503, 429]) {
    server.options.script = () => new Response("down", { status });
    assert.equal(toldCode(await call(pml, "far:meta")), "UPSTREAM_DOWN", `${status}`);
  }
  delete server.options.script;
  // A server that was down is tried again after a moment.
  await until(async () => toldCode(await call(pml, "far:meta")) === undefined);
  server.tokens.revokeAll();
  const response = await call(pml, "far:meta");
  assert.equal(toldCode(response), "LOGIN_REQUIRED");
  assert.match(textOf(response), /pml login far/);
  const asked = server.to("/token").length;
  assert.equal(toldCode(await call(pml, "far:meta")), "LOGIN_REQUIRED");
  assert.equal(server.to("/token").length, asked, "it asks no more");
  await scene.signIn();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined, "the same PML goes on");
  server.assertClean();
  await endWell(ws, pml);
});

Deno.test("a new token that expires before its use ends one call, and no sign-in", async () => {
  await using scene = await Signing.make();
  const { server, ws } = scene;
  await scene.signIn();
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  server.tokens.expire();
  server.options.after = (_, answer) => {
    server.tokens.expire();
    delete server.options.after;
    return answer;
  };
  assert.equal(toldCode(await call(pml, "far:meta")), "LOGIN_REQUIRED");
  for (let round = 0; round < 3; round++) {
    assert.equal(toldCode(await call(pml, "far:meta")), undefined);
    server.tokens.expire();
  }
  assert.equal(server.tokens.refreshes, 4);
  server.assertClean();
  await endWell(ws, pml);
});

Deno.test("a new authorization server gets nothing of the previous one", async () => {
  await using scene = await Signing.make();
  const { mcp, server, ws } = scene;
  await using other = new AuthorizationServer();
  other.resources.add(mcp.resource);
  await scene.signIn();
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  // It may name several, in any order.
  mcp.options.amend = (usual) => ({ ...usual, authorization_servers: [other.issuer] });
  server.tokens.expire();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  server.tokens.revokeAll();
  assert.equal(toldCode(await call(pml, "far:meta")), "LOGIN_REQUIRED");
  assert.equal((await scene.tried()).code, 0);
  const request = JSON.stringify(other.asked.map(({ body, query }) => [body, [...query]]));
  for (const secret of [...server.tokens.secrets, ...server.clients.ids]) {
    assert.ok(!request.includes(secret), "something of the first went to the other");
  }
  other.assertClean();
});

/** Answers with the token in all possible places. */
function echo({ headers }: Request, status: number): Response | undefined {
  const sent = headers.get("authorization");
  if (sent === null) return undefined;
  const token = sent.replace("Bearer ", "");
  const forms = `${sent} ${btoa(token)} ${encodeURIComponent(token)}`;
  return new Response(JSON.stringify({ error: forms, message: forms }), {
    status,
    headers: {
      "content-type": "application/json",
      "x-echo": forms,
      "www-authenticate": `Bearer error="invalid_token", error_description="${forms}"`,
    },
  });
}

/** Reads every file below the home except those of the sign-ins. */
async function textsOf({ home }: Workspace): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const name of await readdir(home, { recursive: true })) {
    const path = join(home, name);
    const isOther = !name.startsWith("sign_ins") && (await stat(path)).isFile();
    if (isOther) texts[name] = await readFile(path, "latin1");
  }
  return texts;
}

/** Asserts that the tokens are in the folder of the sign-ins, with access for the user alone. */
async function assertPrivate({ home }: Workspace, secrets: readonly string[]): Promise<void> {
  const folder = join(home, "sign_ins");
  let text = "";
  assert.equal((await stat(folder)).mode & 0o077, 0);
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    assert.equal((await stat(path)).mode & 0o077, 0, name);
    text += await readFile(path, "utf8");
  }
  assert.ok(secrets.some((secret) => text.includes(secret)), "they are kept");
}
