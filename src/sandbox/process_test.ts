import assert from "node:assert/strict";
import { until, waitUntil } from "../../tests/kit/wait.ts";
import { canRunKeepers, openInput, PIPE_BYTES } from "./_keeper.ts";
import { killsOf } from "./_kills_test.ts";
import { killGroup, runProgram, SpareKeeper, StartedProgram, startProcess } from "./process.ts";
import { stampAt } from "../io/path_info.ts";
import type { Program } from "./program.ts";

const OPEN = { ms: 60_000, maxBytes: 1_000 };

function script(code: string, env: Readonly<Record<string, string>> = {}): Program {
  return {
    file: Deno.execPath(),
    args: ["eval", "--quiet", "--no-config", code],
    cwd: "/",
    env: { NO_COLOR: "1", DENO_DIR: `${Deno.env.get("HOME")}/.cache/deno`, ...env },
  };
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}

Deno.test("runProgram() returns code and outputs, and passes only the given environment", async () => {
  Deno.env.set("PML_PROCESS_TEST", "secret");
  try {
    // If Deno came from npm, its own start adds names.
    const code = `const { A, HOME, PML_PROCESS_TEST } = Deno.env.toObject();
      console.log(A, HOME, PML_PROCESS_TEST, Deno.cwd());
      console.error(await new Response(Deno.stdin.readable).text() + "!"); Deno.exit(3);`;
    const result = await runProgram(script(code, { A: "b" }), OPEN);
    assert.deepEqual(result, { code: 3, stdout: "b undefined undefined /\n", stderr: "!\n" });
  } finally {
    Deno.env.delete("PML_PROCESS_TEST");
  }
});

Deno.test("runProgram() keeps the head of a long output and reads the rest", async () => {
  const result = await runProgram(script(`console.log("é".repeat(1_000_000))`), OPEN);
  assert.deepEqual([result.code, result.stdout], [0, "é".repeat(500)]);
});

Deno.test("runProgram() kills the program and its child processes when its signal aborts", async () => {
  const file = await Deno.makeTempFile();
  const child = `new Deno.Command(Deno.execPath(), { args: ["eval", "setTimeout(() => {}, 1e8)"] })
    .spawn()`;
  const code = `const { pid } = ${child};
    Deno.writeTextFileSync(${JSON.stringify(file)}, String(pid)); setTimeout(() => {}, 1e8);`;
  const controller = new AbortController();
  const running = runProgram(script(code), { ...OPEN, signal: controller.signal });
  const started = () => Deno.readTextFileSync(file) !== "";
  assert.ok(await waitUntil(started, 20_000));
  const pid = Number(Deno.readTextFileSync(file));
  assert.ok(isAlive(pid));
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  assert.ok(await waitUntil(() => !isAlive(pid)));
  await assert.rejects(runProgram(script(""), { ...OPEN, signal: controller.signal }), /enough/);
  await Deno.remove(file);
});

Deno.test("runProgram() kills processes that the program left behind", async () => {
  const code = `const child = new Deno.Command(Deno.execPath(), {
      args: ["eval", "setTimeout(() => {}, 1e8)"], stdin: "null", stdout: "null", stderr: "null" })
    .spawn(); console.log(child.pid); Deno.exit(0);`;
  const { stdout } = await runProgram(script(code), OPEN);
  assert.ok(Number(stdout) > 0);
  assert.ok(await waitUntil(() => !isAlive(Number(stdout))));
});

Deno.test("killGroup() ends a running program, and ignores one that has ended", async () => {
  const child = startProcess(script("setTimeout(() => {}, 1e8)"));
  killGroup(child.pid);
  assert.equal((await child.status).signal, "SIGKILL");
  killGroup(child.pid);
  await Promise.all([child.stdin.abort(), child.stdout.cancel(), child.stderr.cancel()]);
});

/**
 * Removes SIGINT, SIGQUIT, SIGPIPE and the two signals of the C library from the ignored signals that
 * a program prints. Without a keeper, a program inherits the ignored signals of the tests, such as
 * those of a background job.
 */
function heeding(text: string): string {
  const these = 1n << 1n | 1n << 2n | 1n << 12n | 1n << 31n | 1n << 32n;
  return text.replace(
    /(?<=^SigIgn:\t)\w+/m,
    (bits) => (BigInt(`0x${bits}`) & ~these).toString(16).padStart(16, "0"),
  );
}

