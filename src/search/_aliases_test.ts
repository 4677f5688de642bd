import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { demoteAliases } from "./_aliases.ts";
import type { RankedTool } from "./_best_tools.ts";

function tool(name: string, description: string, { score = 1, server = "s" } = {}): RankedTool {
  return {
    entry: {
      id: toolId(server, name),
      tool: { name, description, inputSchema: {} },
      server: { name: server, origin: "private" },
    },
    slot: 0,
    score,
  };
}

/** Returns the order of tools of which the first has this description. */
function order(description: string, others: readonly RankedTool[]): string {
  const ranked = demoteAliases([tool("old", description), ...others]);
  return ranked.map(({ entry }) => entry.id).join(" ");
}

const OTHERS = [tool("x", "", { score: 0.9 }), tool("new", "", { score: 0.8 })];

Deno.test("demoteAliases() puts an alias and a deprecated tool directly behind the original", () => {
  const descriptions = [
    "The same as new",
    "the same as `new`.",
    "Read a file (alias of new).",
    'An alias for the "new" tool that stays for old clients',
    "Renamed to new",
    "Read a file. DEPRECATED: Use new instead.",
    "[Deprecated] read a file; prefer `new`",
    "This tool is deprecated and was superseded by s, see new.",
    "Confirm.\n\n.. deprecated::\n  It stays for old clients. Rely on the prompt in ``new`` instead.",
  ];
  for (const one of descriptions) assert.equal(order(one, OTHERS), "s:new s:old s:x", one);
});

Deno.test("demoteAliases() moves no tool that only mentions another tool, or names no tool that matches", () => {
  const descriptions = [
    "The same as new, but with links",
    "The same as new with links",
    "List deprecated packages. Use new for others",
    "Check whether packages are deprecated. Use new before it",
    "For a list, use new instead",
    "Deprecated: use other",
    "Deprecated",
  ];
  for (const one of descriptions) assert.equal(order(one, OTHERS), "s:old s:x s:new", one);
  const elsewhere = [tool("new", "", { score: 0.8, server: "t" })];
  assert.equal(order("The same as new", elsewhere), "s:old t:new");
});

Deno.test("demoteAliases() loses no tool if tools name each other or themselves", () => {
  const circle = [tool("new", "The same as old", { score: 0.8 })];
  assert.equal(order("The same as new", circle).split(" ").length, 2);
  assert.equal(order("The same as old", OTHERS), "s:old s:x s:new");
  const far = demoteAliases([tool("new", ""), tool("old", "The same as new", { score: 0.5 })]);
  assert.deepEqual(far.map(({ score }) => score), [1, 0.5]);
});
