import assert from "node:assert/strict";
import hostileModule from "../../tests/fixtures/modules/hostile.ts" with { type: "text" };
import {
  call,
  codeOf,
  errorOf,
  run,
  SANDBOX_LIMITS,
  startSandbox,
  Yard,
} from "../../tests/fixtures/modules/yard.ts";
import { PmlError } from "../core/errors.ts";
import { ModuleFailure } from "./sandbox.ts";

Deno.test("Sandbox refuses every access of a hostile module", async () => {
  await using yard = new Yard();
  const file = JSON.stringify(yard.canary);
  const sandbox = await yard.start();
  const codes = [
    `(await import("node:fs")).readFileSync(${file})`,
    `(await import("node:fs")).writeFileSync(${file}, "x")`,
    `(await import("node:fs/promises")).then; await (await import("node:fs/promises")).readFile(${file})`,
    `(await import("node:module")).createRequire("file:///x/")(${file})`,
    `await import("file://" + ${file})`,
    `await import("data:text/javascript,export * from " + JSON.stringify("file://" + ${file}))`,
    `await import(URL.createObjectURL(new Blob(["import x from " + JSON.stringify("file://" + ${file})], {type: "text/javascript"})))`,
    `await import("npm:left-pad")`,
    `await import("jsr:@std/path")`,
    `await import("https://127.0.0.1:1/x.ts")`,
    `await fetch("http://127.0.0.1:1")`,
    `await fetch("file://" + ${file})`,
    `new WebSocket("ws://127.0.0.1:1")`,
    `new EventSource("http://127.0.0.1:1")`,
    `await Deno.connect({port: 1})`,
    `Deno.listen({port: 0})`,
    `await Deno.resolveDns("localhost", "A")`,
    `const n = await import("node:net"); await new Promise((_, no) => n.connect(1, "127.0.0.1").on("error", no))`,
    `const n = await import("node:dns/promises"); await n.lookup("localhost")`,
    `await import("node:http").then((h) => new Promise((_, no) => h.get("http://127.0.0.1:1").on("error", no)))`,
    `(await import("node:fs")).readFileSync("${yard.ws}/a.txt")`,
    `(await import("node:fs")).writeFileSync("${yard.ws}/a.txt", "x")`,
    `Deno.env.get("PATH")`,
    `Deno.env.toObject()`,
    `Deno.env.set("A", "1")`,
    `new Deno.Command("id").outputSync()`,
    `const r = (await import("node:child_process")).spawnSync("id"); if (r.error) throw r.error`,
    `(await import("node:child_process")).execSync("id")`,
    `Deno.dlopen("libc.so.6", {})`,
    `process.dlopen({exports: {}}, "/x.node")`,
    `new Worker("data:text/javascript,", {type: "module"})`,
    `const { Worker: W } = await import("node:worker_threads"); await new Promise((_, no) => new W("require('fs').readFileSync(" + JSON.stringify(${file}) + ")", {eval: true}).on("error", no))`,
    `const { DatabaseSync } = await import("node:sqlite"); new DatabaseSync(${file})`,
    `const { DatabaseSync } = await import("node:sqlite"); new DatabaseSync(":memory:").exec("attach '" + ${file} + "' as x; create table x.t(a)")`,
    `await Deno.openKv(${file})`,
    `Deno.symlinkSync(${file}, "made")`,
    `Deno.linkSync(${file}, "made")`,
    `Deno.chdir("/")`,
    `Deno.readTextFileSync("/proc/self/environ")`,
    `(await import("node:fs")).readFileSync("/proc/self/environ")`,
    `Deno.makeTempFileSync({ dir: "/tmp" })`,
    `Deno.kill(1)`,
    `process.kill(process.ppid, "SIGTERM")`,
    `if ((await Deno.permissions.request({name: "read"})).state !== "granted") throw new Error("no")`,
    `new Function("return Deno.readTextFileSync(" + JSON.stringify(${file}) + ")")()`,
    `Deno.mainModule; throw new Error(/PML|canary/.test(Deno.mainModule) ? "told" : "nothing")`,
  ];
  const told = await call(sandbox, "attempts", { codes });
  assert.ok(Array.isArray(told));
  const open = codes.filter((_, at) => told[at] === "done");
  assert.deepEqual(open, []);
  assert.ok(!JSON.stringify(told).includes("CANARY"));
  assert.equal(await call(sandbox, "ping", {}).then(() => sandbox.isAlive), true);
});

