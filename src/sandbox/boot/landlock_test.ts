import assert from "node:assert/strict";
import { ConfinedYard, hasLandlock } from "../../../tests/fixtures/modules/confined.ts";
import { handledBy } from "./landlock.ts";

// Skipped if the kernel has no Landlock.
const ignore = !await hasLandlock();
const HELD = /^landlock \d+$/;

Deno.test("confine() leaves a process access only to its roots", { ignore }, async () => {
  using yard = new ConfinedYard();
  const { ws, outside, root, own } = yard;
  Deno.writeTextFileSync(`${ws}/b.txt`, "b");
  const within = [
    `return Deno.readTextFileSync("${ws}/a.txt")`,
    `return [...Deno.readDirSync("${ws}")].length`,
    `Deno.writeTextFileSync("${ws}/a.txt", "new")`,
    `Deno.truncateSync("${ws}/a.txt", 1)`,
    `Deno.mkdirSync("${ws}/made")`,
    `Deno.renameSync("${ws}/b.txt", "${ws}/made/b.txt")`,
    `Deno.renameSync("${ws}/link", "${ws}/made/link")`,
    `Deno.removeSync("${ws}/made", { recursive: true })`,
    `Deno.writeTextFileSync("${own}/t", "x"); return Deno.readTextFileSync("${own}/t")`,
    `return Deno.readTextFileSync("${yard.home}/lock")`,
    `return Deno.memoryUsage().rss > 0`,
    `Deno.writeTextFileSync("/dev/null", "x")`,
    `return new Intl.DateTimeFormat("de", { timeZone: "Asia/Tokyo" }).format(0)`,
  ];
  const beyond = [
    `return Deno.readTextFileSync("${outside}/secret.txt")`,
    `return Deno.readTextFileSync("/etc/passwd")`,
    `return [...Deno.readDirSync("${outside}")].length`,
    `Deno.writeTextFileSync("${outside}/secret.txt", "x")`,
    `Deno.truncateSync("${outside}/secret.txt", 0)`,
    `Deno.writeTextFileSync("${outside}/new.txt", "x")`,
    `Deno.mkdirSync("${outside}/new")`,
    `Deno.symlinkSync("x", "${outside}/new")`,
    `Deno.removeSync("${outside}/secret.txt")`,
    `Deno.removeSync("${root}/ws-evil", { recursive: true })`,
    `Deno.writeTextFileSync("${yard.home}/lock", "x")`,
    `new Deno.Command("/bin/sh", { args: ["-c", ":"] }).outputSync()`,
    `Deno.listen({ transport: "unix", path: "${ws}/socket" })`,
    `Deno.listen({ port: 0, hostname: "127.0.0.1" })`,
    `Deno.kill(${Deno.pid}, "SIGCONT")`,
    `return Deno.dlopen("libc.so.6", {})`,
  ];
  const before = yard.fingerprint();
  const [layer = "", ...told] = await yard.told([...within, ...beyond], yard.keep());
  assert.match(layer, HELD);
  const [kept, refused] = [told.slice(0, within.length), told.slice(within.length)];
  assert.deepEqual(
    kept.filter((one) => /Denied|Capable|Error|false/.test(one)),
    [],
    kept.join(),
  );
  const open = beyond.filter((_, at) => !/^(PermissionDenied|NotCapable)$/.test(refused[at] ?? ""));
  assert.deepEqual(open, []);
  assert.equal(yard.fingerprint(), before);
});

Deno.test("confine() prevents moves of files into and out of the roots", { ignore }, async () => {
  using yard = new ConfinedYard();
  const { ws, outside } = yard;
  const told = await yard.told([
    `Deno.renameSync("${outside}/secret.txt", "${ws}/in.txt")`,
    `Deno.renameSync("${ws}/a.txt", "${outside}/out.txt")`,
    `Deno.linkSync("${outside}/secret.txt", "${ws}/in.txt")`,
  ], yard.keep());
  for (const one of told.slice(1)) assert.match(one, /^(PermissionDenied|Error)$/);
  assert.deepEqual([...Deno.readDirSync(outside)].map(({ name }) => name), ["secret.txt"]);
  assert.throws(() => Deno.statSync(`${ws}/in.txt`), Deno.errors.NotFound);
});

