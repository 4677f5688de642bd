import assert from "node:assert/strict";
import { Catalog, type CatalogEntry } from "./catalog.ts";
import { Search } from "./search.ts";
import type { Semantics } from "./semantics.ts";

const TOOLS: Readonly<Record<string, string>> = {
  read_text: "Read a file of text",
  show_document: "Print what a page says",
  send_mail: "Send a message to somebody",
};

function catalog(): Catalog {
  const all = new Catalog();
  const tools = Object.entries(TOOLS).map(([name, description]) => ({
    name,
    description,
    inputSchema: {},
  }));
  all.set({ name: "one", origin: "private" }, tools);
  return all;
}

/** Returns search sources with a fixed cosine for each tool name. */
function near(cosines: Readonly<Record<string, number>> | undefined, seen: CatalogEntry[][] = []) {
  const semantics: Semantics = {
    weight: 0.5,
    mode: "hybrid",
    similarities: (queries, entries) => {
      seen.push([...entries]);
      if (cosines === undefined) return Promise.resolve(undefined);
      const one = Float32Array.from(entries, ({ tool }) => cosines[tool.name] ?? 0);
      return Promise.resolve(queries.map(() => one));
    },
  };
  return { catalogs: () => [], isTaken: () => false, semantics: () => [semantics] };
}

const NAMES = (ids: readonly { readonly id: string }[]) => ids.map(({ id }) => id.slice(4));

Deno.test("search() is lexical, and reports it, while no vectors are available", async () => {
  for (const given of [near(undefined), { ...near({}), semantics: () => [] }]) {
    const { mode, hits } = await new Search(catalog(), given).search("a message");
    assert.equal(mode, "lexical");
    assert.deepEqual(NAMES(hits), ["send_mail", "read_text"]);
  }
});

Deno.test("search() ranks by words and by meaning, half and half", async () => {
  const cosines = { read_text: 0.2, show_document: 0.4, send_mail: 0.1 };
  const search = new Search(catalog(), near(cosines));
  const { mode, hits } = await search.search("open my document");
  assert.equal(mode, "hybrid");
  assert.deepEqual(NAMES(hits.slice(0, 2)), ["show_document", "read_text"]);
  // A tool that has no word of the query is found by its meaning.
  const { hits: found } = await search.search("peruse");
  assert.equal(NAMES(found)[0], "show_document");
  // Words count as much as meaning: the best by words and the best by meaning get equal scores, the
  // others less.
  const scores = new Map(
    (await search.search("message to somebody")).hits.map(({ id, score }) => [id.slice(4), score]),
  );
  assert.equal(scores.get("send_mail"), 1);
  assert.equal(scores.get("show_document"), 1);
});

Deno.test("search() ranks a tool without a vector by words alone, and the others by both", async () => {
  const search = new Search(
    catalog(),
    near({ read_text: 0.2, show_document: 0.4, send_mail: NaN }),
  );
  assert.equal(NAMES((await search.search("peruse")).hits)[0], "show_document");
  const { hits } = await search.search("message to somebody");
  assert.deepEqual([NAMES(hits)[0], hits[0]?.score], ["send_mail", 1]);
});

Deno.test("search() finds only allowed tools by meaning, and passes the model all tools sorted by id", async () => {
  const seen: CatalogEntry[][] = [];
  const search = new Search(catalog(), near({ show_document: 1, read_text: 0.5 }, seen));
  const allowed = (id: string) => id !== "one:show_document";
  const { hits } = await search.search("peruse", { allowed });
  assert.ok(!NAMES(hits).includes("show_document"));
  assert.deepEqual(NAMES(seen[0] ?? []), ["read_text", "send_mail", "show_document"]);
  const named = await search.search("one:send_mail");
  assert.equal(named.hits[0]?.id, "one:send_mail", "a name matches in every mode");
});

Deno.test("search() scales cosines without denied tools", async () => {
  const allowed = (id: string) => id !== "one:show_document";
  const scores = async (hidden: number) => {
    const cosines = { read_text: 0.1, send_mail: 0.2, show_document: hidden };
    const { hits } = await new Search(catalog(), near(cosines)).search("read text", { allowed });
    return hits.map(({ id, score }) => [id, score]);
  };
  assert.deepEqual(await scores(9), await scores(0.15));
  assert.deepEqual(await scores(-9), await scores(0.15));
});
