import assert from "node:assert/strict";
import { BrokerYard, bytes, codeOf, everyOp } from "../../../tests/fixtures/modules/broker_yard.ts";
import type { Broker } from "./broker.ts";

const SECONDS = 1_000;

function open(broker: Broker, path: string, options: Record<string, boolean>): unknown {
  const reply = broker.answer("open", [path, options]);
  assert.ok(reply.ok, JSON.stringify(reply));
  return reply.value;
}

Deno.test("Broker counts every kind of write, and refuses writes beyond the limit", () => {
  const ways: Record<string, (broker: Broker) => ReturnType<Broker["answer"]>> = {
    "a file": (broker) => broker.answer("writeFile", ["b", new Uint8Array(11), { create: true }]),
    "to the end": (broker) =>
      broker.answer("writeFile", ["a.txt", new Uint8Array(11), { append: true }]),
    "growth": (broker) => broker.answer("truncate", ["a.txt", 10 * 1024 ** 3]),
    "growth by a number in a coat": (broker) => broker.answer("truncate", ["a.txt", Object(99)]),
    "a copy": (broker) => broker.answer("copyFile", ["large", "b"]),
    "a step": (broker) =>
      broker.answer("file.write", [open(broker, "a.txt", { write: true }), new Uint8Array(11)]),
    "a step at the end": (broker) =>
      broker.answer("file.write", [open(broker, "a.txt", { append: true }), new Uint8Array(11)]),
    "growth of an open file": (broker) =>
      broker.answer("file.truncate", [open(broker, "a.txt", { write: true }), 99]),
    "a step past the end": (broker) => {
      const file = open(broker, "a.txt", { write: true });
      assert.equal(codeOf(broker.answer("file.seek", [file, 10 * 1024 ** 3, 0])), "ok");
      return broker.answer("file.write", [file, new Uint8Array(1)]);
    },
    "many small steps": (broker) => {
      const file = open(broker, "a.txt", { write: true });
      for (let n = 0; n < 10; n++) {
        assert.equal(codeOf(broker.answer("file.write", [file, new Uint8Array(1)])), "ok");
      }
      return broker.answer("file.write", [file, new Uint8Array(1)]);
    },
  };
  for (const [way, write] of Object.entries(ways)) {
    using yard = new BrokerYard();
    Deno.writeFileSync(`${yard.ws}/large`, new Uint8Array(11));
    const reply = write(yard.with({ writeBytes: 10 }));
    assert.equal(codeOf(reply), "SANDBOX_DENIED", way);
    assert.match(reply.ok ? "" : reply.error.message, /at most 10 bytes/, way);
    assert.ok(Deno.statSync(`${yard.ws}/a.txt`).size <= 17, way);
    assert.notEqual(Deno.readTextFileSync(`${yard.ws}/a.txt`), "", way);
  }
});

Deno.test("Broker lets a module use its whole limit, and truncate and read afterwards", () => {
  using yard = new BrokerYard();
  const broker = yard.with({ writeBytes: 10 });
  const full = broker.answer("writeFile", ["b", new Uint8Array(10), { create: true }]);
  assert.equal(codeOf(full), "ok");
  assert.equal(codeOf(broker.answer("writeFile", ["b", new Uint8Array(1)])), "SANDBOX_DENIED");
  assert.equal(Deno.statSync(`${yard.ws}/b`).size, 10);
  assert.equal(codeOf(broker.answer("truncate", ["b", 3])), "ok");
  assert.equal(codeOf(broker.answer("readFile", ["b"])), "ok");
  assert.equal(codeOf(broker.answer("writeFile", ["b", new Uint8Array(0)])), "ok");
});

Deno.test("Broker opens one folder of the home for temporary files, and nothing else in it", () => {
  using yard = new BrokerYard();
  const temp = `${yard.home}/own`;
  Deno.mkdirSync(temp);
  Deno.mkdirSync(`${yard.home}/own-other`);
  Deno.symlinkSync(yard.home, `${temp}/up`);
  const broker = yard.with({ temp });
  const made = broker.answer("makeTempFile", [{ prefix: "p-" }]);
  assert.ok(made.ok && String(made.value).startsWith(`${temp}/p-`));
  const folder = broker.answer("makeTempDir", []);
  assert.ok(folder.ok && Deno.statSync(String(folder.value)).mode === 0o40700);
  assert.equal(codeOf(broker.answer("writeFile", [made.value, bytes("x")])), "ok");
  assert.equal(codeOf(broker.answer("rename", [made.value, "kept"])), "ok");
  const closed = [yard.home, `${yard.home}/lock`, `${temp}-other`, `${temp}/../lock`];
  for (const path of [...closed, `${temp}/up`, `${temp}/up/lock`]) {
    for (const [op, ...args] of everyOp(path)) {
      assert.match(codeOf(broker.answer(op, args)), /^PATH_(OUT|PROT)/, `${op} ${path}`);
    }
  }
  const wide = yard.with({ temp, read: [yard.root], write: [yard.root] });
  assert.equal(codeOf(wide.answer("readDir", [temp])), "ok");
  for (const path of [yard.home, `${temp}-other`, `${temp}/up/lock`]) {
    assert.equal(codeOf(wide.answer("stat", [path])), "PATH_PROTECTED", path);
  }
  assert.equal(codeOf(broker.answer("remove", [temp, { recursive: true }])), "PATH_PROTECTED");
  assert.equal(codeOf(broker.answer("rename", [temp, "moved"])), "PATH_PROTECTED");
  Deno.mkdirSync(`${temp}/x/.git`, { recursive: true });
  assert.equal(codeOf(broker.answer("rename", [`${temp}/x`, "moved"])), "PATH_PROTECTED");
  assert.equal(codeOf(broker.answer("rename", [`${temp}/x/.git`, ".git"])), "PATH_PROTECTED");
  const none = yard.do("makeTempFile", {});
  assert.match(none.ok ? "" : none.error.message, /no write grant/);
});

