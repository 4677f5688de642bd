import assert from "node:assert/strict";
import { catalogOf, SERVERS, tool } from "./_servers_fixture_test.ts";
import { Catalog } from "./catalog.ts";
import { Search } from "./search.ts";
import type { Semantics } from "./semantics.ts";

Deno.test("search() weighs words and meaning equally while all vectors are available", async () => {
  const catalog = catalogOf(SERVERS);
  let known = false;
  const asked: string[][] = [];
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) => {
      asked.push([...queries]);
      // The forecast is nearest to every query.
      const near = entries.map(({ id }) => id === "weather:forecast" ? 0.4 : -0.1);
      return Promise.resolve(known ? queries.map(() => Float32Array.from(near)) : undefined);
    },
  };
  const search = new Search(catalog, { semantics: () => [semantics] });
  const query = "replace a file";
  const before = await search.search(query);
  assert.equal(before.mode, "lexical");
  assert.equal(before.hits[0]?.id, "filesystem:write_file");
  assert.ok(!before.hits.some(({ id }) => id === "weather:forecast"));
  known = true;
  const after = await search.search(query);
  assert.equal(after.mode, "hybrid");
  const scores = Object.fromEntries(after.hits.map(({ id, score }) => [id, score]));
  assert.equal(scores["weather:forecast"], scores["filesystem:write_file"]);
  // The unrelated sentences are compared once for these tools.
  await search.search(query);
  assert.deepEqual(asked.map(([first]) => first === query), [true, true, false, true]);
  // A tool that is not allowed does not change the scale, either.
  const allowed = (id: string) => id !== "weather:forecast";
  const { hits } = await search.search(query, { allowed });
  assert.deepEqual(hits[0]?.id, "filesystem:write_file");
  assert.ok(!hits.some(({ id }) => id === "weather:forecast"));
});

Deno.test("search() finds nothing by meaning if no tool is nearer than to unrelated sentences", async () => {
  const cosines = { far: 0.3, near: 0.5 };
  let query: keyof typeof cosines = "far";
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) =>
      Promise.resolve(
        queries.map((text) =>
          Float32Array.from(entries, (_, at) => (text === query ? cosines[query] : 0.4) - at / 100)
        ),
      ),
  };
  const search = new Search(catalogOf(SERVERS), { semantics: () => [semantics] });
  const far = await search.search(query);
  assert.deepEqual([far.mode, far.hits, far.unmet], ["hybrid", [], ["far"]]);
  query = "near";
  const { hits, isLoose } = await search.search(query);
  assert.ok(hits.length > 3 && isLoose);
  assert.deepEqual((await search.search(" ")).hits, []);
});

Deno.test("search() ranks offers of registries by words alone", async () => {
  const offers = new Catalog();
  offers.set({ name: "almanac", origin: "registry", isOffer: true }, [
    tool(["tides", "Tell the tides of a harbour"]),
    tool(["moon", "Tell the phases of the moon"]),
  ]);
  const catalog = catalogOf(SERVERS);
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) => {
      assert.deepEqual(entries, catalog.list());
      return Promise.resolve(queries.map(() => Float32Array.from(entries, (_, at) => at / 10)));
    },
  };
  const search = new Search(catalog, { catalogs: () => [offers], semantics: () => [semantics] });
  const { mode, hits } = await search.search("tides of the harbour");
  assert.equal(mode, "hybrid");
  assert.equal(hits[0]?.id, "almanac:tides");
  assert.ok(hits.every(({ id }) => id !== "almanac:moon"));
});

Deno.test("search() checks the rules once for each tool, however many queries there are", async () => {
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) =>
      Promise.resolve(queries.map(() => Float32Array.from(entries, (_, at) => at / 10))),
  };
  const search = new Search(catalogOf(SERVERS), { semantics: () => [semantics] });
  const judged: string[] = [];
  const allowed = (id: string) => judged.push(id) > 0;
  await search.search(["read a file", "write a file", "list"], { allowed });
  assert.equal(new Set(judged).size, judged.length);
});

Deno.test("search() ignores cosines of a catalog that changed meanwhile", async () => {
  const catalog = catalogOf(SERVERS);
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) => {
      catalog.remove("filesystem");
      return Promise.resolve(queries.map(() => Float32Array.from(entries, (_, at) => at)));
    },
  };
  const search = new Search(catalog, { semantics: () => [semantics] });
  const early = search.search("read a file");
  const late = await search.search("read a file");
  const { mode, hits } = await early;
  assert.deepEqual([mode, late.mode], ["lexical", "hybrid"]);
  assert.deepEqual(hits.map(({ id }) => id), ["github:read_file"]);
});
