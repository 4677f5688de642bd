/**
 * Publishers and the operator of a spawned hub.
 *
 * @module
 */

import assert from "node:assert/strict";
import { assertGolden } from "./kit/golden.ts";
import {
  moduleOffer,
  type Offer,
  packageOffer,
  put,
  sendRequest,
  spawnHub,
  startHub,
} from "./kit/hub.ts";
import { until } from "./kit/wait.ts";

const get = (url: string) => sendRequest(url, { method: "GET" });

Deno.test("a key publishes a version once, and all clients can read it at once", async () => {
  await using hub = await spawnHub();
  const { url } = hub;
  const { key } = await hub.key("acme");
  assert.match(key, /^pmlhub_[\w-]{43}$/);
  const offer = moduleOffer("hello", "1.0.0");
  const first = await put(url, key, offer);
  const { integrity } = offer.manifest;
  const told = { fqdn: "hello", version: "1.0.0", integrity, state: "public" };
  assert.deepEqual([first.status, first.body], [201, told]);
  assert.equal(first.headers.get("location"), `${url}/hello@1.0.0`);
  assert.equal((await get(`${url}/hello@1.0.0`)).body, offer.code);
  assert.equal((await get(`${url}/hello`)).body, offer.code);
  const catalog = await get(`${url}?q=greet&include=tools`);
  assert.deepEqual(catalog.body.items.map(({ fqdn }: { fqdn: string }) => fqdn), ["hello"]);
  const again = await put(url, key, offer);
  assert.deepEqual([again.status, again.body], [200, told]);
  const other = await put(url, key, moduleOffer("hello", "1.0.0", "hi "));
  assert.deepEqual([other.status, other.body.error], [409, "version_exists"]);
  assert.equal((await get(`${url}/hello`)).body, offer.code);
  // Another process on the same store has it, too.
  await using second = await hub.again();
  assert.equal((await get(`http://127.0.0.1:${second.port}/mcp/hello`)).body, offer.code);
  const bytes = await Deno.readTextFile(hub.ws.file("hub-data/hub.db")).catch(String);
  assert.ok(!bytes.includes(key), "the store holds a key");
});

Deno.test("without a valid key nothing is published, and a revoked one ends at once", async () => {
  await using hub = await spawnHub();
  const { url } = hub;
  const { id, key } = await hub.key("acme");
  const offer = packageOffer("weather", "1.0.0");
  const wrong = `pmlhub_${"A".repeat(43)}`;
  for (const bad of [undefined, "", "x", wrong, key.slice(0, -1), `${key}x`]) {
    const { status, body, headers } = await put(url, bad, offer);
    assert.deepEqual([status, body.error], [401, "unauthorized"], bad);
    assert.equal(headers.get("www-authenticate"), "Bearer");
    assert.ok(!JSON.stringify(body).includes("pmlhub_"));
  }
  assert.equal((await put(url, key, offer)).status, 201);
  const listed = await hub.run("key", "list");
  assert.match(listed.stdout, new RegExp(`^${id} +publisher +acme +since \\S+ +valid\n$`));
  assert.ok(!listed.stdout.includes(key));
  // It is revoked while versions are on their way: confirmed ones exist, and none is published
  // after the command has ended.
  const versions = Array.from({ length: 40 }, (_, at) => `2.0.${at}`);
  const work = versions.map((version) => put(url, key, packageOffer("weather", version)));
  const revoked = await hub.run("key", "revoke", id);
  assert.equal(revoked.stdout, `Revoked "${id}"\n`);
  const late = await put(url, key, packageOffer("weather", "3.0.0"));
  assert.equal(late.status, 401);
  for (const [at, { status }] of (await Promise.all(work)).entries()) {
    const there = (await get(`${url}/weather@${versions[at]}`)).status;
    assert.equal(there, status === 201 ? 200 : 404);
  }
  assert.match((await hub.run("key", "list")).stdout, /revoked \d{4}-/);
  const unknown = await hub.run("key", "revoke", "nobody");
  assert.equal(unknown.code, 2);
  assertGolden("hub/revoke an unknown key", unknown.stderr);
  assert.match(unknown.stderr, /^error: USAGE: .*"nobody"/);
});

