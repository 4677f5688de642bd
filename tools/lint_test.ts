import assert from "node:assert/strict";
import plugin from "./lint.ts";
import { LAYERS, MODULES } from "./lint/layers.ts";

/** What each rule says of a source, as `rule: message`. */
function lint(filename: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, filename, source)
    .map(({ id, message }) => `${id.replace("pml/", "")}: ${message}`);
}

/** Asserts that the first source offends once, with these words, and its neighbour does not. */
function assertOffence(
  filename: string,
  says: RegExp,
  { offence, innocent }: { readonly offence: string; readonly innocent: string },
): void {
  const found = lint(filename, offence);
  assert.equal(found.length, 1, `${filename}: ${offence}: ${found.join("; ")}`);
  assert.match(found[0] ?? "", says);
  assert.deepEqual(lint(filename, innocent), [], `${filename}: ${innocent}`);
}

Deno.test("layers lets the hub import one entry of PML, and its own modules from lower layers", () => {
  const cases: [string, RegExp, string, string][] = [
    ["src/serve/a.ts", /imports "@casys/, `import "../../../src/core/json.ts";`, `import "zod";`],
    ["src/cli/a.ts", /imports "@casys/, `import "@casys/pml";`, `import "@casys/pml/registry";`],
    ["src/store/a.ts", /cannot import from "serve"/, `import "../serve/a.ts";`, `import "./a.ts";`],
    ["src/serve/b.ts", /private to/, `import "../store/_a.ts";`, `import "../store/a.ts";`],
    ["mod.ts", /cannot import from/, `import "./src/store/a.ts";`, `import "./src/cli/cli.ts";`],
  ];
  for (const [file, says, offence, innocent] of cases) {
    assertOffence(`hub/${file}`, says, { offence, innocent });
  }
  assertOffence("src/core/a.ts", /not use the package/, {
    offence: `import "@casys/pml-hub";`,
    innocent: `import "zod";`,
  });
  assertOffence("hub/src/serve/a.ts", /Standard output belongs/, {
    offence: `Deno.stdout.close();`,
    innocent: `Deno.cwd();`,
  });
});

Deno.test("kinds forbids comparisons with the names of server kinds outside src/servers/", () => {
  const offences = [
    `export const a = own.kind === "stdio";`,
    `export const a = "http" !== manifest?.type;`,
    `export const a = ["deno", "x"].includes(server.kind);`,
    `switch (kind) { case "cloud": break; }`,
  ];
  const innocent = `export const a = routing === "cloud" || own.kind === "text" || x === "stdio";`;
  for (const offence of offences) {
    assertOffence("src/app/a.ts", /comparison .*server kind/, { offence, innocent });
    assertOffence("hub/src/write/a.ts", /comparison .*server kind/, { offence, innocent });
    for (const file of ["src/servers/x/kind.ts", "src/app/a_test.ts", "tools/a.ts"]) {
      assert.deepEqual(lint(file, offence), [], file);
    }
  }
});

Deno.test("kinds forbids comparisons with the names of sources outside src/servers/", () => {
  const offences = [
    `export const a = server.origin === "builtin";`,
    `export const a = server.origin.name !== "registry";`,
    `export const a = ["private", "x"].includes(pin?.source);`,
    `switch (origin) { case "cloud": break; }`,
    `export const a = listing.kind === "unknown";`,
  ];
  const innocent = `export const a = source.kind === "builtin" || rule.source === "defaults";`;
  for (const offence of offences) {
    assertOffence("src/app/a.ts", /comparison with the (source|server kind)/, {
      offence,
      innocent,
    });
    for (const file of ["src/servers/sources/a.ts", "src/app/a_test.ts", "tools/a.ts"]) {
      assert.deepEqual(lint(file, offence), [], file);
    }
  }
});

Deno.test("only tests may import the SDK", () => {
  const offence = `import type { Server } from "@modelcontextprotocol/server";`;
  assertOffence("src/transport/a.ts", /cannot import "@modelcontextprotocol/, {
    offence,
    innocent: `import "zod";`,
  });
  assert.deepEqual(lint("src/transport/a_test.ts", offence), []);
});

Deno.test("layers lets a module import values and types from lower layers only", () => {
  const imports = (module: string) => [
    `import { a } from "../${module}/a.ts";`,
    `import type { A } from "../${module}/a.ts";`,
    `export * from "../${module}/a.ts";`,
    `await import("../${module}/a.ts");`,
    `type A = import("../${module}/a.ts").A;`,
  ];
  const names = MODULES.filter((name) => name !== "kinds");
  const layerOf = (module: string) => LAYERS.findIndex((modules) => modules.includes(module));
  for (const module of names) {
    for (const other of names.filter((name) => name !== module)) {
      const isBelow = layerOf(other) < layerOf(module);
      const expected = `layers: The module "${module}" cannot import from "${other}"`;
      const all = imports(other).flatMap((source) => lint(`src/${module}/a.ts`, source));
      assert.deepEqual(all, isBelow ? [] : imports(other).map(() => expected));
    }
  }
  assertOffence("src/core/b/c.ts", /layers: The module "core" cannot import from "audit"/, {
    offence: `import "../../audit/log.ts";`,
    innocent: `import "../json.ts";`,
  });
});

Deno.test("layers lets the definitions of server kinds import no runtime", () => {
  for (const file of ["src/servers/kinds.ts", "src/servers/stdio/kind.ts"]) {
    const up = file.includes("stdio") ? "../" : "./";
    assertOffence(file, /layers: The module "kinds" cannot import from "servers"/, {
      offence: `import "${up}client/wire.ts";`,
      innocent: `import "${up}http/kind.ts";`,
    });
  }
});

Deno.test("layers lets no server kind import from another one, except cloud from http", () => {
  const says = /layers: .*"servers\/http" .*"servers\/cloud"/;
  assertOffence("src/servers/http/a.ts", says, {
    offence: `import "../cloud/a.ts";`,
    innocent: `import "../client/a.ts"; import "../host.ts"; import "../cloud/kind.ts";`,
  });
  assert.deepEqual(lint("src/servers/cloud/a.ts", `import "../http/a.ts";`), []);
});

Deno.test("layers keeps the private files of a module, or of a folder in servers, to itself", () => {
  assertOffence("src/app/router.ts", /layers: .* is private to "io"/, {
    offence: `import "../io/_process.ts";`,
    innocent: `import "./_table.ts";`,
  });
  assertOffence("src/servers/directory.ts", /layers: .* is private to "servers\/stdio"/, {
    offence: `import "./stdio/_server_programs.ts";`,
    innocent: `import "./_table.ts"; import "./stdio/stdio_wire.ts";`,
  });
  assert.deepEqual(lint("src/servers/stdio/install/a.ts", `import "../_server_programs.ts";`), []);
});

Deno.test("layers lets a built-in import only files in its folder, and lets no code run one", () => {
  assertOffence("builtin/git/git.ts", /layers: A built-in cannot import/, {
    offence: `import "node:path";`,
    innocent: `import { log } from "./log.ts"; export const a = log;`,
  });
  assertOffence("builtin/git/git.ts", /layers: A built-in cannot import/, {
    offence: `import { a } from "../shell/shell.ts";`,
    innocent: `import { a } from "./a.ts";`,
  });
  assertOffence("src/servers/module/builtin.ts", /layers: A built-in/, {
    offence: `import * as git from "../../../builtin/git.ts";`,
    innocent: `import git from "../../../builtin/git.ts" with { type: "text" };
      import { __meta__ as meta } from "../../../builtin/git.ts";`,
  });
});

Deno.test("layers lets the code of the sandbox child be imported as text only", () => {
  assertOffence("src/sandbox/_child.ts", /layers: .*sandbox child/, {
    offence: `import { run } from "./boot/host.ts";`,
    innocent: `import host from "./boot/host.ts" with { type: "text" };`,
  });
});

Deno.test("layers keeps tests and tools out of shipped code, and ignores tests", () => {
  assertOffence("src/core/a.ts", /layers: .*"tools\/lint\.ts"/, {
    offence: `import "../../tools/lint.ts";`,
    innocent: `import presets from "../../config/presets.json" with { type: "json" };`,
  });
  assertOffence("src/core/a.ts", /layers: .*the test/, {
    offence: `import "./json_test.ts";`,
    innocent: `import "./json.ts";`,
  });
  assert.deepEqual(lint("src/core/a_test.ts", `import "../servers/cloud/rpc.ts";`), []);
});

Deno.test("layers lets mod.ts use src/app/ and export values and types of others", () => {
  assertOffence("mod.ts", /layers: "mod.ts" uses only the composition/, {
    offence: `import { judge } from "./src/policy/rules.ts";`,
    innocent: `import { openApp } from "./src/app/app.ts"; await import("./src/cli/cli.ts");
      import type { A } from "./src/core/a.ts"; export { judge } from "./src/policy/a.ts";`,
  });
});

Deno.test("layers lets registry.ts import what src/app/ may", () => {
  assertOffence("registry.ts", /cannot import from "cli"/, {
    offence: `import "./src/cli/cli.ts";`,
    innocent: `export { judge } from "./src/policy/a.ts"; import "./src/search/a.ts";`,
  });
});

Deno.test("powers leaves each power to its owner", () => {
  const cases: [string, string, string, RegExp][] = [
    ["config/config.ts", "config/env.ts", `Deno.env.get("A");`, /environment/],
    ["servers/module/loader.ts", "sandbox/sandbox.ts", `new Worker("a");`, /Worker/],
    [
      "servers/stdio/install/installs.ts",
      "sandbox/process.ts",
      `new Deno.Command("a");`,
      /process/,
    ],
    ["sandbox/_child.ts", "sandbox/process.ts", `new Deno.Command("a");`, /process/],
    ["gateway/gateway.ts", "transport/stdio/_pipes.ts", `Deno.stdout.write(b);`, /output/],
    ["cli/_call.ts", "cli/command_process.ts", `Deno.stdout.writable;`, /output/],
    ["core/a.ts", "audit/log.ts", `console.error("a");`, /console/],
    ["app/router.ts", "transport/http/client/proxy.ts", `await fetch("a");`, /network/],
    ["app/app.ts", "registry/client.ts", `await Deno.connect(a);`, /network/],
    ["config/keys.ts", "io/regular_file.ts", `Deno.readFileSync("a");`, /Reading a file/],
    ["config/keys.ts", "audit/_journal_file.ts", `Deno.openSync("a");`, /Opening a file/],
    [
      "config/keys.ts",
      "search/embedding/model_hub.ts",
      `import { readFile } from "node:fs";`,
      /of Node/,
    ],
  ];
  for (const [stranger, owner, source, says] of cases) {
    const found = lint(`src/${stranger}`, source);
    assert.equal(found.length, 1, `${stranger}: ${source}: ${found.join("; ")}`);
    assert.match(found[0] ?? "", says);
    assert.deepEqual(lint(`src/${owner}`, source), [], `${owner}: ${source}`);
  }
});

Deno.test("powers lets no file end the process", () => {
  for (
    const file of ["src/cli/cli.ts", "src/app/app.ts", "src/audit/log.ts", "mod.ts", "registry.ts"]
  ) {
    assert.match(lint(file, `Deno.exit(1);`)[0] ?? "", /not allowed in any/, file);
  }
  assert.deepEqual(lint("mod.ts", `Deno.exitCode = 1;`), []);
});

Deno.test("powers knows the other ways to spell one", () => {
  const ways = [
    `Deno["env"].get("A");`,
    `const { env } = Deno;`,
    `globalThis.Deno.env.get("A");`,
    `globalThis.fetch("a");`,
    `self["fetch"]("a");`,
    `import { env } from "node:process";`,
    `import process from "node:process"; process.env.A;`,
    `import { spawn } from "node:child_process";`,
    `await import("node:child_process");`,
    `const d = Deno;`,
    `use(Deno);`,
    `Deno[name];`,
    `const send = fetch;`,
    `use({ fetch });`,
    `use({ send: fetch });`,
    `class A { send = fetch; }`,
  ];
  for (const source of ways) assert.equal(lint("src/core/a.ts", source).length, 1, source);
});

Deno.test("powers leaves a name alone that is not the power", () => {
  const innocent = [
    `function ask(fetch: typeof globalThis.fetch) { return fetch("a"); }`,
    `function ask({ fetch }: Ports) { return fetch("a"); }`,
    `class A { fetch() {} console = 1; }`,
    `const a = { fetch: 1, console: 2 }; a.fetch; ports.fetch("a");`,
    `interface A { fetch(): void; env: string }`,
    `type A = Worker | Deno.Command | typeof fetch;`,
    `typeof Deno === "object";`,
    `await Deno.readDir("a"); Deno.args; const { args } = Deno;`,
    `import type { ChildProcess } from "node:child_process";`,
    `import { console } from "./a.ts"; console.log("a");`,
    `try { a(); } catch (fetch) { b(fetch); }`,
  ];
  for (const source of innocent) assert.deepEqual(lint("src/core/a.ts", source), [], source);
});

Deno.test("powers leaves tests and the code of the sandbox child alone", () => {
  const source = `console.log(1); Deno.exit(1); Deno.env.get("A"); new Worker("a"); fetch("a");`;
  assert.deepEqual(lint("src/sandbox/boot/host.ts", source), []);
  assert.deepEqual(lint("src/core/a_test.ts", source), []);
  assert.deepEqual(lint("tools/size.ts", source), []);
});

Deno.test("sizes reports a function of over 60 lines and a file of over 600", () => {
  const body = (lines: number) => `function a() {\n${"  b();\n".repeat(lines - 2)}}`;
  assertOffence("src/core/a.ts", /sizes: This function has 61 lines/, {
    offence: body(61),
    innocent: body(60),
  });
  assertOffence("tools/a.ts", /sizes: This file has 601 lines/, {
    offence: "a();\n".repeat(601),
    innocent: "a();\n".repeat(600),
  });
  assert.deepEqual(lint("tests/fixtures/a.ts", "a();\n".repeat(601)), []);
});

Deno.test("sizes reports nesting of more than three levels once", () => {
  assertOffence("builtin/a.ts", /deeper than 3/, {
    offence: `if (a) { for (;;) { try { while (b) { if (c) d(); } } finally { e(); } } }`,
    innocent: `if (a) { for (;;) { try { c(); } finally { e(); } } }
      if (a) b(); else if (b) c(); else if (c) d(); else if (d) e(); else if (e) f();
      for (;;) { for (;;) { for (;;) { list.map(() => { if (a) b(); }); } } }`,
  });
});

Deno.test("sizes reports a function with more than three parameters", () => {
  assertOffence("src/core/a.ts", /sizes: This function has 4 parameters/, {
    offence: `const a = (b: 1, c: 2, d: 3, e: 4) => b;`,
    innocent: `function a(this: A, b: 1, c: 2, { d, e }: D) {} a((b, c, d, e) => b);`,
  });
});

Deno.test("words reports meaningless file names", () => {
  for (const name of ["utils", "helpers", "types", "constants", "index", "mod", "_utils"]) {
    assert.match(lint(`src/core/${name}.ts`, "")[0] ?? "", /words: .* does not describe/, name);
    assert.equal(lint(`src/core/${name}_test.ts`, "").length, 1, name);
  }
  assert.match(lint("src/core/toolId.ts", "")[0] ?? "", /words: .* snake_case/);
  assert.match(lint("src/app.ts", "")[0] ?? "", /words: .* belongs to no module/);
  assert.match(lint("src/attic/a.ts", "")[0] ?? "", /words: .* belongs to no module/);
  for (
    const path of ["src/app/app.ts", "src/core/tool_id.ts", "src/core/_a.ts", "tests/utils.ts"]
  ) {
    assert.deepEqual(lint(path, ""), [], path);
  }
});

Deno.test("words wants no state in a module and no nameless export", () => {
  assertOffence("src/core/a.ts", /words: .*have state/, {
    offence: `let a = 1;`,
    innocent: `const a = 1; export const b = 2; function c() { let d = 1; d++; }`,
  });
  assert.equal(lint("src/core/a.ts", `export let a = 1;`).length, 1);
  assert.equal(lint("src/core/a.ts", `export default 1;`).length, 1);
  assert.deepEqual(lint("tools/a.ts", `let a = 1; export default a;`), []);
});

Deno.test("each rule reads absolute paths as it reads those from the root", () => {
  const root = decodeURIComponent(new URL("../", import.meta.url).pathname);
  assert.equal(lint(`${root}src/core/a.ts`, `let a = 1;`).length, 1);
});
