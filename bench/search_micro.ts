/**
 * Measures lexical search over 10,000 tools: `deno bench -A bench/search_micro.ts`.
 *
 * @module
 */

import { Catalog } from "../src/search/catalog.ts";
import { Search } from "../src/search/search.ts";

const VERBS = ["read", "write", "list", "create", "delete", "update", "search", "send", "convert"];
const NOUNS = ["file", "issue", "page", "message", "invoice", "image", "route", "table", "event"];
const SERVERS = 200;
const TOOLS = 50;
const QUERY = "create an invoice for the customer and send a message with the file to the team";

function catalogOfTenThousand(): Catalog {
  const catalog = new Catalog();
  for (let s = 0; s < SERVERS; s++) {
    const tools = Array.from({ length: TOOLS }, (_, t) => {
      const verb = VERBS[(s + t) % VERBS.length];
      const noun = NOUNS[(s * t) % NOUNS.length];
      const properties = Object.fromEntries(
        NOUNS.slice(0, 4).map((
          name,
        ) => [`${name}_${t}`, { description: `The ${name} to ${verb}` }]),
      );
      const description = `${verb} one ${noun} of the team's workspace number ${s}, and tell the ` +
        `result as a list of lines with their time, author and state`;
      return { name: `${verb}_${noun}_${t}`, description, inputSchema: { properties } };
    });
    catalog.set({ name: `server-${s}`, origin: "registry" }, tools);
  }
  return catalog;
}

const CATALOG = catalogOfTenThousand();
const READY = new Search(CATALOG);
await READY.search(QUERY);

Deno.bench("index 10,000 tools and search", { n: 5, warmup: 1 }, async () => {
  const search = new Search(CATALOG);
  await search.search(QUERY);
});

Deno.bench("search 10,000 tools", async () => {
  await READY.search(QUERY);
});
