import assert from "node:assert/strict";
import { dirname, join, normalize } from "node:path";
import { walkFiles } from "./words/files.ts";

/** How many circles of imports, types included, the source may have, and files in all of them. */
const MOST = { circles: 2, files: 13 };
const IMPORT = /^(?:import|export)\b[^;]*? from "(\.[^"]+\.ts)";/gms;

/** Returns the files of `src/` with the files that each imports at once, types included. */
async function imports(): Promise<ReadonlyMap<string, readonly string[]>> {
  const all = new Map<string, readonly string[]>();
  for await (const { path, text } of walkFiles("src/")) {
    if (!path.endsWith(".ts") || path.endsWith("_test.ts")) continue;
    const targets = [...text.matchAll(IMPORT)].map(([, to = ""]) =>
      normalize(join(dirname(path), to))
    );
    all.set(path, targets.filter((to) => to.startsWith("src/")));
  }
  return all;
}

/** Returns the circles: groups of files that reach each other (Tarjan). */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string) => {
    order.set(file, order.size);
    lowest.set(file, order.size - 1);
    stack.push(file);
    for (const to of graph.get(file) ?? []) {
      if (!order.has(to)) visit(to);
      if (stack.includes(to)) {
        lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(to) ?? 0));
      }
    }
    if (lowest.get(file) !== order.get(file)) return;
    const circle = stack.splice(stack.indexOf(file));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
}

Deno.test("the source has few circles of imports", async () => {
  const graph = await imports();
  const count = [...graph.values()].flat().length;
  assert.ok(graph.size > 100 && count > graph.size, `${graph.size} files, ${count} imports`);
  const circles = circlesIn(graph);
  assert.ok(
    circles.length <= MOST.circles && circles.flat().length <= MOST.files,
    `${circles.length} circles:\n${circles.map((files) => files.join(", ")).join("\n")}`,
  );
});

Deno.test("circlesIn() finds files that reach each other", () => {
  const graph = new Map([["a", ["b"]], ["b", ["c"]], ["c", ["a"]], ["d", ["a"]], ["e", []]]);
  assert.deepEqual(circlesIn(graph), [["a", "b", "c"]]);
});
