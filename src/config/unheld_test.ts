import assert from "node:assert/strict";
import { programsOf } from "../servers/kinds.ts";
import { Scratch } from "./_scratch_test.ts";
import { loadConfig } from "./config.ts";
import { shownLines } from "./workspace_lines.ts";

Deno.test("a confined server with more grants counts as unconfined without a layer (GX1)", async () => {
  using scratch = new Scratch();
  const server = { command: "npx", args: ["-y", "x"], confine: true };
  const grants = { writes: { write: ["out"] }, runs: { run: ["git"] }, reads: { read: ["/x"] } };
  const mcpServers = { writes: server, runs: server, reads: server, plain: server };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, mcpServers, grants }));
  for (const isThere of [true, false]) {
    const requests: string[] = [];
    const environment = {
      ...scratch.environment({ PML_WORKSPACE: scratch.ws }),
      confines: (wanted: string) => {
        requests.push(wanted);
        return Promise.resolve(isThere);
      },
    };
    const { file } = await loadConfig(environment, scratch.ws);
    assert.ok(file);
    const marked = programsOf(file.servers).filter((one) => one.countsAsUnconfined);
    const names = marked.map(({ name }) => name);
    assert.deepEqual(names, isThere ? [] : ["writes", "runs"]);
    const shown = shownLines(file, { get: () => undefined });
    const lines = shown.filter((line) => line.includes("counts as unconfined"));
    assert.equal(lines.length, names.length);
    assert.deepEqual(requests, ["auto"]);
  }
});

Deno.test("the user's own servers and grants count as unconfined in the same way (GX1)", async () => {
  using scratch = new Scratch();
  const server = { command: "npx", args: ["-y", "x"], confine: true };
  const person = {
    mcpServers: { own: server },
    grants: { own: { run: ["git"] }, ws: { write: ["o"] } },
  };
  scratch.write("user/.pml/config.yaml", JSON.stringify(person));
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, mcpServers: { ws: server } }));
  const environment = {
    ...scratch.environment({ PML_WORKSPACE: scratch.ws }),
    confines: () => Promise.resolve(false),
  };
  const loaded = await loadConfig(environment, scratch.ws);
  assert.equal(loaded.problem, undefined);
  for (const servers of [loaded.file?.servers, loaded.userConfig.servers]) {
    const marks = programsOf(servers ?? []).map((one) => one.countsAsUnconfined);
    assert.deepEqual(marks, [true]);
  }
});

Deno.test("a policy that forbids unconfined servers has the machine tried although it is off (GX1)", async () => {
  for (const forbid of [[], ["unconfined"]]) {
    using scratch = new Scratch();
    const server = { command: "npx", args: ["-y", "x"], confine: true };
    const policy = scratch.write("p.yaml", JSON.stringify({ forbid }));
    Deno.chmodSync(policy, 0o644);
    scratch.write("user/.pml/config.yaml", "sandbox: { os_layer: off }");
    const file = { version: 1, mcpServers: { s: server }, grants: { s: { run: ["git"] } } };
    scratch.write("ws/.pml.json", JSON.stringify(file));
    const tried: string[] = [];
    const environment = {
      ...scratch.environment({ PML_WORKSPACE: scratch.ws, PML_POLICY: policy }),
      confines: (wanted: string) => Promise.resolve(tried.push(wanted) > 0),
    };
    await loadConfig(environment, scratch.ws);
    assert.deepEqual(tried, [forbid.length === 0 ? "off" : "auto"]);
  }
});
