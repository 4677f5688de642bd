/**
 * The user's proxy and certificates, through a spawned PML: which connections use the proxy, which
 * servers receive which key, and how errors are reported.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, journalOf, textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { call } from "./full_scene.ts";
import {
  CERTIFICATE,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  ENCRYPTED_KEY,
  ENCRYPTED_OLD_KEY,
  OTHER_AUTHORITY,
  OTHER_CERTIFICATE,
  OTHER_KEY,
} from "./kit/certificate.ts";
import { ConnectProxy, TlsFront } from "./kit/connect_proxy.ts";
import { FullHttp } from "./kit/full_http.ts";
import type { Era, Json } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { writeFiles } from "./kit/workspace.ts";

const PASSWORD = "the-secret/of:the proxy";
const THERE = "https://good.invalid/mcp";
const PEM = {
  "ca.pem": CERTIFICATE,
  "other-ca.pem": OTHER_AUTHORITY,
  "client.pem": CLIENT_CERTIFICATE,
  "client.key": CLIENT_KEY,
  "other.key": OTHER_KEY,
  "encrypted.key": ENCRYPTED_KEY,
  "encrypted-old.key": ENCRYPTED_OLD_KEY,
  "none.pem": `nothing ${PASSWORD}`,
};

type Config = Readonly<Record<string, Json | Readonly<Record<string, unknown>>>>;

/** Creates a scene with a `config.yaml` and the files above next to it. */
async function sceneOf(
  config: Config,
  { era = "2026-07-28" as Era, env = {} } = {},
): Promise<Scene> {
  const servers = Object.keys(config.mcpServers ?? {});
  return await makeScene({
    era,
    pml: { version: 1, permissions: { allow: servers.map((name) => `${name}:*`) } },
    env: { PROXY_USER: "somebody", PROXY_PASSWORD: PASSWORD, ...env },
    prepare: async ({ home }) => {
      await writeFiles(home, { ...PEM, "config.yaml": JSON.stringify(config) });
    },
  });
}

function proxyOf({ port }: ConnectProxy, login = "${PROXY_USER}:${PROXY_PASSWORD}@"): string {
  return `http://${login}127.0.0.1:${port}`;
}

function portOf({ url }: FullHttp): number {
  return Number(new URL(url).port);
}

Deno.test("calls use the user's proxy, except for local addresses and exceptions", async () => {
  await using full = new FullHttp("legacy");
  await using here = new FullHttp("legacy");
  await using front = await TlsFront.before(portOf(full));
  await using proxy = await ConnectProxy.listen({
    behind: { "good.invalid:443": front.port },
    login: `somebody:${PASSWORD}`,
  });
  await using scene = await sceneOf({
    network: { proxy: proxyOf(proxy), no_proxy: ["skip.invalid"] },
    mcpServers: {
      far: { url: THERE, ca: "ca.pem" },
      near: { url: here.url },
      skip: { url: "https://skip.invalid/mcp" },
    },
  }, { era: "2025-11-25" });
  const { pml, ws } = scene;
  assert.match(textOf(await call(pml, "far:link")), /see/);
  assert.match(textOf(await call(pml, "near:link")), /see/);
  const skipped = await call(pml, "skip:link");
  assert.equal(codeOf(skipped), "UPSTREAM_DOWN");
  assert.doesNotMatch(JSON.stringify(skipped), /proxy/);
  assert.ok(proxy.asked.length > 0);
  assert.deepEqual([...new Set(proxy.asked)], ["good.invalid:443"]);
  assert.equal((await pml.close()).code, 0);
  const journal = JSON.stringify(await journalOf(ws));
  for (const text of [pml.stderr, journal, JSON.stringify(skipped)]) {
    assert.ok(!text.includes("the-secret") && !text.includes(btoa(`somebody:${PASSWORD}`)));
  }
});

