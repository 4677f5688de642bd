import assert from "node:assert/strict";
import { NO_WARNINGS } from "../io/private_files.ts";
import { yieldTurn } from "../io/waiting.ts";
import { ServerAuthorization } from "./_authorization.ts";
import type { StoredSignIn, TokenStore } from "./token_store.ts";

const NEVER = new AbortController().signal;
const KEPT: StoredSignIn = {
  ...{ server: "notes", url: "https://notes.example/mcp", issuer: "https://notes.example" },
  ...{ tokenEndpoint: "https://notes.example/token", resource: "https://notes.example/mcp" },
  ...{ client: { client_id: "c", method: "none" }, scopes: [], since: Date.now() },
  ...{ accessToken: "access-0", refreshToken: "refresh-0" },
};

/** Creates a sign-in in memory. Each refresh returns numbered tokens. */
function scene(
  first: Partial<StoredSignIn> = {},
  waits: () => void = () => {},
  reads: readonly (() => Promise<never>)[] = [],
) {
  let kept: StoredSignIn | undefined = { ...KEPT, ...first };
  let version = 0;
  let refreshes = 0;
  let last = Promise.resolve();
  const seen = { looks: 0, reads: 0, secrets: new Set<string>() };
  const store: TokenStore = {
    stamp: () => {
      seen.looks++;
      return kept && `${version}`;
    },
    peek: <T>() => kept as T | undefined, // only sign-ins are read here
    read: <T>() => {
      seen.reads++;
      const now = kept as T | undefined; // as above
      return reads[seen.reads - 1]?.() ?? Promise.resolve(now);
    },
    write: (_, next) => {
      kept = next as StoredSignIn; // only sign-ins are written here
      version++;
      return Promise.resolve();
    },
    remove: () => {
      kept = undefined;
      version++;
      return Promise.resolve();
    },
    all: () => [],
    withLock: (_, work) => {
      const done = last.then(() => {
        waits();
        return work();
      });
      last = done.then(() => {}, () => {});
      return done;
    },
  };
  const server = { name: "notes", url: KEPT.url, named: new Set<string>() };
  const signedIn = new ServerAuthorization(server, store, {
    folder: "",
    log: NO_WARNINGS,
    fetch: () => Promise.reject(new Error("nothing is sent")),
    register: (secrets, over) => {
      for (const each of over) seen.secrets.delete(each);
      for (const each of secrets) seen.secrets.add(each);
    },
    refresh: async () => {
      const at = ++refreshes;
      const tokens = { accessToken: `access-${at}`, refreshToken: `refresh-${at}` };
      await store.write("k", { ...KEPT, ...tokens, since: Date.now() });
    },
  });
  return { signedIn, store, seen, refreshes: () => refreshes };
}

function refusal(request: string, status = 401) {
  return { response: new Response(null, { status }), sent: request, isAgain: false, signal: NEVER };
}

Deno.test("ServerAuthorization reads its file once, and again after a change", async () => {
  const { signedIn, store, seen } = scene();
  for (let call = 0; call < 100; call++) {
    assert.equal(await signedIn.header(NEVER), "Bearer access-0");
  }
  assert.equal(seen.reads, 1);
  assert.ok(seen.looks < 50, `calls that follow at once looked ${seen.looks} times`);
  const soon = () => new Promise((resolve) => setTimeout(resolve, 60));
  await store.write("k", { ...KEPT, accessToken: "of-another-account" });
  await soon();
  assert.equal(await signedIn.header(NEVER), "Bearer of-another-account");
  await store.remove("k");
  await soon();
  assert.equal(await signedIn.header(NEVER), undefined);
});

Deno.test("ServerAuthorization registers current tokens as secrets, and removes old ones", async () => {
  const { signedIn, seen } = scene();
  for (let turn = 0; turn < 20; turn++) {
    const request = await signedIn.header(NEVER) ?? "";
    assert.ok(seen.secrets.has(request.replace("Bearer ", "")), request);
    assert.ok(await signedIn.handleRefusal(refusal(request)));
  }
  assert.ok(seen.secrets.has("refresh-20"));
  assert.ok(seen.secrets.size <= 6, `${[...seen.secrets]}`);
});

