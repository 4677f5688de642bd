import assert from "node:assert/strict";
import { Clients } from "./_clients.ts";
import type { ClientPeer } from "../protocol/connection.ts";

Deno.test("Clients notifies followers of other spellings and of parts of a resource", () => {
  const clients = new Clients((error) => assert.fail(error));
  const told: unknown[] = [];
  const peer = {
    notification: ({ params }: { readonly params: { readonly uri: string } }) => {
      told.push(params.uri);
      return Promise.resolve();
    },
  } as unknown as ClientPeer;
  const client = clients.add(peer, false);
  client.followed.set("pml://s/test://a", { server: "s", name: "test://a" });
  client.followed.set("http://Host/x/../b", { server: "s", name: "http://Host/x/../b" });
  const updated = (name: string, server = "s") => {
    told.length = 0;
    clients.notifyUpdated({ server, name });
    return told;
  };
  assert.deepEqual(updated("test://a"), ["pml://s/test://a"]);
  assert.deepEqual(updated("test://a/part"), ["pml://s/test://a/part"]);
  assert.deepEqual(updated("test://a#1"), ["pml://s/test://a#1"]);
  assert.deepEqual(updated("test://ab"), []);
  assert.deepEqual(updated("test://a", "other"), []);
  assert.deepEqual(updated("http://host/b"), ["http://Host/x/../b"]);
  assert.deepEqual(updated("http://host/b?c"), ["http://host/b?c"]);
});
