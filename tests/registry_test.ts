import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "./kit/fake_registry.ts";
import type { Era } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const ERAS: readonly Era[] = ["2025-11-25", "2026-07-28"];

function greeter(said: string, version = "1.0.0"): string {
  return `export const __meta__ = {
    name: "greeter", version: "${version}", description: "Says hello",
    permissions: { read: ["."] },
    tools: {
      greet: {
        description: "Greet somebody by name",
        inputSchema: { type: "object", properties: { name: { type: "string" } } },
      },
    },
  };
  export function greet({ name }) { return "${said} " + name; }`;
}

const GREET = { name: "greeter__greet", arguments: { name: "Ada" } };
const CALL = { name: "call", arguments: { tool: "greeter:greet", arguments: { name: "Ada" } } };

function textOf(message: { readonly result?: unknown }): string {
  const { content } = message.result as { content: readonly { text: string }[] };
  return content.map(({ text }) => text).join();
}

for (const era of ERAS) {
  Deno.test(`A module of a registry is there when it is called, and asks again when it changes, on ${era}`, async () => {
    await using registry = await FakeRegistry.open([
      await moduleEntry("greeter", greeter("Hello")),
    ]);
    const env = { PML_REGISTRIES: registry.url };
    const rules = { version: 1, permissions: { allow: ["*"] } };
    await using ws = await makeWorkspace({ env, pml: rules });
    {
      await using pml = new RawStdio(ws, {
        era,
        answer: undefined,
        capabilities: { elicitation: {} },
      });
      await pml.open();
      const found = textOf(await pml.callTool("search", { query: "greet somebody" }));
      assert.match(found, /greeter:greet\(name\?: string\).*\n.*\[registry, asks/, found);
      const asked = await questionOf(pml, CALL);
      assert.match(asked.text, /"greeter" was never used in this workspace/);
      assert.match(asked.text, /a module in the sandbox/);
      assert.match(asked.text, /its code: sha256-[0-9a-f]{64}/);
      assert.match(asked.text, new RegExp(`registry "${registry.url}"`));
      assert.match(asked.text, /reads the workspace/);
      assert.ok(!registry.paths.some((path) => path.includes("@1.0.0")), "code before the yes");
      await read();
      assert.equal(textOf(await asked.answer(picked("Yes"))), "Hello Ada");
      assert.equal(textOf(await answerOf(pml, GREET)), "Hello Ada");
      const lock = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
      assert.equal(lock.servers.greeter.source, registry.url);
      assert.equal(lock.servers.greeter.version, "1.0.0");
      assert.equal((await pml.close()).code, 0);
    }
    await registry.stop();
    {
      await using pml = new RawStdio(ws, { era, capabilities: { elicitation: {} } });
      await pml.open();
      assert.equal(textOf(await answerOf(pml, CALL)), "Hello Ada");
      assert.equal((await pml.close()).code, 0);
    }
    await registry.start();
    registry.publish([await moduleEntry("greeter", greeter("Bonjour", "1.1.0"))]);
    assert.equal((await runPml(ws, ["tools", "--refresh"])).code, 0);
    {
      await using pml = new RawStdio(ws, { era, capabilities: { elicitation: {} } });
      await pml.open();
      const asked = await questionOf(pml, CALL);
      assert.match(asked.text, /"greeter" is not what was approved/);
      assert.match(asked.text, /version: was "1\.0\.0", is "1\.1\.0"/);
      assert.match(asked.text, /integrity: was "sha256-[0-9a-f]{64}", is "sha256-[0-9a-f]{64}"/);
      await read();
      assert.equal(textOf(await asked.answer(picked("Yes"))), "Bonjour Ada");
      assert.equal((await pml.close()).code, 0);
    }
  });
}

void [join, manifestEntry];
