/**
 * `pml import --move`, its undo, and the undo of `pml init` in files that were changed since.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { assertError } from "./cli_greeter.ts";
import { assertGolden } from "./kit/golden.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const MCP = `{
  // mine
  "mcpServers": {
    "one": { "command": "first", "args": ["a"] }, // the first
    "two": { "command": "second" }
  },
  "other": 1
}
`;
const CODEX = `model = "x" # mine

[mcp_servers.one]
command = "first"

[mcp_servers.one.env]
LANG = "C"

[other]
a = 1
`;

function move(ws: Workspace, from: string, answers: readonly [RegExp, string][] = []) {
  return runPmlOnTerminal(ws, ["import", from, "--move"], {
    typed: [[/Import .*\[N\] no/, "y"], ...answers, [/Start th.* now/, "n"], [/out of/, "y"]],
  });
}

Deno.test("pml import --move takes the servers out of the client's file, and keeps the rest of it", async () => {
  const files = { ".mcp.json": MCP, "codex.toml": CODEX };
  const rests: readonly (readonly [string, RegExp])[] = [
    [".mcp.json", /\/\/ mine\n {2}"mcpServers": \{[^"]*\},\n {2}"other": 1/],
    ["codex.toml", /^model = "x" # mine\n\n\[other\]\na = 1\n$/],
  ];
  for (const [file, rest] of rests) {
    await using ws = await makeWorkspace({ files });
    const ran = await move(ws, file);
    assert.equal(ran.code, 0, ran.stdout);
    const { mcpServers } = parse(await Deno.readTextFile(join(ws.home, "config.yaml")));
    assert.ok(mcpServers.one !== undefined);
    assert.match(await Deno.readTextFile(ws.file(file)), rest);
    assert.equal(
      await Deno.readTextFile(ws.file(`${file}.backup`)),
      files[file as keyof typeof files],
    );
  }
});

Deno.test("pml add of a server that was imported and changed since names --replace and another name", async () => {
  const server = { command: "npx", args: ["-y", "made-up-package"] };
  const files = { ".mcp.json": JSON.stringify({ mcpServers: { "made-up": server } }) };
  await using ws = await makeWorkspace({ files });
  const imported = await runPmlOnTerminal(ws, ["import", "claude-code"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  assert.equal(imported.code, 0, imported.stdout);
  const config = join(ws.home, "config.yaml");
  const { mcpServers } = parse(await Deno.readTextFile(config));
  mcpServers["made-up"].env = { DATA: "here" };
  await Deno.writeTextFile(config, stringify({ mcpServers }));
  const { code, stderr } = await runPml(ws, ["add", "made-up", "npm:made-up-package"]);
  assert.equal(code, 2);
  assertGolden("add/a server that was imported and changed since", stderr);
});

Deno.test("pml import --undo puts the servers back, and pml init and pml doctor name the imported ones", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  // Imported without a move, the client still starts them.
  const imported = await runPmlOnTerminal(ws, ["import", "claude-code"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  assert.match(imported.stdout, /pml import claude-code --move/);
  const doctor = await runPml(ws, ["doctor"]);
  assert.match(doctor.stdout, /PML has "one", "two", too/);
  const init = await runPml(ws, ["init", "--yes"]);
  assert.match(init.stderr, /pml import claude-code --move/);
  await runPml(ws, ["init", "--undo", "--yes"]);
  const dry = await runPml(ws, ["import", "claude-code", "--move", "--dry-run"]);
  assertGolden("import/a move after an import", dry.stdout.replaceAll(ws.root, "ROOT"));
  const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move"], {
    typed: [[/Take 2 servers out of/, "y"]],
  });
  assert.equal(moved.code, 0, moved.stdout);
  assert.match(moved.stdout, /pml init --client claude-code/);
  assert.doesNotMatch(await Deno.readTextFile(ws.file(".mcp.json")), /"one"/);
  assert.doesNotMatch((await runPml(ws, ["doctor"])).stdout, /client claude-code/);
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
    typed: [[/"one", "two" from [^]*Continue\?/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("pml import --move takes out an imported server that changed in PML since, and names the others", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  await runPmlOnTerminal(ws, ["import", "claude-code"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  const config = join(ws.home, "config.yaml");
  const { mcpServers } = parse(await Deno.readTextFile(config));
  // As `pml learn` and `pml add --replace` change definitions.
  const changed = {
    one: { ...mcpServers.one, confine: true, env: { FILE: "${dataFolder}/one" } },
    two: { command: "other" },
    three: { command: "of-pml" },
  };
  await Deno.writeTextFile(config, JSON.stringify({ mcpServers: changed }));
  const more = MCP.replace(
    '{ "command": "second" }',
    `{ "command": "second" },
    "three": { "command": "third" },
    "off": { "command": "fourth", "disabled": true }`,
  );
  await Deno.writeTextFile(ws.file(".mcp.json"), more);
  const { stdout: doctor } = await runPml(ws, ["doctor"]);
  assert.match(doctor, /PML has "one", "two", too; PML cannot import "three" \(.*another/);
  const { stderr: init } = await runPml(ws, ["init", "--yes"]);
  assert.match(init, /2 servers .*pml import claude-code --move/s);
  await runPml(ws, ["init", "--undo", "--yes"]);
  const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move"], {
    typed: [[/"two": .*changed since.*Take 2 servers out of/s, "y"]],
  });
  assert.equal(moved.code, 0, moved.stdout);
  const [three, off] = moved.stdout.split("\n").filter((line) => line.includes(" stays in "));
  assertGolden("import/servers that stay", [three, off].join("\n").replaceAll(ws.root, "ROOT"));
  assert.equal(
    await Deno.readTextFile(ws.file(".mcp.json")),
    more.replace('"one": { "command": "first", "args": ["a"] }, ', "")
      .replace('    "two": { "command": "second" },\n', ""),
  );
});

Deno.test("pml import --undo changes nothing while a later edit of PML hides the move", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  assert.equal((await move(ws, "claude-code")).code, 0);
  const home = await Deno.readTextFile(join(ws.home, "config.yaml"));
  await runPml(ws, ["init", "--yes"]);
  const refused = await runPml(ws, ["import", "--undo"]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /pml init --undo/);
  assert.equal(await Deno.readTextFile(join(ws.home, "config.yaml")), home);
  await runPml(ws, ["init", "--undo", "--yes"]);
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
    typed: [[/Continue\?/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("a server whose key is only in the client's file stays there, and a copy with a key is in the PML home", async () => {
  const servers = { gh: { command: "gh", env: { GH_TOKEN: KEY } }, one: { command: "first" } };
  const text = JSON.stringify({ mcpServers: servers }, null, 2);
  await using ws = await makeWorkspace({ files: { ".mcp.json": text } });
  const ran = await move(ws, ".mcp.json", [[/Store GH_TOKEN in PML/, "n"]]);
  assert.equal(ran.code, 0, ran.stdout);
  assert.ok(!ran.stdout.includes(KEY));
  const after = await Deno.readTextFile(ws.file(".mcp.json"));
  assert.deepEqual(Object.keys(JSON.parse(after).mcpServers), ["gh"]);
  await assert.rejects(Deno.stat(ws.file(".mcp.json.backup")), Deno.errors.NotFound);
  const folder = join(ws.home, "backups");
  const [{ name = "" } = {}] = [...Deno.readDirSync(folder)];
  assert.equal(await Deno.readTextFile(join(folder, name)), text);
  assert.equal(((await Deno.stat(join(folder, name))).mode ?? 0) & 0o777, 0o600);
});

Deno.test("pml import --move only takes out the servers that a trusted .pml.json has", async () => {
  // Without --workspace, it reads both of PML's files.
  for (const option of [["--workspace"], []]) {
    await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
    const imported = await runPmlOnTerminal(ws, ["import", "claude-code", "--workspace"], {
      typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
    });
    assert.match(imported.stdout, /`pml import claude-code --move --workspace`/);
    const again = await runPml(ws, ["import", "claude-code", "--workspace"]);
    assert.match(again.stdout + again.stderr, /`pml import claude-code --move --workspace`/);
    const { stdout: doctor } = await runPml(ws, ["doctor"]);
    assert.match(doctor, /PML has "one", "two", too.*`pml import claude-code --move`/s);
    const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move", ...option], {
      typed: [[/Take 2 servers out of/, "y"]],
    });
    assert.equal(moved.code, 0, moved.stdout);
    assert.doesNotMatch(await Deno.readTextFile(ws.file(".mcp.json")), /"one"/);
    await assert.rejects(Deno.stat(join(ws.home, "config.yaml")), Deno.errors.NotFound);
    const [line] = moved.stdout.match(/- "one": .*/) ?? [];
    const section = option.length > 0
      ? "import/a moved server of the import's file"
      : "import/a moved server of the workspace's file";
    assertGolden(section, line?.replaceAll(ws.root, "ROOT"));
    const undone = await runPmlOnTerminal(ws, ["import", "--undo", "--workspace"], {
      typed: [[/Continue\?/, "y"]],
    });
    assert.equal(undone.code, 0, undone.stdout);
    assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
  }
});

