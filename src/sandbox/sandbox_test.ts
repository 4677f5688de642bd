import assert from "node:assert/strict";
import process from "node:process";
import filesModule from "../../tests/fixtures/modules/files.ts" with { type: "text" };
import hostileModule from "../../tests/fixtures/modules/hostile.ts" with { type: "text" };
import {
  call,
  codeOf,
  errorOf,
  isGone,
  run,
  startSandbox,
  Yard,
} from "../../tests/fixtures/modules/yard.ts";
import { assertDenoVersion } from "./sandbox.ts";

Deno.test("Sandbox file functions return the results of Deno", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(filesModule);
  const brokered = await call(sandbox, "tour");
  const direct = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", `${filesModule}\nconsole.log(JSON.stringify(await tour()))`],
    cwd: yard.ws,
  }).outputSync();
  assert.deepEqual(brokered, JSON.parse(new TextDecoder().decode(direct.stdout)));
});

Deno.test("Sandbox returns exports and __meta__ as plain JSON", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  assert.deepEqual(sandbox.meta(), { name: "hostile", tools: { ping: {} } });
  assert.ok(sandbox.exports().includes("ping"));
  assert.ok(!sandbox.exports().includes("__meta__"));
  assert.deepEqual(await call(sandbox, "ping", { x: [1, "é"] }), { x: [1, "é"] });
  assert.match(
    await codeOf(call(sandbox, "toString")),
    /TypeError: .*no function/,
  );
  const plain = await yard.start("export const a = 1;");
  assert.equal(plain.meta(), undefined);
});

Deno.test("Sandbox returns a refusal that the module does not catch with its code", async () => {
  await using yard = new Yard();
  Deno.symlinkSync(yard.canary, `${yard.ws}/link`);
  const sandbox = await yard.start();
  const read = (path: string) =>
    codeOf(run(sandbox, `return await Deno.readTextFile(${JSON.stringify(path)})`));
  assert.equal(await read("../canary.mjs"), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(await read("link"), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(await read(".env"), "PATH_PROTECTED");
  assert.match(await read("none"), /^NotFound: /);
  const error = await errorOf(run(sandbox, `Deno.readTextFileSync("../canary.mjs")`));
  assert.match(error.message, /"\.\.\/canary\.mjs": /);
  assert.ok(error.hint);
  const caught = `try { Deno.readTextFileSync("../x") } catch (e) {
    return [e instanceof Deno.errors.NotCapable, e.code] }`;
  assert.deepEqual(await run(sandbox, caught), [true, "PATH_OUTSIDE_WORKSPACE"]);
});

Deno.test("Sandbox returns unusual results as plain JSON or refuses them", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const expected: Record<string, string> = {
    undefined: "gave null",
    function: "OUTPUT_INVALID",
    symbol: "OUTPUT_INVALID",
    bigint: "gave 1",
    cycle: "OUTPUT_INVALID",
    deep: "OUTPUT_INVALID",
    deeper: "OUTPUT_INVALID",
    getter: "OUTPUT_INVALID",
    toJSON: 'gave {"safe":true}',
    proto: "OUTPUT_INVALID",
    constructor: "OUTPUT_INVALID",
    date: 'gave "1970-01-01T00:00:00.000Z"',
  };
  for (const [kind, outcome] of Object.entries(expected)) {
    assert.equal(await codeOf(call(sandbox, "odd", { kind })), outcome, kind);
  }
});

Deno.test("Sandbox refuses a result that is too large, and reports its size", async () => {
  await using yard = new Yard();
  const sizes: Record<string, RegExp> = {
    large: /41943040/, // as the child counts it
    wide: /37748736/, // as PML counts it
    many: /characters|bytes/,
  };
  for (const [kind, size] of Object.entries(sizes)) {
    const error = await errorOf(call(await yard.start(), "odd", { kind }));
    assert.equal(error.code, "RESULT_TOO_LARGE", kind);
    assert.match(error.message, size);
  }
  assert.match(await codeOf(call(await yard.start(), "odd", { kind: "huge" })), /LARGE|CRASHED/);
});

Deno.test("Sandbox reports any value that a module throws", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const thrown = (kind: string) => codeOf(call(sandbox, "thrown", { kind }));
  assert.equal(await thrown("error"), "RangeError: too far");
  assert.equal(await thrown("text"), "Error: just text");
  assert.equal(await thrown("null"), "Error: null");
  assert.equal(await thrown("undefined"), "Error: undefined");
  assert.equal(await thrown("forged"), "Error: forged");
  assert.match(await thrown("getter"), /^Error: /);
});

Deno.test("Sandbox lets a cancelled call stop in time, and continues", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const cancel = new AbortController();
  const waiting = sandbox.call({
    fn: "wait",
    arguments: {},
    signal: cancel.signal,
    graceMs: 5_000,
  });
  const other = call(sandbox, "ping", { a: 1 });
  cancel.abort();
  assert.equal(await codeOf(waiting), "CANCELLED");
  assert.deepEqual(await other, { a: 1 });
  await run(sandbox, "return 1");
  assert.equal(sandbox.pending, 0);
  assert.equal(sandbox.isAlive, true);
  assert.equal(
    await codeOf(sandbox.call({ fn: "ping", arguments: {}, signal: AbortSignal.abort() })),
    "CANCELLED",
  );
});

