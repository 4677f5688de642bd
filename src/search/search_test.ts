import assert from "node:assert/strict";
import fc from "fast-check";
import { PmlError } from "../core/errors.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { catalogOf, SERVERS, tool } from "./_servers_fixture_test.ts";
import { Catalog } from "./catalog.ts";
import { Search, type SearchOptions } from "./search.ts";

async function idsFor(
  query: string | readonly string[],
  options?: SearchOptions,
  servers = SERVERS,
): Promise<string[]> {
  const search = new Search(catalogOf(servers));
  return (await search.search(query, options)).hits.map((hit) => hit.id);
}

Deno.test("search() returns the best match first", async () => {
  assert.equal((await idsFor("what will the weather be"))[0], "weather:forecast");
  assert.equal((await idsFor("opening issues"))[0], "github:create_issue");
  assert.equal((await idsFor("replace a file"))[0], "filesystem:write_file");
});

Deno.test("search() returns hits with tool and server, and a score of 1 for the best", async () => {
  const search = new Search(catalogOf(SERVERS));
  const { mode, hits } = await search.search("read file");
  assert.equal(mode, "lexical");
  assert.equal(hits[0]?.score, 1);
  assert.equal(hits[0]?.tool.description, SERVERS.filesystem?.read_file);
  assert.equal(hits[0]?.server.name, "filesystem");
  const scores = hits.map(({ score }) => score);
  assert.deepEqual(scores, scores.toSorted((a, b) => b - a));
});

Deno.test("search() finds offers of registries with a lower score, except servers that exist", async () => {
  const offers = new Catalog();
  const offer = (name: string, tools: readonly ToolDefinition[]) =>
    offers.set({ name, origin: "registry", description: "Tides of the sea", isOffer: true }, tools);
  offer("almanac", [tool(["forecast", "Tell tomorrow's weather of a city"])]);
  offer("weather", [tool(["forecast", "Tell tomorrow's weather of a city"])]);
  offer("harbour", [tool(["@tools", "Ships and tides of a harbour"])]);
  const search = new Search(catalogOf(SERVERS), {
    catalogs: () => [offers],
    isTaken: (server) => server in SERVERS,
  });
  const ids = async (query: string) => (await search.search(query)).hits.map((hit) => hit.id);
  assert.deepEqual(await ids("tomorrow's weather of a city"), [
    "weather:forecast",
    "almanac:forecast",
  ]);
  assert.deepEqual(await ids("ships in a harbour"), ["harbour:@tools"]);
  assert.deepEqual((await ids("almanac:forecast"))[0], "almanac:forecast");
  assert.deepEqual((await ids("weather__forecast"))[0], "weather:forecast");
  assert.equal((await search.search("weather")).hits[1]?.server.isOffer, true);
  offers.remove("almanac");
  assert.deepEqual(await ids("tomorrow's weather of a city"), ["weather:forecast"]);
  const rejected = catalogOf({ mine: { "@tools": "x" } });
  assert.deepEqual(rejected.list(), []);
});

Deno.test("search() finds nothing if no word matches", async () => {
  for (const query of ["quantum", "", "the of and", "\u0000\u001b[31m", "🦕", "?!"]) {
    assert.deepEqual(await idsFor(query), []);
  }
  assert.deepEqual(await idsFor([]), []);
  assert.deepEqual(await idsFor("read", {}, {}), []);
});

Deno.test("search() finds a tool by each of its names", async () => {
  for (
    const name of [
      "github:read_file",
      "github__read_file",
      "mcp__pml__github__read_file",
      " github:read_file ",
    ]
  ) {
    const search = new Search(catalogOf(SERVERS));
    const [first, second] = (await search.search(name)).hits;
    assert.deepEqual([first?.id, first?.score], ["github:read_file", 1]);
    assert.ok((second?.score ?? 0) <= 0.5);
  }
  assert.deepEqual((await idsFor("read_file")).slice(0, 2), [
    "filesystem:read_file",
    "github:read_file",
  ]);
  const long = "y".repeat(100);
  const search = new Search(catalogOf({ one: { [long]: "" } }));
  assert.equal((await search.search(`one:${long}`)).hits.length, 1);
});

Deno.test("search() finds no tool that is not allowed, by its words or its name", async () => {
  const allowed = (id: string) => !id.startsWith("github:");
  assert.deepEqual(await idsFor("read_file", { allowed }), [
    "filesystem:read_file",
    "filesystem:write_file",
  ]);
  assert.deepEqual(await idsFor("github:create_issue", { allowed }), []);
});

