/**
 * `pml completions`, in a real bash.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** Returns what bash offers behind these words, the last of which is being typed. */
async function offered(ws: Workspace, words: readonly string[]): Promise<readonly string[]> {
  const quote = (one: string) => `'${one.replaceAll("'", `'\\''`)}'`;
  const script = `pml() { ${pmlCommand().map(quote).join(" ")} "$@"; }
    source script.bash
    COMP_WORDS=(pml ${words.map(quote).join(" ")}); COMP_CWORD=${words.length}
    _pml; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const command = ["bash", "--norc", "-c", script] as const;
  const { code, stdout, stderr } = await runPml(ws, [], { command });
  assert.equal(code, 0, stderr);
  return stdout.trim().split("\n").sort();
}

Deno.test({
  name: "pml completions bash completes commands, options and servers in bash",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using ws = await makeWorkspace({
      pml: { version: 1, mcpServers: { crm: { command: "no-such-program" } } },
    });
    const { stdout } = await runPml(ws, ["completions", "bash"]);
    await writeFile(join(ws.path, "script.bash"), stdout);
    assert.deepEqual(await offered(ws, ["au"]), ["audit"]);
    assert.deepEqual(await offered(ws, ["audit", "--fo"]), ["--follow"]);
    assert.deepEqual(await offered(ws, ["tools", "cr"]), ["crm"]);
    assert.deepEqual(await offered(ws, ["search", "inst"]), ["install-model"]);
  },
});

Deno.test("pml completions names the shells for one that it does not know", async () => {
  await using ws = await makeWorkspace();
  const { code, stderr } = await runPml(ws, ["completions", "tcsh"]);
  assert.equal(code, 2);
  assert.match(stderr, /"tcsh"\n.*one of bash/);
});
