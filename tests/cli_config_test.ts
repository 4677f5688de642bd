import assert from "node:assert/strict";
import { assertError } from "./cli_greeter.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const YAML = "# mine\nmcpServers:\n  dead: { command: no-such-program-here }\n";

Deno.test("pml config without a terminal shows the configuration and the names of presets, and writes nothing", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, YAML);
  const result = await runPml(ws, ["config", "show", "--json"]);
  const { values, tokens, warnings } = JSON.parse(result.stdout);
  assert.equal(values["gateway.tools_exposure"].from, "default");
  assert.equal(tokens.estimated, true);
  assert.deepEqual(warnings, []);
  const wrong = await runPml(ws, ["config", "--preset", "fast"]);
  assertError(wrong, { code: "USAGE", exit: 2 });
  assert.match(wrong.stderr, /meta_only \(advanced\), semantic, hybrid_balanced \(balanced\)/);
  const refused = await runPml(ws, ["config", "--preset", "balanced"]);
  assertError(refused, { code: "APPROVAL_REQUIRED", exit: 1 });
  assert.equal(await Deno.readTextFile(`${ws.home}/config.yaml`), YAML);
});

Deno.test("pml config on a terminal writes a preset and an intent only after the typed word", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, YAML);
  const no = await runPmlOnTerminal(ws, ["config", "--preset", "migration"], {
    typed: [['Type "write"', "yes"]],
  });
  assert.deepEqual([no.code, /Nothing was changed/.test(no.stdout)], [1, true], no.stdout);
  assert.equal(await Deno.readTextFile(`${ws.home}/config.yaml`), YAML);
  const written = await runPmlOnTerminal(ws, ["config", "--preset", "migration"], {
    typed: [['Type "write"', "write"]],
  });
  assert.equal(written.code, 0, written.stdout);
  assert.match(
    written.stdout,
    /now: 6 tools, [\d,]+ tokens.* 30 tools, [\d,]+ tokens \(estimated\)/,
  );
  const text = await Deno.readTextFile(`${ws.home}/config.yaml`);
  assert.ok(text.startsWith(YAML) && text.endsWith("  tools_exposure: full_proxy\n"), text);
  const intent = await runPmlOnTerminal(ws, ["config", "intent", "TypeScript", "and SQL"], {
    typed: [['Type "write"', "write"]],
  });
  assert.equal(intent.code, 0, intent.stdout);
  const made = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.deepEqual(made, { version: 1, intent: "TypeScript and SQL" });
});

Deno.test("pml config --wizard measures, recommends and writes, also if one server is broken", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await Deno.writeTextFile(
    `${ws.home}/config.yaml`,
    `${YAML}gateway: { tools_exposure: semantic }\n`,
  );
  const off = await runPmlOnTerminal(ws, ["config", "--wizard"], {
    typed: [["Which client", "cursor"], ["How many", "\x03"]],
  });
  assert.notEqual(off.code, 0);
  assert.match(await Deno.readTextFile(`${ws.home}/config.yaml`), /tools_exposure: semantic/);
  const result = await runPmlOnTerminal(ws, ["config", "--wizard"], {
    typed: [
      ["Which client", "netscape"],
      ["Which client", "cursor"],
      [/How many .*\(Enter for the 1 that are set up\)/, "12"],
      ['Type "write"', "write"],
    ],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.match(result.stdout, /"netscape" is none/);
  assert.match(result.stdout, /filesystem: \d+ tools/);
  assert.match(result.stdout, /dead: failed: .*no-such-program-here/);
  assert.match(
    result.stdout,
    /preset .*meta_only: .*[\d,]+ tools of \d servers and [\d,]+ for 12 more/,
  );
  // The servers that the table lacks are explained, and only one preset is recommended.
  assert.match(result.stdout, /\b12 servers\b[^]*\b13 tools\b[^]*\b1,400 tokens\b/);
  assert.doesNotMatch(result.stdout, /pml config --preset/);
  const text = await Deno.readTextFile(`${ws.home}/config.yaml`);
  assert.ok(text.includes("# mine") && /tools_exposure: meta_only/.test(text), text);
});

Deno.test("pml config set writes only what keeps the whole file valid", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const path = `${ws.home}/config.yaml`;
  await Deno.writeTextFile(path, YAML);
  const set = (...args: string[]) =>
    runPmlOnTerminal(ws, ["config", "set", ...args], { typed: [['Type "write"', "write"]] });
  assert.equal((await set("limits.children", "4")).code, 0);
  assert.equal((await set("gateway.tools_exposure", "semantic")).code, 0);
  const text = await Deno.readTextFile(path);
  assert.ok(text.startsWith(YAML), text);
  assert.match(text, /limits:\n {2}children: 4\n/);
  const { values } = JSON.parse((await runPml(ws, ["config", "show", "--json"])).stdout);
  assert.equal(values["gateway.tools_exposure"].value, "semantic");
  const wrong: readonly (readonly [args: readonly string[], code: string, said: RegExp])[] = [
    [["limits.childre", "4"], "CONFIG_INVALID", /unknown key, wanted "children"/],
    [["limits.children", "many"], "CONFIG_INVALID", /"limits\.children", found "many"/],
    [["nonsense", "1"], "CONFIG_INVALID", /unknown key/],
    [["permissions.allow", '["*"]'], "USAGE", /Use `pml allow`/],
    [["mcpServers.x.command", "y"], "USAGE", /Use `pml add`/],
    [["limits.children"], "USAGE", /key and a value/],
    [["", "1"], "USAGE", /key and a value/],
  ];
  for (const [args, code, said] of wrong) {
    const result = await runPml(ws, ["config", "set", ...args]);
    assertError(result, { code, exit: 2 });
    assert.match(result.stderr, said);
    assert.equal(await Deno.readTextFile(path), text);
  }
  const piped = await runPml(ws, ["config", "set", "memory", "false"]);
  assertError(piped, { code: "APPROVAL_REQUIRED", exit: 1 });
  assert.equal((await set("limits.children", "null")).code, 0);
  // A section without settings is no longer there.
  assert.doesNotMatch(await Deno.readTextFile(path), /children|limits/);
});
