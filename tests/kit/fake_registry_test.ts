import assert from "node:assert/strict";
import { integrityOf } from "../../src/core/hash.ts";
import { FakeRegistry, manifestEntry, moduleEntry } from "./fake_registry.ts";

const SOURCE = `export const __meta__ = {
  name: "greeter",
  version: "1.2.0",
  tools: { greet: { description: "Greet", permissions: { read: ["."] } } },
};
export function greet() { return "hello"; }
`;

async function text(url: string, init: RequestInit = {}): Promise<string> {
  return await (await fetch(url, init)).text();
}

Deno.test("FakeRegistry serves modules and manifests, keeps a log, and restarts on its port", async () => {
  await using registry = await FakeRegistry.open([
    await moduleEntry("greeter", SOURCE),
    manifestEntry("serena", {
      type: "stdio",
      install: { command: "npx", args: ["-y", "s@1.0.0"] },
    }),
  ]);
  assert.equal(await text(`${registry.url}/greeter`), SOURCE);
  const headers = { accept: "application/json" };
  const manifest = await (await fetch(`${registry.url}/greeter`, { headers })).json();
  assert.equal(manifest.integrity, integrityOf(new TextEncoder().encode(SOURCE)));
  assert.deepEqual(manifest.permissions.read, ["."]);
  assert.equal((await (await fetch(`${registry.url}/serena`)).json()).type, "stdio");
  assert.deepEqual(registry.paths, ["/mcp/greeter", "/mcp/greeter", "/mcp/serena"]);
  assert.equal(registry.asked[1]?.headers.accept, "application/json");

  await registry.stop();
  await assert.rejects(fetch(registry.url));
  await registry.start();
  assert.equal((await (await fetch(registry.url)).json()).items.length, 2);
});

Deno.test("FakeRegistry has the scripted faults", async () => {
  await using registry = await FakeRegistry.open([await moduleEntry("greeter", SOURCE)]);
  const url = `${registry.url}/greeter`;
  registry.fault("/mcp/greeter", { corrupt: true, times: 1 });
  assert.notEqual(await text(url), SOURCE);
  assert.equal(await text(url), SOURCE);

  registry.fault("*", { status: 503, body: "no", contentType: "text/html", etag: undefined });
  const refused = await fetch(url);
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("content-type"), "text/html");
  assert.equal(refused.headers.get("etag"), null);
  assert.equal(await refused.text(), "no");

  registry.fault("*", { redirect: "http://127.0.0.1:1/x" });
  const led = await fetch(url, { redirect: "manual" });
  assert.deepEqual([led.status, led.headers.get("location")], [302, "http://127.0.0.1:1/x"]);
  await led.body?.cancel();

  for (const fault of [{ drop: true }, { truncate: 5 }] as const) {
    registry.fault("*", fault);
    await assert.rejects(text(url), JSON.stringify(fault));
  }
  for (const fault of [{ hang: true }, { endless: true }, { byteMs: 1_000 }] as const) {
    registry.fault("*", fault);
    const signal = AbortSignal.timeout(100);
    await assert.rejects(text(url, { signal }), { name: "TimeoutError" }, JSON.stringify(fault));
  }
  registry.fault("*");
  assert.equal(await text(url), SOURCE);
});
