import assert from "node:assert/strict";
import { Scratch } from "./_scratch_test.ts";
import { loadConfig } from "./config.ts";
import { shownLines } from "./shown.ts";

Deno.test("a confined server with more grants counts as unconfined without a layer (GX1)", async () => {
  using scratch = new Scratch();
  const server = { command: "npx", args: ["-y", "x"], confine: true };
  const grants = { writes: { write: ["out"] }, runs: { run: ["git"] }, reads: { read: ["/x"] } };
  const mcpServers = { writes: server, runs: server, reads: server, plain: server };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, mcpServers, grants }));
  for (const isThere of [true, false]) {
    const asked: string[] = [];
    const environment = {
      ...scratch.environment({ PML_WORKSPACE: scratch.ws }),
      confines: (wanted: string) => {
        asked.push(wanted);
        return Promise.resolve(isThere);
      },
    };
    const { file } = await loadConfig(environment, scratch.ws);
    assert.ok(file);
    const marked = file.servers.filter((one) => one.kind === "stdio" && one.isUnheld);
    const names = marked.map(({ name }) => name);
    assert.deepEqual(names, isThere ? [] : ["writes", "runs"]);
    const shown = shownLines(file, { get: () => undefined });
    const lines = shown.filter((line) => line.includes("counts as unconfined"));
    assert.equal(lines.length, names.length);
    assert.deepEqual(asked, ["auto"]);
  }
});
