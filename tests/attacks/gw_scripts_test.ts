/**
 * Install scripts of packages: they run on the word of a person at a terminal, once, and no other.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm, type Packages } from "../kit/fake_npm.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { npmServer } from "../kit/npm_server.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const MS = 120_000;

/** A script that notes each run outside, and lays the file without which the server does not start. */
function scripts(notes: string, event = "postinstall") {
  const code = `const { appendFileSync, writeFileSync } = require("node:fs");
    appendFileSync(${JSON.stringify(notes)}, process.env.npm_package_name + " " +
      String(process.env.NPM_TOKEN) + "\\n");
    writeFileSync("built.js", "module.exports = 'built'");`;
  return {
    "package.json": { scripts: { [event]: "node make.js" } },
    files: { "make.js": code },
  };
}

/** A server that needs what a script makes: its own, or that of what it needs. */
function packages(notes: string, version: string): Packages {
  const { "package.json": said, files } = scripts(notes);
  const own = npmServer("require('./built.js')", said);
  const through = npmServer("require('native/built.js')", { dependencies: { native: version } });
  // A server that cannot find what it needs does not wait for a request.
  const early = (server: Readonly<Record<string, string>>, needs: string) => ({
    ...server,
    "main.js": server["main.js"]?.replace("\n", `\nrequire(${JSON.stringify(needs)});\n`) ?? "",
  });
  return {
    own: { [version]: { ...early(own, "./built.js"), ...files } },
    through: { [version]: early(through, "native/built.js") },
    native: {
      [version]: {
        ...scripts(notes, "install").files,
        "package.json": JSON.stringify(scripts(notes, "install")["package.json"]),
      },
    },
    plain: { [version]: npmServer('"plain"') },
  };
}

interface Yard extends AsyncDisposable {
  readonly npm: FakeNpm;
  readonly notes: string;
  readonly hosted: Scene;
  readonly env: Record<string, string>;
  readonly tell: (server: string, pml?: RawStdio) => Promise<string>;
  readonly ran: () => string;
}

async function yard(era: typeof ERAS[number] = "2026-07-28"): Promise<Yard> {
  const root = await Deno.makeTempDir();
  const notes = join(root, "notes");
  const npm = new FakeNpm(packages(notes, "1.0.0"));
  await writeFile(join(root, "npmrc"), `registry=${npm.url}\nfetch-retries=0\n`);
  const names = ["own", "through", "plain"];
  const env = {
    NPM_CONFIG_USERCONFIG: join(root, "npmrc"),
    NPM_CONFIG_CACHE: join(root, "cache"),
    NPM_TOKEN: "company-word",
  };
  const hosted = await makeScene({
    era,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", ...names.map((name) => `${name}:*`)] },
      mcpServers: Object.fromEntries(
        names.map((name) => [name, { command: "npx", args: ["-y", name] }]),
      ),
    },
    env,
    limits: { start_ms: MS, call_ms: MS },
  });
  return {
    ...{ npm, notes, hosted, env },
    tell: async (server, pml = hosted.pml) =>
      textOf(await pml.callTool("call", { tool: `${server}:tell`, arguments: {} }, { ms: MS })),
    ran: () => {
      try {
        return Deno.readTextFileSync(notes);
      } catch {
        return "";
      }
    },
    [Symbol.asyncDispose]: async () => {
      await hosted[Symbol.asyncDispose]();
      await npm[Symbol.asyncDispose]();
      await Deno.remove(root, { recursive: true });
    },
  };
}

/** Looks whether scripts are told of and shown, and run by no other way than a person's word. */
async function assertNothingRuns({ hosted: { ws }, env, ran }: Yard): Promise<void> {
  const options = { env, ms: MS };
  const doctor = (await runPml(ws, ["doctor"], options)).stdout;
  assert.match(doctor, /scripts of "own@1\.0\.0": postinstall did not run, for "own"/);
  assert.match(doctor, /scripts of "native@1\.0\.0": install did not run, for "through"/);
  assert.doesNotMatch(doctor, /scripts of "plain/);

  const nobody = await runPml(ws, ["install", "own"], { ...options, stdin: "run\nrun\n" });
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /there is no person at a terminal/);
  const shown = await runPml(ws, ["install", "own", "--json"], options);
  assert.match(shown.stdout, /"postinstall": "node make\.js"/);
  const no = await runPmlOnTerminal(ws, ["install", "own"], {
    ...options,
    typed: [["exactly these scripts", "yes"]],
  });
  assert.equal(no.code, 1, no.stdout);
  assert.equal(ran(), "", "no other word runs them");
}

