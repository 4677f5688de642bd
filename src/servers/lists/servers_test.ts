import assert from "node:assert/strict";
import { PmlError } from "../../core/errors.ts";
import { type ListItem, withInstructions } from "../../protocol/lists.ts";
import { serverDouble } from "../_server_double_test.ts";
import { yieldTurn } from "../../io/waiting.ts";
import type { Server } from "../server.ts";
import { toolId } from "../../core/tool_id.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Policy } from "../../policy/policy.ts";
import { Catalog } from "../../search/catalog.ts";
import { Servers } from "./servers.ts";
import { instructions, serverLine } from "../../gateway/instructions.ts";

const TOOLS: readonly ToolDefinition[] = [{ name: "t", inputSchema: { type: "object" } }];

function source(name: string, change: Partial<Server> = {}): Server {
  return serverDouble(name, { kind: "deno", list: () => Promise.resolve(TOOLS), ...change });
}

Deno.test("Servers lists working servers although another fails or hangs", async () => {
  const catalog = new Catalog();
  const servers = new Servers({ catalog, waitMs: () => 1_000, onChange: () => {} });
  servers.lists.replace([
    source("good"),
    source("bad", { list: () => Promise.reject(new PmlError("UPSTREAM_DOWN", "Cannot load")) }),
    source("hung", { list: () => new Promise(() => {}) }),
    source("shut", { whyBlocked: () => "not trusted", list: () => assert.fail("it was asked") }),
  ]);
  await servers.lists.prepare();
  assert.deepEqual(catalog.list().map(({ id }) => id), ["good:t"]);
  assert.deepEqual(servers.states().map(({ name, state, why }) => [name, state, why]), [
    ["bad", "failed", "Cannot load"],
    ["good", "ready", undefined],
    ["hung", "unknown", undefined],
    ["shut", "blocked", "not trusted"],
  ]);
});

Deno.test("Servers waits once for a server that hangs, and reports its list when it arrives", async () => {
  const catalog = new Catalog();
  const late = Promise.withResolvers<readonly ToolDefinition[]>();
  const told = Promise.withResolvers<void>();
  const servers = new Servers({ catalog, waitMs: () => 1_500, onChange: () => told.resolve() });
  servers.lists.replace([source("hung", { list: () => late.promise })]);
  const waited = async () => {
    const since = performance.now();
    await servers.lists.prepare();
    return performance.now() - since;
  };
  assert.ok(await waited() >= 1_490);
  assert.ok(await waited() < 1_400, "a second list waited, too");
  late.resolve(TOOLS);
  await told.promise;
  assert.deepEqual(catalog.list().map(({ id }) => id), ["hung:t"]);
});

Deno.test("Servers waits a short time for a server that did not start in time before", async () => {
  const catalog = new Catalog();
  const servers = new Servers({ catalog, waitMs: () => 600_000, onChange: () => {} });
  const lateStart = () => Promise.resolve(new PmlError("TIMED_OUT", "Cannot start"));
  const list = Promise.withResolvers<readonly ToolDefinition[]>();
  servers.lists.replace([
    source("hung", { lateStartError: lateStart, list: () => list.promise }),
    source("good", { lateStartError: lateStart }),
  ]);
  await servers.lists.prepare("tools", { waitsForAll: true });
  const states = () => servers.states().map(({ name, state, why }) => [name, state, why]);
  assert.deepEqual(states(), [["good", "ready", undefined], ["hung", "failed", "Cannot start"]]);
  list.resolve(TOOLS);
  await servers.lists.load("hung");
  assert.deepEqual(states(), [["good", "ready", undefined], ["hung", "ready", undefined]]);
});

Deno.test("definition() returns a definition, or throws the server's error, or UNKNOWN_TOOL", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  servers.lists.replace([
    source("good"),
    source("bad", { list: () => Promise.reject(new PmlError("UPSTREAM_DOWN", "Cannot load")) }),
    source("shut", { whyBlocked: () => "not trusted", list: () => assert.fail("it was asked") }),
  ]);
  assert.equal((await servers.definition(toolId("good", "t"))).name, "t");
  const codes: readonly (readonly [string, string, string])[] = [
    ["good", "x", "UNKNOWN_TOOL"],
    ["none", "x", "UNKNOWN_TOOL"],
    ["bad", "x", "UPSTREAM_DOWN"],
    ["shut", "t", "APPROVAL_REQUIRED"],
  ];
  for (const [server, tool, code] of codes) {
    await assert.rejects(
      async () => await servers.definition(toolId(server, tool)),
      (error) => error instanceof PmlError && error.code === code,
    );
  }
});