Deno.test("pml import --move imports a server that only an untrusted .pml.json has", async () => {
  const own = { version: 1, mcpServers: { one: { command: "first", args: ["a"] } } };
  const files = { ".mcp.json": MCP, ".pml.json": JSON.stringify(own) };
  await using ws = await makeWorkspace({ files });
  const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move"], {
    typed: [[/Import these 2 servers/, "y"], [/Start th.* now/, "n"], [/out of/, "y"]],
  });
  assert.equal(moved.code, 0, moved.stdout);
  const { mcpServers } = parse(await Deno.readTextFile(join(ws.home, "config.yaml")));
  assert.deepEqual(Object.keys(mcpServers), ["one", "two"]);
});

Deno.test("pml import --workspace into an untrusted .pml.json starts no server, and names pml trust", async () => {
  const files = { ".mcp.json": MCP, ".pml.json": '{ "version": 1 }' };
  await using ws = await makeWorkspace({ files });
  const ran = await runPmlOnTerminal(ws, ["import", "claude-code", "--move", "--workspace"], {
    typed: [[/Import these 2 servers/, "y"]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.doesNotMatch(ran.stdout, /Start these|out of/);
  const lines = ran.stdout.split(/\r?\n/).filter((line) => line.includes("pml trust"));
  assertGolden(
    "import/into an untrusted file",
    lines.join("\n").replaceAll(ws.root, "ROOT"),
  );
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("the undo of an import leaves out the servers of the same names that another import took out", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP } });
  for (const option of [["--workspace"], []]) {
    await runPmlOnTerminal(ws, ["import", "claude-code", ...option], {
      typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
    });
  }
  const moved = await runPmlOnTerminal(ws, ["import", "claude-code", "--move", "--workspace"], {
    typed: [[/Take 2 servers out of/, "y"]],
  });
  assert.equal(moved.code, 0, moved.stdout);
  const after = await Deno.readTextFile(ws.file(".mcp.json"));
  const typed: [RegExp, string][] = [[/Continue\?/, "y"]];
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], { typed });
  assert.equal(undone.code, 0, undone.stdout);
  await assert.rejects(Deno.stat(join(ws.home, "config.yaml")), Deno.errors.NotFound);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), after);
  const last = await runPmlOnTerminal(ws, ["import", "--undo", "--workspace"], { typed });
  assert.match(last.stdout, /taking "one", "two" out/);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("pml init --undo removes exactly PML's entry if other parts of the file were changed since", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  await runPml(ws, ["init", "--yes"]);
  const path = ws.file(".mcp.json");
  const changed = (await Deno.readTextFile(path)).replace('"other": 1', '"other": 2');
  await Deno.writeTextFile(path, changed);
  const undone = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.equal(await Deno.readTextFile(path), MCP.replace('"other": 1', '"other": 2'));
  const again = await runPml(ws, ["init", "--undo", "--yes"]);
  assert.equal(again.code, 2);
});

