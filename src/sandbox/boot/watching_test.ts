import assert from "node:assert/strict";
import { BrokerYard, codeOf } from "../../../tests/fixtures/modules/broker_yard.ts";
import type { Broker } from "./broker.ts";
import { Walls } from "./ground.ts";

/** A watch of a broker, read as a module would. */
class Seen implements Disposable {
  readonly #broker: Broker;
  readonly #id: unknown;
  readonly #stop = new AbortController();
  readonly paths: string[] = [];
  readonly flags: unknown[] = [];
  readonly ended: Promise<void>;
  #more = Promise.withResolvers<void>();

  constructor(broker: Broker, paths: string[], { recursive = true, ignore = [] as string[] } = {}) {
    const opened = broker.answer("watch.open", [paths, recursive, ignore]);
    assert.ok(opened.ok, JSON.stringify(opened));
    this.#broker = broker;
    this.#id = opened.value;
    this.ended = this.#read();
  }

  async #read(): Promise<void> {
    for (;;) {
      const event = await next(this.#broker, this.#id, this.#stop.signal);
      if (event === null) return;
      this.paths.push(...event.paths.map((path) => `${event.kind} ${path}`));
      this.flags.push(event.flag);
      this.#more.resolve();
      this.#more = Promise.withResolvers<void>();
    }
  }

  /** Waits until something was told. */
  async until(path: string): Promise<void> {
    while (!this.paths.includes(path)) await this.#more.promise;
  }

  [Symbol.dispose](): void {
    this.#broker.answer("watch.close", [this.#id]);
  }
}

async function next(
  broker: Broker,
  id: unknown,
  signal = new AbortController().signal,
): Promise<Deno.FsEvent | null> {
  const give = broker.powers["watch.next"];
  assert.ok(give);
  return await give([id], { signal, say() {} }) as Deno.FsEvent | null;
}

Deno.test("Watching tells of files in folders that are there, and in those that come", async () => {
  using yard = new BrokerYard();
  const { ws, broker } = yard;
  Deno.mkdirSync(`${ws}/d/e`, { recursive: true });
  using seen = new Seen(broker, ["."]);
  Deno.writeTextFileSync(`${ws}/d/e/x`, "1");
  await seen.until(`create ${ws}/d/e/x`);
  // More than the parts of one watch, so that they are put together on the way.
  for (let n = 0; n < 30; n++) {
    Deno.mkdirSync(`${ws}/new-${n}/deep`, { recursive: true });
    await seen.until(`create ${ws}/new-${n}`);
  }
  for (let n = 0; n < 30; n++) {
    Deno.writeTextFileSync(`${ws}/new-${n}/deep/f`, "1");
    await seen.until(`create ${ws}/new-${n}/deep/f`);
  }
  const twice = seen.paths.filter((path, at) => seen.paths.indexOf(path) !== at);
  assert.deepEqual(twice.filter((path) => path.startsWith("create")), []);
  Deno.renameSync(`${ws}/new-3`, `${ws}/moved`);
  await seen.until(`rename ${ws}/moved`);
  Deno.writeTextFileSync(`${ws}/moved/deep/g`, "1");
  await seen.until(`create ${ws}/moved/deep/g`);
  Deno.removeSync(`${ws}/d/e/x`);
  await seen.until(`remove ${ws}/d/e/x`);
  Deno.removeSync(`${ws}/d`, { recursive: true });
  await seen.until(`remove ${ws}/d`);
});

Deno.test("Watching follows no link out of the workspace, neither before nor after", async () => {
  using yard = new BrokerYard();
  const { ws, broker, outside } = yard;
  Deno.symlinkSync(outside, `${ws}/out`);
  Deno.symlinkSync("/", `${ws}/root`);
  Deno.mkdirSync(`${ws}/in`);
  Deno.symlinkSync("in", `${ws}/inner`);
  using seen = new Seen(broker, ["."]);
  Deno.symlinkSync(outside, `${ws}/late`);
  Deno.writeTextFileSync(`${ws}/first`, "1");
  await seen.until(`create ${ws}/first`);
  Deno.writeTextFileSync(`${outside}/new.txt`, "SECRET");
  Deno.writeTextFileSync(`${ws}/in/x`, "1");
  Deno.writeTextFileSync(`${ws}/last`, "1");
  await seen.until(`create ${ws}/last`);
  assert.deepEqual(seen.paths.filter((path) => /new.txt|secret|inner/.test(path)), []);
  assert.ok(seen.paths.includes(`create ${ws}/in/x`));
});

Deno.test("Watching tells of no file in a folder that was moved out, or that a link took the place of", async () => {
  using yard = new BrokerYard();
  const { ws, broker, outside } = yard;
  for (const name of ["gone", "swapped", "top"]) Deno.mkdirSync(`${ws}/${name}`);
  using top = new Seen(broker, ["top", "a.txt"]);
  using other = new Seen(broker, ["top", "a.txt"]);
  Deno.renameSync(`${ws}/top`, `${outside}/top`);
  Deno.writeTextFileSync(`${outside}/top/secret-c`, "1");
  Deno.writeTextFileSync(`${ws}/a.txt`, "1");
  await top.until(`modify ${ws}/a.txt`);
  await other.until(`modify ${ws}/a.txt`);
  Deno.symlinkSync(`${outside}/top`, `${ws}/top`);
  Deno.writeTextFileSync(`${outside}/top/secret-d`, "1");
  Deno.writeTextFileSync(`${ws}/a.txt`, "2");
  await top.until(`access ${ws}/a.txt`);
  assert.deepEqual(top.paths.filter((path) => path.includes("secret")), []);
  using seen = new Seen(broker, ["."]);
  Deno.renameSync(`${ws}/gone`, `${outside}/gone`);
  Deno.writeTextFileSync(`${outside}/gone/secret-a`, "1");
  Deno.renameSync(`${ws}/swapped`, `${outside}/swapped`);
  Deno.symlinkSync(`${outside}/swapped`, `${ws}/swapped`);
  Deno.writeTextFileSync(`${outside}/swapped/secret-b`, "1");
  Deno.writeTextFileSync(`${ws}/last`, "1");
  await seen.until(`create ${ws}/last`);
  assert.deepEqual(seen.paths.filter((path) => path.includes("secret")), []);
});