Deno.test("Sandbox names an alternative to a denied function", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const said: Record<string, RegExp> = {
    'await fetch("http://127.0.0.1")': /local modules are network-isolated.*host\.fetch/,
    'new WebSocket("ws://x")': /local modules are network-isolated/,
    'new Deno.Command("id")': /host\.exec/,
    '(await import("node:child_process")).execSync("id")': /no (run|env) grant/,
    'Deno.env.get("A")': /host\.env/,
    '(await import("node:fs")).readFileSync("/x")': /functions of Deno/,
    'await import("npm:zod")': /a module is one/,
    'await import("file:///x.ts")': /Cannot use/,
  };
  for (const [code, expected] of Object.entries(said)) {
    const error = await errorOf(run(sandbox, code));
    assert.equal(error.code, "SANDBOX_DENIED", code);
    assert.match(error.message, expected);
  }
});

Deno.test("Sandbox does not load a module that imports files", async () => {
  await using yard = new Yard();
  const from = JSON.stringify(`file://${yard.canary}`);
  const codes = [
    `import x from ${from}; export const a = x;`,
    `import x from ${from} with { type: "text" }; export const a = x;`,
    `export * from ${from};`,
    `export const a = await import(${from});`,
    `import "npm:left-pad"; export const a = 1;`,
    `import "https://127.0.0.1:1/x.ts"; export const a = 1;`,
  ];
  for (const code of codes) {
    const error = await errorOf(startSandbox(yard.options(code)));
    assert.equal(error.code, "SANDBOX_DENIED", code);
  }
  // Some versions of Deno do not know this kind of import.
  const binary = `import x from ${from} with { type: "bytes" }; export const __meta__ = [...x];`;
  assert.match(await codeOf(startSandbox(yard.options(binary))), /^SANDBOX_/);
  const broken = await errorOf(startSandbox(yard.options("export const = ;")));
  assert.equal(broken.code, "SANDBOX_CRASHED");
  assert.match(broken.message, /^Cannot load the module "hostile:1:14": syntax error/);
  assert.match(
    (await errorOf(startSandbox(yard.options(`throw new Error("boo")`)))).message,
    /boo/,
  );
});

Deno.test("Sandbox hides the environment and arguments of PML from a module", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(hostileModule, {
    environment: { LANG: "C.UTF-8", TZ: "UTC" },
  });
  const other = await yard.start();
  const environ = environOf(sandbox.pid);
  const names = environ.filter((line) => line !== "").map((line) => line.split("=")[0]).sort();
  assert.deepEqual(names, ["DENO_DIR", "DENO_NO_UPDATE_CHECK", "LANG", "NO_COLOR", "TMPDIR", "TZ"]);
  const own = environ.find((line) => line.startsWith("DENO_DIR=")) ?? "";
  assert.ok(own.startsWith(`DENO_DIR=${yard.home}/sandbox/`));
  assert.ok(!environOf(other.pid).includes(own), "two children share a DENO_DIR");
  assert.deepEqual(await run(sandbox, "return Deno.args"), []);
});

function environOf(pid: number): string[] {
  return Deno.readTextFileSync(`/proc/${pid}/environ`).split("\0");
}

Deno.test("Sandbox ignores frames that the module wrote itself", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const victim = call(sandbox, "wait", { ms: 1_000, graceMs: 2_000 });
  const outcome = codeOf(victim);
  assert.equal(await call(sandbox, "forge", { id: 1 }), "honest");
  assert.equal(sandbox.pending, 1);
  const partial = `await Deno.stdout.write(new TextEncoder().encode("no line end")); return 1`;
  assert.equal(await run(sandbox, partial), 1);
  assert.match(JSON.stringify(yard.logs), /forged/);
  assert.equal(await outcome, "CANCELLED");
  assert.equal(sandbox.isAlive, true);
});

Deno.test("Sandbox survives a module that steals stdin or patches everything", async () => {
  await using yard = new Yard();
  const patched = await yard.start();
  assert.match(await codeOf(call(patched, "patch")), /^gave "pa?o?[a-z]+"$/);
  assert.match(await codeOf(call(patched, "ping", { a: 1 })), /./);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  const thief = await yard.start();
  void run(thief, "Deno.stdin.readSync(new Uint8Array(9)); return 1", { ms: 500, graceMs: 0 })
    .catch(() => {});
  assert.match(await codeOf(call(thief, "ping", { ms: 600, graceMs: 0 })), /CANCELLED|CRASHED/);
  const good = await yard.start();
  assert.deepEqual(await call(good, "ping", { a: 1 }), { a: 1 });
});