Deno.test("definition() loads the tools of a server whose definition changed meanwhile", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<readonly ToolDefinition[]>();
  const list = () => {
    asked.resolve();
    return answer.promise;
  };
  servers.lists.replace([source("one", { definition: {}, list })]);
  const definition = servers.definition(toolId("one", "t"));
  await asked.promise;
  servers.lists.replace([source("one", { definition: {} })]);
  answer.resolve(TOOLS);
  assert.equal((await definition).name, "t");
});

Deno.test("definition() waits for a changed list that another call is loading", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  let list = Promise.resolve(TOOLS);
  servers.lists.replace([source("one", { reportsChanges: true, list: () => list })]);
  await servers.definition(toolId("one", "t"));
  const changed = Promise.withResolvers<readonly ToolDefinition[]>();
  list = changed.promise;
  servers.lists.noteChange("one", "tools");
  const both = [1, 2].map(() => servers.definition(toolId("one", "t")));
  changed.resolve([{ name: "t", description: "new", inputSchema: { type: "object" } }]);
  assert.deepEqual((await Promise.all(both)).map(({ description }) => description), ["new", "new"]);
  servers[Symbol.dispose]();
});

Deno.test("Servers forgets the tools of a configuration that was replaced", async () => {
  const catalog = new Catalog();
  const servers = new Servers({ catalog, waitMs: () => 20, onChange: () => {} });
  servers.lists.replace([source("one")]);
  await servers.lists.prepare();
  servers.lists.replace([source("two")]);
  await servers.lists.prepare();
  assert.deepEqual(catalog.list().map(({ id }) => id), ["two:t"]);
});

Deno.test("states() names the tools that the catalog rejected", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  const twice = [...TOOLS, ...TOOLS];
  servers.lists.replace([source("twin", { list: () => Promise.resolve(twice) })]);
  await servers.lists.prepare();
  const [state] = servers.states();
  assert.equal(state?.tools, 1);
  assert.match(state?.why ?? "", /^left out "t": /);
});

Deno.test("instructionsIn() leaves out servers that are denied or may not run", async () => {
  let [denied, blocked, toolset] = ["", false, false];
  const judge = (id: string) =>
    id === denied ? { kind: "deny", rule: id, source: "test" } : { kind: "ask" };
  const policy = { now: { judge } } as unknown as Pick<
    Policy,
    "fileThatDisables" | "whyForbidden" | "now"
  >;
  const servers = new Servers({
    catalog: new Catalog(),
    waitMs: () => 20,
    onChange: () => {},
    policy,
  });
  const tools = withInstructions(TOOLS as unknown as ListItem[], "Call t first");
  servers.lists.replace([
    source("s", {
      list: () => Promise.resolve(tools),
      whyBlocked: () => blocked ? "not trusted" : undefined,
    }),
  ]);
  await servers.lists.prepare();
  const shown = () => {
    const toolsetFor = toolset ? () => undefined : undefined;
    return [...servers.instructionsIn({ exposure: "full_proxy", toolsetFor }).values()];
  };
  assert.deepEqual(shown(), ["Call t first"]);
  assert.equal(servers.instructionsIn({ exposure: "meta_only", toolsetFor: undefined }).size, 0);
  for (denied of ["s:t", "s:@tools"]) assert.deepEqual(shown(), [], denied);
  denied = "";
  blocked = true;
  assert.deepEqual(shown(), []);
  blocked = false;
  toolset = true;
  assert.deepEqual(shown(), []);
});

Deno.test("instructions() have at most 2,000 characters and the line short with any number of servers", () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  const sources = Array.from({ length: 500 }, (_, at) => source(`server-${at}`));
  servers.lists.replace(sources);
  assert.ok(instructions(servers.states()).length <= 2_000);
  assert.ok(serverLine(servers.states()).length < 160);
  assert.match(serverLine(servers.states()), /and \d+ more$/);
});

Deno.test("the list of a server that notifies is requested once, and its tools are refused while it is blocked", async () => {
  const servers = new Servers({ catalog: new Catalog(), waitMs: () => 20, onChange: () => {} });
  let [asked, why]: [number, string | undefined] = [0, undefined];
  const list = () => (asked++, Promise.resolve(TOOLS));
  servers.lists.replace([
    source("tells", { list, reportsChanges: true, whyBlocked: () => why }),
    source("not"),
  ]);
  for (const _ of [1, 2, 3]) await servers.definition(toolId("tells", "t"));
  assert.equal(asked, 1);
  why = "not trusted";
  await assert.rejects(async () => await servers.definition(toolId("tells", "t")), {
    code: "APPROVAL_REQUIRED",
  });
});

