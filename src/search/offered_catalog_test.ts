import assert from "node:assert/strict";
import { offeredCatalog } from "./offered_catalog.ts";

Deno.test("offeredCatalog() contains each listed tool, and one entry for a server without a list", () => {
  const definition = { name: "now", description: "Tell the weather", inputSchema: {} };
  const catalog = offeredCatalog([
    { name: "sky", description: "Weather", tools: [{ name: "now", definition }] },
    { name: "names", description: "Names", tools: [{ name: "find", definition: undefined }] },
    { name: "whole", description: undefined, tools: [] },
    { name: "sky", description: "another", tools: [] },
  ]);
  const shown = catalog.list().map(({ id, tool, server }) => [id, tool.description, server]);
  const of = (name: string, description?: string) => ({
    name,
    origin: "registry",
    isOffer: true,
    asksFirst: true,
    ...(description === undefined ? {} : { description }),
  });
  assert.deepEqual(shown, [
    ["names:find", "Names", of("names", "Names")],
    ["sky:now", "Tell the weather", of("sky", "Weather")],
    ["whole:@tools", undefined, of("whole")],
  ]);
});

Deno.test("offeredCatalog() handles 10,000 servers quickly", () => {
  const servers = Array.from({ length: 10_000 }, (_, at) => ({
    name: `server-${at}`,
    description: `Does the thing number ${at}`,
    tools: [{ name: `do_${at}`, definition: undefined }],
  }));
  assert.equal(offeredCatalog(servers).list().length, 10_000);
});
