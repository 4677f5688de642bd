import assert from "node:assert/strict";
import { join } from "node:path";
import { canonicalJson, type JsonObject } from "../core/json.ts";
import { parseModuleMeta } from "../protocol/tool.ts";
import { parseExported } from "../workflow/saved_capability.ts";
import { Folder, type FolderReader } from "./folder.ts";
import { integrityOf } from "../core/hash.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const module = (version: string, more = "") =>
  `${JSON.stringify({ name: "x", version, tools: { look: {} } })}\n${more}`;
const STDIO = {
  type: "stdio",
  install: { command: "npx", args: ["-y", "s@1.0.0"], env_required: ["KEY"] },
};

/** A folder whose "modules" are JSON in their first line, and the warnings about it. */
async function make(files: Readonly<Record<string, string>>) {
  const path = await Deno.realPath(await Deno.makeTempDir());
  const write = (name: string, text: string) => Deno.writeTextFileSync(join(path, name), text);
  for (const [name, text] of Object.entries(files)) write(name, text);
  const warnings: string[] = [];
  let described = 0;
  const reader: FolderReader = {
    path,
    maxBytes: 10_000,
    parseCapability: parseExported,
    describe: (file, code) => {
      described++;
      const [first = ""] = new TextDecoder().decode(code).split("\n");
      return Promise.resolve().then(() => parseModuleMeta(JSON.parse(first), file));
    },
  };
  const log = { warn: (message: string) => void warnings.push(message) };
  const folder = new Folder(reader, log);
  return {
    ...{ path, folder, warnings, write },
    described: () => described,
    names: async () =>
      (await folder.all()).flatMap(({ entries }) =>
        entries.map(({ fqdn, version }) => `${fqdn}@${version}`)
      ),
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

Deno.test("Folder names servers by their files or their manifests", async () => {
  await using made = await make({
    "weather@1.0.0.ts": module("1.0.0"),
    "weather@1.1.0.js": module("1.1.0"),
    "fs__look.ts": module("0.3.0"),
    "a.json": JSON.stringify({ ...STDIO, fqdn: "serena", version: "2.0.0" }),
    "cloudy@7.json": JSON.stringify({ type: "cloud", proxy_to: "https://c.example.com/mcp" }),
    "tags.json": JSON.stringify({ weather: { beta: "1.1.0" } }),
    "README.md": "not served",
    ".hidden.ts": module("1.0.0"),
    ".env.json": "{}",
  });
  assert.deepEqual(await made.names(), [
    ...["cloudy@7", "fs:look@0.3.0", "serena@2.0.0", "weather@1.1.0", "weather@1.0.0"],
  ]);
  assert.deepEqual(made.warnings, []);
  const { entries: [newest], tags } = await made.folder.find("weather") ?? { entries: [] };
  const hash = integrityOf(new TextEncoder().encode(module("1.1.0")));
  assert.deepEqual([newest?.manifest.integrity, newest?.immutable, tags], [hash, true, {
    beta: "1.1.0",
  }]);
  const serena = (await made.folder.find("serena"))?.entries[0];
  assert.deepEqual(
    [serena?.immutable, Object.keys(serena?.manifest ?? {}), serena?.manifest.env_required],
    [
      false,
      ["fqdn", "type", "version", "install", "tools", "env_required", "warnings", "routing"],
      ["KEY"],
    ],
  );
  assert.equal((await made.folder.find("cloudy"))?.entries[0]?.manifest.routing, "cloud");
  assert.equal(await made.folder.find("hidden"), undefined);
});

Deno.test("Folder omits invalid files, logs the reason once, and serves the rest", async () => {
  await using made = await make({
    "good.ts": module("1.0.0"),
    "broken.ts": "{",
    "Upper.ts": module("1.0.0"),
    "two@1.0.0.ts": module("1.0.1"),
    "no.json": "[]",
    "text.json": "{",
    "kind.json": JSON.stringify({ type: "deno" }),
    "odd.json": JSON.stringify({ ...STDIO, instal: {} }),
    "escape.json": JSON.stringify({ ...STDIO, fqdn: "../x" }),
    "version.json": JSON.stringify({ ...STDIO, version: "../1" }),
    "again.json": JSON.stringify({ ...STDIO, fqdn: "good", version: "1.0.0" }),
    "huge.ts": module("1.0.0", "x".repeat(10_000)),
    "tags.json": JSON.stringify({ good: { beta: 1 } }),
  });
  await Deno.mkdir(join(made.path, "folder.ts"));
  for (let time = 0; time < 2; time++) assert.equal((await made.names()).length, 1);
  const told = made.warnings.map((warning) =>
    /^Cannot serve "(.*?)": (.*)$/s.exec(warning)?.slice(1)
  );
  const said = Object.fromEntries(told.map((parts) => parts as [string, string]));
  assert.equal(made.warnings.length, 13);
  assert.match(said["broken.ts"] ?? "", /JSON/);
  assert.match(said["Upper.ts"] ?? "", /registry name/);
  assert.match(
    said["two@1.0.0.ts"] ?? "",
    /its name has version "1.0.0", but its content has "1.0.1"/,
  );
  assert.match(said["kind.json"] ?? "", /type is "deno"/);
  assert.match(said["odd.json"] ?? "", /its key "instal" is unknown/);
  assert.match(said["escape.json"] ?? "", /not a registry name/);
  assert.match(said["version.json"] ?? "", /not a registry name/);
  assert.match(said["good.ts"] ?? "", /"good@1.0.0" is defined twice/);
  assert.match(said["huge.ts"] ?? "", /bytes, and at most 10000/);
  assert.match(said["tags.json"] ?? "", /wanted/);
  assert.match(said["folder.ts"] ?? "", /not a regular file/);
});

Deno.test("Folder takes a number as the version of a manifest", async () => {
  const manifest = JSON.stringify({ ...STDIO, version: 0 });
  await using made = await make({ "a.json": manifest.replace('"version":0', '"version":1.0') });
  assert.deepEqual([await made.names(), made.warnings], [["a@1.0"], []]);
});

Deno.test("Folder accepts an exported capability in any JSON layout", async () => {
  const hash = `sha256-${"0".repeat(64)}`;
  const said = {
    ...{ version: 1, kind: "code", code: "return await mcp.b.y(await mcp.a.x());" },
    ...{ parameters: { type: "object" }, tools_used: { "b:y": hash, "a:x": hash } },
  };
  const text = (more: object = {}) => {
    const form = { ...said, ...more };
    return JSON.stringify(
      { hash: integrityOf(canonicalJson(form as JsonObject)), ...form },
      null,
      2,
    );
  };
  const plan = { code: undefined, kind: "plan", plan: { tasks: [] } };
  await using made = await make({
    "my__do@1.0.0.json": text(),
    "my__more.json": text({ tools_used: { "b:y": "none" } }),
    "my__none.json": text(plan),
    "named.json": JSON.stringify({ name: "my:named", ...JSON.parse(text()) }),
    "odd.json": JSON.stringify({ ...JSON.parse(text()), hash }),
    "my.json": text(),
  });
  assert.deepEqual(await made.names(), ["my:do@1.0.0", "my:named@0.0.0", "my:none@0.0.0"]);
  const entry = await made.folder.entry("my:do", undefined);
  const { integrity, tools_used: calls, type } = entry?.manifest ?? {};
  assert.deepEqual([type, calls], ["capability", ["b:y", "a:x"]]);
  assert.equal(integrity, integrityOf(entry?.code ?? new Uint8Array()));
  // A capability has two parts in its name.
  assert.match(made.warnings.shift() ?? "", /leave out the tool "" of "my\.json"/);
  assertGolden("registry/files that cannot be served", [...made.warnings].sort().join("\n"));
});

Deno.test("Folder serves a changed file at once and does not read an unchanged one again", async () => {
  await using made = await make({ "a.ts": module("1.0.0"), "b@1.0.0.ts": module("1.0.0") });
  assert.deepEqual(await made.names(), ["a@1.0.0", "b@1.0.0"]);
  await made.folder.find("a");
  assert.equal(made.described(), 2);
  made.write("a.ts", module("1.0.1 ".trim(), "// longer"));
  assert.equal((await made.folder.find("a"))?.entries[0]?.version, "1.0.1");
  made.write("a.ts", "{");
  assert.equal(await made.folder.find("a"), undefined);
  assert.deepEqual(await made.names(), ["b@1.0.0"]);
  made.write("a.ts", module("1.0.2"));
  assert.deepEqual(await made.names(), ["a@1.0.2", "b@1.0.0"]);
  made.write("b@1.0.0.ts", module("1.0.0", "// other"));
  await made.names();
  assert.match(made.warnings.at(-1) ?? "", /"b@1.0.0.ts" changed/);
  Deno.removeSync(join(made.path, "a.ts"));
  assert.deepEqual(await made.names(), ["b@1.0.0"]);
});

Deno.test("Folder does not follow links", async () => {
  await using outside = await make({ "secret.ts": module("1.0.0") });
  await using made = await make({ "a.ts": module("1.0.0") });
  Deno.symlinkSync(join(outside.path, "secret.ts"), join(made.path, "secret.ts"));
  Deno.symlinkSync(join(outside.path, "secret.ts"), join(made.path, "tags.json"));
  Deno.symlinkSync(outside.path, join(made.path, "up.ts"));
  assert.deepEqual(await made.names(), ["a@1.0.0"]);
  assert.equal(made.warnings.filter((warning) => warning.endsWith("it is a link")).length, 3);
  for (const name of ["up.ts/secret", "../secret", "secret", "up.ts%2fsecret", ".."]) {
    assert.equal(await made.folder.find(name), undefined, name);
  }
});

Deno.test("Folder does not read a file that replaced the checked one", async () => {
  await using outside = await make({ "secret.ts": module("9.0.0") });
  await using made = await make({ "a.ts": module("1.0.0") });
  const { openSync } = Deno;
  Deno.openSync = (path, options) => {
    Deno.removeSync(path);
    Deno.symlinkSync(join(outside.path, "secret.ts"), path);
    return openSync(path, options);
  };
  try {
    assert.deepEqual(await made.names(), []);
  } finally {
    Deno.openSync = openSync;
  }
  assert.match(made.warnings[0] ?? "", /was replaced/);
});

Deno.test("Folder does not read a file that was renamed over the checked one", async () => {
  await using made = await make({ "a.ts": module("1.0.0"), "b.txt": module("9.9.9") });
  const { openSync } = Deno;
  let isMoved = false;
  Deno.openSync = (path, options) => {
    if (!isMoved) Deno.renameSync(join(made.path, "b.txt"), path);
    isMoved = true;
    return openSync(path, options);
  };
  try {
    assert.deepEqual(await made.names(), []);
  } finally {
    Deno.openSync = openSync;
  }
  assert.match(made.warnings[0] ?? "", /another process/);
});

Deno.test("Folder waits only for the requested module", async () => {
  await using made = await make({ "a.ts": module("1.0.0"), "slow.ts": module("1.0.0") });
  const slow = Promise.withResolvers<never>();
  const reader: FolderReader = {
    path: made.path,
    maxBytes: 10_000,
    parseCapability: parseExported,
    describe: (file, code) =>
      file.endsWith("slow.ts")
        ? slow.promise
        : Promise.resolve(parseModuleMeta(JSON.parse(new TextDecoder().decode(code)), file)),
  };
  const folder = new Folder(reader, { warn: () => {} });
  assert.equal((await folder.find("a"))?.entries.length, 1);
  slow.reject(new Error("it does not load"));
  assert.equal((await folder.all()).length, 1);
});
