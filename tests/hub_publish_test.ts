/**
 * `pml-hub publish` against a spawned hub: bundles of files, and refusals.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { picked, questionOf, read } from "./attacks/questions.ts";
import { assertGolden } from "./kit/golden.ts";
import { spawnHub, type TestHub } from "./kit/hub.ts";
import { OTHER_AUTHORITY, OTHER_CERTIFICATE, OTHER_KEY } from "./kit/certificate.ts";
import { HUB } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const META = (more = "") =>
  `export const __meta__ = {
  name: "words", version: "1.0.0", description: "Counts words",
  tools: { count: { description: "Count", inputSchema: { type: "object" }${more} } },
};
`;
const PLAIN =
  `${META()}export const count = ({ text }: { text: string }) => text.split(" ").length;\n`;

async function write(hub: TestHub, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = hub.ws.file(name);
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, text);
  }
}

/** Runs `pml-hub publish` with a key of an organisation. */
async function publisher(hub: TestHub, env: Readonly<Record<string, string>> = {}) {
  const { key } = await hub.key("acme");
  return async (file: string, ...more: readonly string[]) => {
    const args = ["publish", file, "--to", hub.url, "--yes", ...more];
    const result = await runPml(hub.ws, args, {
      ...{ command: HUB, env: { PML_HUB_KEY: key, ...env } },
      // Deno reads the certificates of a process at its start.
      ...env.DENO_CERT !== undefined && { ownProcess: true },
    });
    assert.ok(!`${result.stdout}${result.stderr}`.includes(key), "the key is shown");
    return result;
  };
}

function textOf(message: { readonly result?: unknown }): string {
  const { content } = message.result as { content: readonly { text: string }[] };
  return content.map(({ text }) => text).join();
}

function privateKey(): string {
  const { privateKey } = generateKeyPairSync("ed25519");
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

async function served(answer: (request: IncomingMessage, response: ServerResponse) => void, tls?: {
  readonly cert: string;
  readonly key: string;
}) {
  const server: Server = tls === undefined ? createHttp(answer) : createServer(tls, answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.dispose]: () => void server.close() };
}

Deno.test("a signed version is published once, and by no other key or with other content", async () => {
  for (const moderated of [[], ["--moderated"]]) {
    await using hub = await spawnHub(...moderated);
    const keys = ["a.pem", "b.pem"].map((name) => [name, privateKey()] as const);
    await write(hub, { "words.ts": PLAIN, ...Object.fromEntries(keys) });
    const publish = await publisher(hub);
    const signed = async (key: string) => await publish("words.ts", "--key", hub.ws.file(key));
    const first = await signed("a.pem");
    assert.equal(first.code, 0, first.stderr);
    const accept = "application/json";
    const served = async () =>
      await (await fetch(`${hub.url}/words`, { headers: { accept } })).text();
    const before = await served();
    const again = await signed("a.pem");
    assert.deepEqual([again.code, again.stdout], [0, first.stdout], again.stderr);
    const refused = /\(409\): "words@1\.0\.0" .*other content/;
    assert.match((await signed("b.pem")).stderr, refused);
    assert.match((await publish("words.ts")).stderr, refused);
    await write(hub, { "words.ts": `${PLAIN}// another\n` });
    assert.match((await signed("a.pem")).stderr, refused);
    assert.equal(await served(), before);
  }
});

Deno.test("a file without imports is published byte for byte, once, and a client calls it", async () => {
  await using hub = await spawnHub();
  await write(hub, { "words.ts": PLAIN });
  const publish = await publisher(hub);
  const first = await publish("words.ts", "--tag", "beta");
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^words@1\.0\.0 +deno\n +code +\d+ bytes, sha256-[0-9a-f]{64}\n/);
  assert.match(
    first.stdout,
    /may +nothing outside its sandbox\n +tools +count\nPublished words@1\.0\.0 at /,
  );
  const codeOf = async (name: string) => await (await fetch(`${hub.url}/${name}`)).text();
  assert.equal(await codeOf("words"), PLAIN);
  assert.equal(await codeOf("words@beta"), PLAIN);
  const again = JSON.parse((await publish("words.ts", "--json")).stdout);
  assert.deepEqual([again.state, again.tools, again.files], ["public", ["count"], ["words.ts"]]);
  await write(hub, { "words.ts": `${PLAIN}// another\n` });
  const other = await publish("words.ts");
  assert.equal(other.code, 1);
  assertGolden("hub/another content of a version", other.stderr);
  assert.match(
    other.stderr,
    /^error: REGISTRY_BAD_RESPONSE: .*\(409\): "words@1\.0\.0"/,
  );
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: hub.url },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  await using pml = new RawStdio(ws, {
    ...{ era: "2026-07-28", answer: undefined, capabilities: { elicitation: {} } },
  });
  await pml.open();
  const call = { name: "call", arguments: { tool: "words:count", arguments: { text: "a b c" } } };
  const found = textOf(await pml.callTool("search", { query: "count words" }));
  assert.match(found, /words:count/, found);
  const question = await questionOf(pml, call);
  assert.match(question.text, new RegExp(`its code: ${again.integrity}`));
  await read();
  assert.equal(textOf(await question.answer(picked("Yes"))), "3");
});

