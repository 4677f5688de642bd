import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { environmentOf, ignoring, readEnvironment } from "./env.ts";

Deno.test("environmentOf() finds both homes", () => {
  const plain = environmentOf({ HOME: "/people/ada" });
  assert.equal(plain.userHome, "/people/ada");
  assert.equal(plain.home, "/people/ada/.pml");
  assert.equal(environmentOf({ HOME: "/people/ada", PML_HOME: "/x/y" }).home, "/x/y");
  assert.equal(environmentOf({ HOME: "/people/ada", PML_HOME: "rel" }).home, resolve("rel"));
  assert.notEqual(environmentOf({}).userHome, "");
});

Deno.test("environmentOf() takes an empty value, and one that nobody filled in, for unset", () => {
  const environment = environmentOf({
    HOME: "/people/ada",
    PML_HOME: " ",
    PML_WORKSPACE: "",
    PML_TRUST: "",
    PML_API_KEY: "${PML_API_KEY:-}",
  });
  assert.equal(environment.home, "/people/ada/.pml");
  assert.equal(environment.workspace, undefined);
  assert.deepEqual(environment.trust, []);
  assert.equal(environment.apiKey, undefined);
  assert.match(environment.warnings.join(), /^Ignored PML_API_KEY/);
  assert.equal(environmentOf({ PML_API_KEY: "k" }).apiKey, "k");
});

Deno.test("environmentOf() splits PML_TRUST and makes its paths absolute", () => {
  const { trust } = environmentOf({ PML_TRUST: "/a/.pml.json::rel" });
  assert.deepEqual(trust, ["/a/.pml.json", resolve("rel")]);
});

Deno.test("environmentOf() warns of an unknown log level and takes info", () => {
  assert.equal(environmentOf({ PML_LOG_LEVEL: "DEBUG" }).logLevel, "debug");
  const loud = environmentOf({ PML_LOG_LEVEL: "loud" });
  assert.equal(loud.logLevel, "info");
  assert.match(loud.warnings.join(), /PML_LOG_LEVEL/);
});

Deno.test("environmentOf() gives no property of objects for a variable", () => {
  assert.equal(environmentOf({}).get("constructor"), undefined);
  assert.equal(environmentOf({}).get("__proto__"), undefined);
});

Deno.test("ignoring() forgets what the names say, and says why", () => {
  const set = { PML_HOME: "/evil", PML_TRUST: "/evil/a", PML_REGISTRIES: "https://evil.example" };
  const environment = environmentOf({ HOME: "/h", ...set });
  assert.deepEqual(environment.registries, ["https://evil.example"]);
  const why = new Map([["PML_HOME", "f sets it"], ["PML_TRUST", "why"], ["PML_REGISTRIES", "g"]]);
  const counting = ignoring(environment, why);
  assert.equal(counting.registries, undefined);
  assert.equal(counting.home, join("/h", ".pml"));
  assert.deepEqual(counting.trust, []);
  assert.equal(counting.get("PML_TRUST"), undefined);
  assert.equal(counting.get("HOME"), "/h");
  assert.match(counting.warnings.join(), /Ignored PML_HOME: f sets it.*PML_TRUST: why/);
});

Deno.test("readEnvironment() reads this process", () => {
  assert.equal(readEnvironment().get("PATH"), Deno.env.get("PATH"));
});
