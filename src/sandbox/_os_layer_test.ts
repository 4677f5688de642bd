import assert from "node:assert/strict";
import { ConfinedYard, hasLandlock } from "../../tests/fixtures/modules/confined.ts";
import { errorOf, isGone, run, Yard } from "../../tests/fixtures/modules/yard.ts";
import { PmlError } from "../core/errors.ts";
import {
  bubblewrapArgs,
  countProcesses,
  findBubblewrap,
  lackError,
  type OsLayerChoice,
  OsLayers,
} from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { residentBytes } from "./process.ts";

const ignore = Deno.build.os !== "linux";
const PATH = "/usr/bin:/bin";
const found = ignore ? "none" : await findBubblewrap(PATH, "/nowhere");
const bubblewrap = typeof found === "string" ? undefined : found;
const absent = { ignore: bubblewrap === undefined };

/** A folder with a program of this name and text. */
class Stub implements Disposable {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "pml-stub-" }));

  constructor(script: string) {
    Deno.writeTextFileSync(`${this.folder}/bwrap`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  find(workspace = "/nowhere"): Promise<Layer | string> {
    return findBubblewrap(`relative:/nowhere:${this.folder}`, workspace);
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

const GOOD = `case "$*" in --version) echo bubblewrap 9.9 ;; *) exit 0 ;; esac`;
const BAD = `case "$*" in --version) echo bubblewrap 9.9 ;;
  *) echo "bwrap: No permissions to create new namespace" >&2; exit 1 ;; esac`;

Deno.test("findBubblewrap() returns a bubblewrap that works and is outside the workspace", {
  ignore,
}, async () => {
  using good = new Stub(GOOD);
  const program = `${good.folder}/bwrap`;
  assert.deepEqual(await good.find(), { kind: "bwrap", program, version: "9.9" });
  assert.equal(await good.find(good.folder), "not on PATH");
  using bad = new Stub(BAD);
  assert.match(String(await bad.find()), /bwrap: No permissions/);
  using odd = new Stub("exit 1");
  assert.match(String(await odd.find()), /prints no version$/);
  using held = new Stub("exit 1");
  Deno.removeSync(`${held.folder}/bwrap`);
  Deno.symlinkSync(program, `${held.folder}/bwrap`);
  // A link outside the workspace to a program inside it is not accepted either.
  assert.equal(await held.find(good.folder), "not on PATH");
});

/** Starts two children on a machine without Landlock, and returns the attempted layers. */
async function begun(wanted: OsLayerChoice, path: string): Promise<readonly string[]> {
  const layers = new OsLayers(wanted, path, "/nowhere");
  const kinds: string[] = [];
  const begin = (layer: Layer) => {
    kinds.push(layer.kind === "none" ? `none: ${layer.why}` : layer.kind);
    return layer.kind === "landlock"
      ? Promise.reject(lackError("no landlock: ENOSYS"))
      : Promise.resolve();
  };
  for (let n = 0; n < 2; n++) {
    await layers.start(begin).catch((error) => kinds.push(error.message));
  }
  return kinds;
}

Deno.test(
  "OsLayers starts with an available layer, and remembers a missing one",
  { ignore },
  async () => {
    using good = new Stub(GOOD);
    using bad = new Stub(BAD);
    const none = "none: no landlock: ENOSYS; no bubblewrap: not on PATH";
    assert.deepEqual(await begun("auto", good.folder), ["landlock", "bwrap", "bwrap"]);
    assert.deepEqual(await begun("auto", ""), ["landlock", none, none]);
    assert.match((await begun("auto", bad.folder))[1] ?? "", /none: .*No permissions/);
    const off = "none: no landlock: ENOSYS; no bubblewrap: it is off";
    assert.deepEqual(await begun("landlock", good.folder), ["landlock", off, off]);
    assert.deepEqual(await begun("bwrap", good.folder), ["bwrap", "bwrap"]);
    assert.deepEqual(await begun("off", good.folder), ["none: it is off", "none: it is off"]);
    const required = await begun("required", "");
    assert.equal(required.length, 4);
    assert.match(required[1] ?? "", /^Cannot run modules: .*ENOSYS/);
    assert.deepEqual(await begun("required", good.folder), ["landlock", "bwrap", "bwrap"]);
  },
);

Deno.test("OsLayers tries no other layer when a child fails for another reason", async () => {
  const layers = new OsLayers("auto", "", "/nowhere");
  let count = 0;
  const begin = () => {
    count++;
    return Promise.reject(new PmlError("SANDBOX_CRASHED", "broken"));
  };
  await assert.rejects(layers.start(begin), /broken/);
  assert.equal(count, 1);
});

Deno.test("bubblewrapArgs() mounts the whole workspace, and writable paths last", () => {
  const args = bubblewrapArgs({
    workspace: "/ws",
    read: ["/ws/part", "/other", "/other/out/deep"],
    write: ["/other/out"],
    lock: "/home/lock",
    privateFolders: ["/home/deno", "/home/temp"],
    net: false,
  }).join(" ");
  assert.match(args, /--ro-bind-try \/ws \/ws /);
  assert.ok(!args.includes("/ws/part") && !args.includes("--share-net"));
  assert.match(args, /--ro-bind-try \/other \/other .*--bind-try \/other\/out \/other\/out/);
  assert.ok(!args.includes("/other/out/deep"), "it would hide what may be written");
  assert.match(args, /--chdir \/home\/temp --$/);
});

Deno.test(
  "a child in bubblewrap sees only its roots (skipped without bubblewrap)",
  absent,
  async () => {
    assert.ok(bubblewrap);
    using yard = new ConfinedYard();
    const { ws, outside, own, home } = yard;
    const lock = `${home}/lock`;
    // The fixture loads its own files from here; a real child gets its code as text.
    const cache = JSON.parse(await output(["info", "--json"])).denoDir;
    const project = new URL("../../", import.meta.url).pathname.replace(/\/$/, "");
    const sight = {
      workspace: ws,
      read: [ws, cache, project],
      write: [],
      lock,
      privateFolders: [own],
      net: false,
    };
    const wrap = [bubblewrap.program, ...bubblewrapArgs(sight)];
    const told = await yard.told(
      [
        `return Deno.readTextFileSync("${ws}/a.txt")`,
        `Deno.writeTextFileSync("${own}/t", "x"); return Deno.readTextFileSync("${own}/t")`,
        `Deno.writeTextFileSync("${ws}/a.txt", "x")`,
        `return Deno.readTextFileSync("${outside}/secret.txt")`,
        `return Deno.readTextFileSync("${ws}/link/secret.txt")`,
        `return Deno.readTextFileSync("/etc/passwd")`,
        `Deno.writeTextFileSync("/made", "x")`,
        `return [...Deno.readDirSync("/proc")].filter(({ name }) => /^\\d+$/.test(name)).length`,
        `return Object.values(Deno.networkInterfaces()).filter(({ name }) => name !== "lo").length`,
      ],
      undefined,
      wrap,
    );
    const [gone, fixed] = ["NotFound", "ReadOnlyFilesystem"];
    const seen = told.map((one) => one === "Error" || one === "NotCapable" ? fixed : one);
    assert.deepEqual(seen, ["inside", "x", fixed, gone, gone, gone, fixed, "1", "0"]);
  },
);

Deno.test(
  "bubblewrap ends with its group and its memory is measured (skipped without bubblewrap)",
  absent,
  async () => {
    await using yard = new Yard();
    const sandbox = await yard.start(undefined, { layer: bubblewrap });
    assert.match(sandbox.confined, /^bubblewrap \d/);
    assert.equal(await run(sandbox, `return Deno.readTextFileSync("a.txt")`), "inside");
    const inside = Number(
      /\d+/.exec(
        Deno.readTextFileSync(`/proc/${sandbox.pid}/task/${sandbox.pid}/children`),
      )?.[0],
    );
    assert.ok(sandbox.rss() > residentBytes(inside), "what is inside counts too");
    assert.ok(residentBytes(inside) > 20 << 20);
    // It handles no signal or input, so that only the kill can end it.
    const privateFolders = [yard.home];
    const sight = {
      ...{ workspace: yard.ws, read: [], write: [] },
      ...{ lock: "/dev/null", privateFolders, net: false },
    };
    assert.ok(bubblewrap);
    const group = new Deno.Command(bubblewrap.program, {
      args: [...bubblewrapArgs(sight), Deno.execPath(), "eval", "setInterval(() => {}, 1e6)"],
      clearEnv: true,
      env: { DENO_DIR: `${yard.home}/deno` },
      detached: true,
    }).spawn();
    const held = await until(() => belowOf(group.pid));
    await until(() => residentBytes(held) > 20 << 20);
    Deno.kill(-group.pid, "SIGKILL");
    await group.status;
    await until(() => isGone(held));
  },
);

/** Waits until `look` returns a value. */
async function until<T>(look: () => T): Promise<NonNullable<T>> {
  for (;;) {
    const seen = look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function belowOf(pid: number): number | undefined {
  return Number(/\d+/.exec(Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`))?.[0] ?? 0);
}

Deno.test(
  "Sandbox starts under Landlock, and fails if the child reports that Landlock is missing",
  {
    ignore: !await hasLandlock(),
  },
  async () => {
    await using yard = new Yard();
    const sandbox = await yard.start(undefined, { layer: { kind: "landlock" } });
    assert.match(sandbox.confined, /^landlock \d+$/);
    const off = await yard.start(undefined, { layer: { kind: "none", why: "it is off" } });
    assert.equal(off.confined, "none: it is off");
    // Without the FFI permission the child cannot ask the kernel, as on a kernel without Landlock.
    const mute = (flags: readonly string[]) => flags.filter((flag) => flag !== "--allow-ffi");
    const error = await errorOf(yard.startOpen(mute, { kind: "landlock" }));
    assert.deepEqual([error.code, error.detail?.lack], [
      "SANDBOX_DENIED",
      "no landlock: no libc.so.6",
    ]);
    const layers = new OsLayers("auto", "", yard.ws);
    const open = await layers.start((layer) => yard.startOpen(mute, layer));
    assert.match(open.confined, /^none: no landlock: .*; no bubblewrap: not on PATH$/);
  },
);

Deno.test("countProcesses() counts the threads of a user", { ignore }, () => {
  const status = Deno.readTextFileSync("/proc/self/status");
  const own = Number(/^Threads:\s+(\d+)/m.exec(status)?.[1]);
  assert.ok(countProcesses(Deno.uid() ?? -1) >= own && own > 1);
  assert.equal(countProcesses(4_000_000_000), 0);
});

async function output(args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
  return new TextDecoder().decode(stdout);
}