Deno.test("ServerAuthorization does not refresh after the refusal of an earlier token", async () => {
  const { signedIn, store, refreshes } = scene();
  const request = await signedIn.header(NEVER) ?? "";
  await store.write("k", { ...KEPT, accessToken: "access-of-another-process" });
  assert.ok(await signedIn.handleRefusal(refusal(request)));
  assert.equal(refreshes(), 0);
});

Deno.test("ServerAuthorization refreshes a minute before expiry, or in the last fifth of a short lifetime", async () => {
  const now = Date.now();
  const lives = [[3_600_000, 61_000, 0], [3_600_000, 59_000, 1], [10_000, 3_000, 0], [
    10_000,
    1_000,
    1,
  ]];
  for (const [life = 0, left = 0, expected] of lives) {
    const { signedIn, refreshes } = scene({ since: now + left - life, until: now + left });
    await signedIn.header(NEVER);
    assert.equal(refreshes(), expected, `${left} of ${life}`);
  }
});

Deno.test("ServerAuthorization does not restore a sign-in that ended during a request for more scopes", async () => {
  const { signedIn, store } = scene({}, () => void store.remove("k"));
  const request = await signedIn.header(NEVER) ?? "";
  const headers = { "www-authenticate": 'Bearer error="insufficient_scope", scope="more"' };
  const response = new Response(null, { status: 403, headers });
  await assert.rejects(
    signedIn.handleRefusal({ ...refusal(request), response }),
    /requires more permissions/,
  );
  assert.equal(await store.read("k"), undefined);
});

Deno.test("ServerAuthorization leaves a 403 without scopes to the caller", async () => {
  const { signedIn, refreshes } = scene();
  const request = await signedIn.header(NEVER) ?? "";
  assert.equal(await signedIn.handleRefusal(refusal(request, 403)), false);
  assert.equal(refreshes(), 0);
});

Deno.test("ServerAuthorization sends no token of a sign-in that ended during its refresh", async () => {
  const [since, until] = [Date.now() - 3_600_000, Date.now() + 30_000];
  const { signedIn, store } = scene({ since, until }, () => void store.remove("k"));
  await assert.rejects(signedIn.header(NEVER), { code: "LOGIN_REQUIRED" });
  assert.equal(await signedIn.header(NEVER), undefined);
});

Deno.test("ServerAuthorization keeps the scopes of all calls that need more at the same time", async () => {
  const { signedIn, store } = scene();
  const request = await signedIn.header(NEVER) ?? "";
  await Promise.all(["one", "two"].map(async (scope) => {
    const headers = { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` };
    const response = new Response(null, { status: 403, headers });
    await assert.rejects(signedIn.handleRefusal({ ...refusal(request), response }), {
      code: "LOGIN_REQUIRED",
    });
  }));
  assert.deepEqual((await store.read("k"))?.wanted, ["one", "two"]);
});

Deno.test("ServerAuthorization repeats a call that needs more scopes if the user signs in meanwhile", async () => {
  const { signedIn, store } = scene();
  const request = await signedIn.header(NEVER) ?? "";
  const headers = { "www-authenticate": 'Bearer error="insufficient_scope", scope="one"' };
  const response = new Response(null, { status: 403, headers });
  let again: Promise<boolean> | undefined;
  await store.withLock("k", async () => {
    again = signedIn.handleRefusal({ ...refusal(request), response });
    await yieldTurn();
    await store.write("k", { ...KEPT, accessToken: "new", scopes: ["one"] });
  });
  assert.equal(await again, true);
  assert.equal((await store.read("k"))?.wanted, undefined);
  assert.equal(await signedIn.header(NEVER), "Bearer new");
});
