import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseExact } from "../../core/exact_json.ts";
import type { ListItem } from "../../protocol/lists.ts";
import { ServerLists } from "./_server_lists.ts";

const OWNER = { name: "one", definition: { command: "x" }, hasFiles: true };
const TOOLS: readonly ListItem[] = [{ name: "t", inputSchema: { type: "object" }, "x/kept": 1 }];

async function inHome(work: (home: string) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "pml-lists-"));
  try {
    await work(home);
  } finally {
    await rm(home, { recursive: true });
  }
}

const never = () => assert.fail("the server was asked");
const lost = (error: unknown) => assert.fail(`it was not kept: ${error}`);

function facts(set: number) {
  return { workspace: "/ws", capabilities: { set } };
}

Deno.test("ServerLists loads a list once, and another process reads it from the file", async () => {
  await inHome(async (home) => {
    const lists = new ServerLists(home, lost);
    let asked = 0;
    const ask = () => (asked++, Promise.resolve(TOOLS));
    const all = await Promise.all([1, 2, 3].map(() => lists.get(OWNER, "tools", ask)));
    assert.equal(asked, 1);
    assert.ok(all.every((list) => list === all[0]));
    const other = new ServerLists(home, lost);
    assert.deepEqual(await other.get(OWNER, "tools", never), TOOLS);
    for (const one of [lists, other]) {
      assert.deepEqual(one.takeOld(OWNER), []);
      one.markOld(OWNER);
      assert.deepEqual(one.takeOld(OWNER), ["tools"]);
      assert.deepEqual(one.takeOld(OWNER), [], "told once");
    }
  });
});

Deno.test("ServerLists marks the lists of all sets of capabilities as old when their server is started", async () => {
  await inHome(async (home) => {
    const ask = () => Promise.resolve(TOOLS);
    const before = new ServerLists(home, lost);
    const sets = [1, 2, 3];
    for (const set of sets) await before.get(before.keyOf(OWNER, facts(set)), "prompts", ask);
    const lists = new ServerLists(home, lost);
    const server = { ...OWNER };
    // One is used before the start, and the others after it.
    assert.deepEqual(await lists.get(lists.keyOf(server, facts(1)), "prompts", never), TOOLS);
    assert.deepEqual(lists.takeOld(lists.keyOf(server, facts(1))), []);
    lists.markOld(lists.keyOf(server, facts(2)));
    for (const set of sets) {
      const listKey = lists.keyOf(server, facts(set));
      assert.deepEqual(await lists.get(listKey, "prompts", never), TOOLS);
      assert.deepEqual(lists.takeOld(listKey), ["prompts"], `set ${set}`);
      assert.deepEqual(lists.takeOld(listKey), [], `set ${set}, once`);
    }
  });
});

Deno.test("ServerLists keeps the text of numbers in its files", async () => {
  await inHome(async (home) => {
    const text = '[{"name":"t","inputSchema":{"default":725653563933458432,"minimum":0.0}}]';
    const tools = () => Promise.resolve(parseExact(text));
    const lists = new ServerLists(home, lost);
    await lists.get(lists.keyOf(OWNER, facts(1)), "tools", tools);
    const other = new ServerLists(home, lost);
    const server = { ...OWNER };
    const kept = await other.get(other.keyOf(server, facts(1)), "tools", never);
    const earlier = other.earlierList(other.keyOf(server, facts(2)), "tools");
    assert.deepEqual([kept, earlier].map((one) => JSON.stringify(one)), [text, text]);
  });
});

Deno.test("ServerLists returns the list that another set of capabilities had last, also in another process", async () => {
  await inHome(async (home) => {
    const lists = new ServerLists(home, lost);
    const [first, second] = [1, 2].map((set) => lists.keyOf(OWNER, facts(set)));
    assert.ok(first !== undefined && second !== undefined);
    assert.equal(lists.earlierList(second, "tools"), undefined);
    await lists.get(first, "tools", () => Promise.resolve(TOOLS));
    const other = new ServerLists(home, lost);
    const server = { ...OWNER };
    for (
      const [all, listKey] of [[lists, second], [other, other.keyOf(server, facts(3))]] as const
    ) {
      assert.deepEqual(all.earlierList(listKey, "tools"), TOOLS);
      assert.equal(all.has(listKey, "tools"), false, "it is loaded for this set");
    }
    const elsewhere = { ...facts(3), workspace: "/other" };
    assert.equal(other.earlierList(other.keyOf(server, elsewhere), "tools"), undefined);
    assert.equal(lists.earlierList(first, "tools"), undefined, "its own list is cached");
    lists.forgetAll(OWNER, ["tools"]);
    assert.equal(other.earlierList(other.keyOf(server, facts(3)), "tools"), undefined);
  });
});