Deno.test("Broker refuses to change pipes, sockets and devices, without waiting for them", () => {
  using yard = new BrokerYard();
  const { ws } = yard;
  const result = new Deno.Command("mkfifo", { args: [`${ws}/pipe`] }).outputSync();
  assert.ok(result.success);
  using _ = Deno.listen({ transport: "unix", path: `${ws}/socket` });
  Deno.symlinkSync("/proc/self/fd/0", `${ws}/fd`);
  Deno.symlinkSync("/proc/self/root", `${ws}/root`);
  Deno.symlinkSync("/dev/zero", `${ws}/zero`);
  const codes: Record<string, string> = {
    pipe: "SANDBOX_DENIED",
    socket: "SANDBOX_DENIED",
    fd: "PATH_OUTSIDE_WORKSPACE",
    "root/etc/passwd": "PATH_OUTSIDE_WORKSPACE",
    zero: "PATH_OUTSIDE_WORKSPACE",
  };
  for (const [path, code] of Object.entries(codes)) {
    for (const op of ["chmod", "utime", "truncate", "readFile", "open"]) {
      assert.equal(codeOf(yard.do(op, path, op === "open" ? { read: true } : 1, 1)), code, op);
    }
    assert.equal(codeOf(yard.do("copyFile", path, "b")), code);
    assert.equal(codeOf(yard.do("copyFile", "a.txt", path)), code);
  }
});

Deno.test("Broker never sets the setuid, setgid or sticky bit", () => {
  using yard = new BrokerYard();
  const modeOf = (path: string) => (Deno.statSync(`${yard.ws}/${path}`).mode ?? 0) & 0o7777;
  Deno.chmodSync(`${yard.ws}/a.txt`, 0o4755);
  yard.do("copyFile", "a.txt", "b");
  assert.equal(modeOf("b"), 0o755);
  yard.do("chmod", "b", 0o6711);
  assert.equal(modeOf("b"), 0o711);
  yard.do("writeFile", "b", bytes("x"), { mode: 0o7700 });
  assert.equal(modeOf("b"), 0o700);
  yard.do("mkdir", "d", { mode: 0o7700 });
  assert.equal(modeOf("d"), 0o700);
});

Deno.test("Broker refuses changes through a file that was opened for reading", () => {
  using yard = new BrokerYard();
  const broker = yard.with({ write: [] });
  const file = open(broker, "a.txt", { read: true });
  const before = Deno.statSync(`${yard.ws}/a.txt`).mtime;
  assert.equal(codeOf(broker.answer("file.utime", [file, 1, 2])), "SANDBOX_DENIED");
  assert.equal(codeOf(broker.answer("file.truncate", [file, 0])), "EINVAL");
  assert.equal(codeOf(broker.answer("file.write", [file, bytes("x")])), "EBADF");
  for (const [op, ...args] of [["chmod", "a.txt", 0], ["utime", "a.txt", 1, 2]] as const) {
    assert.equal(codeOf(broker.answer(op, args)), "SANDBOX_DENIED");
  }
  assert.deepEqual(Deno.statSync(`${yard.ws}/a.txt`).mtime, before);
});

Deno.test("Broker handles long names, deep paths and many files quickly", () => {
  using yard = new BrokerYard();
  const { broker } = yard;
  const start = performance.now();
  for (const path of ["x".repeat(5_000), "a/".repeat(2_500), "a/".repeat(5_000_000)]) {
    for (const [op, ...args] of everyOp(path)) {
      assert.equal(codeOf(yard.do(op, ...args)), "ENAMETOOLONG", `${op} ${path.length}`);
    }
    assert.equal(codeOf(yard.do("mkdir", path, { recursive: true })), "ENAMETOOLONG");
  }
  assert.equal(codeOf(yard.do("mkdir", "d/".repeat(1_900), { recursive: true })), "ok");
  for (let n = 0; n < 256; n++) open(broker, "a.txt", { read: true });
  const more = yard.do("open", "a.txt", { read: true });
  assert.match(more.ok ? "" : more.error.message, /^Too many open files.*256/);
  assert.equal(codeOf(yard.do("file.close", 1)), "ok");
  assert.equal(codeOf(yard.do("open", "a.txt", { read: true })), "ok");
  assert.ok(performance.now() - start < 20 * SECONDS);
  for (let n = 2; n < 258; n++) yard.do("file.close", n);
});

Deno.test("Broker refuses to list a folder whose list exceeds the limit of a result", () => {
  using yard = new BrokerYard();
  for (let n = 0; n < 100; n++) Deno.writeTextFileSync(`${yard.ws}/${"x".repeat(200)}${n}`, "");
  const broker = yard.with({ resultBytes: 10_000 });
  assert.equal(codeOf(broker.answer("readDir", ["."])), "RESULT_TOO_LARGE");
  assert.equal(codeOf(yard.do("readDir", ".")), "ok");
});

Deno.test("Broker reports at once whether it got a lock", () => {
  using yard = new BrokerYard();
  using other = Deno.openSync(`${yard.ws}/a.txt`);
  const file = open(yard.broker, "a.txt", { read: true });
  other.lockSync(true);
  assert.deepEqual(yard.do("file.tryLock", file, true), { ok: true, value: false });
  other.unlockSync();
  assert.deepEqual(yard.do("file.tryLock", file, true), { ok: true, value: true });
  assert.equal(other.tryLockSync(), false);
  yard.do("file.unlock", file);
  assert.equal(other.tryLockSync(), true);
  yard.do("file.close", file);
});
