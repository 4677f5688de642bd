/**
 * Input that was typed before a question on a terminal does not answer it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type Command, pmlCommand, repoFile } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** Runs a command on a terminal with input that was typed before its first question. */
async function typedAhead(
  ws: Workspace,
  args: readonly string[],
  { ahead, pml = pmlCommand() }: { readonly ahead: string; readonly pml?: Command },
) {
  const script = `import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
os.write(fd, sys.argv[1].encode())
seen, answered = b"", 0
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    # Once a question: the terminal repeats what comes when nobody reads, which is a piece, too.
    if seen.count(b"[N] no") > answered:
        answered += 1
        time.sleep(0.5)
        os.write(fd, b"n")
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`;
  const command = ["python3", "-c", script, ahead, ...pml] as const;
  return await runPml(ws, args, { command });
}

Deno.test("input before a question does not answer it, one key does, and Enter is no (GW17)", async () => {
  await using ws = await makeWorkspace();
  const write = ["call", "filesystem:write_file", "path=a.txt", "content=x"];
  for (const ahead of ["y\n", "yyyyyyyy\n\n", "always\nyes\n", "y"]) {
    const result = await typedAhead(ws, write, { ahead });
    assert.match(result.stdout, /May it run\? \[y\] once {2}(?:\[a\] always {2})?\[N\] no/);
    assert.notEqual(result.code, 0, `${JSON.stringify(ahead)}: ${result.stdout}`);
    await assert.rejects(Deno.stat(ws.file("a.txt")), Deno.errors.NotFound);
  }
  const asked = /May it run\?.*\[N\] no/;
  const enter = await runPmlOnTerminal(ws, write, { typed: [[asked, ""]] });
  assert.match(enter.stdout, /APPROVAL_DECLINED/);
  const odd = await runPmlOnTerminal(ws, write, {
    typed: [[asked, "x"], [/Press y.* or d/, "yes"]],
  });
  assert.equal(odd.code, 0, odd.stdout);
  assert.equal(await Deno.readTextFile(ws.file("a.txt")), "x");
});

Deno.test("input before a question does not answer it where reads come late (GW17)", async () => {
  await using ws = await makeWorkspace();
  const write = ["call", "filesystem:write_file", "path=a.txt", "content=x"];
  const [program, run, ...rest] = pmlCommand();
  const pml = [
    program,
    `${run}`,
    "--preload",
    repoFile("tests/kit/late_stdin.ts"),
    ...rest,
  ] as const;
  const result = await typedAhead(ws, write, { ahead: "y", pml });
  assert.match(result.stdout, /APPROVAL_DECLINED/);
  await assert.rejects(Deno.stat(ws.file("a.txt")), Deno.errors.NotFound);
});
