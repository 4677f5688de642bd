import assert from "node:assert/strict";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { ListedDefinitions } from "./_listed_definitions.ts";
import { mayHaveInstructions } from "./pins_file.ts";

Deno.test("mayHaveInstructions() finds the instructions that a server listed in this workspace", async () => {
  const home = await Deno.realPath(await Deno.makeTempDir());
  try {
    const root = `${home}/workspace`;
    const listed = new ListedDefinitions(home, root, { warn: assert.fail });
    const identity = (name: string) =>
      ({ name, pinned: { source: "private" } }) as Parameters<ListedDefinitions["add"]>[0];
    await listed.add(identity("plain"), [{ name: "echo", inputSchema: {} }]);
    assert.equal(await mayHaveInstructions({ home, root }, ["plain", "other"]), false);
    await listed.add(identity("other"), [{ name: INSTRUCTIONS, inputSchema: {} }]);
    assert.equal(await mayHaveInstructions({ home, root }, ["plain", "other"]), true);
    assert.equal(await mayHaveInstructions({ home, root }, ["plain"]), false);
    assert.equal(await mayHaveInstructions({ home, root: home }, ["other"]), false);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});