Deno.test("pml import --undo removes the imported servers if rules were written since", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP } });
  const own = join(ws.home, "config.yaml");
  await Deno.writeTextFile(own, "limits: { call_ms: 5000 } # mine\n", { mode: 0o600 });
  await runPmlOnTerminal(ws, ["import", ".mcp.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  await runPmlOnTerminal(ws, ["allow", "one"], { typed: [[/Type "write"/, "write"]] });
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
    typed: [[/Continue\?/, "y"], [/Remove these rules/, "n"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  const text = await Deno.readTextFile(own);
  assert.match(text, /# mine/);
  const { mcpServers = {}, permissions } = parse(text);
  assert.deepEqual(mcpServers ?? {}, {});
  assert.deepEqual(permissions.allow, ["one:*"]);
});

Deno.test("pml import --undo and pml add --undo leave a later edit of another server as it is", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP } });
  const own = join(ws.home, "config.yaml");
  await Deno.writeTextFile(own, "mcpServers: { plain: { command: 'true' } }\n", { mode: 0o600 });
  const importAll = () =>
    runPmlOnTerminal(ws, ["import", ".mcp.json"], {
      typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
    });
  // The program ends at once, and the definition stays.
  const replace = (name: string) =>
    runPmlOnTerminal(ws, ["add", name, "--replace", "--", "false"], {
      typed: [[/Replace .* and start/, "y"]],
    });
  const undo = (command: string) =>
    runPmlOnTerminal(ws, [command, "--undo"], { typed: [["Continue?", "y"]] });
  const servers = async () => {
    const { mcpServers } = parse(await Deno.readTextFile(own));
    return Object.entries<{ command: string }>(mcpServers)
      .map(([name, { command }]) => `${name} ${command}`);
  };
  const imported = ["one first", "two second"];
  await importAll();
  await replace("plain");
  const first = await undo("import");
  assert.equal(first.code, 0, first.stdout);
  assert.deepEqual(await servers(), ["plain false"]);
  await importAll();
  const second = await undo("add");
  assert.equal(second.code, 0, second.stdout);
  assert.deepEqual(await servers(), ["plain true", ...imported]);
  // A replaced server of the import comes first.
  await replace("one");
  await replace("plain");
  assertError(await runPml(ws, ["import", "--undo"]), { code: "USAGE", exit: 2 });
  for (const command of ["add", "add", "import"]) {
    const { code, stdout } = await undo(command);
    assert.equal(code, 0, stdout);
  }
  assert.deepEqual(await servers(), ["plain true"]);
  assertError(await runPml(ws, ["add", "--undo"]), { code: "USAGE", exit: 2 });
});

