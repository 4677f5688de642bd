import assert from "node:assert/strict";
import { assertError } from "./cli_greeter.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const YAML = "# mine\nmcpServers:\n  dead: { command: no-such-program-here }\n";

Deno.test("pml config without a person shows what holds and the names of presets, and writes nothing", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, YAML);
  const shown = await runPml(ws, ["config", "show", "--json"]);
  const { values, tokens, warnings } = JSON.parse(shown.stdout);
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

Deno.test("pml config on a terminal writes a preset and an intent, at the typed word alone", async () => {
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
  assert.match(written.stdout, /costs [\d,]+ tokens now and [\d,]+ after this \(estimated\)/);
  const text = await Deno.readTextFile(`${ws.home}/config.yaml`);
  assert.ok(text.startsWith(YAML) && text.endsWith("  tools_exposure: full_proxy\n"), text);
  const intent = await runPmlOnTerminal(ws, ["config", "intent", "TypeScript", "and SQL"], {
    typed: [['Type "write"', "write"]],
  });
  assert.equal(intent.code, 0, intent.stdout);
  const made = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.deepEqual(made, { version: 1, intent: "TypeScript and SQL" });
});

Deno.test("pml config --wizard measures, recommends and writes, also beside a server that is broken", async () => {
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
  const ran = await runPmlOnTerminal(ws, ["config", "--wizard"], {
    typed: [
      ["Which client", "netscape"],
      ["Which client", "cursor"],
      [/How many .*\(Enter for the 1 that are set up\)/, "12"],
      ['Type "write"', "write"],
    ],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /filesystem: \d+ tools/);
  assert.match(ran.stdout, /dead: failed: .*no-such-program-here/);
  assert.match(
    ran.stdout,
    /The preset for you is meta_only: all [\d,]+ tools of 1\d servers are more/,
  );
  const text = await Deno.readTextFile(`${ws.home}/config.yaml`);
  assert.ok(text.includes("# mine") && /tools_exposure: meta_only/.test(text), text);
});
