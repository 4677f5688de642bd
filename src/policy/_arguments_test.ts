import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Json, JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { WINDOWS } from "../core/paths.ts";
import { parsePattern } from "../core/pattern.ts";
import { makeJudge } from "./rules.ts";

const ID = toolId("fs", "read");

/**
 * A workspace with `src/a.ts`, `secrets/key`, a folder outside, and links: `src/out` (outside),
 * `src/in` (to secrets), `into` (to src), `src/loop`, `src/nothing` (to a missing secret),
 * `src/deep` (to `other/deep`, next to `other/key`).
 */
async function place() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const workspace = join(root, "ws");
  for (const folder of ["src", "secrets", "other/deep"]) {
    await Deno.mkdir(join(workspace, folder), { recursive: true });
  }
  await Deno.mkdir(join(root, "outside"));
  for (const file of ["ws/src/a.ts", "ws/secrets/key", "ws/other/key", "outside/x"]) {
    await Deno.writeTextFile(join(root, file), file);
  }
  const links = {
    "src/out": join(root, "outside"),
    "src/in": "../secrets",
    "src/key": "../secrets/key",
    "into": "src",
    "src/loop": "loop",
    "src/nothing": "../secrets/new",
    "src/deep": "../other/deep",
  };
  for (const [at, to] of Object.entries(links)) await Deno.symlink(to, join(workspace, at));
  await Deno.symlink(workspace, join(root, "alias"));
  const list = (texts: readonly string[]) =>
    texts.map((text) => ({ pattern: parsePattern(text), source: "x" }));
  /** Returns whether an allow rule and a deny rule with this glob match a path. */
  const holds = (glob: string, path: string, name = "path") => {
    const rules = list([`fs:read(${name}=${glob})`]);
    const all = { known: () => true, workspace };
    const judged = (lists: object) =>
      makeJudge({ allow: [], ask: [], deny: [], ...lists }, all)(ID, { [name]: path }).kind;
    return {
      allows: judged({ allow: rules }) === "allow",
      denies: judged({ allow: list(["*"]), deny: rules }) === "deny",
      asks: judged({ allow: list(["*"]), ask: rules }) === "ask",
    };
  };
  return {
    root,
    workspace,
    holds,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("an allow rule matches a path only if both its text and its real path match", async () => {
  await using at = await place();
  const inside = [
    "src/a.ts",
    "./src/a.ts",
    "src//a.ts",
    "src/./a.ts",
    "secrets/../src/a.ts",
    "src/new.ts",
    "src/new/deeper/x.ts",
    join(at.workspace, "src/a.ts"),
    join(at.workspace, "src/new.ts"),
  ];
  for (const path of inside) assert.ok(at.holds("src/**", path).allows, path);
  const beyond = [
    "src",
    "",
    ".",
    "..",
    "/",
    "secrets/key",
    "src/../secrets/key",
    "src/../../ws/../outside/x",
    "../outside/x",
    "src/in/key",
    "src/in/new",
    "src/key",
    "src/out/x",
    "src/out/new",
    "src/out",
    "src/loop",
    "src/loop/x",
    "src/nothing",
    "src/nothing/x",
    "src/deep/../key",
    "src/a.ts/x",
    "into/a.ts",
    join(at.root, "outside/x"),
    join(at.root, "alias/src/a.ts"),
    "~/src/a.ts",
    "~root",
    "file:src/a.ts",
    pathToFileURL(join(at.workspace, "src/a.ts")).href,
    "http://src/a.ts",
    "src/a\0.ts",
    "src/a\n.ts",
    `src/${"x".repeat(300)}`,
    `src/${"x/".repeat(3_000)}`,
  ];
  for (const path of beyond) assert.ok(!at.holds("src/**", path).allows, path.slice(0, 80));
  // No pattern ever allows a path outside the workspace.
  const anywhere = ["../outside/x", "src/out/x", join(at.root, "outside/x"), "~/x", ".."];
  for (const glob of ["**", "../**", "/**"]) {
    for (const path of anywhere) assert.ok(!at.holds(glob, path).allows, `${glob}: ${path}`);
  }
});

Deno.test("an allow rule matches a list of paths only if it matches each, and other rules match every list", async () => {
  await using at = await place();
  const rule = [{ pattern: parsePattern("git:add(paths=src/**)"), source: "x" }];
  const judged = (paths: Json, lists: object, more: object = {}) => {
    const options = { known: () => true, workspace: at.workspace, ...more };
    return makeJudge({ allow: [], ask: [], deny: [], ...lists }, options)(toolId("git", "add"), {
      paths,
    }).kind;
  };
  for (const paths of [["src/a.ts"], ["src/a.ts", "./src/new.ts"]]) {
    assert.equal(judged(paths, { allow: rule }), "allow", JSON.stringify(paths));
  }
  const others = [
    [],
    [["src/a.ts"]],
    [1],
    ["src/a.ts", "secrets/key"],
    ["src/../secrets/key"],
    ["src/in/key"],
    ["src/out/x"],
    Array.from({ length: 100 }, (_, index) => `src/${index}`),
  ];
  for (const paths of others) assert.equal(judged(paths, { allow: rule }), "ask", `${paths}`);
  const expanding = { variablesOf: () => () => undefined };
  assert.equal(judged(["src/a.ts"], { allow: rule }, expanding), "ask");
  const any = [{ pattern: parsePattern("git:add"), source: "x" }];
  for (const paths of [["src/a.ts"], ["other/b"]]) {
    assert.equal(judged(paths, { allow: any, deny: rule }), "deny");
  }
});

Deno.test("a rule for paths of git is certain only where they start at the workspace", async () => {
  await using at = await place();
  const judged = (args: JsonObject, list: "allow" | "deny") => {
    const rule = [{ pattern: parsePattern("git:blame(path=src/**)"), source: "x" }];
    const any = [{ pattern: parsePattern("git:blame"), source: "x" }];
    const lists = { allow: any, ask: [], deny: [], [list]: rule };
    const options = { known: () => true, workspace: at.workspace };
    return makeJudge({ ...lists, ...list === "allow" && { allow: rule } }, options)(
      toolId("git", "blame"),
      args,
    ).kind;
  };
  assert.equal(judged({ path: "src/a.ts", repo: "." }, "allow"), "allow");
  assert.equal(judged({ path: "src/a.ts", repo: "other" }, "allow"), "ask");
  assert.equal(judged({ path: "b", repo: "." }, "deny"), "allow");
  assert.equal(judged({ path: "a.ts", repo: "src" }, "deny"), "deny");
});

Deno.test("a deny or ask rule matches a path if its text or its real path may match", async () => {
  await using at = await place();
  const covered = [
    "secrets/key",
    "secrets/new",
    "secrets",
    "secrets/",
    "./secrets//key",
    "src/../secrets/key",
    "src/in/key",
    "src/in/new",
    "src/in",
    "src/key",
    // By its text this is `src/in/key`, by its real path `other/in/key`; a tool may read either.
    "src/deep/../in/key",
    "into/in/key",
    "into/../secrets/key",
    "SECRETS/key",
    join(at.workspace, "secrets/key"),
    join(at.root, "alias/secrets/key"),
    join(at.root, "alias/src/in/key"),
    // A deny rule also matches what cannot be decided.
    "src/loop",
    "src/nothing",
    "src/a.ts/x",
    "~/x",
    pathToFileURL(join(at.workspace, "secrets/key")).href,
    "secrets/key\0",
    "x".repeat(5_000),
  ];
  for (const path of covered) {
    const { denies, asks } = at.holds("secrets/**", path);
    assert.ok(denies && asks, path.slice(0, 80));
  }
  for (const path of ["src/a.ts", "src/new.ts", "secrets2/key", "other/key", ".", "../outside/x"]) {
    const { denies, asks } = at.holds("secrets/**", path);
    assert.ok(!denies && !asks, path);
  }
  assert.ok(at.holds("other/key", "src/deep/../key").denies);
  assert.ok(at.holds("src/key", "src/deep/../key").denies);
  assert.ok(at.holds("../outside/**", "src/out/x").denies);
  assert.ok(at.holds(`${at.root}/outside/**`, "src/out/x").denies);
  assert.ok(at.holds(`${at.workspace}/secrets/**`, "src/in/key").denies);
});

Deno.test("only arguments with the name of a path are treated as paths", async () => {
  await using at = await place();
  assert.ok(at.holds("src/**", "src/in/key", "text").allows);
  assert.ok(at.holds("**", "~/x", "text").allows);
  assert.ok(!at.holds("secrets/**", "src/in/key", "text").denies);
  for (const name of ["filePath", "output_dir", "source", "to", "cwd"]) {
    assert.ok(!at.holds("src/**", "src/in/key", name).allows, name);
    assert.ok(at.holds("secrets/**", "src/in/key", name).denies, name);
  }
});

Deno.test("no allow rule matches a path without a workspace", () => {
  const rule = [{ pattern: parsePattern("fs:read(path=**)"), source: "x" }];
  const none = { allow: [], ask: [], deny: [] };
  assert.equal(makeJudge({ ...none, allow: rule })(ID, { path: "a" }).kind, "ask");
  assert.equal(makeJudge({ ...none, deny: rule })(ID, { path: "a" }).kind, "deny");
});

Deno.test("arguments with names of inherited properties are read as own members", () => {
  const rule = [{ pattern: parsePattern("fs:read(constructor=**)"), source: "x" }];
  const judge = makeJudge({ allow: rule, ask: [], deny: [] });
  assert.equal(judge(ID, {}).kind, "ask");
  assert.equal(judge(ID, { constructor: "x" } as never).kind, "allow"); // JSON may have this key
});

Deno.test("an allow rule with conditions covers only the environment variables that it names (GW11)", () => {
  const judged = (rule: string, args: object) => {
    const allow = [{ pattern: parsePattern(`fs:read(${rule})`), source: "x" }];
    return makeJudge({ allow, ask: [], deny: [] })(ID, args as never).kind;
  };
  const plain = { a: "b" };
  const none = [{}, { env: {} }, { env: [] }, { env: "" }, { env: null }];
  for (const each of none) assert.equal(judged("a=b", { ...plain, ...each }), "allow");
  const some = [
    { env: { CI: "1" } },
    { env: ["CI=1"] },
    { env: "CI=1" },
    { environment: { CI: "1" } },
    { env_vars: [{ name: "CI" }] },
    { Env: { CI: "1" } },
    { environmentVariables: { CI: "1" } },
    { extra_env: true },
  ];
  for (const each of some) assert.equal(judged("a=b", { ...plain, ...each }), "ask");
  const table: [string, object | string, string][] = [
    ["a=b, env=CI", { CI: "1" }, "allow"],
    ["a=b, env=CI, env=X_*", { CI: "1", X_A: "", X_B: "" }, "allow"],
    ["a=b, env=CI, env=X_*", { CI: "1", Y: "" }, "ask"],
    ["a=b, env=CI", {}, "ask"],
    ["a=b, env=*", { CI: "1", _x: "" }, "allow"],
    ["a=b, env=**", { "a=b": "1" }, "ask"],
    // A star does not name a variable.
    ["a=b, env=**", { CI: "1", LD_PRELOAD: "x" }, "ask"],
    ["a=b, env=LD_*", { LD_PRELOAD: "x" }, "ask"],
    ["a=b, env=ld_preload", { LD_PRELOAD: "x" }, "ask"],
    ["a=b, env=LD_PRELOAD", { LD_PRELOAD: "x" }, "allow"],
    ["a=b, env=prod", ["prod"], "ask"],
    ["a=b, env=**", "CI=1 LD_PRELOAD=./x", "ask"],
    ["a=b, env=CI=*", "CI=1 LD_PRELOAD=x", "ask"],
  ];
  for (const [rule, env, wanted] of table) {
    assert.equal(judged(rule, { ...plain, env }), wanted, `${rule}: ${JSON.stringify(env)}`);
  }
  // A tool may use this name for something else.
  assert.equal(judged("a=b, env=prod", { ...plain, env: "prod" }), "allow");
});

Deno.test("arguments that need too many matching steps match deny rules and no allow rule (PM14)", () => {
  const globs = Array.from({ length: 4 }, (_, at) => `${"**a".repeat(1_300)}${at}`);
  const rules = globs.map((glob) => ({ pattern: parsePattern(`fs:read(a=${glob})`), source: "x" }));
  const none = { allow: [], ask: [], deny: [] };
  const [short, long] = [{ a: "a".repeat(100) }, { a: `${"a".repeat(4_000)}0` }];
  assert.equal(makeJudge({ ...none, deny: rules })(ID, short).kind, "ask");
  assert.equal(makeJudge({ ...none, deny: rules })(ID, long).kind, "deny");
  assert.equal(makeJudge({ ...none, allow: rules })(ID, long).kind, "ask");
});

/** The files on the Windows drive, with the case of their names on the disk. */
const ON_DISK = [
  String.raw`C:\Work\ws\src\a.ts`,
  String.raw`C:\Work\ws\secrets\key`,
  String.raw`D:\data\x`,
].flatMap((path) => {
  const names = path.split("\\");
  return names.map((_, at) => at === 0 ? `${names[0]}\\` : names.slice(0, at + 1).join("\\"));
});

/** Returns the decisions of an allow and a deny rule for a Windows path in `C:\Work\ws`. */
function onWindows(glob: string, path: string, variables?: Readonly<Record<string, string>>) {
  const list = (text: string) => [{ pattern: parsePattern(text, WINDOWS), source: "x" }];
  const realPath = (path: string) => {
    const plain = path.replace(/(?<=.{3,})\\$/, "");
    const found = ON_DISK.find((one) => one.toLowerCase() === plain.toLowerCase());
    if (found !== undefined) return found;
    throw new Deno.errors.NotFound(path);
  };
  const options = {
    known: () => true,
    workspace: String.raw`C:\Work\ws`,
    system: { rules: WINDOWS, realPath, isLink: () => false },
    variablesOf: () =>
      variables && ((name: string) => name in variables ? [variables[name] ?? ""] : undefined),
  };
  const kind = (lists: object) =>
    makeJudge({ allow: [], ask: [], deny: [], ...lists }, options)(ID, { path }).kind;
  const rule = list(`fs:read(path=${glob})`);
  return [kind({ allow: rule }), kind({ allow: list("*"), deny: rule })];
}

Deno.test("path rules match each usual spelling of a path on Windows", () => {
  const spellings = [
    "src/a.ts",
    String.raw`src\a.ts`,
    String.raw`SRC\A.ts`,
    String.raw`.\src\new\..\a.ts`,
    String.raw`C:\Work\ws\src\a.ts`,
    "c:/work/WS/src/a.ts",
    String.raw`\Work\ws\src\new.ts`,
    String.raw`src\deep\new.ts`,
  ];
  const globs = [
    "src/**",
    "SRC/**",
    String.raw`src\**`,
  ];
  for (const glob of globs) {
    for (const path of spellings) {
      for (const variables of [undefined, { ROOT: String.raw`C:\Work\ws` }]) {
        assert.deepEqual(onWindows(glob, path, variables), ["allow", "deny"], `${glob} ${path}`);
      }
    }
  }
  const others = ["secrets/key", String.raw`D:\data\x`, "..\\x"];
  for (const path of others) assert.deepEqual(onWindows("src/**", path), ["ask", "allow"], path);
  assert.deepEqual(onWindows(String.raw`d:\Data\**`, String.raw`D:\DATA\x`), ["ask", "deny"]);
  const roots = { ROOT: String.raw`C:\Work\ws` };
  for (const path of [String.raw`%ROOT%\src\a.ts`, String.raw`%root%\SRC\new.ts`]) {
    assert.deepEqual(onWindows("src/**", path, roots), ["ask", "deny"], path);
  }
});

Deno.test("a path that Windows reads differently matches every deny rule and no allow rule", () => {
  const unclear = [
    String.raw`\\?\C:\Work\ws\src\a.ts`,
    String.raw`\\.\C:\Work\ws\src\a.ts`,
    String.raw`\\localhost\C$\Work\ws\src\a.ts`,
    String.raw`\??\C:\Work\ws\src\a.ts`,
    "C:src/a.ts",
    "src/a.ts.",
    "src/a.ts ",
    "src./a.ts",
    "src/a.ts::$DATA",
    "SRC~1/a.ts",
    "src/NUL.txt",
    String.raw`C:\WORK~1\ws\src\a.ts`,
  ];
  for (const path of unclear) {
    for (const variables of [undefined, {}]) {
      assert.deepEqual(onWindows("src/**", path, variables), ["ask", "deny"], path);
      assert.deepEqual(onWindows("secrets/**", path, variables), ["ask", "deny"], path);
    }
  }
});