Deno.test("the undo of an import or of a replacement only shows it with --json or --dry-run", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP } });
  const own = join(ws.home, "config.yaml");
  await Deno.writeTextFile(own, "mcpServers: { plain: { command: 'true' } }\n", { mode: 0o600 });
  await runPmlOnTerminal(ws, ["import", ".mcp.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  await runPmlOnTerminal(ws, ["allow", "one"], { typed: [[/Type "write"/, "write"]] });
  const shown = async (...args: readonly string[]) => {
    const before = await Deno.readTextFile(own);
    const { code, stdout, stderr } = await runPml(ws, args);
    assert.equal(code, 0, stderr);
    assert.equal(await Deno.readTextFile(own), before);
    return stdout;
  };
  const { servers, rules, files } = JSON.parse(await shown("import", "--undo", "--json"));
  assert.deepEqual([servers, rules], [["one", "two"], ["allow one:*"]]);
  const pathsOf = (all: readonly { path: string }[]) => all.map(({ path }) => path);
  assert.deepEqual(pathsOf(files), [own]);
  assert.match(await shown("import", "--undo", "--dry-run"), /"one", "two"/);
  await runPmlOnTerminal(ws, ["add", "plain", "--replace", "--", "false"], {
    typed: [[/Replace .* and start/, "y"]],
  });
  assert.deepEqual(pathsOf(JSON.parse(await shown("add", "--undo", "--json")).files), [own]);
});

Deno.test("pml import --undo names its import and the rules that stay, and puts back only its servers", async () => {
  const second = MCP.replace("one", "three").replace("two", "four");
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "second.json": second } });
  const own = join(ws.home, "config.yaml");
  const names = async () =>
    Object.keys(parse(await Deno.readTextFile(own).catch(() => "{}")).mcpServers ?? {});
  for (const file of [".mcp.json", "second.json"]) {
    assert.equal((await move(ws, file)).code, 0);
  }
  const between = await Deno.readTextFile(ws.file(".mcp.json"));
  await runPmlOnTerminal(ws, ["allow", "three"], { typed: [[/Type "write"/, "write"]] });
  const undo = () => runPmlOnTerminal(ws, ["import", "--undo"], { typed: [[/Continue\?/, "y"]] });
  const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
    typed: [[/Continue\?/, "y"], [/allow three:\*\s+Remove these rules/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.doesNotMatch(await Deno.readTextFile(own), /three/);
  const [before = ""] = undone.stdout.split("Continue?");
  for (const value of ['"three", "four"', ws.file("second.json"), "allow three:*"]) {
    assert.ok(before.includes(value), `${value}: ${before}`);
  }
  assert.doesNotMatch(undone.stdout, /"one"|\.mcp\.json/);
  assert.equal(await Deno.readTextFile(ws.file("second.json")), second);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), between);
  assert.deepEqual(await names(), ["one", "two"]);
  assert.match((await undo()).stdout, /"one", "two"/);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
  assert.deepEqual(await names(), []);
});