Deno.test("Watching refuses what cannot be seen, and shows nothing of the PML home", async () => {
  using yard = new BrokerYard();
  const { ws, outside, home, root } = yard;
  Deno.symlinkSync(outside, `${ws}/out`);
  const open = (broker: Broker, ...paths: string[]) =>
    codeOf(broker.answer("watch.open", [paths, true, []]));
  for (const path of ["..", outside, "out", "out/x", "/etc", "/proc/self"]) {
    assert.equal(open(yard.broker, "a.txt", path), "PATH_OUTSIDE_WORKSPACE", path);
  }
  assert.equal(open(yard.broker, "none"), "ENOENT");
  const wide = yard.with({ read: [root], write: [root] });
  assert.equal(open(wide, home), "PATH_PROTECTED");
  assert.equal(open(yard.with({ read: [] }), "."), "SANDBOX_DENIED");
  using seen = new Seen(wide, [root]);
  Deno.writeTextFileSync(`${home}/key`, "1");
  Deno.writeTextFileSync(`${root}/last`, "1");
  await seen.until(`create ${root}/last`);
  assert.deepEqual(seen.paths.filter((path) => path.includes("home")), []);
});

Deno.test("Watching names files as they were asked for, and leaves out what is ignored", async () => {
  using yard = new BrokerYard();
  const { ws, broker } = yard;
  Deno.mkdirSync(`${ws}/d/skip`, { recursive: true });
  Deno.mkdirSync(`${ws}/d/flat`);
  Deno.symlinkSync("d", `${ws}/link`);
  Deno.writeTextFileSync(`${ws}/d/hidden`, "1");
  using seen = new Seen(broker, ["link"], { ignore: ["d/skip", "d/hidden"] });
  using flat = new Seen(broker, ["d", "a.txt"], { recursive: false });
  Deno.writeTextFileSync(`${ws}/d/skip/x`, "1");
  Deno.writeTextFileSync(`${ws}/d/hidden`, "2");
  Deno.writeTextFileSync(`${ws}/d/flat/x`, "1");
  Deno.writeTextFileSync(`${ws}/d/last`, "1");
  await seen.until(`create ${ws}/link/last`);
  await flat.until(`create ${ws}/d/last`);
  assert.ok(seen.paths.includes(`create ${ws}/link/flat/x`));
  assert.deepEqual(seen.paths.filter((path) => path.includes("hidden")), []);
  assert.deepEqual([...seen.paths, ...flat.paths].filter((path) => path.includes("skip/")), []);
  assert.deepEqual(flat.paths.filter((path) => path.includes("flat/")), []);
  Deno.writeTextFileSync(`${ws}/a.txt`, "2");
  await flat.until(`modify ${ws}/a.txt`);
});

Deno.test("Watching keeps few watches and few events, and lets go of those who wait", async () => {
  using yard = new BrokerYard();
  const { ws, broker } = yard;
  const open = () => broker.answer("watch.open", [["."], true, []]);
  const ids = Array.from({ length: 16 }, open).map((reply) => reply.ok ? reply.value : 0);
  const more = open();
  assert.match(more.ok ? "" : more.error.message, /Too many watchers/);
  const [first, ...rest] = ids;
  for (const id of rest) broker.answer("watch.close", [id]);
  assert.equal(await next(broker, rest[0]), null);
  assert.equal(await next(broker, "nonsense"), null);
  assert.equal(await next(broker, first, AbortSignal.timeout(1)), null);
  using seen = new Seen(broker, ["."]);
  for (let n = 0; n < 600; n++) {
    Deno.writeTextFileSync(`${ws}/f${n}`, "");
    // The system's own queue is short: what it loses is not tested here.
    if (n % 10 === 9) await seen.until(`access ${ws}/f${n}`);
  }
  let told = 0;
  const flags = new Set<unknown>();
  for (let event = await next(broker, first); event; event = await next(broker, first)) {
    flags.add(event.flag);
    if (++told > 1_000 || `${event.kind} ${event.paths}` === `access ${ws}/f599`) break;
  }
  assert.ok(told <= 1_000, `${told}`);
  assert.ok(flags.has("rescan"));
  const waiting = next(broker, first);
  broker.answer("watch.close", [first]);
  assert.equal(await waiting, null);
});

Deno.test("Walls.shows() looks at what is there now, whatever the system tells", () => {
  using yard = new BrokerYard();
  const { ws, outside, home } = yard;
  Deno.symlinkSync(outside, `${ws}/out`);
  const walls = new Walls(yard.ground({ read: [ws, home] }));
  const shown = (path: string) => [walls.shows(path, false), walls.shows(path, true)];
  assert.deepEqual(shown(`${ws}/a.txt`), [true, true]);
  assert.deepEqual(shown(`${ws}/new`), [true, true]);
  assert.deepEqual(shown(`${ws}/gone/with/it`), [false, true]);
  // A link itself is in the workspace, what lies behind it is not.
  assert.deepEqual(shown(`${ws}/out`), [true, true]);
  for (const path of [`${ws}/out/secret.txt`, `${ws}/out/gone/x`, `${outside}/x`, `${home}/x`]) {
    assert.deepEqual(shown(path), [false, false], path);
  }
});
