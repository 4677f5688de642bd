import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeCloud } from "../../../tests/kit/fake_cloud.ts";
import type { Fetch } from "../../core/fetch.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { HubRouting } from "./hub_routing.ts";

const LIST = {
  version: 1,
  default: "local",
  local: ["memory"],
  cloud: ["newcomer", "other:*", "pml:*"],
};

Deno.test("HubRouting stores the list of one hub, and requests it again when it is old", async () => {
  await using hub = new FakeCloud(({ path }) =>
    path === "/mcp/routing" ? Response.json(LIST) : undefined
  );
  await using scene = await makeScene(hub);
  const routing = scene.routing();
  assert.ok(!routing.has("newcomer"));
  await Promise.all([routing.refresh(), routing.refresh()]);
  for (const name of ["newcomer", "other"]) assert.ok(routing.has(name), name);
  for (const name of ["memory", "pml", "filesystem", "__proto__"]) {
    assert.ok(!routing.has(name), name);
  }
  await routing.refresh();
  assert.equal(hub.received.length, 1);
  assert.equal(hub.received[0]?.headers.authorization, undefined);
  assert.equal((await stat(scene.file)).mode & 0o077, 0);
  assert.ok(scene.routing().has("newcomer"), "the next process knows it");

  const kept = JSON.parse(await readFile(scene.file, "utf8"));
  await writeFile(scene.file, JSON.stringify({ ...kept, at: 1 }));
  const old = scene.routing();
  assert.ok(old.has("newcomer"));
  await old.refresh();
  assert.equal(hub.received.length, 2);
  await writeFile(scene.file, JSON.stringify({ ...kept, url: "https://elsewhere.example.com" }));
  assert.ok(!scene.routing().has("newcomer"), "another hub said so");
  assert.deepEqual(scene.warned, []);
});

Deno.test("HubRouting ignores a broken list with a warning, and keeps the earlier one", async () => {
  await using hub = new FakeCloud();
  await using scene = await makeScene(hub);
  const good = { url: hub.url, at: 1, cloud: ["known"] };
  const answers = [
    () => new Response("nonsense"),
    () => Response.json([]),
    () => Response.json({ cloud: "all" }),
    () => Response.json({ cloud: [{}] }),
    () => Response.json({ cloud: Array.from({ length: 6_000 }, (_, at) => `a${at}`) }),
    () => Response.json({ cloud: ["x".repeat(300_000)] }),
    () => new Response("no", { status: 500 }),
    () => new Response(null, { status: 302, headers: { location: "/mcp/routing" } }),
  ];
  for (const [at, answer] of answers.entries()) {
    await writeFile(scene.file, JSON.stringify(good));
    hub.script = answer;
    const routing = scene.routing();
    await routing.refresh();
    assert.ok(routing.has("known"));
    assert.equal(scene.warned.length, at + 1, scene.warned.at(-1));
    assert.match(scene.warned.at(-1) ?? "", /^Cannot use .* of the hub: \w/);
    // It is requested again after some time, and not with every call.
    await routing.refresh();
    assert.equal(hub.received.length, at + 1);
    assert.deepEqual(JSON.parse(await readFile(scene.file, "utf8")), good);
  }
  for (const broken of ["", "{", "[]", '{"cloud": [1]}', '{"cloud": null}']) {
    await writeFile(scene.file, broken);
    assert.ok(!scene.routing().has("known"), broken);
  }
});

Deno.test("the hub's list is requested with the key of the account only from a hub that the user named", async () => {
  await using hub = new FakeCloud();
  await using scene = await makeScene(hub);
  const sent: unknown[] = [];
  const fetch: Fetch = (_, { headers }) => {
    sent.push(new Headers(headers).get("authorization"));
    return Promise.resolve(Response.json({ cloud: [] }));
  };
  for (const isNamed of [true, false]) {
    await rm(scene.file, { force: true });
    await scene.routing({ isNamed, key: "account-key-0123456789", fetch }).refresh();
  }
  assert.deepEqual(sent, ["Bearer account-key-0123456789", null]);
});

interface Routed {
  readonly isNamed?: boolean;
  readonly key?: string;
  readonly fetch?: Fetch;
}

async function makeScene(hub: FakeCloud) {
  const folder = await mkdtemp(join(tmpdir(), "pml-routing-"));
  const network = new GuardedFetch();
  const file = join(folder, "hub_routing.json");
  const warned: string[] = [];
  return {
    file,
    warned,
    routing: ({ isNamed = true, key, fetch = network.fetch }: Routed = {}) =>
      new HubRouting(
        { home: folder, fetch, hubAddress: { url: hub.url, isNamed } },
        { cloud: () => key === undefined ? undefined : { value: key, from: ".env" } },
        { warn: (message) => void warned.push(message) },
      ),
    [Symbol.asyncDispose]: async () => {
      network[Symbol.dispose]();
      await rm(folder, { recursive: true });
    },
  };
}
