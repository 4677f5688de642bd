/**
 * Texts and names that a hub refuses: invisible characters, words that resemble others, and
 * searches that no store can answer.
 *
 * @module
 */

import assert from "node:assert/strict";
import { packageOffer, put, spawnHub } from "../kit/hub.ts";
import { HUB_TEXTS } from "./hub_texts.ts";

Deno.test("a hub refuses hidden characters, and accepts texts that need joiners or emoji (GX12)", async () => {
  await using hub = await spawnHub("--rate", "999999");
  const { key } = await hub.key("acme");
  const tried = async (description: string, version: string) => {
    const tools = [{ name: "go", description, inputSchema: { type: "object", description } }];
    return await put(hub.url, key, packageOffer("acme", version, { description, tools }));
  };
  for (const [at, [text, point]] of HUB_TEXTS.hidden.entries()) {
    const { status, body } = await tried(text, `1.0.${at}`);
    assert.equal(status, 400, JSON.stringify(text));
    assert.ok(body.message.includes(point), body.message);
  }
  for (const [at, text] of HUB_TEXTS.seen.entries()) {
    const { status, body } = await tried(text, `2.0.${at}`);
    assert.equal(status, 201, `${text}: ${body.message}`);
  }
});

Deno.test("a hub refuses words of names, packages and hosts that look like others (GX12)", async () => {
  await using hub = await spawnHub("--rate", "999999");
  const { key } = await hub.key("acme");
  const install = (word: string) => ({ install: { command: "npx", args: ["-y", word] } });
  for (const word of HUB_TEXTS.alike) {
    for (const more of [install(word), { tools: [{ name: "go", title: word }] }]) {
      const { status, body } = await put(hub.url, key, packageOffer("acme", "1.0.0", more));
      assert.equal(status, 400, word);
      assert.match(body.message, /looks like another/);
    }
  }
  for (const [at, word] of HUB_TEXTS.plain.entries()) {
    const { status, body } = await put(
      hub.url,
      key,
      packageOffer("acme", `2.0.${at}`, install(word)),
    );
    assert.equal(status, 201, `${word}: ${body.message}`);
  }
});

Deno.test("a hub refuses names that look like another's by their letters (GX12)", async () => {
  await using hub = await spawnHub("--rate", "999999");
  const { key: first } = await hub.key("first");
  const { key: second } = await hub.key("second");
  for (const name of ["claude", "slack", "mail"]) {
    assert.equal((await put(hub.url, first, packageOffer(name, "1.0.0"))).status, 201, name);
  }
  for (const name of ["daude", "c1aude", "slakc", "s1ack", "5lack", "slack2", "mai1"]) {
    const { status, body } = await put(hub.url, second, packageOffer(name, "1.0.0"));
    assert.deepEqual([status, body.error], [403, "look_alike"], name);
  }
  for (const name of ["mails", "mall-x", "duke"]) {
    assert.equal((await put(hub.url, second, packageOffer(name, "1.0.0"))).status, 201, name);
  }
});

Deno.test("a search of a hub with the character NUL answers 400 (GX12)", async () => {
  await using hub = await spawnHub();
  const { key } = await hub.key("acme");
  assert.equal((await put(hub.url, key, packageOffer("acme", "1.0.0"))).status, 201);
  const { origin } = new URL(hub.url);
  const paths = [
    "/mcp?q=acme%00x",
    "/mcp?q=%00",
    "/mcp?cursor=acme%00",
    "/v0.1/servers?search=acme%00x",
    "/v0.1/servers?cursor=a%00",
    "/?q=acme%00x",
    "/search?q=acme%00x",
  ];
  for (const path of paths) {
    const response = await fetch(origin + path);
    await response.body?.cancel();
    assert.equal(response.status, 400, path);
  }
  const found = await fetch(`${hub.url}?q=acme`);
  assert.equal((await found.json()).items.length, 1);
  const { stderr } = await hub.serving.end();
  assert.equal(stderr, "");
});
