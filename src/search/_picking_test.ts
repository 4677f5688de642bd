import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { bestTools } from "./_picking.ts";
import type { CatalogEntry } from "./catalog.ts";

const ENTRIES: readonly CatalogEntry[] = Array.from({ length: 30 }, (_, n) => ({
  id: toolId("s", `t${n}`),
  tool: { name: `t${n}`, inputSchema: {} },
  server: { name: n % 2 === 0 ? "even" : "odd", origin: "private" },
}));

const ALL = Uint32Array.from(ENTRIES, (_, at) => at);

Deno.test("picked() continues after the best tools until enough allowed ones are found", () => {
  const scores = Float64Array.from(ENTRIES, (_, n) => 30 - n);
  const allowed = ({ tool }: CatalogEntry) => Number(tool.name.slice(1)) >= 25;
  const slots = (most: number) =>
    bestTools(ENTRIES, scores, { among: ALL, most, mostOfServer: most, allowed }).map(({ slot }) =>
      slot
    );
  assert.deepEqual(slots(1), [25]);
  assert.deepEqual(slots(9), [25, 26, 27, 28, 29]);
});

Deno.test("picked() sorts by score, keeps the order of ties, and limits the tools of each server", () => {
  const scores = Float64Array.from(ENTRIES, (_, n) => n < 4 ? 1 : n === 9 ? 2 : 0);
  const all = { among: ALL, most: 10, mostOfServer: 10, allowed: () => true };
  const slots = (picking: Partial<typeof all>) =>
    bestTools(ENTRIES, scores, { ...all, ...picking }).map(({ slot }) => slot);
  assert.deepEqual(slots({}), [9, 0, 1, 2, 3]);
  assert.deepEqual(slots({ mostOfServer: 1 }), [9, 0]);
});
