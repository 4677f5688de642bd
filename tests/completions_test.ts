/**
 * `pml completions` in real shells.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const quote = (one: string) => `'${one.replaceAll("'", `'\\''`)}'`;
const PML = `pml() { ${pmlCommand().map(quote).join(" ")} "$@"; }`;

/** The programs of the shells, each with the code that prints the offered words. */
const SHELLS: Readonly<
  Record<string, (words: readonly string[]) => readonly [string, ...string[]]>
> = {
  bash: (words) => {
    const script = `${PML}
    source ./script
    COMP_WORDS=(pml ${words.map(quote).join(" ")}); COMP_CWORD=${words.length}
    _pml; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return ["bash", "--norc", "-c", script];
  },
  // zsh itself removes words that do not begin with the typed word.
  zsh: (words) => {
    const script = `${PML}
    compdef() { }; _files() { }
    compadd() { shift; print -l -- \${(M)@:#\${words[CURRENT]}*}; }
    source ./script
    words=(pml ${words.map(quote).join(" ")}); CURRENT=${words.length + 1}
    _pml`;
    return ["zsh", "-f", "-c", script];
  },
  fish: (words) => {
    const program = pmlCommand().map((one) => `'${one}'`).join(" ");
    const script = `function pml; ${program} $argv; end; source ./script
    complete -C ${quote(["pml", ...words].join(" "))}`;
    return ["fish", "--no-config", "-c", script];
  },
};

/** Returns the words that a shell offers after these words, the last of which is being typed. */
async function offered(
  ws: Workspace,
  { shell, words }: { readonly shell: string; readonly words: readonly string[] },
): Promise<readonly string[]> {
  const command = SHELLS[shell]?.(words);
  assert.ok(command !== undefined);
  const { code, stdout, stderr } = await runPml(ws, [], { command });
  assert.equal(code, 0, stderr);
  return stdout.trim().split("\n").sort();
}

for (const shell of Object.keys(SHELLS)) {
  Deno.test({
    name: `pml completions ${shell} completes commands, options and servers in ${shell}`,
    ignore: Deno.build.os === "windows",
    fn: async () => {
      await using ws = await makeWorkspace({
        pml: { version: 1, mcpServers: { crm: { command: "no-such-program" } } },
      });
      const { stdout } = await runPml(ws, ["completions", shell]);
      await writeFile(join(ws.path, "script"), stdout);
      const words = (...words: string[]) => offered(ws, { shell, words });
      assert.deepEqual(await words("au"), ["audit"]);
      assert.deepEqual(await words("audit", "--fo"), ["--follow"]);
      assert.deepEqual(await words("tools", "cr"), ["crm"]);
      assert.deepEqual(await words("allow", "cr"), ["crm"]);
      assert.deepEqual(await words("allow", "sq"), ["sqlite", "sqlite:@reads"]);
      assert.deepEqual(await words("search", "inst"), ["install-model"]);
      assert.deepEqual(await words("key", "li"), ["list"]);
      assert.deepEqual(await words("config", "set", "journ"), ["journal"]);
    },
  });
}

Deno.test("pml completions lists the supported shells if it does not recognize one", async () => {
  await using ws = await makeWorkspace();
  const { code, stderr } = await runPml(ws, ["completions", "tcsh"]);
  assert.equal(code, 2);
  assert.match(stderr, /"tcsh"\n.*one of bash/);
});