Deno.test("ServerLists uses no list of another definition, and no invalid list", async () => {
  await inHome(async (home) => {
    await new ServerLists(home, lost).get(OWNER, "tools", () => Promise.resolve(TOOLS));
    const changed = { ...OWNER, definition: { command: "y" } };
    const ask = () => Promise.resolve([]);
    assert.deepEqual(await new ServerLists(home, lost).get(changed, "tools", ask), []);
    for (const file of await readdir(join(home, "lists"))) {
      const path = join(home, "lists", file);
      const broken = (await readFile(path, "utf8")).replace('"name":"t"', '"name":7');
      await writeFile(path, broken);
    }
    assert.deepEqual(await new ServerLists(home, lost).get(OWNER, "tools", ask), []);
  });
});

Deno.test("ServerLists keeps no answer from before a change, and no error", async () => {
  await inHome(async (home) => {
    const lists = new ServerLists(home, lost);
    const { promise, resolve } = Promise.withResolvers<readonly ListItem[]>();
    const before = lists.get(OWNER, "tools", () => promise);
    await Promise.resolve();
    lists.forget(OWNER, "tools");
    resolve([]);
    assert.deepEqual(await before, []);
    assert.deepEqual(await lists.get(OWNER, "tools", () => Promise.resolve(TOOLS)), TOOLS);
    lists.forget(OWNER, "tools");
    await assert.rejects(
      lists.get(OWNER, "tools", () => Promise.reject(new Error("down"))),
      /down/,
    );
    assert.deepEqual(await lists.get(OWNER, "tools", () => Promise.resolve(TOOLS)), TOOLS);
  });
});

Deno.test("ServerLists returns a list that cannot be written", async () => {
  await inHome(async (home) => {
    await writeFile(join(home, "lists"), "no folder");
    const told: unknown[] = [];
    const lists = new ServerLists(home, (error) => told.push(error));
    assert.deepEqual(await lists.get(OWNER, "tools", () => Promise.resolve(TOOLS)), TOOLS);
    assert.equal(told.length, 1);
  });
});

Deno.test("ServerLists keeps the files of a server that were written last, and none of a set that went", async () => {
  await inHome(async (home) => {
    const ask = () => Promise.resolve(TOOLS);
    const files = async (name: string) =>
      (await readdir(join(home, "lists"))).filter((file) => file.startsWith(`${name}-`)).length;
    await new ServerLists(home, lost).get({ ...OWNER, name: "one-more" }, "tools", ask);
    for (let definition = 0; definition < 70; definition++) {
      await new ServerLists(home, lost).get({ ...OWNER, definition }, "tools", ask);
    }
    assert.deepEqual([await files("one-more"), await files("one")], [1, 65]);
    const lists = new ServerLists(home, lost);
    const server = { ...OWNER, name: "two" };
    const first = lists.keyOf(server, facts(0));
    for (let set = 0; set < 30; set++) {
      await lists.get(lists.keyOf(server, facts(set)), "tools", ask);
    }
    assert.equal(await files("two"), 8);
    assert.notEqual(lists.keyOf(server, facts(0)), first);
    const last = lists.keyOf(server, facts(29));
    assert.equal(await lists.get(last, "tools", never), TOOLS);
  });
});

Deno.test("ServerLists returns the earlier list of prompts after it cached the tools for a new client", async () => {
  await inHome(async (home) => {
    const lists = new ServerLists(home, lost);
    const [first, second] = [1, 2].map((set) => lists.keyOf(OWNER, facts(set)));
    assert.ok(first !== undefined && second !== undefined);
    await lists.get(first, "prompts", () => Promise.resolve(TOOLS));
    await lists.get(second, "tools", () => Promise.resolve(TOOLS));
    assert.deepEqual(lists.earlierList(second, "prompts"), TOOLS);
  });
});
