import assert from "node:assert/strict";
import { join } from "node:path";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const LINE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":' +
  '"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n';

for (
  const [what, redirected] of [["files", "<in.jsonl >out.jsonl"], ["a file to read", "<in.jsonl"], [
    "a file to write",
    ">out.jsonl",
  ]]
) {
  Deno.test(`pml stdio works with ${what} in the place of pipes`, async () => {
    await using ws = await makeWorkspace({ files: { "in.jsonl": LINE, "out.jsonl": "" } });
    const { code, stdout, stderr } = await runPml(ws, ["stdio"], {
      command: ["sh", "-c", `"$@" ${redirected}`, "sh", ...pmlCommand()],
      stdin: LINE,
    });
    const answered = stdout + await Deno.readTextFile(join(ws.path, "out.jsonl"));
    assert.equal(JSON.parse(answered).result.serverInfo.name, "pml", stderr);
    assert.equal(code, 0);
  });
}
