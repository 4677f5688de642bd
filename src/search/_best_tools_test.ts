import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { bestTools, limitServers, namesServer } from "./_best_tools.ts";
import type { CatalogEntry } from "./catalog.ts";

const ENTRIES: readonly CatalogEntry[] = Array.from({ length: 30 }, (_, n) => ({
  id: toolId("s", `t${n}`),
  tool: { name: `t${n}`, inputSchema: {} },
  server: { name: n % 2 === 0 ? "even" : "odd", origin: "private" },
}));

const ALL = Uint32Array.from(ENTRIES, (_, at) => at);

Deno.test("bestTools() continues after the best tools until enough allowed tools are found", () => {
  const scores = Float64Array.from(ENTRIES, (_, n) => 30 - n);
  const allowed = ({ tool }: CatalogEntry) => Number(tool.name.slice(1)) >= 25;
  const slots = (most: number) =>
    bestTools(ENTRIES, scores, { candidates: ALL, most, mostOfServer: most, allowed }).map((
      { slot },
    ) => slot);
  assert.deepEqual(slots(1), [25]);
  assert.deepEqual(slots(9), [25, 26, 27, 28, 29]);
});

Deno.test("bestTools() sorts by score, keeps the order of ties, and limits the tools of each server", () => {
  const scores = Float64Array.from(ENTRIES, (_, n) => n < 4 ? 1 : n === 9 ? 2 : 0);
  const all = { candidates: ALL, most: 10, mostOfServer: 10, allowed: () => true };
  const slots = (picking: Partial<typeof all>) =>
    bestTools(ENTRIES, scores, { ...all, ...picking }).map(({ slot }) => slot);
  assert.deepEqual(slots({}), [9, 0, 1, 2, 3]);
  assert.deepEqual(slots({ mostOfServer: 1 }), [9, 0]);
});

Deno.test("limitServers() limits the tools of a server to half, unless the request names it", () => {
  const of = (server: string) => ENTRIES.filter((entry) => entry.server.name === server);
  const ranked = [...of("even").slice(0, 6), ...of("odd").slice(0, 6)]
    .map((entry, slot) => ({ entry, slot, score: 1 - slot / 100 }));
  const counts = (query: string) => {
    const isWanted = (server: string) => namesServer(query, server);
    const taken = limitServers(ranked, { limit: 6, isWanted });
    return ["even", "odd"].map((name) =>
      taken.filter((one) => one.entry.server.name === name).length
    );
  };
  assert.deepEqual(counts("list the tools"), [3, 3]);
  assert.deepEqual(counts("list the tools of Even"), [6, 0]);
  assert.deepEqual(counts("evenly list them"), [3, 3]);
});

Deno.test("namesServer() finds the name of a server as whole words, however it is written", () => {
  assert.ok(namesServer("a page for Google Maps", "google-maps"));
  assert.ok(namesServer("google_maps: a page", "google-maps"));
  assert.ok(!namesServer("a page of maps", "google-maps"));
  assert.ok(!namesServer("anything", "--"));
});
