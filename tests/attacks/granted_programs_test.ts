/**
 * Programs that are granted to a hostile confined server: they reach no more files than its grants
 * name, and the server cannot replace them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { availableLayer } from "../../src/sandbox/confined_program.ts";
import { FakeNpm } from "../kit/fake_npm.ts";
import { KeptPackages } from "../kit/kept_packages.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { textOf } from "./oracles.ts";

const MS = 120_000;
const SECRET = "secret-beside-a-grant";
const LAYERS = ["landlock", "bwrap"] as const;

/** Runs the code that a call contains. */
const HOSTILE = tinyServer(`(({ code }) => {
  const fs = require("node:fs");
  const run = (file, ...args) => {
    const { status, stdout, stderr, error } = require("node:child_process")
      .spawnSync(file, args, { encoding: "utf8" });
    return JSON.stringify({ status, stdout, stderr, error: error?.message });
  };
  try {
    return new Function("fs", "run", "env", code)(fs, run, process.env) ?? "done";
  } catch (error) {
    return "closed: " + (error.code ?? error.message);
  }
})(params.arguments)`);

const kept = new KeptPackages();

/** Returns whether this machine has a layer; without one the server counts as unconfined. */
async function has(layer: string): Promise<boolean> {
  const { kind } = await availableLayer(layer as "bwrap", Deno.env.get("PATH"), "/nowhere");
  return kind === layer;
}

