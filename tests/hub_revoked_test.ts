/**
 * How a spawned PML handles a stolen key of a publisher, a yanked version, and a changed file of
 * the hub.
 *
 * @module
 */

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { textOf } from "./attacks/oracles.ts";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { spawnHub, type TestHub } from "./kit/hub.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { HUB } from "./kit/pml_command.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const CALL = { name: "call", arguments: { tool: "acme:greet", arguments: { who: "Ada" } } };
const module = (version: string, hello: string) => `
export const __meta__ = { name: "acme", version: "${version}", tools: { greet: { description: "Greet somebody" } } };
export const greet = ({ who }) => "${hello} " + who;
`;

async function publish(hub: TestHub, key: string, [version, hello]: readonly [string, string]) {
  const file = hub.ws.file("acme.ts");
  await Deno.writeTextFile(file, module(version, hello));
  return await runPml(hub.ws, ["publish", file, "--to", hub.url, "--yes"], {
    command: HUB,
    env: { PML_HUB_KEY: key },
  });
}

function workspaceOf(registry: string): Promise<Workspace> {
  return makeWorkspace({
    env: { PML_REGISTRIES: registry },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
}

async function opened(ws: Workspace): Promise<RawStdio> {
  const pml = new RawStdio(ws, { era: "2026-07-28", capabilities: { elicitation: {} } });
  await pml.open();
  return pml;
}

/** Calls the tool for the first time, and answers yes. */
async function used(ws: Workspace): Promise<string> {
  await using pml = await opened(ws);
  const question = await questionOf(pml, CALL);
  await read();
  const text = textOf(await question.answer(picked("Yes")));
  assert.equal((await pml.close()).code, 0);
  return text;
}

Deno.test("a revoked key publishes nothing, and new users do not find a yanked version", async () => {
  await using hub = await spawnHub();
  const { id, key } = await hub.key("acme");
  assert.equal((await publish(hub, key, ["1.0.0", "hello"])).code, 0);
  await using ws = await workspaceOf(hub.url);
  assert.equal(await used(ws), "hello Ada");
  // The key is stolen: its owner did not publish this version.
  assert.equal((await publish(hub, key, ["1.1.0", "evil"])).code, 0);
  assert.equal((await hub.run("key", "revoke", id)).code, 0);
  assert.equal((await hub.run("yank", "acme@1.1.0", "--reason", "stolen key")).code, 0);
  const late = await publish(hub, key, ["1.2.0", "evil"]);
  assert.match(late.stderr, /refused the change \(401\)/);
  assert.equal((await runPml(ws, ["tools", "--refresh"])).code, 0);
  {
    await using pml = await opened(ws);
    assert.equal(textOf(await answerOf(pml, CALL)), "hello Ada");
    assert.equal((await pml.close()).code, 0);
  }
  await using fresh = await workspaceOf(hub.url);
  assert.equal(await used(fresh), "hello Ada");
  // A new key of the organisation continues its versions.
  const next = await hub.key("acme");
  assert.equal((await publish(hub, next.key, ["1.2.0", "good day"])).code, 0);
  await using other = await workspaceOf(hub.url);
  assert.equal(await used(other), "good day Ada");
});

Deno.test("code that was changed in the file of a hub never runs (RG1)", async () => {
  await using hub = await spawnHub();
  const { key } = await hub.key("acme");
  assert.equal((await publish(hub, key, ["1.0.0", "hello"])).code, 0);
  {
    using db = new DatabaseSync(hub.ws.file("hub-data/hub.db"));
    const evil = new TextEncoder().encode(module("1.0.0", "evil"));
    assert.equal(db.prepare("UPDATE blobs SET bytes = ?").run(evil).changes, 1);
  }
  await using ws = await workspaceOf(hub.url);
  const text = await used(ws);
  assert.match(text, /INTEGRITY_MISMATCH|REGISTRY_BAD_RESPONSE/);
  assert.doesNotMatch(text, /evil/);
});

Deno.test("entries signed with another key than the pinned one are not used", async () => {
  const pem = await makeKey();
  await using keys = await makeWorkspace({ files: { "hub.pem": pem } });
  await using hub = await spawnHub("--key", keys.file("hub.pem"));
  const { public_key: publicKey } = JSON.parse(hub.serving.said);
  const { key } = await hub.key("acme");
  assert.equal((await publish(hub, key, ["1.0.0", "hello"])).code, 0);
  const pml = {
    version: 1,
    permissions: { allow: ["*"] },
    registries: [{ url: hub.url, public_key: publicKey }],
  };
  const env = { PML_REGISTRIES: "" };
  await using ws = await makeWorkspace({ pml, env });
  assert.equal(await used(ws), "hello Ada");
  const other = await otherKey();
  await using unsigned = await makeWorkspace({
    env,
    pml: { ...pml, registries: [{ url: hub.url, public_key: other }] },
  });
  const refused = await runPml(unsigned, ["call", "acme:greet", "who=Ada"]);
  assert.match(refused.stderr, /REGISTRY_BAD_RESPONSE[\s\S]*sign/);
});

async function makeKey(): Promise<string> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, [
    "sign",
    "verify",
  ]) as CryptoKeyPair;
  const bytes = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
  return `-----BEGIN PRIVATE KEY-----\n${bytes.toBase64()}\n-----END PRIVATE KEY-----\n`;
}

async function otherKey(): Promise<string> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, [
    "sign",
    "verify",
  ]) as CryptoKeyPair;
  return new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)).toBase64();
}