/** The lines of `ls /proc/self/fd`. */
const DESCRIPTORS = /^\d+\n/gm;

function descriptorsIn(text: string): readonly string[] {
  return text.match(DESCRIPTORS) ?? [];
}

Deno.test({
  name: "a program with a keeper has the same process state and exit status as without one",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const look =
      "cat; grep -E '^(Sig[^Q]|Umask|Groups)' /proc/self/status; ls /proc/self/fd; pwd; " +
      "read -r pid name state up group session rest </proc/self/stat; ulimit -a; " +
      "echo $((pid - group)) $((pid - session))";
    const env = { "odd.name": "1", PWD: "/x", UID: "5", SHLVL: "9", LINES: "a\nb", PML_RUN: "m." };
    const cwd = Deno.makeTempDirSync();
    const seen = async (hasKeeper: boolean) => {
      const there = { cwd, env, hasKeeper };
      const shell = { file: "/bin/sh", ...there };
      const looked = await ran(new StartedProgram({ ...shell, args: ["-c", look] }), "given\n");
      const { stdout } = await ran(
        new StartedProgram({ file: "/usr/bin/env", args: [], ...there }),
      );
      const ends = ["exit 0", "exit 7", "kill -s TERM $$", "kill -s KILL $$", "kill -s SEGV $$"];
      const ended = ends.map((end) => ran(new StartedProgram({ ...shell, args: ["-c", end] })));
      const variables = stdout.replace(/^PML_RUN=.*\n/m, "").split("\n").sort();
      const found = hasKeeper ? looked : { ...looked, stdout: heeding(looked.stdout) };
      const open = descriptorsIn(found.stdout);
      const rest = { ...found, stdout: found.stdout.replace(DESCRIPTORS, "") };
      return { open, all: [rest, variables, ...await Promise.all(ended)] };
    };
    const [kept, plain] = [await seen(true), await seen(false)];
    assert.deepEqual(kept.all, plain.all);
    // Without a keeper, a program can also inherit descriptors of other tests of this process.
    assert.deepEqual(kept.open.filter((one) => !plain.open.includes(one)), []);
    const missing = [{ file: "/nothing", cwd }, { file: "/etc/passwd", cwd }, {
      file: "/bin/sh",
      cwd: "/nothing",
    }];
    for (const hasKeeper of [true, false]) {
      for (const one of missing) {
        assert.throws(
          () => new StartedProgram({ ...one, args: [], env, hasKeeper }),
          JSON.stringify(one),
        );
      }
    }
    Deno.removeSync(cwd);
  },
});

Deno.test({
  name: "closing the pipes of a program with a keeper closes them for PML, too",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const args = ["-c", "exec <&- >&- 2>&-; sleep 300"];
    const started = new StartedProgram({
      file: "/bin/sh",
      args,
      cwd: "/",
      env: {},
      hasKeeper: true,
    });
    const { stdin, stdout, stderr, status } = started.running;
    await Promise.all([stdout, stderr].map((stream) => stream.pipeTo(new WritableStream())));
    const writer = stdin.getWriter();
    await assert.rejects(writer.write(new Uint8Array(1)));
    assert.ok(isAlive(started.pid) && started.pid !== started.running.pid);
    started.kill();
    assert.equal((await status).signal, "SIGKILL");
    assert.ok(!isAlive(started.pid));
  },
});

Deno.test({
  name: "a program runs the same with the spare keeper, which is used once",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    using spare = new SpareKeeper();
    spare.start(60_000);
    const cat = { file: "/bin/cat", args: [], cwd: "/", env: {}, hasKeeper: true };
    assert.throws(() => new StartedProgram({ ...cat, file: "/nothing" }, spare));
    const first = new StartedProgram(cat, spare);
    assert.equal(spare.pid, undefined);
    const second = new StartedProgram(cat, spare);
    for (const one of [first, second]) {
      assert.deepEqual(await ran(one, "given\n"), {
        ...{ code: 0, signal: null, stdout: "given\n", stderr: "" },
      });
    }
  },
});