Deno.test("a client finds a published tool that no server has yet by an example of a request", async () => {
  await using hub = await spawnHub();
  const moduleOf = (name: string, examples: string) =>
    META(examples).replace('"words"', `"${name}"`).replace("Counts words", "Sends messages")
      .replace('count: { description: "Count"', 'send: { description: "Send a message"') +
    "export const send = () => {};\n";
  const examples = ', examples: ["tell the team that lunch is ready"]';
  // Without examples the first name would win.
  await write(hub, {
    "mailer.ts": moduleOf("mailer", ""),
    "pager.ts": moduleOf("pager", examples),
  });
  const publish = await publisher(hub);
  for (const file of ["mailer.ts", "pager.ts"]) {
    const { code, stderr } = await publish(file);
    assert.equal(code, 0, stderr);
  }
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: hub.url } });
  for (const era of ["2026-07-28", "2025-11-25"] as const) {
    await using pml = new RawStdio(ws, { era, answer: undefined, capabilities: {} });
    await pml.open();
    const firstFor = async (query: string) => {
      const text = textOf(await pml.callTool("search", { query }));
      assert.match(text, /pager:send.*not installed/, text);
      return text.split(":")[0];
    };
    assert.equal(await firstFor("send a message"), "mailer");
    assert.equal(await firstFor("send a message: tell the team that lunch is ready"), "pager");
    assert.equal((await pml.close()).code, 0);
  }
});

Deno.test("pml-hub reports a published version also if its tag is refused", async () => {
  await using hub = await spawnHub();
  await write(hub, { "words.ts": PLAIN });
  const publish = await publisher(hub);
  const result = await publish("words.ts", "--tag", "1.0.0");
  assert.equal(result.code, 1, result.stderr);
  assert.match(result.stdout, /\nPublished words@1\.0\.0 at /);
  const { code, stdout } = await publish("words.ts", "--tag", "1.0.0", "--json");
  assert.deepEqual([code, JSON.parse(stdout).state], [1, "public"]);
});

Deno.test("a module and the files next to it become one file, the same each time, which runs", async () => {
  await using hub = await spawnHub();
  const main = `// A comment of mine
import { split } from "./lib/split.ts";
import type { Text } from "./types.ts";
${META()}
export const count = ({ text }: { text: Text }) => split(text).length;
`;
  await write(hub, {
    "a/words.ts": main,
    "a/types.ts": "export type Text = string;\n",
    "a/lib/split.ts": 'export { split } from "./deep/split.js";\n',
    "a/lib/deep/split.js": 'export const split = (text) => text.split(" ");\n',
  });
  const publish = await publisher(hub);
  const hashes = [];
  for (const folder of ["a", "b"]) {
    if (folder === "b") await Deno.rename(hub.ws.file("a"), hub.ws.file("b"));
    const result = await publish(`${folder}/words.ts`, "--json");
    assert.equal(result.code, 0, result.stderr);
    const said = JSON.parse(result.stdout);
    assert.deepEqual(said.files, ["words.ts", "lib/split.ts", "lib/deep/split.js"]);
    hashes.push(said.integrity);
  }
  assert.equal(hashes[0], hashes[1]);
  const code = await (await fetch(`${hub.url}/words`)).text();
  assert.ok(!code.includes(hub.ws.path) && !/^import /m.test(code), code);
  const { count } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  assert.equal(count({ text: "a b c" }), 3);
});

/** A module that blocks its thread as it loads, without using the processor. */
const STUCK =
  "export const __meta__ = Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
const many = Array.from({ length: 1_100 }, (_, at) => `import "./m${at}.ts";`).join("\n");

