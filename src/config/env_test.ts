import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { ownEnvironment, programEnvironment, serverEnvironment } from "./child_environment.ts";
import { environmentOf, readEnvironment, withoutVariables } from "./env.ts";

Deno.test("environmentOf() finds both homes", () => {
  const plain = environmentOf({ HOME: "/people/ada" });
  assert.equal(plain.userHome, "/people/ada");
  assert.equal(plain.home, "/people/ada/.pml");
  assert.equal(environmentOf({ HOME: "/people/ada", PML_HOME: "/x/y" }).home, "/x/y");
  assert.equal(environmentOf({ HOME: "/people/ada", PML_HOME: "rel" }).home, resolve("rel"));
  assert.notEqual(environmentOf({}).userHome, "");
});

Deno.test("environmentOf() treats an empty value, and an unfilled placeholder, as unset", () => {
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

Deno.test("environmentOf() returns no inherited property of objects for a variable", () => {
  assert.equal(environmentOf({}).get("constructor"), undefined);
  assert.equal(environmentOf({}).get("__proto__"), undefined);
});

Deno.test("withoutVariables() removes the variables, with the reason", () => {
  const set = { PML_HOME: "/evil", PML_TRUST: "/evil/a", PML_REGISTRIES: "https://evil.example" };
  const environment = environmentOf({ HOME: "/h", ...set });
  assert.deepEqual(environment.registries, ["https://evil.example"]);
  const why = new Map([["PML_HOME", "f sets it"], ["PML_TRUST", "why"], ["PML_REGISTRIES", "g"]]);
  const counting = withoutVariables(environment, why);
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

Deno.test("environmentOf() takes names of variables in any case on Windows, and only there", () => {
  const set = { Path: "C:\\bin", SystemRoot: "C:\\W", UserProfile: "/h", pml_log_level: "debug" };
  const windows = environmentOf(set, undefined, { os: "windows" });
  assert.equal(windows.get("PATH"), "C:\\bin");
  assert.equal(windows.get("systemroot"), "C:\\W");
  assert.equal(windows.userHome, resolve("/h"));
  assert.equal(windows.logLevel, "debug");
  const linux = environmentOf(set, undefined, { os: "linux" });
  assert.deepEqual([linux.get("PATH"), linux.get("Path")], [undefined, "C:\\bin"]);
});

Deno.test("environmentOf() finds the home in the profile on Windows, not in the HOME of Git Bash", () => {
  const set = { HOME: "/c/Users/ada", USERPROFILE: "/profile" };
  const windows = environmentOf(set, "/account", { os: "windows" });
  assert.deepEqual([windows.userHome, windows.home], [
    resolve("/profile"),
    resolve("/profile/.pml"),
  ]);
  assert.equal(
    environmentOf({ HOME: "/h" }, "/account", { os: "windows" }).userHome,
    resolve("/h"),
  );
  assert.equal(environmentOf(set, "/account", { os: "linux" }).userHome, resolve("/c/Users/ada"));
  const counting = withoutVariables(windows, new Map([["HOME", "a client sets it"]]));
  assert.equal(counting.get("USERPROFILE"), "/account");
});

Deno.test("Programs of Windows get the variables that every program there may need", () => {
  const set = {
    ...{ Path: "p", SystemRoot: "C:\\W", APPDATA: "a", LocalAppData: "l", PathExt: ".EXE" },
    ...{ Temp: "t", UserProfile: "/h", SECRET_KEY: "s" },
  };
  const environment = environmentOf(set, undefined, { os: "windows" });
  for (const made of [programEnvironment, serverEnvironment, ownEnvironment]) {
    const { SYSTEMROOT, APPDATA, LOCALAPPDATA, PATHEXT, TEMP, USERPROFILE, ...more } = made(
      environment,
      "windows",
    );
    const names = [SYSTEMROOT, APPDATA, LOCALAPPDATA, PATHEXT, TEMP, USERPROFILE];
    assert.deepEqual(names, ["C:\\W", "a", "l", ".EXE", "t", "/h"]);
    // Otherwise `cmd.exe` starts programs of the folder that it runs in.
    assert.equal(more.NODEFAULTCURRENTDIRECTORYINEXEPATH, "1");
    assert.ok(!("SECRET_KEY" in more));
    assert.deepEqual(
      Object.keys(made(environment, "linux")).filter((name) => /ROOT|DATA/.test(name)),
      [],
    );
  }
});