Deno.test("the undo of an import puts its servers back from a move that took others out, too", async () => {
  const first = JSON.stringify({ mcpServers: { two: { command: "second" } } });
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "first.json": first } });
  await runPmlOnTerminal(ws, ["import", "first.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  const moved = await move(ws, ".mcp.json");
  assert.equal(moved.code, 0, moved.stdout);
  const clientNames = async () =>
    Object.keys(
      parse(
        await Deno.readTextFile(ws.file(".mcp.json"))
          .then((text) => text.replaceAll(/\/\/.*/g, "")),
      ).mcpServers,
    );
  assert.deepEqual(await clientNames(), []);
  const undo = () => runPmlOnTerminal(ws, ["import", "--undo"], { typed: [[/Continue\?/, "y"]] });
  const undone = await undo();
  assert.equal(undone.code, 0, undone.stdout);
  assert.deepEqual(await clientNames(), ["one"]);
  const { mcpServers } = parse(await Deno.readTextFile(join(ws.home, "config.yaml")));
  assert.deepEqual(Object.keys(mcpServers), ["two"]);
  const last = await undo();
  assert.equal(last.code, 0, last.stdout);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("a move from a client that starts PML names no next step", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  await runPml(ws, ["init", "--yes"]);
  const moved = await move(ws, "claude-code");
  assert.equal(moved.code, 0, moved.stdout);
  assert.doesNotMatch(moved.stdout, /pml init/);
  const { mcpServers } = parse(
    (await Deno.readTextFile(ws.file(".mcp.json"))).replaceAll(/\/\/.*/g, ""),
  );
  assert.deepEqual(Object.keys(mcpServers), ["pml"]);
});

Deno.test("a move takes a server out for which the user wants that of PML, and the undo puts it back", async () => {
  const fs = { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] };
  for (const others of [{ one: { command: "first" } }, {}]) {
    const text = JSON.stringify({ mcpServers: { fs, ...others } }, null, 2);
    await using ws = await makeWorkspace({ files: { ".mcp.json": text } });
    const answers: [RegExp, string][] = [
      [/Import .*\[N\] no/, "y"],
      [/Which one do you want\?.*\[i\]/, "p"],
    ];
    const hasOthers = Object.keys(others).length > 0;
    const moved = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
      typed: [...answers, ...hasOthers ? [[/Start th.* now/, "n"] as const] : [], [/out of/, "y"]],
    });
    assert.equal(moved.code, 0, moved.stdout);
    const after = JSON.parse(await Deno.readTextFile(ws.file(".mcp.json")));
    assert.deepEqual(after.mcpServers, {});
    const undone = await runPmlOnTerminal(ws, ["import", "--undo"], {
      typed: [[/Continue\?/, "y"]],
    });
    assert.equal(undone.code, 0, undone.stdout);
    assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), text);
    const copied = await runPmlOnTerminal(ws, ["import", ".mcp.json"], {
      typed: [...answers, ...hasOthers ? [[/Start th.* now/, "n"] as const] : []],
    });
    assert.ok(copied.stdout.includes(`"fs" stays in ${ws.file(".mcp.json")}`), copied.stdout);
  }
});

Deno.test("pml init --undo names the import that hides its first edit, and the next commands", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  await runPml(ws, ["init", "--yes"]);
  assert.equal((await move(ws, "claude-code")).code, 0);
  await runPml(ws, ["init", "--client", "claude-code", "--http", "--yes"]);
  const undo = () => runPml(ws, ["init", "--undo", "--yes"]);
  const first = await undo();
  assert.equal(first.code, 0, first.stderr);
  assertGolden("import/init before an import", first.stdout.replaceAll(ws.root, "ROOT"));
  assert.match(await Deno.readTextFile(ws.file(".mcp.json")), /"pml"/);
  const second = await undo();
  assert.equal(second.code, 2);
  assert.match(second.stderr, /pml import --undo.*pml init --undo/s);
  await runPmlOnTerminal(ws, ["import", "--undo"], { typed: [[/Continue\?/, "y"]] });
  const third = await undo();
  assert.equal(third.code, 0, third.stderr);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), MCP);
});

Deno.test("pml import --undo names the command that undoes an import into the other file", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": MCP, "package.json": "{}" } });
  const imported = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--workspace"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Start th.* now/, "n"]],
  });
  assert.equal(imported.code, 0, imported.stdout);
  const { code, stderr } = await runPml(ws, ["import", "--undo"]);
  assert.equal(code, 2);
  assertGolden("import/undo of the other file", stderr);
});
