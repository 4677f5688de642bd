import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { tokensOf } from "../core/tokens.ts";
import type { SearchHit } from "../search/search.ts";
import { SearchText, sharesOf } from "./search_text.ts";

function hit(server: string, name: string): SearchHit {
  const tool = { name, inputSchema: {} };
  return {
    id: toolId(server, name),
    score: 1,
    covered: 1,
    tool,
    server: { name: server, origin: "x" },
  };
}

function hits(count: number, name = (n: number) => `t${n}`): readonly SearchHit[] {
  return Array.from({ length: count }, (_, n) => hit("s", name(n)));
}

/** Returns the lines of an answer, with `FULL ID` for a tool in full. */
async function linesOf(byQuery: readonly (readonly SearchHit[])[], full?: number) {
  const queries = byQuery.map((_, at) => `step ${at}`);
  const text = await SearchText.create({ byQuery }, {
    queries,
    shares: sharesOf(queries.length, full),
    lineOf: ({ id }) => Promise.resolve(`FULL ${id}`),
    marksOf: ({ isOffer }) => isOffer === true ? "not installed" : "",
  });
  return text.toString().split("\n");
}

Deno.test("an answer to one query has five tools in full and the names of 24", async () => {
  const lines = await linesOf([hits(30)]);
  assert.deepEqual(lines.slice(0, 5), ["t0", "t1", "t2", "t3", "t4"].map((t) => `FULL s:${t}`));
  const names = Array.from({ length: 24 }, (_, n) => `t${n + 5}`);
  assert.deepEqual(lines.slice(5), [`Also: s:{${names.join(", ")}}`]);
  assert.deepEqual(await linesOf([hits(3)]), ["FULL s:t0", "FULL s:t1", "FULL s:t2"]);
  assert.equal((await linesOf([hits(30)], 12)).length, 13);
});

Deno.test("an answer to several queries has two tools in full and three names for each", async () => {
  const lines = await linesOf([hits(9), [], [hit("s", "t1"), hit("z", "a"), hit("z", "b")]]);
  assert.deepEqual(lines, [
    "# step 0",
    "FULL s:t0",
    "FULL s:t1",
    "Also: s:{t2, t3, t4}",
    "# step 2",
    "s:t1 (above)",
    "FULL z:a",
    "Also: z:b",
  ]);
});

Deno.test("names are grouped by server, in the order of the best tool of each", async () => {
  const offer = (name: string): SearchHit => {
    const { server, ...one } = hit("o", name);
    return { ...one, server: { ...server, isOffer: true } };
  };
  const others = [hit("a", "x"), offer("y"), hit("b", "z"), hit("a", "w"), offer("v")];
  const lines = await linesOf([[...hits(5), ...others]]);
  assert.deepEqual(lines.slice(5), ["Also: a:{x, w}, o:{y, v} [not installed], b:z"]);
});

Deno.test("long names take no more tokens than an answer may have", async () => {
  const long = (n: number) => `${n}_${"quux_zorb_".repeat(11)}`;
  const lines = await linesOf([hits(30, long)]);
  assert.equal(lines.length, 6);
  assert.ok(tokensOf(lines.slice(5).join("\n")) < 400, lines[5]);
});

Deno.test("a line that the answer can do without is added only if it fits", async () => {
  const text = await SearchText.create({ byQuery: [hits(1)] }, {
    queries: ["step"],
    shares: sharesOf(1),
    lineOf: ({ id }) => Promise.resolve(id),
    marksOf: ({ isOffer }) => isOffer === true ? "not installed" : "",
  });
  assert.ok(text.addIfFits("short"));
  assert.ok(!text.addIfFits("one more word ".repeat(200)));
  assert.equal(text.toString(), "s:t0\nshort");
});
