import assert from "node:assert/strict";
import { serverDouble } from "../_server_double_test.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import { Catalog } from "../../search/catalog.ts";
import { Lists } from "./lists.ts";

/** Returns lists with one server whose connections cache its lists, and the recorded events. */
function makeLists() {
  const catalog = new Catalog();
  const messages: string[] = [];
  const asked: ListName[] = [];
  const cached = new Map<ListName, readonly ListItem[]>();
  let count = 0;
  const answer = (list: ListName): readonly ListItem[] => {
    asked.push(list);
    return [{ name: "t", uri: "x:y", description: `${++count}`, inputSchema: {} }];
  };
  const server = serverDouble("s", {
    reportsChanges: true,
    list: (list) => {
      const items = cached.get(list) ?? answer(list);
      cached.set(list, items);
      return Promise.resolve(items);
    },
    forget: (lists) => {
      for (const list of lists ?? [...cached.keys()]) cached.delete(list);
    },
  });
  const onChange = (list: ListName) => void messages.push(list);
  const lists = new Lists({ catalog, waitMs: () => 1_000, onChange });
  lists.replace([server]);
  const texts = (list: ListName) =>
    lists.itemsOf(list).flatMap(({ items }) => items.map(({ description }) => description));
  return { lists, told: messages, asked, texts };
}

Deno.test("expire() drops cached lists, and clients see the earlier ones until the server answered", async () => {
  const { lists, told, asked, texts } = makeLists();
  using _ = lists;
  await lists.prepare();
  assert.ok(lists.isLoaded("s"));
  lists.expire("s");
  await lists.prepare();
  assert.deepEqual([asked, texts("tools")], [["tools"], ["1"]], "a list does not wait");
  assert.ok(!lists.isLoaded("s"), "a call does");
  await lists.renew("s");
  assert.deepEqual([asked, texts("tools"), told], [["tools", "tools"], ["2"], ["tools"]]);
  assert.ok(lists.isLoaded("s"));
});

Deno.test("prepare() also loads the list of a server whose definition changed meanwhile", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<readonly ListItem[]>();
  const items = [{ name: "t", inputSchema: {} }];
  const old = () => {
    asked.resolve();
    return answer.promise;
  };
  using lists = new Lists({ catalog: new Catalog(), waitMs: () => 1_000, onChange: () => {} });
  lists.replace([serverDouble("s", { list: old })]);
  const prepared = lists.prepare();
  await asked.promise;
  lists.replace([serverDouble("s", { list: () => Promise.resolve(items) })]);
  answer.resolve([]);
  await prepared;
  assert.deepEqual(lists.itemsOf("tools"), [{ server: "s", items }]);
});

Deno.test("changed() drops nothing that the connections of a server cached", async () => {
  const { lists, asked, texts } = makeLists();
  using _ = lists;
  await lists.prepare();
  lists.noteChange("s", "tools");
  assert.ok(!lists.isLoaded("s"));
  await lists.renew("s");
  assert.deepEqual([asked, texts("tools")], [["tools"], ["1"]]);
});

Deno.test("forget() makes the next use request each list, without a notification before", async () => {
  const { lists, told, asked, texts } = makeLists();
  using _ = lists;
  await lists.prepare();
  await lists.prepare("resources");
  lists.forget("other");
  await lists.prepare();
  assert.deepEqual(asked, ["tools", "resources"]);
  lists.forget();
  assert.deepEqual(told, []);
  await lists.prepare();
  assert.deepEqual([asked.slice(2), texts("tools")], [["tools"], ["3"]]);
});

Deno.test("a client with other capabilities has each list requested for itself", async () => {
  const { lists, asked } = makeLists();
  using _ = lists;
  await lists.prepare();
  lists.setCapabilities({ roots: {} });
  assert.ok(!lists.isLoaded("s"));
  lists.forget();
  await lists.prepare();
  lists.setCapabilities({ roots: {} });
  await lists.prepare();
  assert.deepEqual(asked, ["tools", "tools"]);
});

Deno.test("renew() uses the answer to the last request if an earlier request is answered meanwhile", async () => {
  const answers: PromiseWithResolvers<readonly ListItem[]>[] = [];
  const server = serverDouble("s", {
    reportsChanges: true,
    list: () => {
      const answer = Promise.withResolvers<readonly ListItem[]>();
      answers.push(answer);
      return answer.promise;
    },
  });
  using lists = new Lists({ catalog: new Catalog(), waitMs: () => 1_000, onChange: () => {} });
  lists.replace([server]);
  const answer = async (at: number) => {
    while (answers[at] === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    answers[at].resolve([{ name: "t", description: `${at}`, inputSchema: {} }]);
  };
  const loading = lists.load("s");
  await answer(0);
  await loading;
  lists.noteChange("s", "tools");
  const first = lists.renew("s");
  lists.noteChange("s", "tools");
  const second = lists.renew("s");
  await answer(1);
  await first;
  await answer(2);
  await second;
  const [{ items } = { items: [] }] = lists.itemsOf("tools");
  assert.deepEqual(items.map(({ description }) => description), ["2"]);
  assert.ok(lists.isLoaded("s"));
});