Deno.test("Sandbox forwards logs and progress", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const seen: unknown[] = [];
  const code =
    `host.log("one"); host.log("error", "two"); host.progress({ progress: 1, total: 2, extra: 3 });
    host.progress("no"); return [host.workspace === Deno.cwd(), host.signal.aborted]`;
  const given = await sandbox.call({
    fn: "run",
    arguments: { code },
    signal: AbortSignal.timeout(9_000),
    onProgress: (progress) => seen.push(progress),
  });
  assert.deepEqual(given, [true, false]);
  assert.deepEqual(seen, [{ progress: 1, total: 2 }]);
  assert.deepEqual(yard.logs, [{ level: "info", text: "one" }, { level: "error", text: "two" }]);
});

Deno.test("Sandbox runs many calls at once in one child", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const numbers = Array.from({ length: 200 }, (_, at) => at);
  assert.deepEqual(
    await Promise.all(numbers.map((n) => call(sandbox, "ping", { n }))),
    numbers.map((n) => ({ n })),
  );
});

Deno.test("assertDenoVersion() refuses a Deno version with known bypasses", () => {
  for (const version of ["2.9.5", "2.8.9", "1.46.3", "2.9"]) {
    assert.throws(
      () => assertDenoVersion(version),
      /Cannot run modules: Deno .* is older than 2.9.6/,
    );
  }
  for (const version of ["2.9.6", "2.10.0", "3.0.0", "2.9.7-rc.1+abc", Deno.version.deno]) {
    assertDenoVersion(version);
  }
});

Deno.test("Sandbox does not start if Deno cannot grant the folder", async () => {
  await using yard = new Yard();
  await (await yard.start())[Symbol.asyncDispose]();
  const error = await errorOf(
    startSandbox(yard.options(hostileModule, { read: [`${yard.ws}/a,b`] })),
  );
  assert.equal(error.code, "SANDBOX_DENIED");
  assert.match(error.message, /comma/);
});

Deno.test("Sandbox stops a start that is cancelled", async () => {
  await using yard = new Yard();
  const cancel = new AbortController();
  const code = `await new Promise(() => {}); setInterval(() => {}, 9)`;
  const starting = startSandbox(yard.options(code, { signal: cancel.signal }));
  cancel.abort();
  assert.equal((await errorOf(starting)).code, "CANCELLED");
});

Deno.test("Sandbox removes the folders of ended processes", async () => {
  await using yard = new Yard();
  const old = `${yard.home}/sandbox/999999999-abc`;
  Deno.mkdirSync(`${old}/deno`, { recursive: true });
  const live = `${yard.home}/sandbox/${process.pid}-live`;
  Deno.mkdirSync(live);
  await yard.start();
  assert.throws(() => Deno.statSync(old), Deno.errors.NotFound);
  assert.ok(Deno.statSync(live).isDirectory);
  Deno.removeSync(live);
});

Deno.test("Sandbox children end when the process that started them is killed", async () => {
  await using yard = new Yard();
  await (await yard.start())[Symbol.asyncDispose]();
  const options = JSON.stringify({ ...yard.options(""), code: undefined });
  const script = `
    import { Sandbox } from "${import.meta.resolve("./sandbox.ts")}";
    const code = new TextEncoder().encode("export function a() {}");
    const child = await Sandbox.open(${options});
    const s = await child.load({ name: "hostile", code, onLog() {} });
    console.log(s.pid);
    await new Promise((r) => setTimeout(r, 60000));`;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const parent = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", "--config", config, script],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = parent.stdout.getReader();
  const pid = Number(new TextDecoder().decode((await reader.read()).value));
  assert.ok(pid > 0 && !isGone(pid));
  parent.kill("SIGKILL");
  await parent.status;
  await reader.cancel();
  for (let tries = 0; !isGone(pid) && tries < 200; tries++) {
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.ok(isGone(pid));
  for (const { name } of Deno.readDirSync(`${yard.home}/sandbox`)) {
    Deno.removeSync(`${yard.home}/sandbox/${name}`, { recursive: true });
  }
});

const BROKEN = '{"toString":1,"valueOf":1}';

Deno.test("a frame that breaks the reader ends only the child that sent it", async () => {
  await using yard = new Yard();
  const json = `{"level":"info","text":${BROKEN}}`;
  const frame = JSON.stringify({ kind: "frame", type: "log", id: 1, json });
  const started = yard.start(`
    const post = MessagePort.prototype.postMessage;
    MessagePort.prototype.postMessage = function () { return post.call(this, ${frame}); };
    export const go = () => 1;
  `);
  const error = await errorOf(started.then((sandbox) => call(sandbox, "go")));
  assert.equal(error.code, "SANDBOX_CRASHED");
  assert.equal(error.detail?.reason, "frames");
});

Deno.test("Sandbox keeps the byte order mark of long and short texts", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(`export const text = ({ n }) => "\\uFEFF" + "x".repeat(n)`);
  for (const n of [1, 1 << 15]) {
    assert.equal(await call(sandbox, "text", { n }), `\uFEFF${"x".repeat(n)}`);
  }
});
