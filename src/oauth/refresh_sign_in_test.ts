import assert from "node:assert/strict";
import { join } from "node:path";
import { CERTIFICATE, CERTIFICATE_KEY } from "../../tests/kit/certificate.ts";
import { REFRESH_CODE } from "./refresh_child.ts";
import { PmlError } from "../core/errors.ts";
import type { Certificates } from "../core/fetch.ts";
import { refreshInProcess } from "./refresh_sign_in.ts";
import { clientKey, FileTokenStore, type StoredSignIn } from "./token_store.ts";

const KEY = "0".repeat(32);

/** Starts an authorization server over TLS, and stores a sign-in of it in a separate folder. */
async function scene(reply: (form: URLSearchParams) => Response) {
  const folder = await Deno.makeTempDir({ prefix: "pml,oauth-" });
  const forms: URLSearchParams[] = [];
  const options = { cert: CERTIFICATE, key: CERTIFICATE_KEY, port: 0, onListen: () => {} };
  const server = Deno.serve({ ...options, hostname: "127.0.0.1" }, async (request) => {
    const form = new URLSearchParams(await request.text());
    forms.push(form);
    return reply(form);
  });
  const origin = `https://localhost:${server.addr.port}`;
  const ca = join(folder, "ca.pem");
  await Deno.writeTextFile(ca, CERTIFICATE);
  const store = new FileTokenStore(folder, { warn: (message) => assert.fail(message) });
  const kept: StoredSignIn = {
    ...{ server: "notes", url: `${origin}/mcp`, issuer: origin, resource: `${origin}/mcp` },
    ...{ tokenEndpoint: `${origin}/token`, client: { client_id: "c", method: "none" } },
    ...{ scopes: ["read"], since: 0, accessToken: "old-token", refreshToken: "old-refresh" },
  };
  await store.write(KEY, kept);
  const refresh = (certificates: Certificates = { origin, ca }) =>
    refreshInProcess({
      ...{ folder, key: KEY, spent: "old-token", secret: undefined, certificates },
      named: [new URL(origin).host],
    }, { code: REFRESH_CODE, env: Deno.env.toObject(), closing: new AbortController().signal });
  return {
    ...{ store, forms, refresh, origin },
    [Symbol.asyncDispose]: async () => {
      await server.shutdown();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("refreshInProcess() refreshes over TLS with the configured authority of the server", async () => {
  const token = { access_token: "new-token", token_type: "Bearer", refresh_token: "new-refresh" };
  await using s = await scene(() => Response.json({ ...token, expires_in: 60, scope: "read" }));
  await s.refresh();
  const { accessToken, refreshToken, since, until } = await s.store.read(KEY) ?? assert.fail();
  assert.deepEqual([accessToken, refreshToken], ["new-token", "new-refresh"]);
  assert.equal((until ?? 0) - since, 60_000);
  assert.deepEqual(Object.fromEntries(s.forms[0] ?? []), {
    grant_type: "refresh_token",
    refresh_token: "old-refresh",
    client_id: "c",
    resource: `${s.origin}/mcp`,
    scope: "read",
  });
  // The token has been refreshed already.
  await s.refresh();
  assert.equal(s.forms.length, 1);
});

Deno.test("refreshInProcess() throws the error of the process, and keeps the sign-in", async () => {
  await using s = await scene(() => Response.json({ access_token: "a b", token_type: "Bearer" }));
  const before = await s.store.read(KEY);
  await assert.rejects(s.refresh({ origin: "https://other.invalid", ca: undefined }), (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "UPSTREAM_DOWN");
    assert.match(error.message, /"notes".*its certificate is not valid/);
    return true;
  });
  await assert.rejects(s.refresh(), /not a bearer token/);
  assert.deepEqual(await s.store.read(KEY), before);
});

Deno.test("refreshInProcess() ends a sign-in that is no longer granted, and removes an unknown client", async () => {
  for (const error of ["invalid_grant", "invalid_client"]) {
    await using s = await scene(() => Response.json({ error }, { status: 400 }));
    const client = { client_id: "c", method: "none" } as const;
    const key = clientKey(s.origin, { name: "notes", url: `${s.origin}/mcp` });
    await s.store.write(key, { client, redirect: "http://127.0.0.1:1/callback" });
    await s.refresh();
    const kept = await s.store.read(KEY);
    assert.deepEqual([kept?.accessToken, kept?.refreshToken], [undefined, undefined]);
    assert.deepEqual(kept?.scopes, ["read"], "the next sign-in knows what was granted");
    const isLost = await s.store.read(key) === undefined;
    assert.equal(isLost, error === "invalid_client");
  }
});

/** Refusals of services, and the reason that the user sees. */
const REFUSALS: readonly (readonly [() => Response, RegExp])[] = [
  [
    () =>
      Response.json({ error: "invalid_request", error_description: "Token expired" }, {
        status: 400,
      }),
    /"invalid_request", "Token expired"/,
  ],
  [() => Response.json({ error: "bad_refresh_token" }), /"bad_refresh_token"/],
  [() => Response.json({ message: "Unauthorized" }, { status: 401 }), /the status 401/],
  [() => new Response("<p>Not found", { status: 404 }), /the status 404/],
  [() => new Response("", { status: 400 }), /the status 400/],
];

Deno.test("a refused refresh ends a sign-in with an expired access token, and keeps a working one", async () => {
  for (const [reply, reason] of REFUSALS) {
    await using s = await scene(reply);
    const kept = await s.store.read(KEY) ?? assert.fail();
    await s.store.write(KEY, { ...kept, until: Date.now() + 600_000 });
    await assert.rejects(s.refresh(), (error) => {
      assert.ok(error instanceof PmlError && error.code === "LOGIN_REQUIRED", String(error));
      assert.match(error.message, reason);
      return true;
    });
    assert.equal((await s.store.read(KEY))?.refreshToken, "old-refresh");
    await s.store.write(KEY, { ...kept, until: Date.now() - 1_000 });
    await s.refresh();
    const over = await s.store.read(KEY);
    assert.deepEqual([over?.accessToken, over?.refreshToken], [undefined, undefined]);
    assert.match(over?.refusal ?? "", reason);
  }
});

Deno.test("a busy or failing authorization server leaves an expired sign-in its refresh token", async () => {
  for (const status of [408, 429, 500, 503]) {
    await using s = await scene(() => Response.json({ error: "invalid_request" }, { status }));
    const kept = await s.store.read(KEY) ?? assert.fail();
    await s.store.write(KEY, { ...kept, until: Date.now() - 1_000 });
    await assert.rejects(s.refresh());
    assert.equal((await s.store.read(KEY))?.refreshToken, "old-refresh", `${status}`);
  }
});

Deno.test("a refresh is sent with the granted scopes, and once without after invalid_scope", async () => {
  await using s = await scene((form) =>
    form.has("scope")
      ? Response.json({ error: "invalid_scope" }, { status: 400 })
      : Response.json({ access_token: "new-token", token_type: "Bearer", expires_in: null })
  );
  await s.refresh();
  assert.deepEqual(s.forms.map((form) => form.get("scope")), ["read", null]);
  const kept = await s.store.read(KEY);
  assert.deepEqual([kept?.accessToken, kept?.until], ["new-token", undefined]);
});
