import assert from "node:assert/strict";
import { ServerLog, serverLogPath } from "./server_log.ts";

Deno.test("ServerLog stores each line with its time and without colours", async () => {
  const home = await Deno.realPath(await Deno.makeTempDir());
  {
    using log = new ServerLog(home, "notes");
    log.add("\u001b[32mready\u001b[39m\n\n");
    log.add("one\ntwo\n");
  }
  const lines = (await Deno.readTextFile(serverLogPath(home, "notes"))).split("\n");
  const texts = lines.map((line) => line.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /, "_ "));
  assert.deepEqual(texts, ["_ ready", "", "_ one", "_ two", ""]);
  await Deno.remove(home, { recursive: true });
});
