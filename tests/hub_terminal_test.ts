/**
 * The output of the hub's commands on a terminal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { HUB } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** Returns the text that is left when the progress bar of Deno erases its rows above the cursor. */
function erased(text: string, rows: number): string {
  return text.split("\n").slice(0, -1 - rows).join("\n");
}

for (const more of [[], ["--client"], ["--json"]]) {
  Deno.test(`${["key add", ...more].join(" ")} leaves its key on a terminal whose progress bar is erased afterwards`, async () => {
    await using ws = await makeWorkspace();
    const { stdout, code } = await runPmlOnTerminal(ws, ["key", "add", "acme", ...more], {
      command: HUB,
    });
    assert.equal(code, 0);
    for (const rows of [0, 1, 2, 3, 4]) {
      assert.match(erased(stdout, rows), /pml(hub|client)_[\w-]{43}/, `${rows} rows`);
    }
  });
}

Deno.test("key add prints no empty lines where its output is not a terminal", async () => {
  await using ws = await makeWorkspace();
  const { stdout, stderr } = await runPml(ws, ["key", "add", "acme"], { command: HUB });
  assert.match(stdout, /^pmlhub_[\w-]{43}\n$/);
  assert.match(stderr, /^The key .*PML_HUB_KEY\.\n$/);
});