Deno.test("organisations own their namespaces, and names that look like others are refused", async () => {
  await using hub = await spawnHub();
  const { url } = hub;
  const acme = (await hub.key("acme")).key;
  const other = (await hub.key("other")).key;
  const by = async (key: string, name: string) => {
    const { status, body } = await put(url, key, packageOffer(name, "1.0.0"));
    return [status, body.error];
  };
  for (const name of ["weather", "fs:read_json", "com.acme.maps"]) {
    assert.deepEqual(await by(acme, name), [201, undefined], name);
  }
  for (const name of ["weather:now", "fs:write", "com.acme.other"]) {
    assert.deepEqual(await by(other, name), [403, "forbidden"], name);
  }
  const alike = ["weathr", "vveather", "filesytem", "git", "she1l", "sq-lite:x", "git.x.y"];
  for (const name of alike) assert.deepEqual(await by(other, name), [403, "look_alike"], name);
  assert.deepEqual(await by(other, "com.maps"), [403, "forbidden"]);
  const result = await hub.run("give", "com.acme.other", "other");
  assertGolden("hub/a name for an owner", result.stdout);
  assert.deepEqual(await by(other, "com.acme.other"), [201, undefined]);
  const owners = await hub.run("owners");
  assert.equal(owners.stdout, "com.acme  acme\ncom.acme.other  other\nfs  acme\nweather  acme\n");
  for (const args of [["give", "A b", "x"], ["key", "add", "x:y"], ["give", "x"], ["key"]]) {
    const { code, stderr } = await hub.run(...args);
    assert.equal(code, 2, args.join(" "));
    assert.match(stderr, /^error: USAGE: Cannot (use|run) /);
  }
});