Deno.test("a module with a forbidden import or another error is refused before anything is sent", async () => {
  await using hub = await spawnHub();
  const publish = await publisher(hub);
  await write(hub, {
    "secret.ts": "export const secret = 1;\n",
    ...Object.fromEntries(Array.from({ length: 1_100 }, (_, at) => [`m/m${at}.ts`, ""])),
    "m/big.ts": `/*${"x".repeat(2_000_001)}*/`,
  });
  await Deno.symlink(hub.ws.file("secret.ts"), hub.ws.file("m/link.ts"));
  const bad: readonly (readonly [string, RegExp])[] = [
    [many, /it imports more than 1000 files/],
    ['import "../secret.ts";', /secret\.ts", .*outside the folder/],
    ['import "./link.ts";', /link\.ts", .*outside the folder/],
    ['import "/etc/hostname";', /"\/etc\/hostname", .*outside the folder/],
    ['import "./none.ts";', /none\.ts", .*no such file/],
    ['import "./big.ts";', /big\.ts/],
    ['import "node:fs";', /imports "node:fs"\n +The sandbox/],
    [
      'import "npm:zod@4.6.7";',
      /imports "npm:zod@4\.6\.7"\n +.*`deno bundle/,
    ],
    ['import "jsr:@std\/path";', /it imports "jsr:@std\/path"/],
    ['import "file:\/\/\/etc\/hostname";', /it imports "file:/],
    ['import "data:text\/javascript,1";', /it imports "data:/],
    ['import "http:\/\/127.0.0.1\/x.ts";', /it imports "http:/],
    ['import x from "./m1.ts" with { type: "text" };', /has attributes/],
    ["await import(globalThis.name);", /computed at run time/],
    ["import { from", /it is not valid TypeScript/],
    ['import "https:\/\/127.0.0.1:1\/x.ts";', /deno\.lock does not contain/],
  ];
  for (const [text, why] of bad) {
    await write(hub, { "m/words.ts": `${text}\n${PLAIN}` });
    const { code, stdout, stderr } = await publish("m/words.ts");
    assert.equal(code, 2, `${stdout}${stderr}`);
    assert.match(stderr, why);
    assert.match(stderr, /^error: CONFIG_INVALID: /);
  }
  const texts: readonly (readonly [string, string, RegExp])[] = [
    ["words.ts", PLAIN.replace('version: "1.0.0",', ""), /its version is "0\.0\.0"/],
    ["words.ts", STUCK, /Cannot publish "words\.ts": /],
    ["words.ts", PLAIN.replace("Counts words", "a\\u001b[2Jb"), /invisible|Cannot publish/],
    ["Words.ts", PLAIN, /Cannot publish "Words\.ts": /],
    ["words.txt", PLAIN, /does not end in \.ts/],
    ["words.json", "{", /Cannot publish "words\.json": /],
  ];
  for (const [name, text, why] of texts) {
    await write(hub, { [name]: text });
    const { code, stdout, stderr } = await publish(name);
    assert.ok(code !== 0, stdout);
    assert.match(stderr, why);
    // deno-lint-ignore no-control-regex
    assert.ok(!/[\x00-\x09\x0b-\x1f]/.test(stdout + stderr), JSON.stringify(stderr));
  }
  const catalog = await (await fetch(hub.url)).json();
  assert.deepEqual(catalog.items, []);
});

Deno.test("a file of another host is bundled if it has the hash in deno.lock", async () => {
  await using hub = await spawnHub();
  const tls = { cert: OTHER_CERTIFICATE, key: OTHER_KEY };
  const split = 'export const split = (text: string) => text.split(" ");\n';
  let body = split;
  using host = await served((request, response) => {
    if (request.url === "/moved.ts") {
      return void response.writeHead(302, { location: "/split.ts" }).end();
    }
    response.end(body);
  }, tls);
  const url = `https://127.0.0.1:${host.port}/split.ts`;
  const hash = createHash("sha256").update(split).digest("hex");
  const lock = (more: object) => JSON.stringify({ version: "5", ...more });
  const code = (from: string) =>
    `import { split } from "${from}";\n${META()}export const count = ({ text }) => split(text).length;\n`;
  await Deno.writeTextFile(hub.ws.file("ca.pem"), OTHER_AUTHORITY);
  const publish = await publisher(hub, { DENO_CERT: hub.ws.file("ca.pem") });
  await write(hub, { "words.ts": code(url), "deno.lock": lock({ remote: { [url]: hash } }) });
  const result = await publish("words.ts", "--json");
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(JSON.parse(result.stdout).files, ["words.ts", url]);
  body = `${split}// changed`;
  const changed = await publish("words.ts");
  assert.match(changed.stderr, /split\.ts" has another hash/);
  body = split;
  const moved = url.replace("split", "moved");
  await write(hub, { "words.ts": code(moved), "deno.lock": lock({ remote: { [moved]: hash } }) });
  assert.match((await publish("words.ts")).stderr, /moved\.ts" cannot be loaded/);
  await write(hub, { "deno.lock": "<<<<<<< HEAD" });
  assert.match((await publish("words.ts")).stderr, /deno\.lock": .*not a valid deno\.lock/);
});

Deno.test("nothing is published without an address, a key and a yes", async () => {
  await using hub = await spawnHub();
  await write(hub, { "words.ts": PLAIN });
  const { key } = await hub.key("acme");
  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runPml(hub.ws, ["publish", "words.ts", ...args], { command: HUB, env });
  const bad: readonly (readonly [readonly string[], Readonly<Record<string, string>>, RegExp])[] = [
    [[], { PML_HUB_KEY: key }, /without an address\n +.*--to URL/],
    [["--to", hub.url], {}, /publish without a key/],
    [["--to", hub.url], { PML_HUB_KEY: "a b" }, /PML_HUB_KEY is not a key/],
    [
      ["--to", "http:\/\/hub.example\/mcp"],
      { PML_HUB_KEY: key },
      /on the network/,
    ],
    [["--to", "ftp:\/\/x"], { PML_HUB_KEY: key }, /Cannot use the --to/],
    [["--to", hub.url], { PML_HUB_KEY: key }, /without confirmation/],
    [["--to", hub.url, "--yes"], { PML_HUB_KEY: `${key}x` }, /refused the change \(401\)/],
  ];
  for (const [args, env, why] of bad) {
    const { code, stderr } = await run(args, env);
    assert.ok(code !== 0);
    assert.match(stderr, why);
    assert.ok(!stderr.includes(key));
  }
  const dry = await run(["--dry-run"]);
  assert.deepEqual([dry.code, /^words@1\.0\.0/.test(dry.stdout)], [0, true]);
  assert.deepEqual((await (await fetch(hub.url)).json()).items, []);
  const env = { PML_HUB_KEY: key };
  const args = ["publish", "words.ts", "--to", hub.url];
  const no = await runPmlOnTerminal(hub.ws, args, {
    command: HUB,
    env,
    typed: [[/\[y\/N\]/, "n"]],
  });
  assert.equal(no.code, 2);
  const yes = await runPmlOnTerminal(hub.ws, args, {
    command: HUB,
    env,
    typed: [[/\[y\/N\]/, "y"]],
  });
  assert.match(yes.stdout, /Published words@1\.0\.0 at http/);
  const yank = ["words@1.0.0", "--to", hub.url];
  const hidden = await runPml(hub.ws, ["yank", ...yank, "--reason", "old"], { command: HUB, env });
  assert.equal(hidden.stdout, '"words@1.0.0" is hidden\n');
  assert.equal((await fetch(`${hub.url}/words`)).status, 404);
  const back = await runPml(hub.ws, ["unyank", ...yank], { command: HUB, env });
  assert.equal(back.stdout, '"words@1.0.0" is shown\n');
});

Deno.test("pml-hub publish repeats its request at a busy hub, and reports an invalid answer or a redirect", async () => {
  await using hub = await spawnHub();
  await write(hub, { "words.ts": PLAIN });
  const { key } = await hub.key("acme");
  const seen: string[] = [];
  let turn = 0;
  using fake = await served((request, response) => {
    seen.push(
      `${request.method} ${request.url} ${request.headers.authorization === `Bearer ${key}`}`,
    );
    request.resume();
    turn++;
    if (request.url?.startsWith("/busy") && turn < 3) {
      return void response.writeHead(503, { "retry-after": "0" }).end();
    }
    if (request.url?.startsWith("/busy")) {
      return void response.writeHead(201).end('{"state":"public"}');
    }
    if (request.url?.startsWith("/away")) {
      return void response.writeHead(307, { location: `http://localhost:1/x` }).end();
    }
    if (request.url?.startsWith("/escape")) {
      return void response.writeHead(403).end(JSON.stringify({ message: "a\u001b[2Jb" }));
    }
    response.writeHead(200).end("x".repeat(2_000_000));
  });
  const at = async (path: string) => {
    const args = ["publish", "words.ts", "--to", `http://127.0.0.1:${fake.port}/${path}`, "--yes"];
    return await runPml(hub.ws, args, { command: HUB, env: { PML_HUB_KEY: key } });
  };
  const busy = await at("busy");
  assert.equal(busy.code, 0, busy.stderr);
  assert.deepEqual(seen, Array(3).fill("PUT /busy/words@1.0.0 true"));
  const away = await at("away");
  assert.match(away.stderr, / status 307, /);
  const escaped = await at("escape");
  assert.match(escaped.stderr, /refused the change \(403\): a\\u\{1b\}\[2Jb/);
  assert.match((await at("garbage")).stderr, /status 200, without the JSON/);
});