Deno.test("replace() keeps the lists of an unchanged server, and drops those of others", async () => {
  const catalog = new Catalog();
  const servers = new Servers({ catalog, waitMs: () => 20, onChange: () => {} });
  const loads: string[] = [];
  const of = (name: string, definition: object) =>
    source(name, {
      definition,
      list: () => {
        loads.push(name);
        return Promise.resolve(TOOLS);
      },
    });
  const same = {};
  servers.lists.replace([of("a", same), of("b", {}), of("gone", {})]);
  await servers.lists.prepare();
  servers.lists.replace([of("a", same), of("b", {}), of("c", {})]);
  assert.deepEqual(catalog.list().map(({ id }) => id), ["a:t"]);
  await servers.lists.prepare();
  assert.deepEqual(catalog.list().map(({ id }) => id), ["a:t", "b:t", "c:t"]);
  assert.deepEqual(loads.sort(), ["a", "b", "b", "c", "gone"]);
});

Deno.test("Servers reports a list only if it differs from the list that clients may have", async () => {
  let told = 0;
  const servers = new Servers({
    catalog: new Catalog(),
    waitMs: () => 500,
    onChange: () => told++,
  });
  let tools: readonly ToolDefinition[] | undefined;
  const list = () =>
    tools === undefined ? Promise.reject(new Error("away")) : Promise.resolve(tools);
  servers.lists.replace([source("first"), source("ill", { list }), source("late", { list })]);
  await servers.definition(toolId("first", "t"));
  await servers.lists.prepare();
  await assert.rejects(async () => await servers.definition(toolId("ill", "t")));
  assert.equal(told, 0, "nothing of what is there now was missing before");
  tools = TOOLS;
  await servers.definition(toolId("ill", "t"));
  assert.equal(told, 1, "one that failed is well again");
  await servers.lists.prepare();
  assert.equal(told, 2, "so is the other, which a search asked for");
  await servers.lists.prepare();
  tools = [{ name: "t", description: "edited", inputSchema: {} }];
  await servers.definition(toolId("ill", "t"));
  await servers.definition(toolId("ill", "t"));
  assert.equal(told, 3, "it has other tools now");
});

Deno.test("prepare() at once uses the list that was made for another client, and then reports the new one", async () => {
  const changes: string[] = [];
  const onChange = (list: string) => void changes.push(list);
  using servers = new Servers({ catalog: new Catalog(), waitMs: () => 1_000, onChange });
  const own = Promise.withResolvers<readonly ToolDefinition[]>();
  servers.lists.replace([source("s", {
    hasList: () => Promise.resolve(false),
    readEarlierList: async () => {
      await yieldTurn();
      return TOOLS;
    },
    reportsChanges: true,
    list: () => own.promise,
  })]);
  await servers.lists.prepare("prompts", { onlyCached: true });
  assert.deepEqual(servers.lists.itemsOf("prompts").map(({ items }) => items), [TOOLS]);
  own.resolve([]);
  await servers.lists.allLoaded(60_000);
  assert.deepEqual(changes, ["prompts"]);
});

Deno.test("prepare() at once waits for cached lists only, and reports the others unless they are empty", async () => {
  const changes: string[] = [];
  const onChange = (list: string) => void changes.push(list);
  using servers = new Servers({ catalog: new Catalog(), waitMs: () => 1_000, onChange });
  const late = Promise.withResolvers<readonly ToolDefinition[]>();
  const empty = Promise.withResolvers<readonly ToolDefinition[]>();
  const hasList = () => Promise.resolve(false);
  servers.lists.replace([
    source("cached", { hasList: () => Promise.resolve(true) }),
    source("empty", { hasList, reportsChanges: true, list: () => empty.promise }),
    source("late", { hasList, reportsChanges: true, list: () => late.promise }),
    source("module"),
  ]);
  await servers.lists.prepare("prompts", { onlyCached: true });
  const names = () => servers.lists.itemsOf("prompts").map(({ server }) => server);
  assert.deepEqual(names(), ["cached", "module"]);
  assert.ok(!servers.lists.isComplete("prompts") && servers.lists.isComplete("resources"));
  const all = servers.lists.allLoaded(60_000);
  // A server that was asked long ago may hang, and is not waited for.
  await servers.lists.allLoaded(0);
  empty.resolve([]);
  late.resolve(TOOLS);
  await all;
  assert.deepEqual(changes, ["prompts"]);
  assert.deepEqual(names(), ["cached", "empty", "late", "module"]);
  assert.ok(servers.lists.isComplete("prompts"));
});