Deno.test("offers that clients could not use are refused with the reason, and not stored", async () => {
  await using hub = await spawnHub("--rate", "10000");
  const { url } = hub;
  const { key } = await hub.key("acme");
  const good = packageOffer("weather", "1.0.0").manifest;
  const code = moduleOffer("weather", "1.0.0");
  const deep = JSON.parse("[".repeat(100) + "]".repeat(100));
  const tool = (name: string) => ({ name, inputSchema: { type: "object" } });
  const bad: readonly (readonly [Offer | string | object, RegExp])[] = [
    ["", /the body is not JSON/],
    ["[]", /the body is not/],
    [{ manifest: [] }, /the body is not/],
    [{ manifest: good, more: 1 }, /a key "more"/],
    [{ manifest: good, code: 5 }, /code is not a/],
    [{ manifest: good, code: "x" }, / stdio has no code/],
    [{ manifest: code.manifest }, /needs its code/],
    [{ ...code, code: `${code.code} ` }, /its integrity .*, which is sha256-/],
    [{ manifest: { ...good, fqdn: "other" } }, /its fqdn is "other", wanted "weather"/],
    [{ manifest: { ...good, version: "1.0.1" } }, /its version is "1.0.1", wanted "1.0.0"/],
    [{ manifest: { ...good, evil: 1 } }, /key "evil" /],
    [
      { manifest: { ...good, description: "a\u001b[2Jb" } },
      /an invisible character, U\+001B: "a\\\\?u\{1b\}/,
    ],
    [{ manifest: { ...good, description: "a\u202eb" } }, /an invisible character/],
    [{ manifest: { ...good, warnings: ["a\u{e0041}"] } }, /an invisible character/],
    [{ manifest: { ...good, warnings: { "a\u200bb": "x" } } }, /an invisible character/],
    [{ manifest: { ...good, warnings: deep } }, /nested too deep/],
    [{ manifest: { ...good, type: "exe" } }, /type is "exe", wanted deno/],
    [{ manifest: { ...good, install: { command: "sh", args: [] } } }, /install.command is/],
    [{ manifest: { ...good, install: { command: "../x", args: [] } } }, /install.command is/],
    [{ manifest: { ...good, env_required: ["NODE_OPTIONS"] } }, /env_required is/],
    [{ manifest: { ...good, tools: [tool("filesystem:read_file")] } }, /: the tool "/],
    [{ manifest: { ...good, tools: [tool("a"), tool("A"), tool("a")] } }, /: the tool "/],
    [{ manifest: { ...good, tools: Array(20_000).fill(tool("a")) } }, /tools is/],
    [{ manifest: { ...good, type: "http", url: "http://evil.example/" } }, /url is/],
    [{ manifest: { ...good, type: "http", url: "https://u:p@evil.example/" } }, /url is/],
  ];
  for (const [body, why] of bad) {
    const reply = await sendRequest(`${url}/weather@1.0.0`, { method: "PUT", key, body });
    assert.deepEqual([reply.status, reply.body.error], [400, "invalid_entry"], `${why}`);
    assert.match(reply.body.message, /^Cannot publish "weather@1\.0\.0": /);
    assert.match(reply.body.message, why);
    assert.ok(reply.body.message.length < 700);
  }
  assert.equal((await get(`${url}/weather`)).status, 404);
  assertGolden("hub/no names", (await hub.run("owners")).stdout);
  assert.equal(
    (await sendRequest(`${url}/weather@1.0.0`, { method: "PUT", key, body: { manifest: good } }))
      .status,
    201,
  );
});

Deno.test("invalid names, other types and offers over the size limit are refused", async () => {
  await using hub = await spawnHub();
  const { url } = hub;
  const { key } = await hub.key("acme");
  const good = packageOffer("weather", "1.0.0").manifest;
  const code = moduleOffer("weather", "1.0.0");
  const names = [
    "Weather@1.0.0",
    "weather",
    "weather@latest",
    "weather@1",
    "..@1.0.0",
    "pml@1.0.0",
  ];
  for (const name of [...names, "con@1.0.0", "__proto__@1.0.0", "a%2Fb@1.0.0", "%ff@1.0.0"]) {
    const reply = await sendRequest(`${url}/${name}`, {
      method: "PUT",
      key,
      body: { manifest: good },
    });
    assert.deepEqual([reply.status, reply.body.error], [400, "invalid_entry"], name);
  }
  const plain = {
    method: "PUT",
    key,
    body: { manifest: good },
    headers: { "content-type": "x/y" },
  };
  assert.equal((await sendRequest(`${url}/weather@1.0.0`, plain)).status, 415);
  const large = { ...code, code: "x".repeat(2_000_001) };
  const huge = "x".repeat(8_000_001);
  const long = { manifest: { ...good, description: "x".repeat(1_000_001) } };
  for (const body of [large, huge, long]) {
    const reply = await sendRequest(`${url}/weather@1.0.0`, { method: "PUT", key, body });
    const wanted = [413, "too_large"];
    assert.deepEqual([reply.status, reply.body.error], wanted, reply.body.message);
  }
  assert.equal((await get(`${url}/weather`)).status, 404);
});

Deno.test("a yanked version leaves lists and tags, and is still found by its exact version", async () => {
  await using hub = await spawnHub();
  const { url } = hub;
  const { key } = await hub.key("acme");
  const other = (await hub.key("other")).key;
  for (const version of ["1.0.0", "1.1.0"]) await put(url, key, moduleOffer("hello", version));
  const tag = await sendRequest(`${url}/hello/tags/beta`, {
    method: "PUT",
    key,
    body: { version: "1.1.0" },
  });
  assert.deepEqual([tag.status, tag.body], [200, { fqdn: "hello", tags: { beta: "1.1.0" } }]);
  const at = async (name: string) => (await get(`${url}/${name}`)).headers.get("x-pml-version");
  assert.deepEqual([await at("hello"), await at("hello@beta")], ["1.1.0", "1.1.0"]);
  const yank = async (by: string, name: string, body?: object) =>
    await sendRequest(`${url}/${name}`, { method: "POST", key: by, ...body && { body } });
  assert.equal((await yank(other, "hello@1.1.0/yank")).status, 403);
  assert.equal((await yank(key, "hello@9.9.9/yank")).status, 404);
  assert.equal((await yank(key, "hello@1.1.0/yank", { reason: "a\u001b" })).status, 400);
  const done = await yank(key, "hello@1.1.0/yank", { reason: "it leaks" });
  assert.deepEqual(done.body, { fqdn: "hello", version: "1.1.0", yanked: true });
  assert.deepEqual(
    [await at("hello"), await at("hello@beta"), await at("hello@1.1.0")],
    ["1.0.0", null, "1.1.0"],
  );
  assert.equal((await put(url, key, moduleOffer("hello", "1.1.0", "new"))).status, 409);
  assert.equal((await yank(key, "hello@1.1.0/unyank")).body.yanked, false);
  assert.equal(await at("hello@beta"), "1.1.0");
  for (const bad of ["1.0.0", "a b", "a..b", "latest%00"]) {
    const path = `${url}/hello/tags/${bad}`;
    assert.equal(
      (await sendRequest(path, { method: "PUT", key, body: { version: "1.0.0" } })).status,
      400,
    );
  }
  const missing = { method: "PUT", key, body: { version: "7.0.0" } };
  assert.equal((await sendRequest(`${url}/hello/tags/beta`, missing)).status, 404);
  const gone = await sendRequest(`${url}/hello/tags/beta`, { method: "DELETE", key });
  assert.deepEqual(gone.body.tags, {});
  assert.equal(
    (await hub.run("yank", "hello@1.1.0", "--reason", "old")).stdout,
    '"hello@1.1.0" is hidden\n',
  );
  assert.equal(await at("hello"), "1.0.0");
  assert.equal((await hub.run("unyank", "hello@1.1.0")).code, 0);
  assert.equal(await at("hello"), "1.1.0");
  assert.match((await hub.run("yank", "hello@3.0.0")).stderr, /no such version/);
});

Deno.test("with --moderated no content is readable before the operator has approved it", async () => {
  await using hub = await spawnHub("--moderated");
  const { url } = hub;
  const { key } = await hub.key("acme");
  const offer = moduleOffer("hello", "1.0.0");
  const reply = await put(url, key, offer);
  assert.deepEqual([reply.status, reply.body.state], [201, "waiting"]);
  assert.equal((await get(`${url}/hello@1.0.0`)).status, 404);
  assert.deepEqual((await get(url)).body.items, []);
  assert.equal((await put(url, key, moduleOffer("hello", "1.0.0", "evil"))).status, 409);
  const { stdout } = await hub.run("waiting");
  assert.match(stdout, /^hello@1\.0\.0 +of acme +deno, \d+ bytes of code\n +"Greets"\n +may: /);
  const [, hash = ""] = /accept hello@1\.0\.0 (\S+)/.exec(stdout) ?? [];
  const [shown] = JSON.parse((await hub.run("waiting", "--json")).stdout).waiting;
  assert.deepEqual([shown.code, shown.manifest, shown.hash], [offer.code, offer.manifest, hash]);
  const stale = await hub.run("accept", "hello@1.0.0", `${hash.slice(0, -1)}x`);
  assert.deepEqual([stale.code, (await get(`${url}/hello`)).status], [2, 404]);
  assert.match(stale.stderr, /another hash/);
  assert.equal((await hub.run("accept", "hello@1.0.0", hash)).stdout, '"hello@1.0.0" is public\n');
  assert.equal((await get(`${url}/hello`)).body, offer.code);
  assert.equal((await hub.run("waiting")).stdout, "No versions are waiting\n");
  const bad = packageOffer("other", "1.0.0");
  await put(url, key, bad);
  const [other] = JSON.parse((await hub.run("waiting", "--json")).stdout).waiting;
  assert.equal(
    (await hub.run("reject", "other@1.0.0", other.hash)).stdout,
    '"other@1.0.0" is rejected\n',
  );
  assert.equal((await get(`${url}/other`)).status, 404);
  assert.match((await hub.run("reject", "other@1.0.0", other.hash)).stderr, /it is not waiting/);
});

Deno.test("a key has a limit of changes a minute, which other keys do not share", async () => {
  await using hub = await spawnHub("--rate", "3");
  const { url } = hub;
  const { key } = await hub.key("acme");
  const statuses = [];
  for (const version of ["1.0.0", "1.0.1", "1.0.2", "1.0.3"]) {
    statuses.push(await put(url, key, packageOffer("weather", version)));
  }
  assert.deepEqual(statuses.map(({ status }) => status), [201, 201, 201, 429]);
  const seconds = Number(statuses[3]?.headers.get("retry-after"));
  assert.ok(seconds > 0 && seconds <= 20, `${seconds}`);
  const other = (await hub.key("other")).key;
  assert.equal((await put(url, other, packageOffer("maps", "1.0.0"))).status, 201);
  const { code } = await hub.serving.end();
  assert.equal(code, 143);
});

Deno.test("confirmed versions survive kill -9 at any moment, and none exists in part", async () => {
  await using hub = await startHub({ args: ["--rate", "100000"], ownProcess: true });
  const { key } = await hub.key("acme");
  let serving = await hub.again();
  let at = 0;
  const told = new Set<string>();
  for (let round = 0; round < 4; round++) {
    const url = `http://127.0.0.1:${serving.port}/mcp`;
    const before = told.size;
    const lanes = Array.from({ length: 4 }, async () => {
      for (;;) {
        const name = `hello:t${at++}`;
        const offer = moduleOffer(name, "1.0.0", "x".repeat(20_000));
        const made = await put(url, key, offer).catch(() => undefined);
        if (made?.status !== 201) return;
        told.add(name);
      }
    });
    await until(() => told.size > before + 10 + round * 3);
    Deno.kill(serving.pid, "SIGKILL");
    await Promise.all(lanes);
    await serving[Symbol.asyncDispose]();
    serving = await hub.again();
  }
  const url = `http://127.0.0.1:${serving.port}/mcp`;
  for (let name = 0; name < at; name++) {
    const fqdn = `hello:t${name}`;
    const { status, body } = await get(`${url}/${fqdn}@1.0.0`);
    if (told.has(fqdn)) assert.equal(status, 200, fqdn);
    // Unconfirmed versions are complete or missing.
    if (status === 200) assert.equal(body, moduleOffer(fqdn, "1.0.0", "x".repeat(20_000)).code);
    else assert.equal(status, 404);
  }
  await serving[Symbol.asyncDispose]();
});
