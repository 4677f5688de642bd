import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFile, readdir } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { answerOf, outcomeOf, picked, questionOf, read } from "./attacks/questions.ts";
import { FakeRegistry, moduleEntry } from "./kit/fake_registry.ts";
import type { Message } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const MODULE = `export const __meta__ = {
  name: "clock", version: "1.0.0", description: "Tells the time",
  tools: { tell: { description: "Tell the time", inputSchema: { type: "object" } } },
};
export function tell() { return "late"; }`;

/** Accepts connections and sends nothing. */
async function blackHole() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // the client has disconnected
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    sockets,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function called(tool: string) {
  return { name: "call", arguments: { tool, arguments: {} } };
}

function textOf(message: Message): string {
  const { content } = message.result as unknown as { content: readonly { text: string }[] };
  return content.map(({ text }) => text).join();
}

Deno.test("without its registry, used servers still run, others fail at once, and nothing local waits", async () => {
  const offered = ["clock", "ghost", "spook"].map((name) =>
    moduleEntry(name, MODULE.replaceAll("clock", name))
  );
  await using registry = await FakeRegistry.open(await Promise.all(offered));
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: registry.url },
    files: { "a.txt": "good" },
  });
  assert.equal((await runPml(ws, ["init", "--yes"])).code, 0);
  await using pml = new RawStdio(ws, { capabilities: { elicitation: {} } });
  await pml.open();
  const first = await questionOf(pml, called("clock:tell"));
  await read();
  assert.equal(textOf(await first.answer(picked("Yes"))), "late");
  await registry.stop();
  assert.match(textOf(await answerOf(pml, called("ghost:run"))), /^REGISTRY_OFFLINE: .*"ghost"/);
  const before = performance.now();
  const again = textOf(await answerOf(pml, called("spook:run")));
  const took = performance.now() - before;
  assert.match(again, /^REGISTRY_OFFLINE: /);
  assert.ok(took < 5_000, `${took} ms`);
  const read_file = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  assert.equal(textOf(await pml.callTool("call", read_file)), "good");
  const once_more = await outcomeOf(pml, called("clock:tell"));
  assert.equal(once_more.kind, "asked", "no rule allows it, so it is asked about");
  if (once_more.kind === "asked") {
    await read();
    assert.equal(textOf(await once_more.asked.answer(picked("Yes"))), "late");
  }
  assert.match(textOf(await pml.callTool("search", { query: "tell the time" })), /clock:tell/);
  const cache = join(ws.home, "cache");
  const code = (await readdir(cache)).filter((name) => name.endsWith(".code"));
  for (const name of code) await appendFile(join(cache, name), "\n");
  assert.equal(code.length, 1);
  assert.match(textOf(await answerOf(pml, called("clock:tell"))), /^REGISTRY_OFFLINE: /);
  assert.equal((await pml.close()).code, 0);
});

Deno.test("a changed module asks with the difference, and then runs while its registry hangs", async () => {
  await using registry = await FakeRegistry.open([await moduleEntry("clock", MODULE)]);
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: registry.url } });
  assert.equal((await runPml(ws, ["init", "--yes"])).code, 0);
  /** Calls in a new PML and answers yes. Returns the question and the result. */
  const use = async () => {
    await using pml = new RawStdio(ws, { capabilities: { elicitation: {} } });
    await pml.open();
    const { text, answer } = await questionOf(pml, called("clock:tell"));
    await read();
    const output = textOf(await answer(picked("Yes")));
    assert.equal((await pml.close()).code, 0);
    return { text, said: output };
  };
  assert.equal((await use()).said, "late");
  const newer = MODULE.replace("1.0.0", "1.1.0").replace('"late"', '"later"');
  registry.publish([await moduleEntry("clock", newer)]);
  assert.equal((await runPml(ws, ["tools", "--refresh"])).code, 0);
  const changed = await use();
  assert.match(changed.text, /"clock" has changed since/);
  assert.match(changed.text, /version: was "1\.0\.0", is "1\.1\.0"/);
  assert.equal(changed.said, "later");
  registry.fault("*", { hang: true });
  const beside = await use();
  assert.doesNotMatch(beside.text, /was approved|registry/);
  assert.equal(beside.said, "later");
});

Deno.test("a registry that never answers delays no start, list or local call", async () => {
  await using hole = await blackHole();
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: hole.url },
    files: { "a.txt": "good" },
  });
  assert.equal((await runPml(ws, ["tools", "filesystem"])).code, 0);
  assert.equal(hole.sockets.size, 0, "a server that is there was looked up");
  await using pml = new RawStdio(ws, { capabilities: { elicitation: {} } });
  await pml.open();
  await pml.request("tools/list", {});
  const read_file = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  assert.equal(textOf(await pml.callTool("call", read_file)), "good");
  assert.equal(hole.sockets.size, 0, "somebody was asked");
  const found = textOf(await pml.callTool("search", { query: "read a file" }));
  assert.match(found, /filesystem:read_file/);
  assert.ok(hole.sockets.size > 0, "nobody asked what there is");
  assert.equal((await pml.close()).code, 0);
});
