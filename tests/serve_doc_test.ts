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
  // The arguments as curl gets them: a machine may have no curl.
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", `curl() { printf '%s\\0' "$@"; }\n${mine}`],
    env: { TOKEN: served.token },
  }).output();
  const [silent, url = "", ...given] = new TextDecoder().decode(stdout).split("\0");
  assert.equal(silent, "-s");
  const values = (flag: string) =>
    given.flatMap((word, at) => word === flag ? [given[at + 1] ?? ""] : []);
  const headers = values("-H").map((line) => line.split(/: (.*)/s).slice(0, 2));
  const response = await fetch(url, {
    method: "POST",
    headers: Object.fromEntries(headers),
    body: values("-d")[0] ?? "",
  });
  const { result } = await response.json();
  assert.ok(result.tools.some(({ name }: { name: string }) => name === "search"));
});