for (const era of ERAS) {
  Deno.test(`Install scripts run on a person's word alone, once, and are pinned (GW14, ${era})`, async () => {
    await using at = await yard(era);
    const { ws, pml } = at.hosted;
    for (const [name, whose] of [["own", "own"], ["through", "native"]] as const) {
      const said = await pml.callTool("call", { tool: `${name}:tell`, arguments: {} }, { ms: MS });
      assert.match(textOf(said), /^UPSTREAM_DOWN: /);
      const hint =
        `"${whose}@1.0.0" has install scripts that did not run: .*\`pml install ${name}\``;
      assert.match(textOf(said), new RegExp(hint));
    }
    assert.equal(await at.tell("plain"), '"plain"');
    assert.equal(at.ran(), "", "nothing ran for a client");
    const options = { env: at.env, ms: MS };

    await assertNothingRuns(at);
    let shown = "";
    for (
      const [name, whose, event] of [
        ["own", "own", "postinstall"],
        ["through", "native", "install"],
      ] as const
    ) {
      const yes = await runPmlOnTerminal(ws, ["install", name], {
        ...options,
        typed: [["exactly these scripts", "run"]],
      });
      assert.equal(yes.code, 0, yes.stdout);
      const asked = `"${whose}@1\\.0\\.0" with the hash sha512-\\S+\\s+${event}: node make\\.js`;
      assert.match(yes.stdout, new RegExp(asked));
      shown += yes.stdout;
      assert.match(yes.stdout, /with your rights.* reach the network/s);
    }
    // Each ran once, without the token of the registry.
    assert.equal(at.ran(), "own undefined\nnative undefined\n");
    await using again = new RawStdio(ws, { era, env: at.env });
    await again.open();
    assert.equal(await at.tell("own", again), '"built"');
    assert.equal(await at.tell("through", again), '"built"');
    const lock = JSON.parse(await Deno.readTextFile(ws.file("pml.lock")));
    assert.ok(shown.includes(lock.servers.own.integrity), "what is pinned is what was installed");

    const twice = await runPmlOnTerminal(ws, ["install", "own"], options);
    assert.match(twice.stdout, /No install script waits for you/);
    assert.doesNotMatch((await runPml(ws, ["doctor"], options)).stdout, /scripts of/);
    const folders = await readdir(join(ws.home, "servers"));
    assert.ok(folders.every((one) => /^npm-[\da-f]{32}$/.test(one)), folders.join());
    await again[Symbol.asyncDispose]();
    await endWell(ws, pml);
  });
}

Deno.test("What scripts left is held to, and another version asks anew (GW14)", async () => {
  await using at = await yard();
  const { ws, pml } = at.hosted;
  await endWell(ws, pml);
  const options = { env: at.env, ms: MS, typed: [["exactly these scripts", "run"]] } as const;
  const { code, stdout } = await runPmlOnTerminal(ws, ["install", "own"], options);
  assert.equal(code, 0, stdout);
  const [folder = ""] = await readdir(join(ws.home, "servers"));
  const built = join(ws.home, "servers", folder, "node_modules", "own", "built.js");
  await writeFile(built, "module.exports = 'changed'");
  await using again = new RawStdio(ws, { env: at.env });
  await again.open();
  assert.match(await at.tell("own", again), /^INTEGRITY_MISMATCH: /);
  await Deno.remove(join(ws.home, "servers"), { recursive: true });
  at.npm.publish(packages(at.notes, "2.0.0"));
  assert.match(await at.tell("own", again), /"own@2\.0\.0" has install scripts that did not run/);
  assert.equal(at.ran(), "own undefined\n");
  await again[Symbol.asyncDispose]();
});

Deno.test("A word for one package runs no other of that name and version (GW14)", async () => {
  await using at = await yard();
  const { ws, pml } = at.hosted;
  await endWell(ws, pml);
  const all = packages(at.notes, "1.0.0");
  const needy = {
    "1.0.0": { "package.json": JSON.stringify({ dependencies: { native: "1.0.0" } }) },
  };
  // The newer one lies on top, so each that needs the older has one of its own.
  const dependencies = { native: "2.0.0", first: "1.0.0", second: "1.0.0" };
  at.npm.publish({
    native: { ...all.native, "2.0.0": {} },
    ...{ first: needy, second: needy },
    plain: { "1.0.0": npmServer('"plain"', { dependencies }) },
  });
  const { code, stdout } = await runPmlOnTerminal(ws, ["install", "plain"], {
    env: at.env,
    ms: 30_000,
    typed: [["exactly these scripts", "run"], ["exactly these scripts", "no"]],
  });
  assert.equal(code, 0, stdout);
  assert.equal(at.ran(), "native undefined\n");
  const doctor = (await runPml(ws, ["doctor"], { env: at.env, ms: MS })).stdout;
  assert.match(doctor, /scripts of "native@1\.0\.0": install did not run, for "plain"/);
});
