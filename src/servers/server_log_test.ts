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

Deno.test("ServerLog replaces the file, so that no reader sees a part of it", async () => {
  const home = await Deno.realPath(await Deno.makeTempDir());
  const path = serverLogPath(home, "notes");
  const write = (text: string) => {
    using log = new ServerLog(home, "notes");
    log.add(text);
  };
  write("one\n");
  {
    // A reader in the middle of its work.
    using reader = await Deno.open(path);
    const before = await Deno.readTextFile(path);
    write("two\n");
    const text = await new Response(reader.readable).text();
    assert.equal(text, before);
  }
  assert.match(await Deno.readTextFile(path), /one\n.*two\n$/);
  assert.deepEqual(Array.from(Deno.readDirSync(`${home}/logs`), ({ name }) => name), ["notes.log"]);
  await Deno.remove(home, { recursive: true });
});