/** A workspace with a hostile server, and a folder outside. */
class Scene implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(readonly ws: Workspace, readonly outside: string, readonly npm: FakeNpm) {
    this.#stack.defer(() => Deno.remove(outside, { recursive: true }));
    this.#stack.use(npm);
    this.#stack.use(ws);
    this.#stack.defer(() => kept.keep(ws));
  }

  static async make(
    layer: string,
    grants: (outside: string) => object,
  ): Promise<Scene> {
    const npm = new FakeNpm({
      tiny: { "1.0.0": { "package.json": '{"bin":"m.js"}', "m.js": HOSTILE } },
    });
    const outside = await Deno.realPath(await Deno.makeTempDir());
    await writeFile(join(outside, "secret.txt"), SECRET);
    const ws = await makeWorkspace({
      files: { "tools/build.sh": "#!/bin/sh\necho honest\n" },
      pml: {
        version: 1,
        permissions: { allow: ["tiny:*"] },
        mcpServers: { tiny: { command: "npx", args: ["-y", "tiny"], confine: true } },
        grants: { tiny: grants(outside) },
      },
      trusted: true,
      env: { NPM_CONFIG_USERCONFIG: npm.settings },
    });
    await chmod(ws.file("tools/build.sh"), 0o755);
    await writeFile(
      join(ws.home, "config.yaml"),
      `sandbox: {os_layer: ${layer}}\nlimits: {start_ms: ${MS}, call_ms: ${MS}}\n`,
    );
    await kept.give(ws);
    return new Scene(ws, outside, npm);
  }

  /** Starts PML, and runs each code in the server. */
  async run(codes: readonly string[], env: Record<string, string> = {}): Promise<string[]> {
    await using pml = new RawStdio(this.ws, {
      env: { NPM_CONFIG_USERCONFIG: this.npm.settings, ...env },
    });
    await pml.open();
    const messages: string[] = [];
    for (const code of codes) {
      const args = { tool: "tiny:tell", arguments: { code } };
      messages.push(textOf(await pml.callTool("call", args, { ms: MS })));
    }
    await pml.close();
    return messages;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

for (const layer of LAYERS) {
  const ignore = !await has(layer);

  Deno.test({
    name: `a read grant that does not exist opens no other file to granted programs: ${layer}`,
    ignore,
    fn: async () => {
      await using at = await Scene.make(layer, (outside) => ({
        read: [join(outside, "missing.cfg")],
        run: ["cat", "ls"],
      }));
      const [read, listed] = await at.run([
        `return run("cat", ${JSON.stringify(join(at.outside, "secret.txt"))})`,
        `return run("ls", ${JSON.stringify(at.outside)})`,
      ]);
      assert.ok(!read?.includes(SECRET) && !listed?.includes("secret.txt"), `${read} ${listed}`);
      assert.match(`${read}`, /status/, "the program ran");
    },
  });

  Deno.test({
    name: `a write grant that does not exist opens no folder to granted programs: ${layer}`,
    ignore,
    fn: async () => {
      await using at = await Scene.make(layer, (outside) => ({
        write: [join(outside, "new/state.json")],
        run: ["cp", "cat"],
      }));
      const secret = join(at.outside, "secret.txt");
      const [told, read] = await at.run([
        `return run("cp", "/etc/passwd", ${JSON.stringify(join(at.outside, "planted"))}) +
          run("cp", "/etc/passwd", ${JSON.stringify(secret)})`,
        `return run("cat", ${JSON.stringify(secret)})`,
      ]);
      assert.deepEqual(await readdir(at.outside), ["secret.txt"], told);
      assert.equal(await readFile(secret, "utf8"), SECRET, told);
      assert.ok(!read?.includes(SECRET), read);
    },
  });

  Deno.test({
    name: `a granted program cannot write the cache of Deno for other servers: ${layer}`,
    ignore,
    fn: async () => {
      await using at = await Scene.make(layer, () => ({ run: ["cp", "ls"] }));
      const deno = join(at.ws.home, "servers", "deno");
      const [told] = await at.run([
        `return run("cp", "/etc/passwd", ${JSON.stringify(join(deno, "planted"))}) +
          run("ls", ${JSON.stringify(deno)})`,
      ]);
      assert.ok(!(await readdir(deno)).includes("planted"), told);
      assert.match(`${told}`, /status/, "the program ran");
    },
  });

  Deno.test({
    name: `a server cannot replace a program of the workspace that it may run: ${layer}`,
    ignore,
    fn: async () => {
      await using at = await Scene.make(layer, () => ({ run: ["./tools/build.sh"] }));
      const file = at.ws.file("tools/build.sh");
      const evil = JSON.stringify("#!/bin/sh\necho evil\n");
      const [first, ...told] = await at.run([
        `return run(${JSON.stringify(file)})`,
        `fs.writeFileSync(${JSON.stringify(file)}, ${evil}); return "wrote"`,
        `fs.writeFileSync(${JSON.stringify(`${file}2`)}, ${evil}, { mode: 0o755 });
         fs.renameSync(${JSON.stringify(`${file}2`)}, ${JSON.stringify(file)}); return "moved"`,
        `fs.renameSync(${JSON.stringify(dirname(file))}, ${JSON.stringify(`${dirname(file)}2`)});
         return "moved"`,
        `return run(${JSON.stringify(file)})`,
      ]);
      assert.match(`${first}`, /honest/, "the program ran");
      assert.doesNotMatch(await readFile(file, "utf8"), /evil/, told.join("\n"));
      assert.ok(!told.some((one) => one.includes("evil")), told.join("\n"));
    },
  });

  Deno.test({
    name: `no granted program is taken from a folder that the server can write: ${layer}`,
    ignore,
    fn: async () => {
      await using at = await Scene.make(layer, (outside) => ({
        write: [join(outside, "bin")],
        run: ["tac"],
      }));
      const bin = join(at.outside, "bin");
      await mkdir(bin);
      const env = { PATH: `${bin}:${Deno.env.get("PATH")}` };
      const planted = JSON.stringify(join(bin, "tac"));
      const [wrote] = await at.run([
        `fs.writeFileSync(${planted}, "#!/bin/sh\\necho evil\\n", { mode: 0o755 }); return "wrote"`,
      ], env);
      assert.match(`${wrote}`, /wrote/);
      const [told] = await at.run([`return run("tac", "/etc/hostname")`], env);
      assert.doesNotMatch(`${told}`, /evil/);
    },
  });
}
