import assert from "node:assert/strict";
import { NO_WARNINGS } from "../io/private_files.ts";
import { FileTokenStore, keepUser, usersOf } from "./token_store.ts";

Deno.test("keepUser() keeps the URLs of sign-ins that begin at the same time", async () => {
  const folder = await Deno.makeTempDir({ prefix: "pml-tokens-" });
  try {
    const stores = [1, 2].map(() => new FileTokenStore(folder, NO_WARNINGS));
    const [store] = stores;
    assert.ok(store);
    const of = {
      issuer: "https://id.example",
      client: { client_id: "c", method: "none" as const },
    };
    const urls = Array.from({ length: 6 }, (_, at) => `https://${at}.example/mcp`);
    await Promise.all(urls.map((url, at) => keepUser(stores[at % 2] ?? store, { ...of, url })));
    assert.deepEqual([...usersOf(store, of)].sort(), urls);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
