import assert from "node:assert/strict";
import { serverDouble } from "../servers/_server_double_test.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { PmlError } from "../core/errors.ts";
import { Catalog } from "../search/catalog.ts";
import { Offers } from "./_offers.ts";
import { RenderedLists } from "./rendered_lists.ts";
import { Servers } from "../servers/lists/servers.ts";

const ALLOWED = () => ({ kind: "allow", rule: "", source: "" }) as const;

type Lists = Partial<Record<ListName, readonly ListItem[]>>;

function offersOf(servers: Readonly<Record<string, Lists>>): Offers {
  const all = new Servers({ catalog: new Catalog(), waitMs: () => 100, onChange: () => {} });
  all.lists.replace(
    Object.entries(servers).map(([name, lists]) =>
      serverDouble(name, { list: (list) => Promise.resolve(lists[list] ?? []) })
    ),
  );
  return new Offers({ servers: all, settings: () => ({ prefix: true }) }, new RenderedLists());
}

const A = [{ uri: "test://a" }];

Deno.test("resource() finds the only server that lists or links a URI (RG12)", async () => {
  const offers = offersOf({ good: { resources: A }, evil: { resources: [{ uri: "test://b" }] } });
  assert.deepEqual(await offers.findResource("test://a"), { server: "good", name: "test://a" });
  offers.recordLinks("evil", [{ type: "resource_link", uri: "test://a" }]);
  await assert.rejects(offers.findResource("test://a"), /several servers have it/);
  offers.recordLinks("good", [{ type: "resource_link", uri: "test://b" }]);
  await assert.rejects(offers.findResource("test://b"), /several servers have it/);
  const own = await offers.findResource("pml://good/test://b");
  assert.deepEqual(own, { server: "good", name: "test://b" });
});

Deno.test("resource() refuses a URI that several servers list, or several link", async () => {
  const listed = offersOf({ good: { resources: A }, evil: { resources: A } });
  await assert.rejects(listed.findResource("test://a"), /several servers have it/);
  const linked = offersOf({ good: {}, evil: {} });
  for (const server of ["good", "evil"]) {
    linked.recordLinks(server, [{ type: "resource", resource: { uri: "ui://page" } }]);
  }
  await assert.rejects(linked.findResource("ui://page"), /several servers have it/);
});

Deno.test("resource() refuses URIs in the name of PML or of a server that does not exist", async () => {
  const resources = [{ uri: "pml://servers" }, { uri: "pml://x/y" }];
  const offers = offersOf({ evil: { resources } });
  for (const uri of ["pml://x/y", "pml:x", "pml://nobody/test://a"]) {
    await assert.rejects(offers.findResource(uri), /Cannot find the resource/);
  }
  const own = await offers.list("resources", ALLOWED);
  assert.deepEqual(own.map(({ uri }) => uri), [
    "pml://servers",
    "pml://metrics",
    "pml://evil/pml://servers",
    "pml://evil/pml://x/y",
  ]);
});

Deno.test("resource() finds the only server with a template that covers an address", async () => {
  const resourceTemplates = [{ uriTemplate: "test://{name}" }];
  const offers = offersOf({ good: { resourceTemplates }, other: { resources: A } });
  assert.deepEqual(await offers.findResource("test://b"), { server: "good", name: "test://b" });
  // A listed address belongs to the server that listed it.
  assert.deepEqual(await offers.findResource("test://a"), { server: "other", name: "test://a" });
  await assert.rejects(offers.findResource("test://b/c"), /Cannot find the resource/);
  const two = offersOf({ one: { resourceTemplates }, two: { resourceTemplates } });
  await assert.rejects(two.findResource("test://b"), /several servers have it/);
  await assert.rejects(two.findResource("pml:x"), /Cannot find the resource/);
});

Deno.test("resource() finds the page that a tool names for its results", async () => {
  const meta = { ui: { resourceUri: "ui://view" } };
  const tools = [{ name: "t", inputSchema: {}, _meta: meta }];
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 100, onChange: () => {} });
  const list = (name: ListName) => Promise.resolve(name === "tools" ? tools : []);
  servers.lists.replace([serverDouble("app", { list })]);
  const offers = new Offers({ servers, settings: () => ({ prefix: true }) }, new RenderedLists());
  await servers.lists.prepare();
  assert.deepEqual(await offers.findResource("ui://view"), { server: "app", name: "ui://view" });
});