Deno.test("search() applies the options server and limit", async () => {
  assert.deepEqual(await idsFor("read a file", { server: "github" }), ["github:read_file"]);
  assert.equal((await idsFor("file", { limit: 2 })).length, 2);
  assert.equal((await idsFor("file", { limit: 0 })).length, 1);
});

Deno.test("search() limits one server to half of the hits while others match nearly as well", async () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`read_${i}`, "Read a file"]));
  const flooded = await idsFor("read a file", {}, {
    flood: many(50),
    other: many(3),
    third: many(2),
  });
  assert.equal(flooded.length, 10);
  assert.equal(flooded.filter((id) => id.startsWith("flood:")).length, 5);
  assert.equal((await idsFor("read a file", {}, { flood: many(50) })).length, 10);
});

Deno.test("search() takes up to eight queries and merges their hits", async () => {
  const ids = await idsFor(["weather", "create issue", "nothing like it"]);
  assert.deepEqual(ids.slice(0, 2).sort(), ["github:create_issue", "weather:forecast"]);
  assert.equal(new Set(ids).size, ids.length);
  await assert.rejects(() => idsFor(Array(9).fill("a")), code("BAD_ARGUMENTS"));
});

Deno.test("search() reports unmet queries, and loose matches", async () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`file_${n}`, "A file"]));
  const search = new Search(catalogOf({ ...SERVERS, many }));
  const unrelated = "bake my grandmother seven cakes and keep how in a file of hers";
  const { hits, unmet, isLoose } = await search.search(["issue", "quantum", unrelated]);
  assert.deepEqual(unmet, ["quantum", unrelated]);
  assert.equal(isLoose, false);
  assert.equal(hits[0]?.id, "github:create_issue");
  const loose = await search.search(
    "bake seven cakes of sugar, flour, eggs, milk, honey for the city",
  );
  assert.deepEqual([loose.unmet, loose.isLoose], [[], true]);
  // Every word matches, although all of them are common.
  assert.equal((await idsFor("file", { limit: 40 }, { one: many })).length, 40);
});

Deno.test("search() applies the options threshold and offers", async () => {
  const offers = new Catalog();
  offers.set({ name: "sky", origin: "registry", isOffer: true }, [
    tool(["weather", "Tell tomorrow's weather of a city"]),
  ]);
  const search = new Search(catalogOf(SERVERS), { catalogs: () => [offers] });
  const ids = async (options: SearchOptions) =>
    (await search.search("read the text of a file", options)).hits.map(({ score }) => score);
  const all = await ids({});
  assert.ok(all.length > 2 && all.some((score) => score < 0.7));
  assert.deepEqual(await ids({ threshold: 0.7 }), all.filter((score) => score >= 0.7));
  const weather = async (options: SearchOptions) =>
    (await search.search("weather", options)).hits.map(({ id }) => id);
  assert.deepEqual(await weather({}), ["sky:weather", "weather:forecast"]);
  assert.deepEqual(await weather({ offers: false }), ["weather:forecast"]);
});

Deno.test("search() takes hits of each query in turn", async () => {
  const servers = Array.from({ length: 14 }, (_, n) => [`s${n}`, { search: "Find something" }]);
  const allServers = { ...Object.fromEntries(servers), zmail: { send_email: "Send an email" } };
  const ids = await idsFor(["search", "send an email"], { limit: 4 }, allServers);
  assert.equal(ids.length, 4);
  assert.ok(ids.includes("zmail:send_email"), ids.join());
});

Deno.test("search() prefers an existing tool to an offer that matches as well", async () => {
  const same = tool(["convert_units", "Convert units of length"]);
  const offers = new Catalog();
  offers.set({ name: "aa", origin: "registry", isOffer: true }, [same]);
  const catalog = new Catalog();
  catalog.set({ name: "zz", origin: "private" }, [same]);
  const search = new Search(catalog, { catalogs: () => [offers] });
  const { hits } = await search.search("units of length");
  assert.deepEqual(hits.map(({ id }) => id), ["zz:convert_units", "aa:convert_units"]);
  assert.ok((hits[1]?.score ?? 1) < 1);
});

Deno.test("search() refuses a query that is too large", async () => {
  await assert.rejects(() => idsFor("x ".repeat(500_000)), code("INPUT_TOO_LARGE"));
});

