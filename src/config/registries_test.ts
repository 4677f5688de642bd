import assert from "node:assert/strict";
import { environmentOf } from "./env.ts";
import { askedRegistries, registriesOf, registryProblems } from "./registries.ts";

const HOME = "/home/me";
const MINE = [{ url: "https://mine.example/mcp" }];
const FILE = registriesOf([
  { url: "https://team.example", token_env: "TEAM", public_key: "k" },
  "mcp+https://official.example",
]);

Deno.test("askedRegistries() takes the environment's, else the file's, else the person's, else PML's", () => {
  const unset = environmentOf({ HOME });
  const said = environmentOf({ HOME, PML_REGISTRIES: "https://a.example/mcp, http://127.0.0.1:9" });
  const none = environmentOf({ HOME, PML_REGISTRIES: "none" });
  const own = [{ url: "https://a.example/mcp" }, { url: "http://127.0.0.1:9" }];
  assert.deepEqual(askedRegistries(said, FILE, MINE), own);
  assert.deepEqual(askedRegistries(none, FILE, MINE), []);
  assert.deepEqual(askedRegistries(unset, FILE, MINE), [
    { url: "https://team.example", tokenEnv: "TEAM", publicKey: "k" },
    { url: "mcp+https://official.example" },
  ]);
  assert.deepEqual(askedRegistries(unset, undefined, MINE), MINE);
  assert.deepEqual(askedRegistries(unset, [], MINE), []);
  assert.deepEqual(askedRegistries(unset), [
    { url: "https://pml.casys.ai/mcp", isDefault: true },
  ]);
});

Deno.test("askedRegistries() returns the same list until the configuration changes", () => {
  const said = environmentOf({ HOME, PML_REGISTRIES: "https://a.example/mcp" });
  assert.equal(askedRegistries(said, FILE, MINE), askedRegistries(said, undefined, MINE));
  const unset = environmentOf({ HOME });
  assert.equal(askedRegistries(unset, FILE, MINE), askedRegistries(unset, FILE));
  assert.equal(askedRegistries(unset), askedRegistries(unset));
});

Deno.test("registryProblems() names each address of PML_REGISTRIES that is none", () => {
  const PML_REGISTRIES = "ftp://x.y https://me:pw@x.y http://x.y https://good.example none";
  const names = registryProblems(environmentOf({ HOME, PML_REGISTRIES })).map((one) => one.found);
  assert.deepEqual(names, ['"ftp://x.y"', '"https://me:pw@x.y"', '"http://x.y"', '"none"']);
  assert.deepEqual(registryProblems(environmentOf({ HOME })), []);
});