Deno.test(
  "confine() allows TCP only with a net grant",
  { ignore },
  async () => {
    using yard = new ConfinedYard();
    using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = listener.addr as Deno.NetAddr;
    const dial = [`(await Deno.connect({ port: ${port}, hostname: "127.0.0.1" })).close()`];
    assert.deepEqual((await yard.told(dial, yard.keep())).slice(1), ["PermissionDenied"]);
    assert.deepEqual((await yard.told(dial, yard.keep({ net: true }))).slice(1), ["undefined"]);
  },
);

Deno.test(
  "confine() refuses writes in a read root, and opens only a granted file outside",
  { ignore },
  async () => {
    using yard = new ConfinedYard();
    const { ws, outside, root } = yard;
    Deno.writeTextFileSync(`${outside}/granted.txt`, "granted");
    const keep = yard.keep({
      read: [ws, `${outside}/granted.txt`, `${ws}/link`, `${root}/nothing`],
      write: [],
    });
    const told = await yard.told([
      `return Deno.readTextFileSync("${ws}/a.txt")`,
      `Deno.writeTextFileSync("${ws}/a.txt", "x")`,
      `Deno.writeTextFileSync("${ws}/new.txt", "x")`,
      `Deno.removeSync("${ws}/a.txt")`,
      `return Deno.readTextFileSync("${outside}/granted.txt")`,
      `return Deno.readTextFileSync("${ws}/link/secret.txt")`,
    ], keep);
    const no = "PermissionDenied";
    assert.deepEqual(told.slice(1), ["inside", no, no, no, "granted", no]);
  },
);

Deno.test(
  "confine() keeps access to a file of the workspace that is replaced or created later",
  { ignore },
  async () => {
    using yard = new ConfinedYard();
    const { ws } = yard;
    const [old, later] = [`${ws}/a.txt`, `${ws}/d/later.txt`];
    const told = await yard.told([
      `Deno.writeTextFileSync("${ws}/new.txt", "new"); Deno.renameSync("${ws}/new.txt", "${old}");
      return Deno.readTextFileSync("${old}")`,
      `Deno.writeTextFileSync("${later}", "made"); return Deno.readTextFileSync("${later}")`,
    ], yard.keep({ read: [], write: [old, later] }));
    assert.deepEqual(told.slice(1), ["new", "made"]);
  },
);

/**
 * Replaces a folder by a link and back, as another process could between two steps of the broker.
 */
const SWAP = `
  const [real, swapped] = [Deno.lstatSync, () => {
    Deno.renameSync(ws + "/d", ws + "/kept"); Deno.renameSync(ws + "/link", ws + "/d");
  }];
  const back = () => { Deno.renameSync(ws + "/d", ws + "/link"); Deno.renameSync(ws + "/kept", ws + "/d") };
  let once = true;
  Deno.lstatSync = (path) => {
    if (!path.startsWith(ws + "/d") || !once) return real(path);
    once = false;
    if (LATE) { try { return real(path) } finally { swapped() } }
    swapped();
    return real(path);
  };
  const open = Deno.openSync;
  Deno.openSync = (...given) => { try { return open(...given) } finally { if (!once && !LATE) back() } };
  const reply = broker.answer(OP, ARGS);
  const { ok, value, error } = reply;
  return ok ? (value instanceof Uint8Array ? new TextDecoder().decode(value) : JSON.stringify(value ?? "done")) : error.name;`;

function swap(op: string, args: string, late = false): string {
  return SWAP.replaceAll("OP", JSON.stringify(op)).replaceAll("ARGS", args)
    .replaceAll("LATE", String(late));
}