Deno.test("search() follows the catalog", async () => {
  const catalog = catalogOf(SERVERS);
  const search = new Search(catalog);
  assert.equal((await search.search("tides")).hits.length, 0);
  catalog.set({ name: "sea", origin: "private" }, [tool(["tides", "Tell the tides"])]);
  assert.equal((await search.search("tides")).hits[0]?.id, "sea:tides");
  catalog.set({ name: "sea", origin: "private" }, [tool(["waves", "Tell the waves"])]);
  assert.equal((await search.search("tides")).hits.length, 0);
  catalog.remove("sea");
  assert.equal((await search.search("waves")).hits.length, 0);
});

Deno.test("search() returns the same after any changes as for a new catalog", async () => {
  const word = fc.constantFrom("read", "write", "file", "list", "issue", "page", "文件");
  const text = fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join("_"));
  const list = fc.uniqueArray(text, { maxLength: 5 });
  const step = fc.tuple(fc.constantFrom("a", "b", "c"), fc.option(list), fc.boolean());
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), text, async (steps, query) => {
      const catalog = new Catalog();
      const followed = new Search(catalog);
      const isToolName = (name: string) => /^[a-z_]+$/.test(name);
      for (const [name, toolNames, look] of steps) {
        if (toolNames === null) catalog.remove(name);
        else {
          const tools = toolNames.map((each, i) => tool([isToolName(each) ? each : `t${i}`, each]));
          catalog.set({ name, origin: "registry" }, tools);
        }
        if (look) await followed.search("read");
      }
      const fresh = new Search(catalog);
      assert.deepEqual(await followed.search(query), await fresh.search(query));
    }),
  );
});

Deno.test("search() accepts invalid definitions", async () => {
  const nested: { [key: string]: unknown } = {};
  let inner = nested;
  for (let i = 0; i < 80; i++) {
    const next = {};
    Object.assign(inner, { properties: { deep: next }, items: [1] });
    inner = next;
  }
  const schemas = [
    nested,
    { properties: null },
    { properties: { a: null, b: 1, ["__proto__"]: { description: 7 } } },
    { properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`p${i}`, {}])) },
  ];
  const catalog = new Catalog();
  // Values from a server have no known type until they are checked.
  const tools = schemas.map((inputSchema, i) =>
    ({ name: `t${i}`, title: 5, description: "x ".repeat(1e5), inputSchema }) as never
  );
  catalog.set({ name: "odd", origin: "registry" }, tools);
  const search = new Search(catalog);
  assert.equal((await search.search("x")).hits.length, 4);
});

Deno.test("search() matches parameters, with less weight than the name", async () => {
  const catalog = new Catalog();
  const inputSchema = {
    type: "object",
    properties: { zip_code: { type: "string", description: "Postal number of a town" } },
  };
  catalog.set({ name: "one", origin: "registry" }, [{ name: "lookup", inputSchema }]);
  catalog.set({ name: "two", origin: "registry" }, [tool(["zip", "Pack files"])]);
  const search = new Search(catalog);
  assert.deepEqual((await search.search("zip")).hits.map(({ id }) => id), [
    "two:zip",
    "one:lookup",
  ]);
  assert.deepEqual((await search.search("postal")).hits.map(({ id }) => id), ["one:lookup"]);
});

function code(wanted: string): (error: unknown) => boolean {
  return (error) => error instanceof PmlError && error.code === wanted;
}

Deno.test("search() raises tools that were used for similar queries, within limits", async () => {
  const query = "read file";
  const hits = (await new Search(catalogOf(SERVERS)).search(query)).hits;
  const [best, , low] = hits;
  assert.ok(best && low && low.score < 0.5, JSON.stringify(hits));
  const fit = () => new Map([[low.id, 1], ["weather:forecast" as typeof low.id, 1]]);
  const raised = await idsFor(query, { memory: { fitScores: fit } });
  // It ranks above similar tools, not above much better ones, and adds no tool that does not match.
  assert.equal(raised[0], best.id);
  assert.ok(raised.indexOf(low.id) <= hits.indexOf(low));
  assert.deepEqual(raised.toSorted(), hits.map(({ id }) => id).toSorted());
  const second = hits[1];
  assert.ok(second && second.score > 0.5);
  assert.equal(
    (await idsFor(query, { memory: { fitScores: () => new Map([[second.id, 1]]) } }))[0],
    second.id,
  );
});
