import assert from "node:assert/strict";
import {
  call,
  codeOf,
  errorOf,
  SANDBOX_LIMITS,
  Yard,
  type YardOptions,
} from "../../tests/fixtures/modules/yard.ts";
import { until } from "../../tests/kit/wait.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { gone, pidsWith, withCommand } from "./_processes_test.ts";
import type { PathGuard } from "./boot/path_guard.ts";
import type { HostStart } from "./boot/message.ts";
import { Programs } from "./boot/programs.ts";
import { Reaper } from "./reaper.ts";

const MODULE = `
  export async function exec({ program, args, options = {}, stopAt }, host) {
    const told = [];
    const controller = new AbortController();
    const onOutput = ({ stream, text }) => {
      told.push([stream, text]);
      if (stopAt !== undefined && text.includes(stopAt)) controller.abort();
    };
    const ran = await host.exec(program, args, { ...options, onOutput });
    return { ...ran, told };
  }
  export async function leave({ program, args }, host) {
    void host.exec(program, args).catch(() => {});
    await host.exec("sh", ["-c", "sleep 0.2"]);
    return "left";
  }
  export const variable = ({ name }, host) => host.env(name) ?? "not set";
`;

const PATH = Deno.env.get("PATH") ?? "";

interface ProgramResult {
  readonly [key: string]: Json;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A sandbox whose module may run any program, or those that are named. */
async function runner(yard: Yard, more: Partial<YardOptions> = {}) {
  const environment = { PATH, HOME: yard.root, LANG: "C.UTF-8" };
  const sandbox = await yard.start(MODULE, { run: ["*"], environment, ...more });
  return {
    sandbox,
    exec: async (program: string, args: readonly string[] = [], rest: JsonObject = {}) =>
      await call(sandbox, "exec", { program, args, ...rest }) as unknown as ProgramResult,
  };
}

Deno.test("host.exec() returns code, signal and outputs, and passes arguments unchanged", async () => {
  await using yard = new Yard();
  const { exec } = await runner(yard);
  const odd = ["-n", "$(id)", "a b", "*", "; rm -rf /", "é\n", ""];
  const result = await exec("printf", ["%s|", ...odd]);
  assert.equal(result.stdout, odd.map((one) => `${one}|`).join(""));
  assert.deepEqual([result.code, result.signal, result.stderr, result.timedOut], [
    0,
    null,
    "",
    false,
  ]);
  assert.equal((await exec("sh", ["-c", "echo no >&2; exit 7"])).stderr, "no\n");
  assert.equal((await exec("sh", ["-c", "exit 7"])).code, 7);
  const killed = await exec("sh", ["-c", "kill -9 $$"]);
  assert.deepEqual([killed.code, killed.signal], [137, "SIGKILL"]);
  assert.equal((await exec("cat", [], { options: { stdin: "in" } })).stdout, "in");
  assert.equal((await exec("true", [], { options: { stdin: "x".repeat(1 << 20) } })).code, 0);
});

Deno.test("host.exec() runs only in folders of the workspace", async () => {
  await using yard = new Yard();
  Deno.mkdirSync(`${yard.ws}/sub`);
  Deno.symlinkSync(yard.root, `${yard.ws}/out`);
  const { exec } = await runner(yard);
  assert.equal((await exec("pwd")).stdout, `${yard.ws}\n`);
  assert.equal((await exec("pwd", [], { options: { cwd: "sub" } })).stdout, `${yard.ws}/sub\n`);
  const tried = (cwd: string) => codeOf(exec("pwd", [], { options: { cwd } }));
  assert.equal(await tried(".."), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(await tried("out"), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(await tried("/"), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(await tried("a.txt"), "SANDBOX_DENIED");
  const outside = await Deno.makeTempDir();
  const granted = await runner(yard, { read: [yard.ws, outside] });
  const there = granted.exec("pwd", [], { options: { cwd: outside } });
  assert.equal(await codeOf(there), "SANDBOX_DENIED");
  await Deno.remove(outside);
});

Deno.test("host.exec() passes a small environment, without variables that load code", async () => {
  await using yard = new Yard();
  const env = { TOKEN: "t-1", MISSING: null };
  const { exec, sandbox } = await runner(yard, { env });
  const options = { env: { EXTRA: "x", HOME: "/evil", PATH: "/evil" } };
  const { stdout } = await exec("env", [], { options });
  const names = stdout.split("\n").map((line) => line.split("=")[0]).filter(Boolean).sort();
  assert.deepEqual(
    names,
    ["EXTRA", "HOME", "LANG", "PATH", "PML_RUN", "PWD", "TOKEN"].filter((name) =>
      names.includes("PWD") || name !== "PWD"
    ),
  );
  assert.match(stdout, new RegExp(`^HOME=${yard.root}$`, "m"));
  assert.doesNotMatch(stdout, /evil/);
  for (const name of ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PML_HOME", "a b", ""]) {
    const tried = await codeOf(exec("env", [], { options: { env: { [name]: "x" } } }));
    assert.equal(tried, "SANDBOX_DENIED", name);
  }
  assert.equal(await call(sandbox, "variable", { name: "TOKEN" }), "t-1");
  assert.equal(await call(sandbox, "variable", { name: "MISSING" }), "not set");
  assert.equal(await codeOf(call(sandbox, "variable", { name: "HOME" })), "SANDBOX_DENIED");
});

Deno.test("host.exec() runs only granted programs from outside the workspace", async () => {
  await using yard = new Yard();
  const script = `${yard.ws}/evil`;
  Deno.writeTextFileSync(script, "#!/bin/sh\necho planted\n", { mode: 0o755 });
  Deno.mkdirSync(`${yard.root}/bin`);
  Deno.symlinkSync(script, `${yard.root}/bin/linked`);
  Deno.writeTextFileSync(`${yard.ws}/ls`, "#!/bin/sh\necho planted\n", { mode: 0o755 });
  const environment = { PATH: `${yard.ws}:.::relative:${yard.root}/bin:${PATH}` };
  const { exec } = await runner(yard, { environment });
  assert.doesNotMatch((await exec("ls")).stdout, /planted/);
  assert.equal(await codeOf(exec(script)), "SANDBOX_DENIED");
  assert.equal(await codeOf(exec("./evil")), "SANDBOX_DENIED");
  assert.equal(await codeOf(exec(`/tmp/..${script}`)), "SANDBOX_DENIED");
  assert.equal(await codeOf(exec("/proc/self/cwd/evil")), "SANDBOX_DENIED");
  assert.equal(await codeOf(exec(`/proc/self/root${script}`)), "SANDBOX_DENIED");
  assert.equal(await codeOf(exec("linked")), "SANDBOX_DENIED");
  assert.match(await codeOf(exec("no-such-program")), /^NotFound: Cannot run/);
  assert.match(await codeOf(exec("ls -la")), /^NotFound: Cannot run/);
  const named = await runner(yard, { run: ["echo"] });
  assert.equal((await named.exec("echo", ["a"])).stdout, "a\n");
  assert.equal(await codeOf(named.exec("ls")), "SANDBOX_DENIED");
  assert.equal(await codeOf(named.exec("/bin/echo")), "SANDBOX_DENIED");
  const none = await runner(yard, { run: [] });
  const error = await errorOf(none.exec("echo"));
  assert.match(error.message, /no run grant/);
  assert.equal(
    await codeOf(runner(yard, { run: ["linked"], environment })),
    "SANDBOX_DENIED",
  );
});

Deno.test("host.exec() keeps the head and the tail of an output, and reports its end while it runs", async () => {
  await using yard = new Yard();
  const { exec } = await runner(yard);
  const result = await exec("sh", ["-c", "seq 1 200000"], { options: { maxBytes: 1_000 } });
  assert.match(result.stdout, /^1\n2\n[^]*\n\[\d+ bytes left out\]\n[^]*\n200000\n$/);
  assert.ok(result.stdout.length < 1_100, `${result.stdout.length}`);
  const { omitted } = result as unknown as { readonly omitted: { readonly stdout: number } };
  assert.equal(omitted.stdout, 1_288_895 - 1_000);
  const slow = await exec("sh", ["-c", "echo one; sleep 0.2; echo two >&2; sleep 0.2"]);
  assert.deepEqual(slow.told, [["stdout", "one\n"], ["stderr", "two\n"]]);
});

Deno.test("host.exec() kills all processes of a program on timeout, on cancel and at its end", async () => {
  await using yard = new Yard();
  await using groups = new Reaper(`${yard.root}/nothing-`);
  const { exec, sandbox } = await runner(yard, { groups });
  const left = () => pidsWith(groups.mark).filter((pid) => pid !== sandbox.pid);
  const timed = await exec("sh", ["-c", "trap '' TERM; sleep 300 & sleep 301"], {
    options: { timeoutMs: 100 },
  });
  assert.deepEqual([timed.timedOut, timed.signal], [true, "SIGKILL"]);
  await gone(left);
  // A process left in the background ends with the program that started it.
  assert.equal((await exec("sh", ["-c", "sleep 302 & echo out"])).stdout, "out\n");
  await gone(left);
  const controller = new AbortController();
  const cancelled = sandbox.call({
    fn: "exec",
    arguments: { program: "sh", args: ["-c", "sleep 303 & sleep 304"] },
    signal: controller.signal,
  });
  await until(() => left().length >= 3);
  controller.abort();
  await assert.rejects(cancelled);
  await gone(left);
  assert.equal((await exec("echo", ["alive"])).stdout, "alive\n");
});

Deno.test("a sandbox that ends kills its programs, including those that left their group", async () => {
  await using yard = new Yard();
  await using groups = new Reaper(`${yard.root}/nothing-`);
  const { sandbox } = await runner(yard, { groups });
  const flee = "setsid sleep 310 >/dev/null 2>&1 & sleep 311";
  await call(sandbox, "leave", { program: "sh", args: ["-c", flee] });
  await until(() => pidsWith(groups.mark).length >= 4);
  await sandbox[Symbol.asyncDispose]();
  await gone(() => pidsWith(groups.mark));
});

Deno.test("host.exec() accepts timeouts beyond the maximum of a timer", async () => {
  await using yard = new Yard();
  const { exec } = await runner(yard);
  for (const timeoutMs of [2 ** 31, 1e300]) {
    assert.equal((await exec("sleep", ["0.1"], { options: { timeoutMs } })).timedOut, false);
  }
});

Deno.test("host.exec() works if a program ends exactly at its timeout", async () => {
  const ended = Promise.withResolvers<{ readonly code: number; readonly signal: null }>();
  const kill = () => {
    ended.resolve({ code: 0, signal: null });
    throw new TypeError("Child process has already terminated");
  };
  const [stdout, stderr, stdin] = [new Blob().stream(), new Blob().stream(), new WritableStream()];
  const child = { pid: 1 << 29, status: ended.promise, kill, stdout, stderr, stdin };
  const ops = withCommand(() => ({ spawn: () => child }), () => {
    const own = { env: {}, environment: {}, workspace: "/" };
    const start = { run: { it: "/it" }, ...own } as unknown as HostStart;
    const walls = {
      follow: () => ({ path: "/", info: { isDirectory: true } }),
    } as unknown as PathGuard;
    const { exec } = new Programs(start, walls, () => {}).ops;
    return exec?.(["it", [], { timeoutMs: 1 }], { signal: new AbortController().signal, say() {} });
  });
  assert.equal((await ops as ProgramResult).code, 0);
});

Deno.test("host.exec() never searches the workspace, even if PATH names no other folder", async () => {
  await using yard = new Yard();
  Deno.writeTextFileSync(`${yard.ws}/planted`, "#!/bin/sh\necho planted\n", { mode: 0o755 });
  for (const path of ["", ".", ":", yard.ws, `${yard.ws}/..x`]) {
    Deno.mkdirSync(`${yard.ws}/..x`, { recursive: true });
    const { exec } = await runner(yard, { environment: { PATH: path } });
    const result = await exec("/bin/sh", ["-c", "planted"]);
    assert.deepEqual([result.code, result.stdout], [127, ""], path);
  }
});

Deno.test("a module cannot exceed the limit of open requests by reusing a number", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(
    `const post = MessagePort.prototype.postMessage;
    let port;
    MessagePort.prototype.postMessage = function (...all) {
      port = this;
      return post.apply(this, all);
    };
    export async function flood({ times }, host) {
      host.log("begin");
      const ask = { kind: "ask", id: 7, op: "exec", args: ["sleep", ["0.1"]] };
      const told = [];
      port.addEventListener("message", ({ data }) => data.id === 7 && told.push(data.reply));
      for (let n = 0; n < times; n++) post.call(port, ask);
      while (told.length < times) await new Promise((resolve) => setTimeout(resolve, 10));
      return told.map(({ ok, error }) => ok ? "ran" : error.message);
    }`,
    { run: ["*"], environment: { PATH } },
  );
  const refused = "Too many open requests: 1024";
  assert.deepEqual(await call(sandbox, "flood", { times: 3 }), [refused, refused, "ran"]);
});

Deno.test("a program that a child starts just before its end is killed, too", async () => {
  await using yard = new Yard();
  await using groups = new Reaper(`${yard.root}/nothing-`);
  const limits = { ...SANDBOX_LIMITS, frames: 10 };
  const sandbox = await yard.start(
    `export const go = async (_, host) => {
      await new Promise((later) => setTimeout(later, 200));
      for (let n = 0; n < 20; n++) host.log("flood");
      void host.exec("sleep", ["340"]);
      await new Promise(() => {});
    }`,
    { run: ["*"], environment: { PATH }, groups, limits },
  );
  const called = call(sandbox, "go");
  await new Promise((later) => setTimeout(later, 50));
  // A busy PML reads all of this at once. The first excess message ends the child.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
  assert.equal((await errorOf(called)).code, "SANDBOX_CRASHED");
  // Not disposed yet, because the disposal of a dead child may take long.
  await gone(() => pidsWith(groups.mark));
});
