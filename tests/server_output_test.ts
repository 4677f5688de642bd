/**
 * The standard error of a server, as users and clients see it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const SECRET = "tok-3f9a8b7c6d5e4f3a";
/** Writes in colours, also into the middle of its key, and ends with an error. */
const COLOURED = `
const key = Deno.env.get("OWN_TOKEN");
console.error("\\x1b[32mloading\\x1b[39m");
console.error("key " + key.slice(0, 8) + "\\x1b[0m" + key.slice(8));
console.error("\\x1b[31mError: no licence\\x1b[39m");
console.error("goodbye");
Deno.exit(3);
`;

Deno.test("PML shows the stderr of a server without colours, with the first error first, and without its key", async () => {
  const server = {
    command: Deno.execPath(),
    args: ["eval", COLOURED],
    env: { OWN_TOKEN: "${OWN_TOKEN}" },
  };
  await using ws = await makeWorkspace({
    pml: { mcpServers: { dead: server } },
    env: { OWN_TOKEN: SECRET },
  });
  const failed = await runPml(ws, ["tools", "dead"]);
  assert.match(failed.stderr, /^error: UPSTREAM_DOWN: .*"Error: no licence"\n/);
  const printed = ["Error: no licence", "goodbye", "Before that:", "loading"];
  const marked = printed.map((line) => `\n    | ${line}`).join("");
  assert.ok(failed.stderr.includes(`It printed:${marked}\n`), failed.stderr);
  const json = await runPml(ws, ["tools", "dead", "--json"]);
  const { error } = JSON.parse(json.stdout);
  assert.match(error.detail.stderr, /^Error: no licence\ngoodbye\nBefore that:\nloading\nkey /);
  const doctor = await runPml(ws, ["doctor"]);
  assert.match(doctor.stdout, /^FAIL server dead: .*Error: no licence/m);
  const search = await runPml(ws, ["search", "anything"]);
  const logs = await runPml(ws, ["logs", "dead"]);
  assert.match(logs.stdout, /Z loading\n/);
  for (const { stdout, stderr } of [failed, json, doctor, search, logs]) {
    assert.ok(!(stdout + stderr).includes("\u001b"));
    assert.doesNotMatch(stdout + stderr, /u\{1b\}|u001b|\[3[129]m/);
    assert.ok(!(stdout + stderr).includes(SECRET), stdout + stderr);
  }
});