Deno.test("a server that requires a certificate gets the one in its definition", async () => {
  await using full = new FullHttp("modern");
  await using wants = await TlsFront.before(portOf(full), {
    ...{ cert: OTHER_CERTIFICATE, key: OTHER_KEY, ca: OTHER_AUTHORITY },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
  await using takes = await TlsFront.before(portOf(full), {
    ...{ requestCert: true, rejectUnauthorized: false },
  });
  const url = `https://127.0.0.1:${wants.port}/mcp`;
  await using scene = await sceneOf({
    mcpServers: {
      own: { url, ca: "other-ca.pem", cert: "client.pem", key: "~/.pml/client.key" },
      // The same address without the certificate, and another one that accepts any.
      bare: { url, ca: "other-ca.pem" },
      other: { url: `https://127.0.0.1:${takes.port}/mcp`, ca: "ca.pem" },
      strange: { url, ca: "ca.pem", cert: "client.pem", key: "client.key" },
    },
  }, { era: "2026-07-28" });
  const { pml } = scene;
  assert.match(textOf(await call(pml, "own:link")), /see/);
  assert.match(textOf(await call(pml, "other:link")), /see/);
  const bare = await call(pml, "bare:link");
  assert.equal(codeOf(bare), "UPSTREAM_DOWN");
  assert.match(textOf(bare), /a client certificate/);
  assert.match(textOf(bare), /cert and key .*config.yaml/);
  const strange = await call(pml, "strange:link");
  assert.match(textOf(strange), /certificate is not valid/);
  assert.deepEqual([...new Set(wants.clients)], ["pml client"]);
  assert.deepEqual([...new Set(takes.clients)], [""]);
});

Deno.test("a certificate from behind the proxy that no authority signed is refused", async () => {
  await using full = new FullHttp("modern");
  const other = { cert: OTHER_CERTIFICATE, key: OTHER_KEY };
  await using front = await TlsFront.before(portOf(full), other);
  await using proxy = await ConnectProxy.listen({ behind: { "good.invalid:443": front.port } });
  await using scene = await sceneOf({
    network: { proxy: proxyOf(proxy, "") },
    mcpServers: { far: { url: THERE, ca: "ca.pem" }, usual: { url: THERE } },
  });
  for (const name of ["far", "usual"]) {
    const answer = await call(scene.pml, `${name}:link`);
    assert.match(textOf(answer), /proxy ".*": .*certificate/);
  }
  assert.deepEqual(full.asked, []);
});

Deno.test("a refusal by the proxy is reported, and another proxy is used from the next request on", async () => {
  await using full = new FullHttp("modern");
  await using front = await TlsFront.before(portOf(full));
  const behind = { "good.invalid:443": front.port };
  await using strict = await ConnectProxy.listen({ behind, login: "a:b" });
  await using open = await ConnectProxy.listen({ behind });
  const config = (proxy: string) => ({
    network: { proxy },
    mcpServers: { far: { url: THERE, ca: "ca.pem" } },
  });
  await using scene = await sceneOf(config(proxyOf(strict)));
  const { pml, ws } = scene;
  const refused = await call(pml, "far:link");
  assert.equal(codeOf(refused), "UPSTREAM_DOWN");
  assert.match(textOf(refused), /proxy "127.0.0.1:\d+" .*password/);
  assert.ok(!JSON.stringify(refused).includes(PASSWORD));
  const write = (proxy: string) =>
    writeFile(join(ws.home, "config.yaml"), JSON.stringify(config(proxy)));
  await write(proxyOf(open, ""));
  await until(async () => codeOf(await call(pml, "far:link")) === undefined);
  const { length } = strict.asked;
  assert.ok(open.asked.length > 0);
  await write(proxyOf(open, "${PROXY_OF_NOBODY}@"));
  await until(async () => codeOf(await call(pml, "far:link")) === "KEY_MISSING");
  assert.equal(strict.asked.length, length);
});

Deno.test("unusable files are named without their content, and a change is noticed", async () => {
  await using full = new FullHttp("modern");
  await using wants = await TlsFront.before(portOf(full), {
    ...{ cert: OTHER_CERTIFICATE, key: OTHER_KEY, ca: OTHER_AUTHORITY },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
  const url = `https://127.0.0.1:${wants.port}/mcp`;
  const own = { url, ca: "other-ca.pem", cert: "client.pem" };
  await using scene = await sceneOf({
    mcpServers: {
      gone: { ...own, key: "gone.key" },
      foreign: { ...own, key: "other.key" },
      encrypted: { ...own, key: "encrypted.key" },
      old: { ...own, key: "encrypted-old.key" },
      nokey: { ...own, key: "none.pem" },
      nocert: { ...own, cert: "none.pem", key: "client.key" },
      noca: { ...own, ca: "client.key", key: "client.key" },
    },
  });
  const { pml, ws } = scene;
  const told: Readonly<Record<string, RegExp>> = {
    gone: /gone\.key": .*no such file/,
    foreign: /other\.key": its key /,
    encrypted: /encrypted\.key": its key is encrypted/,
    old: /encrypted-old\.key": its key is encrypted/,
    nokey: /none\.pem": .*private key/,
    nocert: /none\.pem": .*no certificates/,
    noca: /client\.key": .*no certificates/,
  };
  for (const [name, why] of Object.entries(told)) {
    const answer = await call(pml, `${name}:link`);
    assert.equal(codeOf(answer), "CONFIG_INVALID", name);
    assert.match(textOf(answer), why);
    assert.ok(!JSON.stringify(answer).includes("the-secret"));
  }
  assert.deepEqual(wants.clients, []);
  await writeFiles(ws.home, { "gone.key": CLIENT_KEY });
  assert.match(textOf(await call(pml, "gone:link")), /see/);
  // PML no longer uses a connection with the old files.
  await writeFiles(ws.home, { "gone.key": OTHER_KEY });
  await until(async () => codeOf(await call(pml, "gone:link")) === "CONFIG_INVALID");
  await writeFiles(ws.home, { "gone.key": CLIENT_KEY });
  await until(async () => codeOf(await call(pml, "gone:link")) === undefined);
});

Deno.test("a workspace's file sets no proxy and no certificates", async () => {
  const files: readonly (readonly [Config, RegExp])[] = [
    [{ network: { proxy: "http://127.0.0.1:1" } }, /key "network": found an unknown key/],
    [
      { mcpServers: { a: { url: THERE, cert: "a.pem", key: "a.key" } } },
      /key "mcpServers\.a\.cert": .* in your config\.yaml/,
    ],
    [
      { private_mcps: { a: { type: "http", url: THERE, ca: "a.pem" } } },
      /key "private_mcps\.a\.ca": .* in your config\.yaml/,
    ],
  ];
  for (const [file, why] of files) {
    await using scene = await makeScene({ pml: { version: 1, ...file } });
    const answer = await scene.pml.callTool("filesystem__read_file", { path: "good.txt" });
    assert.equal(codeOf(answer), "CONFIG_INVALID");
    assert.match(textOf(answer), why);
  }
});

Deno.test("`pml doctor` and `pml config show` print the proxy and the certificates, without the login", async () => {
  await using scene = await sceneOf({
    network: { proxy: "http://${PROXY_USER}:a%2Fliteral-one@127.0.0.1:9", no_proxy: ["*.corp"] },
    mcpServers: {
      good: { url: THERE, ca: "ca.pem", cert: "client.pem", key: "client.key" },
      bad: { url: THERE, cert: "client.pem", key: "other.key" },
    },
  });
  const { ws } = scene;
  const env = { PROXY_USER: "somebody" };
  const doctor = await runPml(ws, ["doctor", "--json"], { env });
  const { findings } = JSON.parse(doctor.stdout) as {
    findings: { name: string; ok: boolean; message: string }[];
  };
  const found = (name: string) => findings.find((each) => each.name === name);
  const told = (name: string) => [found(name)?.ok, found(name)?.message];
  assert.deepEqual(told("network.proxy"), [true, "http://127.0.0.1:9"]);
  assert.deepEqual(told("network.no_proxy"), [true, "*.corp"]);
  assert.deepEqual(told("mcpServers.good.cert"), [true, "client.pem"]);
  const [ok, why] = told("server bad");
  assert.equal(ok, false);
  assert.match(`${why}`, /other\.key": .*certificate/);
  assert.equal(found("key PROXY_USER")?.ok, true);
  const config = await runPml(ws, ["config", "show", "--json"], { env });
  const { values } = JSON.parse(config.stdout);
  assert.equal(values["network.proxy"].value, "http://127.0.0.1:9");
  assert.deepEqual(values["network.no_proxy"].value, ["*.corp"]);
  assert.equal(values["mcpServers.good.cert"].value, "client.pem");
  const unset = await runPml(ws, ["doctor"], { env: { PROXY_USER: "" } });
  assert.match(unset.stdout, /FAIL key PROXY_USER: needed by network\.proxy: not set/);
  for (const { stdout, stderr } of [doctor, config, unset]) {
    assert.doesNotMatch(stdout + stderr, /literal-one|somebody/);
  }
  assert.match(await readFile(join(ws.home, "config.yaml"), "utf8"), /literal-one/);
});