Deno.test("two servers with the same page are listed and read by different addresses", async () => {
  const page = { uri: "ui://time/app.html" };
  const resourceTemplates = [{ uriTemplate: "ui://time/{id}" }];
  const offers = offersOf({
    a: { resources: [page], resourceTemplates },
    b: { resources: [page] },
  });
  const uris = (await offers.list("resources", ALLOWED)).map(({ uri }) => uri);
  assert.deepEqual(uris.slice(2), ["ui://a/time/app.html", "ui://b/time/app.html"]);
  const [template] = (await offers.list("resourceTemplates", ALLOWED)).slice(-1);
  assert.equal(template?.uriTemplate, "ui://a/time/{id}");
  for (const server of ["a", "b"]) {
    const place = { server, name: page.uri };
    assert.deepEqual(await offers.findResource(`ui://${server}/time/app.html`), place);
    assert.deepEqual(await offers.findResource(`pml://${server}/ui://time/app.html`), place);
  }
  await assert.rejects(offers.findResource(page.uri), (error: PmlError) => {
    assert.match(error.hint ?? "", /"ui:\/\/a\/time\/app.html" or "ui:\/\/b\/time/);
    return true;
  });
});

Deno.test("the own address of a page leads to its server, also if it begins like another server", async () => {
  const own = { uri: "ui://map/app.html" };
  const offers = offersOf({ map: { resources: [{ uri: "ui://x" }] }, other: { resources: [own] } });
  assert.deepEqual(await offers.findResource(own.uri), { server: "other", name: own.uri });
  assert.deepEqual(await offers.findResource("ui://map/x"), { server: "map", name: "ui://x" });
  // No server listed it, so that reading it asks the user.
  const unlisted = { server: "map", name: "ui://y" };
  assert.deepEqual(await offers.findResource("ui://map/y"), unlisted);
  assert.equal(await offers.isOffered(unlisted), false);
  await assert.rejects(offers.findResource("ui://nobody/x"), /Cannot find the resource/);
});

Deno.test("prompts are listed with the name of their server, and found by that name", async () => {
  const odd = "a prompt: with odd characters";
  const offers = offersOf({
    one: { prompts: [{ name: "greet" }, { name: odd }] },
    two: { prompts: [{ name: "greet" }] },
  });
  const names = (await offers.list("prompts", ALLOWED)).map(({ name }) => String(name));
  assert.deepEqual([names[0], names[2]], ["one__greet", "two__greet"]);
  const places = await Promise.all(names.map((name) => offers.findPrompt(name)));
  assert.deepEqual(places, [
    { server: "one", name: "greet" },
    { server: "one", name: odd },
    { server: "two", name: "greet" },
  ]);
  assert.deepEqual(await offers.findPrompt("one__later"), { server: "one", name: "later" });
  await assert.rejects(offers.findPrompt("three__greet"), /Cannot find the prompt/);
});

Deno.test("list() returns the same items until a list or the naming changes", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 100, onChange: () => {} });
  using _ = servers;
  let [resources, prefix] = [A, true];
  const named = (name: string) => serverDouble(name, { list: () => Promise.resolve(resources) });
  servers.lists.replace([named("one"), named("two")]);
  const offers = new Offers({ servers, settings: () => ({ prefix }) }, new RenderedLists());
  const list = async () => (await offers.list("resources", ALLOWED)).slice(-2);
  const first = await list();
  assert.deepEqual(first.map(({ uri }) => uri), ["pml://one/test://a", "pml://two/test://a"]);
  for (const [at, item] of (await list()).entries()) assert.equal(item, first[at]);
  prefix = false;
  assert.deepEqual((await list()).map(({ uri }) => uri), ["test://a", "test://a"]);
  prefix = true;
  resources = [{ uri: "test://b" }];
  servers.lists.replace([named("one"), named("two")]);
  assert.deepEqual((await list()).map(({ uri }) => uri), [
    "pml://one/test://b",
    "pml://two/test://b",
  ]);
});
