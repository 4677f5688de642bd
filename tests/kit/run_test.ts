import assert from "node:assert/strict";
import { runPml, runPmlOnTerminal } from "./run.ts";
import { makeWorkspace } from "./workspace.ts";

const SHELL = ["sh", "-c"] as const;

Deno.test("runPml() returns code, stdout and stderr, and passes stdin", async () => {
  await using ws = await makeWorkspace();
  const command = [...SHELL, 'cat; echo "$1" "$PML_HOME" >&2; exit 3', "sh"] as const;
  const result = await runPml(ws, ["it's one"], { command, stdin: "in\n" });
  assert.deepEqual(result, { code: 3, stdout: "in\n", stderr: `it's one ${ws.home}\n` });
});

Deno.test("runPml() fails when a command does not end, and kills it", async () => {
  await using ws = await makeWorkspace();
  const run = runPml(ws, [], { command: ["sleep", "600"], ms: 50 });
  await assert.rejects(run, /Nothing came in 50 ms: pml\s+does not end/);
});

Deno.test("runPmlOnTerminal() is a terminal, and types after each prompt", async () => {
  await using ws = await makeWorkspace();
  const script = 'test -t 0 && test -t 1 || exit 9; echo "Who?"; read a; echo "Sure, $a?"; ' +
    'read b; echo "[$a][$b][$1]"; exit 4';
  const result = await runPmlOnTerminal(ws, ["it's one"], {
    command: [...SHELL, script, "sh"],
    typed: [["Who?", "Ada"], [/Sure, Ada\?/, "yes"]],
  });
  assert.match(result.stdout, /\[Ada\]\[yes\]\[it's one\]/);
  assert.equal(result.code, 4);
});

Deno.test("runPmlOnTerminal() reports the screen when a prompt never appears", async () => {
  await using ws = await makeWorkspace();
  const run = runPmlOnTerminal(ws, [], {
    command: [...SHELL, "echo Hm; read a"],
    typed: [["Who?", "Ada"]],
    ms: 300,
  });
  await assert.rejects(run, /Who\?, only: Hm/);
});
