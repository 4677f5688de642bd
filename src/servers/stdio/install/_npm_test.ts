import assert from "node:assert/strict";
import { join } from "node:path";
import { npm } from "./_npm.ts";
import { packageCommand } from "../_package_command.ts";

const SETTINGS = {
  registry: "https://mirror.example/npm/",
  "@acme:registry": "http://npm.acme.example:4873/",
  "//npm.acme.example/:_authToken": "x",
  proxy: "https://proxy.example/",
};
const USUAL = ["registry", "npmjs", "org"].join(".");

Deno.test("An archive is of a registry by its whole host, which the person configured (GW14)", () => {
  const folder = Deno.makeTempDirSync();
  const table: readonly (readonly [resolved: string | undefined, isOwn: boolean])[] = [
    ["https://mirror.example/npm/x/-/x-1.0.0.tgz", true],
    ["https://mirror.example/elsewhere/x.tgz", true],
    ["http://npm.acme.example:4873/@acme/x/-/x-1.0.0.tgz", true],
    ["https://npm.acme.example:4873/@acme/x/-/x-1.0.0.tgz", true],
    [`https://${USUAL}/x/-/x-1.0.0.tgz`, true],
    [`http://${USUAL}/x/-/x-1.0.0.tgz`, false],
    [`https://${USUAL.replace(/org$/, "evil")}/x/-/x-1.0.0.tgz`, false],
    [`https://${USUAL}.evil.example/x.tgz`, false],
    [`https://${USUAL}@evil.example/x.tgz`, false],
    [`https://${USUAL}:8443/x.tgz`, false],
    ["http://mirror.example/npm/x.tgz", false],
    ["https://mirror.example.evil.example/x.tgz", false],
    ["https://npm.acme.example/x.tgz", false],
    ["https://proxy.example/x.tgz", false],
    ["git+ssh://git@mirror.example/x.git", false],
    ["../../../elsewhere", false],
    ["file:../x", false],
    [undefined, false],
  ];
  for (const [resolved, isOwn] of table) {
    const packages = { "": {}, "node_modules/x": { resolved, integrity: "sha512-x" } };
    Deno.writeTextFileSync(join(folder, "package-lock.json"), JSON.stringify({ packages }));
    const text = npm.findForeign(folder, ["", "", JSON.stringify(SETTINGS)]);
    assert.equal(text === undefined, isOwn, `${resolved}: ${text}`);
  }
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("An archive without a hash is not installed", () => {
  const folder = Deno.makeTempDirSync();
  const x = { resolved: "https://mirror.example/npm/x/-/x-1.0.0.tgz" };
  const packages = { "": {}, "node_modules/x": x };
  Deno.writeTextFileSync(join(folder, "package-lock.json"), JSON.stringify({ packages }));
  const text = npm.findForeign(folder, ["", "", JSON.stringify(SETTINGS)]) ?? "";
  assert.match(text, /"node_modules\/x" comes without a hash/);
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("A program of a package lies in the package", () => {
  const folder = Deno.makeTempDirSync();
  const bin = { up: "../../elsewhere.js", x: "x.js" };
  Deno.mkdirSync(join(folder, "node_modules/x"), { recursive: true });
  Deno.writeTextFileSync(
    join(folder, "node_modules/x/package.json"),
    JSON.stringify({ version: "1.0.0", bin }),
  );
  const wanted = packageCommand({ name: "x", command: "npx", args: ["-y", "x"] });
  assert.ok(wanted !== undefined);
  const fileOf = (name: string) => npm.programOf(folder, { ...wanted, bin: name });
  assert.deepEqual(fileOf("x"), { version: "1.0.0", file: join("node_modules/x/x.js") });
  assert.throws(() => fileOf("up"), /it has no program "up"/);
  Deno.removeSync(folder, { recursive: true });
});
