import assert from "node:assert/strict";
import { call, run, Yard } from "../../tests/fixtures/modules/yard.ts";

const MS = 1_500;

/** Replaces a file by a link to the canary and back, without any lock. */
const SWAPPER = `
const [path, target, ms] = Deno.args;
const end = Date.now() + Number(ms);
let flips = 0;
for (; Date.now() < end; flips++) {
  Deno.writeTextFileSync(path + ".new", "inside");
  Deno.renameSync(path + ".new", path);
  Deno.symlinkSync(target, path + ".link");
  Deno.renameSync(path + ".link", path);
}
console.log(flips);`;

Deno.test("Sandbox leaks nothing while another process swaps a file and a link", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const swapper = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", dataUrl(SWAPPER), `${yard.ws}/flip`, yard.canary, `${MS}`],
    stdout: "piped",
  }).spawn();
  const code = `const end = Date.now() + ${MS}; const seen = { refused: 0, read: 0, wrong: [] };
    while (Date.now() < end) {
      try {
        const text = Deno.readTextFileSync("flip");
        if (text === "inside" || text === "mine") seen.read++; else seen.wrong.push(text);
      } catch { seen.refused++ }
      try { await Deno.writeTextFile("flip", "mine") } catch { seen.refused++ }
      try { Deno.truncateSync("flip", 3); Deno.truncateSync("flip", 0) } catch { seen.refused++ }
      try { Deno.writeTextFileSync("flip", "inside") } catch { seen.refused++ }
    }
    return seen`;
  const seen = await run(sandbox, code) as { refused: number; read: number; wrong: string[] };
  const { stdout } = await swapper.output();
  assert.ok(Number(new TextDecoder().decode(stdout)) > 100);
  assert.deepEqual(seen.wrong.filter((text) => text.includes("CANARY")), []);
  assert.ok(seen.refused > 0 && seen.read > 0, JSON.stringify(seen));
});

Deno.test("Sandbox prevents a second child from moving a link during a check", async () => {
  await using yard = new Yard();
  const outside = `${yard.root}/outside`;
  Deno.mkdirSync(outside);
  Deno.writeTextFileSync(`${outside}/f`, "outside", { mode: 0o600 });
  Deno.utimeSync(`${outside}/f`, 1, 1);
  Deno.mkdirSync(`${yard.ws}/real`);
  Deno.writeTextFileSync(`${yard.ws}/real/f`, "inside");
  Deno.symlinkSync(outside, `${yard.ws}/link`);
  const [mover, maker] = await Promise.all([yard.start(), yard.start()]);
  const move = `const end = Date.now() + ${MS}; let flips = 0;
    for (; Date.now() < end; flips++) {
      Deno.renameSync("real", "d"); Deno.renameSync("d", "real");
      Deno.renameSync("link", "d"); Deno.renameSync("d", "link");
      if (flips % 20 === 0) await new Promise((r) => setTimeout(r));
    }
    return flips`;
  const make = `const end = Date.now() + ${MS}; let made = 0, refused = 0;
    for (let n = 0; Date.now() < end; n++) {
      try { Deno.writeTextFileSync("d/" + n, "x"); made++ } catch { refused++ }
      try { Deno.mkdirSync("d/f" + n) } catch { refused++ }
      try { Deno.chmodSync("d/f", 0o777); Deno.utimeSync("d/f", 9, 9) } catch { refused++ }
      try { Deno.copyFileSync("a.txt", "d/f"); Deno.makeTempFileSync({ dir: "d" }) } catch { refused++ }
    }
    return [made, refused]`;
  const [flips, made] = await Promise.all([
    call(mover, "run", { code: move }),
    call(maker, "run", { code: make }),
  ]);
  assert.deepEqual([...Deno.readDirSync(outside)].map(({ name }) => name), ["f"]);
  const { mode, mtime } = Deno.statSync(`${outside}/f`);
  assert.deepEqual([mode, mtime, Deno.readTextFileSync(`${outside}/f`)], [
    0o100600,
    new Date(1_000),
    "outside",
  ]);
  assert.ok(Number(flips) > 10, `only ${flips} flips`);
  assert.ok(Array.isArray(made) && Number(made[0]) > 0, JSON.stringify(made));
});

Deno.test("Sandbox waits for the lock of the workspace, which reads share and changes do not", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start();
  const [{ name }] = [...Deno.readDirSync(`${yard.home}/locks`)] as [Deno.DirEntry];
  using lock = Deno.openSync(`${yard.home}/locks/${name}`, { read: true });
  const order: string[] = [];
  const note = (code: string, what: string) => run(sandbox, code).then(() => order.push(what));
  lock.lockSync(false);
  await note(`Deno.readTextFileSync("a.txt")`, "read beside a reader");
  const write = note(`Deno.writeTextFileSync("b.txt", "x")`, "written");
  await run(await yard.start(), "return 1");
  assert.throws(() => Deno.statSync(`${yard.ws}/b.txt`), Deno.errors.NotFound);
  order.push("unlocked");
  lock.unlockSync();
  await write;
  assert.deepEqual(order, ["read beside a reader", "unlocked", "written"]);
});

function dataUrl(code: string): string {
  return `data:application/javascript,${encodeURIComponent(code)}`;
}