Deno.test("Sandbox isolates modules from each other", async () => {
  await using yard = new Yard();
  const [one, two] = await Promise.all([yard.start(), yard.start()]);
  const listen = `globalThis.heard = []; const c = new BroadcastChannel("x");
    c.onmessage = (e) => heard.push(e.data); globalThis.keep = c; return 1`;
  await run(two, listen);
  await run(
    one,
    `new BroadcastChannel("x").postMessage("hello"); try { localStorage.setItem("a", "b") } catch {}
    try { await (await caches.open("c")).put("http://x/", new Response("secret")) } catch {} return 1`,
  );
  const seen = `let kept = null, cached = false; try { kept = localStorage.getItem("a") } catch {}
    try { cached = !!(await (await caches.open("c")).match("http://x/")) } catch {}
    return [heard, kept, cached]`;
  assert.deepEqual(await run(two, seen), [[], null, false]);
});

Deno.test("Sandbox rejects a cancelled call at once and kills a child that does not stop", async () => {
  await using yard = new Yard();
  const stuck = [
    "for (;;);",
    `/^(a+)+$/.test("a".repeat(60) + "b")`,
    "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    `process.kill(process.pid, "SIGSTOP"); await new Promise(() => {})`,
    "await new Promise(() => {})",
  ];
  await Promise.all(stuck.map(async (code) => {
    const sandbox = await yard.start();
    const timedOut = new PmlError("TIMED_OUT", "Cannot finish the call: out of time");
    const cancel = new AbortController();
    const first = sandbox.call({
      fn: "run",
      arguments: { code },
      signal: cancel.signal,
      graceMs: 50,
    });
    const second = codeOf(call(sandbox, "wait"));
    const timer = setTimeout(() => cancel.abort(timedOut), 100);
    const start = performance.now();
    assert.equal(await errorOf(first), timedOut, code);
    assert.ok(performance.now() - start < 5_000, code);
    assert.equal(await second, "SANDBOX_CRASHED", code);
    assert.equal(sandbox.isAlive, false);
    assert.equal(await codeOf(call(sandbox, "ping")), "SANDBOX_CRASHED");
    clearTimeout(timer);
  }));
});

Deno.test("Sandbox fails a call at once when the module ends its thread or its process", async () => {
  await using yard = new Yard();
  const ends: Record<string, RegExp> = {
    "Deno.exit(0)": /ended its own thread/,
    "self.close(); await new Promise(() => {})": /ended its own thread/,
    "process.exit(1)": /ended its own thread/,
    'setTimeout(() => { throw new Error("late") }, 1); await new Promise(() => {})': /late/,
    'Promise.reject(new Error("nobody")); await new Promise(() => {})': /nobody/,
    'process.kill(process.pid, "SIGKILL"); await new Promise(() => {})': /SIGKILL/,
    '(await import("node:dgram")).createSocket("udp4").bind(0); await new Promise(() => {})':
      /Requires net access/,
  };
  await Promise.all(
    Object.entries(ends).map(async ([code, expected]) => {
      const sandbox = await yard.start();
      const other = codeOf(call(sandbox, "wait"));
      const start = performance.now();
      const error = await errorOf(run(sandbox, code));
      assert.equal(error.code, "SANDBOX_CRASHED", code);
      assert.match(error.message, expected);
      assert.equal(await other, "SANDBOX_CRASHED", code);
      assert.ok(performance.now() - start < 8_000, code);
    }),
  );
});

Deno.test("Sandbox kills a child that exceeds the memory limit and reports the reason", async () => {
  await using yard = new Yard();
  const bombs = [
    "const a = []; for (;;) a.push({ x: new Array(100).fill(1) })",
    "const a = []; for (;;) { a.push(new Uint8Array(1 << 24).fill(1)); await new Promise((r) => setTimeout(r)) }",
    `let s = "x"; for (;;) { s += s + Math.random(); s.charCodeAt(s.length - 1); }`,
    "const m = new WebAssembly.Memory({ initial: 1 }); for (;;) { m.grow(256); new Uint8Array(m.buffer).fill(1); await 0 }",
  ];
  const before = ownMemory();
  const limits = { ...SANDBOX_LIMITS, heapMb: 64, rssMb: 256 };
  for (const code of bombs) {
    const sandbox = await yard.start(hostileModule, { limits });
    const outcome = await run(sandbox, code, { ms: 8_000 }).catch((error) => error);
    if (outcome instanceof ModuleFailure) continue; // the language itself set a limit
    assert.ok(outcome instanceof PmlError, String(outcome));
    assert.equal(outcome.code, "SANDBOX_CRASHED", code);
    assert.equal(outcome.detail?.reason, "memory", JSON.stringify(outcome.detail));
  }
  const heapOnly = await yard.start(hostileModule, { limits: { ...limits, rssMb: 4_096 } });
  const grown = await errorOf(run(heapOnly, bombs[0] ?? ""));
  assert.match(grown.message, /it used too much memory$/);
  assert.ok(ownMemory() - before < 50 * 1024 * 1024);
});