Deno.test("a program begins in the spare keeper while PML is busy", {
  ignore: !canRunKeepers(),
}, async () => {
  const folder = await Deno.makeTempDir();
  try {
    using spare = new SpareKeeper();
    spare.start(60_000);
    const path = `${folder}/began`;
    const program = { file: "/usr/bin/touch", args: [path], cwd: "/", env: {}, hasKeeper: true };
    spare.begin(program);
    // Nothing else of this process runs until then.
    const end = performance.now() + 20_000;
    while (!hasFile(path) && performance.now() < end);
    assert.ok(hasFile(path));
    assert.equal((await ran(new StartedProgram(program, spare))).code, 0);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a keeper runs a program whose description is longer than a pipe can hold", {
  ignore: !canRunKeepers(),
}, async () => {
  const args = ["-c", 'echo "${#0}"; cat', "x".repeat(100_000)];
  assert.ok(args.join("").length > PIPE_BYTES);
  const program = { file: "/bin/sh", args, cwd: "/", env: {}, hasKeeper: true };
  const { code, stdout } = await ran(new StartedProgram(program), "given");
  assert.deepEqual([code, stdout], [0, "100000\ngiven"]);
});

Deno.test("openInput() opens only a pipe of a running process", {
  ignore: Deno.build.os !== "linux",
}, async () => {
  const args = ["-c", "echo a; read -r line; exec </dev/null; echo b; sleep 60"];
  const { pid, running } = new StartedProgram({ file: "/bin/sh", args, cwd: "/", env: {} });
  const reader = running.stdout.getReader();
  await reader.read();
  const input = openInput(pid);
  input?.writeSync(new TextEncoder().encode("line\n"));
  input?.close();
  await reader.read();
  assert.equal(openInput(pid), undefined);
  killGroup(pid);
  await Promise.all([running.status, running.stdin.abort().catch(() => {}), reader.cancel()]);
  await running.stderr.cancel();
  assert.equal(openInput(pid), undefined);
});

Deno.test({
  name: "an unused spare keeper ends after its time, and when it is disposed",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    for (const ms of [1, 60_000]) {
      const spare = new SpareKeeper();
      spare.start(ms);
      const { pid } = spare;
      assert.ok(pid !== undefined);
      if (ms > 1) spare[Symbol.dispose]();
      await until(() => !isAlive(pid));
      assert.equal(spare.pid, undefined);
    }
  },
});

function hasFile(path: string): boolean {
  return stampAt(path) !== undefined;
}

async function ran({ running }: StartedProgram, input = "") {
  const writer = running.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input)).catch(() => {}); // it may not read
  await writer.close().catch(() => {});
  const [{ code, signal }, stdout, stderr] = await Promise.all([
    running.status,
    ...[running.stdout, running.stderr].map((output) => new Response(output).text()),
  ]);
  return { code, signal, stdout: stdout ?? "", stderr };
}

Deno.test("a confined program writes only within its reach, or does not run", {
  ignore: !canRunKeepers(),
}, async () => {
  const folder = await Deno.makeTempDir();
  try {
    const reach = { read: ["/"], write: [] };
    const said = { ...script(`Deno.writeTextFileSync("${folder}/new", "")`), hasKeeper: true };
    assert.equal((await runProgram({ ...said }, OPEN)).code, 0);
    await Deno.remove(`${folder}/new`);
    const result = await runProgram({ ...said, reach }, OPEN);
    assert.match(result.stderr, /PermissionDenied|no landlock/);
    await assert.rejects(Deno.stat(`${folder}/new`), Deno.errors.NotFound);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({
  name: "StartedProgram sends no signal to the id of a program that has ended",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const file = "/bin/sh";
    for (const hasKeeper of [false, canRunKeepers()]) {
      const program = { file, args: ["-c", "exit 3"], cwd: "/", env: {}, hasKeeper };
      const started = new StartedProgram(program);
      const { stdin, stdout, stderr, status } = started.running;
      assert.equal((await status).code, 3);
      await Promise.all([stdin.abort(), stdout.cancel(), stderr.cancel()]);
      const kills = await killsOf(() => {
        started.signal("SIGTERM");
        started.kill();
      });
      assert.deepEqual(kills, [], `keeper: ${hasKeeper}`);
    }
  },
});