Deno.test("a link swap that the broker misses leads outside only without Landlock", {
  ignore,
}, async () => {
  const swaps: [string, (yard: ConfinedYard) => boolean][] = [
    [swap("readFile", `["d/secret.txt"]`), () => false],
    [swap("readDir", `["d"]`, true), () => false],
    [swap("remove", `["d/secret.txt", {}]`, true), ({ outside }) => !has(`${outside}/secret.txt`)],
    [swap("mkdir", `["d/made", {}]`, true), ({ outside }) => has(`${outside}/made`)],
    [
      swap("writeFile", `["d/new.txt", new Uint8Array(1), { create: true }]`, true),
      ({ outside }) => has(`${outside}/new.txt`),
    ],
  ];
  for (const [text, harmed] of swaps) {
    for (const isHeld of [false, true]) {
      using yard = new ConfinedYard();
      // A file with this name also exists inside, for the steps that read or remove it.
      Deno.writeTextFileSync(`${yard.ws}/d/secret.txt`, "inside");
      const output = (await yard.told([text], isHeld ? yard.keep() : undefined)).at(-1) ?? "";
      const leaked = /SECRET|secret\.txt/.test(output) || harmed(yard);
      assert.equal(leaked, !isHeld, `${text.slice(-400, -250)}: ${output}`);
    }
  }
});

function has(path: string): boolean {
  try {
    return Deno.lstatSync(path) !== undefined;
  } catch {
    return false;
  }
}

Deno.test(
  "confine() throws if the kernel accepts the rules but does not enforce them",
  { ignore },
  async () => {
    using yard = new ConfinedYard();
    const keep = yard.keep({ canary: `${yard.home}/lock` });
    await assert.rejects(yard.told([], keep), /landlock does not hold/);
  },
);

Deno.test("handledBy() uses only rights that the version of Landlock supports", () => {
  const rights = (version: number) => handledBy(version, { net: false }).files.toString(2).length;
  assert.deepEqual([2, 3, 4, 5, 6, 7, 8, 9, 10].map(rights), [14, 15, 15, 16, 16, 16, 16, 17, 17]);
  const rest = (version: number, net: boolean) => {
    const { network, scopes } = handledBy(version, { net });
    return [network, scopes];
  };
  assert.deepEqual([3, 4, 6].map((version) => rest(version, false)), [[0, 0], [3, 0], [3, 3]]);
  assert.deepEqual(rest(6, true), [0, 3]);
});

Deno.test("confine() lets programs write only in the write roots", { ignore }, async () => {
  using yard = new ConfinedYard();
  const { ws, outside } = yard;
  const sh = (script: string) =>
    `const { code, stdout } = new Deno.Command("/bin/sh", { args: ["-c", ${
      JSON.stringify(script)
    }] }).outputSync();
     return code + new TextDecoder().decode(stdout).trim()`;
  const programs = { processes: 100_000, writesOnly: true };
  const [layer = "", ...told] = await yard.told(
    [
      sh(`cat ${outside}/secret.txt`),
      sh(
        `echo x > ${ws}/a.txt && ln -s a.txt ${ws}/made && mv ${ws}/made ${ws}/d/ && rm ${ws}/d/made`,
      ),
      sh(`echo x > /dev/null`),
      sh(`echo x > ${outside}/new.txt`),
      sh(`rm ${outside}/secret.txt`),
      sh(`ulimit -c`),
    ],
    yard.keep({ programs }),
    ["/bin/sh", "-c", 'ulimit -Sc 8; exec "$@"', "sh"],
  );
  assert.match(layer, HELD);
  assert.deepEqual(told.map((one) => one.replace(/^[1-9]$/, "no")), [
    "0SECRET",
    "0",
    "0",
    "no",
    "no",
    "00",
  ]);
  const free = yard.keep({ programs: { ...programs, writesOnly: false } });
  const [none, wrote] = await yard.told([sh(`echo x > ${outside}/new.txt`)], free);
  assert.match(none ?? "", /^no landlock: /);
  assert.equal(wrote, "0");
});

Deno.test(
  "confine() limits the number of processes of programs, except for root",
  { ignore },
  async () => {
    using yard = new ConfinedYard();
    const bomb = `const held = [];
    try { for (let n = 0; n < 60; n++) held.push(new Deno.Command("/bin/sleep", { args: ["60"] }).spawn()) }
    catch { return "bounded" } finally { for (const one of held) one.kill("SIGKILL") }
    return "free"`;
    const keep = yard.keep({ programs: { processes: 30, writesOnly: false } });
    const isRoot = Deno.uid() === 0;
    assert.equal((await yard.told([bomb], keep))[1], isRoot ? "free" : "bounded");
  },
);
