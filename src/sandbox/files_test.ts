import assert from "node:assert/strict";
import { codeOf, run, SANDBOX_LIMITS, Yard } from "../../tests/fixtures/modules/yard.ts";

Deno.test("Sandbox waits for the lock of another process without blocking other requests", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  using other = Deno.openSync(`${yard.ws}/a.txt`);
  other.lockSync(true);
  const waiting = run(
    sandbox,
    `using f = await Deno.open("a.txt"); await f.lock(true); return "locked"`,
  );
  const beside = `using f = Deno.openSync("a.txt"); return [f.tryLockSync(),
    await Deno.readTextFile("a.txt"), Deno.readTextFileSync("a.txt")]`;
  assert.deepEqual(await run(sandbox, beside), [false, "inside", "inside"]);
  other.unlockSync();
  assert.equal(await waiting, "locked");
  const late = run(await yard.start(), `using f = Deno.openSync("a.txt"); f.lockSync(); return 1`);
  assert.equal(await late, 1);
});

Deno.test("Sandbox creates a folder for temporary files for each child and removes it with the child", async () => {
  await using yard = new Yard();
  const [one, two] = await Promise.all([yard.start(), yard.start()]);
  const made = `const p = await Deno.makeTempFile(); await Deno.writeTextFile(p, "mine");
    return [p, await Deno.readTextFile(p), Deno.statSync(Deno.makeTempDirSync()).isDirectory]`;
  const [path, ...rest] = await run(one, made) as [string, ...unknown[]];
  assert.deepEqual(rest, ["mine", true]);
  assert.ok(path.startsWith(`${yard.home}/sandbox/`));
  const peek = `return Deno.readTextFileSync(${JSON.stringify(path)})`;
  assert.match(await codeOf(run(two, peek)), /^PATH_/);
  await one[Symbol.asyncDispose]();
  assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
  const reader = await yard.start(undefined, { write: [] });
  assert.equal(await codeOf(run(reader, "return Deno.makeTempFileSync()")), "SANDBOX_DENIED");
});

Deno.test("Sandbox limits the bytes that a child writes to files, and names the limit", async () => {
  await using yard = new Yard();
  const limits = { ...SANDBOX_LIMITS, writeBytes: 1_000 };
  const sandbox = await yard.start(undefined, { limits });
  const flood = `using f = await Deno.create("b");
    try { for (;;) await f.write(new Uint8Array(100)) } catch (e) {
      return [e instanceof Deno.errors.NotCapable, e.code, e.message, f.statSync().size] }`;
  const [isDenied, code, message, size] = await run(sandbox, flood) as unknown[];
  assert.deepEqual([isDenied, code, size], [true, "SANDBOX_DENIED", 1_000]);
  assert.match(`${message}`, /"b": .* 1000 bytes \(limits\.write_bytes\)/);
});
