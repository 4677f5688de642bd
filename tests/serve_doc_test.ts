/**
 * The examples of docs/serve.md, as they stand there.
 *
 * @module
 */

import assert from "node:assert/strict";
import { repoFile } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { HTTP_ENTRY } from "../src/cli/_client_file.ts";

Deno.test("docs/serve.md: the request by curl works, and the entry is the one that init writes", async () => {
  const page = await Deno.readTextFile(repoFile("docs/serve.md"));
  const [, entry = ""] = /```json\n(.*?)```/s.exec(page) ?? [];
  assert.deepEqual(JSON.parse(entry).mcpServers.pml, HTTP_ENTRY);
  await using ws = await makeWorkspace();
  await using served = await servePml(ws);
  const [, script = ""] = /(curl -s .*?)```/s.exec(page) ?? [];
  const mine = script.replace("http://127.0.0.1:3003/mcp", served.url);
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", mine],
    env: { TOKEN: served.token },
  }).output();
  const { result } = JSON.parse(new TextDecoder().decode(stdout));
  assert.ok(result.tools.some(({ name }: { name: string }) => name === "search"));
});
