/**
 * The examples of docs/serve.md, run unchanged by a shell and the real `curl`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { repoFile } from "./kit/pml_command.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { createForm } from "../src/cli/_client_form.ts";

const page = await Deno.readTextFile(repoFile("docs/serve.md"));

/** Runs the lines of the page, and more after them. Returns their output. */
async function run(script: string, { url, token }: TestServer, more = ""): Promise<string> {
  const mine = script.replaceAll("http://127.0.0.1:3003/mcp", url)
    .replaceAll("$(cat ~/.pml/serve_token)", token);
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-euc", `${mine}\n${more}`],
  }).output();
  const text = new TextDecoder();
  assert.ok(success, text.decode(stderr));
  return text.decode(stdout);
}

Deno.test("docs/serve.md: the entry is the same as that of pml init", () => {
  const [, entry = ""] = /```json\n(.*?)```/s.exec(page) ?? [];
  const form = createForm("claude-code", { http: true, command: "pml" });
  assert.deepEqual(JSON.parse(entry).mcpServers.pml, form.entry);
});

Deno.test("docs/serve.md: the request and the session by curl work", async () => {
  const scripts = [...page.matchAll(/```\n(TOKEN=.*?)```/gs)].map(([, script = ""]) => script);
  assert.equal(scripts.length, 2);
  const [request = "", session = ""] = scripts;
  await using ws = await makeWorkspace();
  await using served = await servePml(ws);
  const { result } = JSON.parse(await run(request, served));
  assert.ok(result.tools.some(({ name }: { name: string }) => name === "search"));
  const asked = `-d '{"jsonrpc": "2.0", "id": 4, "method": "tools/list"}'`;
  const after = `echo; in_session -o /dev/null -w '%{http_code}' ${asked}`;
  const text = await run(session, served, after);
  assert.match(text, /"tools":\[.*"name":"search"/);
  assert.match(text, /"id":2\D/);
  assert.match(text, /"content":\[.*"id":3\D|"id":3\D.*"content":\[/s);
  assert.doesNotMatch(text, /"error"/);
  assert.match(text, /\n404$/, "the session has ended");
});
