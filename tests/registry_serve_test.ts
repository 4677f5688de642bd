import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import type { Fetch } from "../src/core/fetch.ts";
import { parseModuleMeta } from "../src/protocol/tool.ts";
import { parseExported } from "../src/workflow/saved_capability.ts";
import { ContractSource } from "../src/registry/_contract.ts";
import { Official } from "../src/registry/_official.ts";
import { FakeUser } from "../src/registry/_scene_test.ts";
import { Cache } from "../src/registry/cache.ts";
import type { FolderReader } from "../src/registry/folder.ts";
import { Registries } from "../src/registry/registries.ts";
import { serveFolder } from "../src/registry/folder_serving.ts";
import { verifyManifest } from "../src/registry/signature.ts";
import type { StdioManifest } from "../src/servers/stdio/kind.ts";
import { officialAnswers } from "./kit/fake_official.ts";
import { FakeRegistry } from "./kit/fake_registry.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import {
  assertContract,
  EVIL,
  FILES,
  GREETER,
  rawRequest,
  spawnServing,
} from "./kit/registry_contract.ts";
import { makeWorkspace } from "./kit/workspace.ts";

Deno.test("pml registry serve answers byte for byte as the contract specifies, and runs no module here", async () => {
  const mark = `/tmp/${crypto.randomUUID()}`;
  const files = { ...FILES, "evil.ts": EVIL.replace("MARK", mark) };
  await using workspace = await makeWorkspace({
    files: Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`served/${name}`, text]),
    ),
  });
  const watch = new ProcWatch(workspace);
  const serve = ["registry", "serve", "--port", "0", "--json", "served"];
  await using serving = await spawnServing(workspace, [...pmlCommand(), ...serve]);
  const { port, said } = serving;
  assert.deepEqual(JSON.parse(said), { url: `http://127.0.0.1:${port}/mcp`, servers: 6 });
  await assertContract(port);
  await assert.rejects(Deno.stat(mark), Deno.errors.NotFound);

  await Deno.writeTextFile(workspace.file("served/greeter.ts"), GREETER.replace("hello", "hi"));
  assert.match(await rawRequest(port, "GET /mcp/greeter"), /return "hi " \+ who/);
  await Deno.writeTextFile(workspace.file("served/greeter.ts"), "throw new Error('no')");
  assert.match(await rawRequest(port, "GET /mcp/greeter"), /x-pml-version: 1\.1\.0/);

  const { code, stderr } = await serving.end();
  assert.equal(code, 143);
  assert.match(stderr, /warning: Cannot serve "broken\.ts": Expression expected/);
  assert.match(stderr, /warning: Cannot serve "greeter\.ts": .*no/);
  await watch.assertNothingLeft();
});

const plainFetch: Fetch = async (url, { named: _, ...init }) =>
  await fetch(url, { ...init, redirect: "manual" });

Deno.test("Registries finds its runnable servers in a served folder and in an official registry", async () => {
  const files = { "served/greeter.ts": GREETER, "served/serena.json": FILES["serena.json"] };
  await using workspace = await makeWorkspace({ files });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const reader: FolderReader = {
    path: workspace.file("served"),
    maxBytes: 10_000,
    parseCapability: parseExported,
    describe: async (file, code) => {
      const url = `data:application/typescript,${
        encodeURIComponent(new TextDecoder().decode(code))
      }`;
      return parseModuleMeta((await import(url)).__meta__, file);
    },
  };
  await using served = await serveFolder(reader, {
    ...{ host: "127.0.0.1", port: 0, log: { warn: () => {} } },
    privateKey: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  });
  const packages = [{ registryType: "npm", identifier: "maps-mcp", version: "2.0.0" }];
  const maps = { name: "com.example/Maps", version: "2.0.1", description: "Maps", packages };
  await using official = await FakeRegistry.open([], officialAnswers([{ server: maps }]));
  const closing = new AbortController();
  const { signal } = closing;
  const pem = String(publicKey.export({ type: "spki", format: "pem" }));
  const user = new FakeUser(signal);
  const registries = new Registries(
    [
      { source: new ContractSource(served.url, { fetch: plainFetch }), publicKey: pem },
      { source: new Official(`mcp+${official.origin}`, { fetch: plainFetch }) },
    ],
    user,
    { cache: new Cache(workspace.home, user.log) },
  );
  const entry = await registries.find("greeter", { signal });
  assert.match(entry?.vouched ?? "", /^signed/);
  const code = entry && await registries.code(entry, { signal });
  assert.equal(new TextDecoder().decode(code), GREETER);
  const serena = (await registries.find("serena", { signal }))?.manifest;
  assert.deepEqual([serena?.kind, serena?.tools[0]?.name], ["stdio", "analyze"]);
  const mapped = (await registries.find("com.example.maps", { signal }))?.manifest;
  assert.equal(mapped?.kind, "stdio");
  assert.deepEqual((mapped as StdioManifest).args, ["-y", "maps-mcp@2.0.0"]);
  await registries.refreshCatalog({ signal });
  const names = registries.catalog().map(({ fqdn }) => fqdn);
  assert.deepEqual(names.toSorted(), ["com.example.maps", "greeter", "serena"]);
  closing.abort();
});

Deno.test("serveFolder() signs each entry for the address that clients configure", async () => {
  await using workspace = await makeWorkspace({
    files: { "served/docs.json": FILES["docs.json"] },
  });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const options = {
    ...{ host: "127.0.0.1", port: 0, log: { warn: () => {} } },
    publicUrl: "https://mcp.example.com/mcp",
  };
  const reader: FolderReader = {
    path: workspace.file("served"),
    maxBytes: 10_000,
    parseCapability: parseExported,
    describe: () => Promise.reject(new Error("there is no module")),
  };
  const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
  await using served = await serveFolder(reader, { ...options, privateKey: pem });
  assert.equal(
    served.publicKey,
    publicKey.export({ type: "spki", format: "der" }).toString("base64"),
  );
  const entry = await (await fetch(`${served.url}/docs`)).json();
  const pinned = { registry: options.publicUrl, publicKey: served.publicKey ?? "" };
  assert.equal(verifyManifest(entry, pinned), Date.parse(entry.issued));
  const changed = (await Deno.stat(workspace.file("served/docs.json"))).mtime;
  assert.equal(entry.issued, changed?.toISOString());
  assert.throws(() => verifyManifest({ ...entry, url: "https://evil.example/mcp" }, pinned));
  const rsa = generateKeyPairSync("rsa", { modulusLength: 1_024 }).privateKey;
  for (const wrong of ["no key", String(rsa.export({ type: "pkcs8", format: "pem" }))]) {
    await assert.rejects(serveFolder(reader, { ...options, privateKey: wrong }), {
      code: "CONFIG_INVALID",
      message: /Ed25519/,
    });
  }
});
