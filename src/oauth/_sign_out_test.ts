import assert from "node:assert/strict";
import { NO_WARNINGS } from "../io/private_files.ts";
import type { SignInHost } from "./oauth_server.ts";
import { endSignIn } from "./_sign_out.ts";
import { FileTokenStore, type StoredSignIn } from "./token_store.ts";

const SERVER = { name: "notes", url: "https://notes.example/mcp", named: new Set<string>() };

function signInAt(issuer: string): StoredSignIn {
  const endpoints = { tokenEndpoint: `${issuer}/token`, revocationEndpoint: `${issuer}/revoke` };
  const client = { client_id: "c", method: "none" } as const;
  const { name: server, url } = SERVER;
  const tokens = { accessToken: `access of ${issuer}`, since: Date.now() };
  return { server, url, issuer, ...endpoints, resource: url, client, scopes: [], ...tokens };
}

/** A store in which the user signs in again before the lock is free. */
class BusyStore extends FileTokenStore {
  override async withLock<T>(key: string, work: () => Promise<T>): Promise<T> {
    await this.write(key, signInAt("https://second.example"));
    return await super.withLock(key, work);
  }
}

Deno.test("endSignIn() revokes tokens only at the authorization server that issued them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "pml-sign-out-" });
  try {
    const urls: string[] = [];
    const host: SignInHost = {
      folder,
      log: NO_WARNINGS,
      fetch: (url) => Promise.resolve(new Response(null, { status: urls.push(`${url}`) && 200 })),
      register() {},
      refresh: () => Promise.resolve(),
    };
    const { signal } = new AbortController();
    const store = new BusyStore(folder, NO_WARNINGS);
    const options = { host, store, server: SERVER, signal };
    assert.equal(await endSignIn(signInAt("https://first.example"), options), "revoked");
    assert.deepEqual(urls, ["https://second.example/revoke"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