/** On a busy machine, waiting messages in the child reach the memory limit first. */
const FLOODED = /more than (?:67108864 bytes|512 MB of memory)/;

Deno.test("Sandbox kills a child that floods, and other children continue", async () => {
  await using yard = new Yard();
  const good = await yard.start();
  const floods: Record<string, RegExp> = {
    "for (let i = 0; i < 1e6; i++) host.progress({ progress: i })": /more than 10000 messages/,
    'for (let i = 0; i < 500; i++) host.log("x".repeat(1 << 20))': FLOODED,
    "const b = new Uint8Array(1 << 20).fill(120); for (;;) Deno.stdout.writeSync(b)": /a line/,
    'for (;;) console.log("line")': /more than 10000 messages/,
    'for (;;) console.error("x".repeat(1 << 16))': FLOODED,
  };
  for (const [code, expected] of Object.entries(floods)) {
    const sandbox = await yard.start();
    let slowest = 0;
    const ended = errorOf(run(sandbox, code));
    let done = false;
    void ended.then(() => done = true);
    while (!done) {
      const start = performance.now();
      await call(good, "ping", { a: 1 });
      slowest = Math.max(slowest, performance.now() - start);
    }
    const error = await ended;
    assert.equal(error.code, "SANDBOX_CRASHED", code);
    assert.match(error.message, expected);
    assert.ok(slowest < 5_000, `${code}: another call took ${slowest} ms`);
  }
  assert.ok(yard.logs.length < 5_000, `${yard.logs.length} lines were logged`);
});

Deno.test("Sandbox refuses to run modules if its child fails the self-test", async () => {
  await using yard = new Yard();
  const changes: Record<string, (flags: readonly string[]) => readonly string[]> = {
    "all is allowed": (flags) => [...flags, "--allow-all"],
    "the home is readable": (flags) => [
      ...flags.filter((flag) => !flag.startsWith("--allow-read")),
      `--allow-read=${yard.root}`,
    ],
    "everything is readable": (flags) => [
      ...flags.filter((flag) => !flag.startsWith("--allow-read")),
      "--allow-read",
    ],
    "the environment is readable": (flags) => [...flags, "--allow-env"],
    "the network is open": (flags) => [...flags, "--allow-net"],
    "commands can run": (flags) => [...flags, "--allow-run"],
    "Worker permissions are missing": (flags) =>
      flags.filter((flag) => flag !== "--unstable-worker-options"),
    "a flag is unknown": (flags) => [...flags, "--no-such-flag"],
  };
  await Promise.all(
    Object.entries(changes).map(async ([what, change]) => {
      const error = await errorOf(yard.startOpen(change));
      assert.equal(error.code, "SANDBOX_DENIED", what);
      assert.match(error.message, /^Cannot run modules: /, what);
    }),
  );
});

Deno.test("Sandbox refuses to run modules if only the Worker fails the self-test", async () => {
  await using yard = new Yard();
  const preload = `${yard.root}/preload.js`;
  // Runs before the boot code and makes it start the Worker with the permissions of the host thread.
  Deno.writeTextFileSync(
    preload,
    `const Plain = globalThis.Worker;
    globalThis.Worker = class extends Plain {
      constructor(url, options) { super(url, { ...options, deno: { permissions: "inherit" } }); }
    };`,
  );
  const open = (flags: readonly string[]) => [...flags, `--preload=${preload}`];
  const error = await errorOf(yard.startOpen(open));
  assert.equal(error.code, "SANDBOX_DENIED");
  assert.match(
    error.message,
    /^Cannot run modules: .*self-test .*protected file/,
  );
});

/** Measures the memory of this thread. The process runs other tests at the same time. */
function ownMemory(): number {
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}
