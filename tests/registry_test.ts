import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { FakeCloud } from "./kit/fake_cloud.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "./kit/fake_registry.ts";
import type { Era } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { FullHttp } from "./kit/full_http.ts";
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
      assert.match(asked.text, /Yes lets PML use "greeter" in this workspace/);
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

/** A server of npm in plain JavaScript; its tool tells what it was started with. */
const TINY = {
  "package.json": JSON.stringify({ bin: { tiny: "main.js" } }),
  "main.js": `#!/usr/bin/env node
let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    if (id === undefined) continue;
    const said = [process.env.TINY_KEY, ...process.argv.slice(2)];
    const result = method === "initialize"
      ? { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "t", version: "1" } }
      : method === "tools/list"
      ? { tools: [{ name: "tell", inputSchema: { type: "object" } }] }
      : { content: [{ type: "text", text: JSON.stringify(said) }] };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  }
});
process.stdin.on("end", () => process.exit(0));
`,
};

function called(tool: string, args = {}) {
  return { name: "call", arguments: { tool, arguments: args } };
}

Deno.test("Servers of every kind come from a registry, each with one question that has everything", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": TINY } });
  const settings = await Deno.makeTempFile({ suffix: ".npmrc" });
  await writeFile(settings, `registry=${npm.url}\n`);
  await using far = new FullHttp("modern");
  await using hub = new FakeCloud();
  const tiny = {
    type: "stdio",
    install: { command: "npx", args: ["-y", "tiny@1.0.0", "--flag"] },
    env_required: ["TINY_KEY"],
    warnings: { creates_dotfiles: [".tiny"] },
  };
  const sky = {
    type: "cloud",
    proxy_to: `${hub.url}/mcp/proxy/sky`,
    env_required: ["SKY_KEY"],
    tools: [{ name: "look", description: "Look up", inputSchema: { type: "object" } }],
  };
  await using registry = await FakeRegistry.open([
    manifestEntry("tiny", tiny),
    manifestEntry("everything", { type: "http", url: far.url }),
    manifestEntry("sky", sky),
  ]);
  const host = new URL(far.url).host;
  const pml = {
    version: 1,
    permissions: { allow: ["*"] },
    cloud: { url: hub.url },
    grants: { everything: { net: [host] }, sky: { net: [new URL(hub.url).host] } },
  };
  const env = {
    PML_REGISTRIES: registry.url,
    NPM_CONFIG_USERCONFIG: settings,
    PML_API_KEY: "account-key-canary",
  };
  await using ws = await makeWorkspace({ env, pml });
  const keys = { TINY_KEY: "tiny-key-canary", SKY_KEY: "sky-key-canary" };
  {
    await using without = new RawStdio(ws, { capabilities: { elicitation: {} } });
    await without.open();
    const missing = textOf(await answerOf(without, called("tiny:tell")));
    assert.match(missing, /"tiny": it requires TINY_KEY/);
    assert.equal((await without.close()).code, 0);
  }
  await using client = new RawStdio(ws, { env: keys, capabilities: { elicitation: {} } });
  await client.open();
  const search = textOf(await client.callTool("search", { query: "the server everything" }));
  assert.match(search, /everything:@tools/);
  const install = await questionOf(client, called("tiny:tell"));
  assert.match(
    install.text,
    /runs the command \["npx","-y","tiny@1\.0\.0","--flag"\] with your rights/,
  );
  assert.match(install.text, /TINY_KEY/);
  assert.match(install.text, /Its author warns: .*\.tiny/);
  assert.equal(npm.asked.length, 0, "installed before the yes");
  await read();
  assert.equal(
    textOf(await install.answer(picked("Yes"))),
    JSON.stringify(["tiny-key-canary", "--flag"]),
  );
  const opened = await questionOf(client, called("everything:@tools"));
  assert.ok(opened.text.includes(far.url), opened.text);
  await read();
  assert.match(textOf(await opened.answer(picked("Yes"))), /everything:/);
  const cloudy = await questionOf(client, called("sky:look"));
  assert.match(cloudy.text, /SKY_KEY goes with each call to/);
  await read();
  assert.equal(textOf(await cloudy.answer(picked("Yes"))), "look ran");
  assert.equal(hub.calls[0]?.headers["x-pml-key-sky_key"], "sky-key-canary");
  assert.equal(hub.calls[0]?.path, "/mcp/proxy/sky");
  const lock = await readFile(ws.file("pml.lock"), "utf8");
  assert.doesNotMatch(lock, /canary/);
  const { servers } = JSON.parse(lock);
  assert.match(servers.tiny.integrity, /^sha256-/);
  assert.deepEqual(Object.keys(servers), ["everything", "sky", "tiny"]);
  registry.publish([manifestEntry("tiny", {
    ...tiny,
    install: { command: "npx", args: ["-y", "tiny@1.0.0", "--evil"] },
  })]);
  assert.equal((await runPml(ws, ["tools", "--refresh"], { env: keys })).code, 0);
  const check = await runPml(ws, ["lock", "--check"]);
  assert.equal(check.code, 1);
  assert.match(check.stdout, /tiny: command: was .*--flag.*is .*--evil/);
  assert.equal((await client.close()).code, 0);
  await using again = new RawStdio(ws, { env: keys, capabilities: { elicitation: {} } });
  await again.open();
  const stale = await questionOf(again, called("tiny:tell"));
  assert.match(stale.text, /command: was .*"--flag".*, is .*"--evil"/);
  await read();
  const refused = await stale.answer(picked("No"));
  assert.match(textOf(refused), /said no/);
  assert.equal((await again.close()).code, 0);
});
