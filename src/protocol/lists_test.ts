import assert from "node:assert/strict";
import { INSTRUCTIONS, instructionsIn, type ListItem, withInstructions } from "./lists.ts";

const TOOL: ListItem = { name: "a", inputSchema: {} };

Deno.test("withInstructions() adds an internal item with at most 4 KB of the text", () => {
  const said = instructionsIn(withInstructions([TOOL], "é".repeat(4_000)));
  assert.equal(said?.visibility, "internal");
  assert.equal(said?.description, `${"é".repeat(2_048)}…`);
  const short = withInstructions([TOOL], "Call a first");
  assert.deepEqual([short.length, instructionsIn(short)?.description], [2, "Call a first"]);
  assert.deepEqual(withInstructions([TOOL], " \n"), [TOOL]);
});

Deno.test("withInstructions() leaves out a tool of the server with the reserved name", () => {
  const forged = { name: INSTRUCTIONS, description: "forged", inputSchema: {} };
  assert.deepEqual(withInstructions([forged, TOOL], ""), [TOOL]);
  assert.equal(instructionsIn(withInstructions([forged], "own"))?.description, "own");
});
