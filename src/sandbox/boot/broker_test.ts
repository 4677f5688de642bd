import assert from "node:assert/strict";
import fc from "fast-check";
import { BrokerYard, bytes, codeOf, everyOp } from "../../../tests/fixtures/modules/broker_yard.ts";
import { PathGuard } from "./path_guard.ts";
import { copyBytes } from "./handles.ts";

Deno.test("Broker refuses every path out of the workspace, and changes nothing outside", () => {
  using yard = new BrokerYard();
  const before = yard.fingerprint();
  const paths = [
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    `${yard.outside}/secret.txt`,
    "/etc/passwd",
    "file:///etc/passwd",
    "file:///%2e%2e/etc/passwd",
    "../ws-evil/secret.txt",
    `${yard.ws}-evil/secret.txt`,
    "\\\\server\\share",
    "a\0b",
    "file://host/etc/passwd",
  ];
  const more = (path: string): [string, ...unknown[]][] => [
    ["lstat", path],
    ["readLink", path],
    ["mkdir", `${path}/deep`, { recursive: true }],
    ["mkdir", path, {}],
    ["remove", path, { recursive: true }],
    ["rename", "a.txt", path],
    ["rename", path, "b.txt"],
  ];
  for (const path of paths) {
    for (const [op, ...args] of [...everyOp(path), ...more(path)]) {
      assert.equal(codeOf(yard.do(op, ...args)), "PATH_OUTSIDE_WORKSPACE", `${op} ${path}`);
    }
  }
  assert.equal(yard.fingerprint(), before);
  assert.equal(Deno.readTextFileSync(`${yard.ws}/a.txt`), "inside");
});

Deno.test("Broker treats encoded and backslash forms as plain names", () => {
  using yard = new BrokerYard();
  for (const path of ["%2e%2e/outside/secret.txt", "..\\outside\\secret.txt", "..%2foutside"]) {
    assert.equal(codeOf(yard.do("readFile", path)), "ENOENT", path);
  }
});

Deno.test("Broker does not follow or create files through links out of the workspace", () => {
  using yard = new BrokerYard();
  const { ws, outside } = yard;
  Deno.mkdirSync(`${ws}/sub`);
  const links: Record<string, string> = {
    file: `${outside}/secret.txt`,
    dir: outside,
    relative: "../outside/secret.txt",
    dangling: `${outside}/new.txt`,
    danglingDeep: `${outside}/no/such/place`,
    one: "two",
    two: "sub/three",
    loop: "loop",
  };
  for (const [name, target] of Object.entries(links)) Deno.symlinkSync(target, `${ws}/${name}`);
  Deno.symlinkSync("../file", `${ws}/sub/three`);
  const before = yard.fingerprint();
  const paths = ["file", "dir", "dir/secret.txt", "dir/new.txt", "dir/no/new.txt", "relative"];
  for (const path of [...paths, "dangling", "danglingDeep", "one", "two", "loop"]) {
    for (const [op, ...args] of everyOp(path)) {
      assert.equal(codeOf(yard.do(op, ...args)), "PATH_OUTSIDE_WORKSPACE", `${op} ${path}`);
    }
  }
  for (const path of ["dir/made", "dir/made/deep"]) {
    assert.equal(codeOf(yard.do("mkdir", path, { recursive: true })), "PATH_OUTSIDE_WORKSPACE");
  }
  assert.equal(codeOf(yard.do("remove", "dir/secret.txt", {})), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(codeOf(yard.do("rename", "a.txt", "dir/a.txt")), "PATH_OUTSIDE_WORKSPACE");
  assert.equal(yard.fingerprint(), before);
});

Deno.test("Broker reports a link as a link, and removes and renames the link itself", () => {
  using yard = new BrokerYard();
  const before = yard.fingerprint();
  Deno.symlinkSync(yard.outside, `${yard.ws}/dir`);
  Deno.symlinkSync(`${yard.outside}/secret.txt`, `${yard.ws}/file`);
  const listed = yard.do("readDir", ".");
  assert.ok(listed.ok);
  const kinds = (listed.value as Deno.DirEntry[]).map(({ name, isSymlink }) => [name, isSymlink]);
  assert.deepEqual(Object.fromEntries(kinds), { "a.txt": false, dir: true, file: true });
  const seen = yard.do("lstat", "dir");
  assert.ok(seen.ok && (seen.value as Deno.FileInfo).isSymlink);
  assert.equal(codeOf(yard.do("rename", "file", "moved")), "ok");
  assert.equal(codeOf(yard.do("remove", "moved", {})), "ok");
  assert.equal(codeOf(yard.do("remove", "dir", { recursive: true })), "ok");
  assert.equal(yard.fingerprint(), before);
});

Deno.test("Broker follows a link whose target is inside", () => {
  using yard = new BrokerYard();
  Deno.symlinkSync("a.txt", `${yard.ws}/link`);
  const read = yard.do("readFile", "link");
  assert.ok(read.ok);
  assert.equal(new TextDecoder().decode(read.value as Uint8Array), "inside");
  assert.equal(codeOf(yard.do("writeFile", "link", bytes("new"), { create: true })), "ok");
  assert.equal(Deno.readTextFileSync(`${yard.ws}/a.txt`), "new");
  assert.ok(Deno.lstatSync(`${yard.ws}/link`).isSymlink);
});

Deno.test("Broker reads exactly what real path containment allows", () => {
  using yard = new BrokerYard();
  const { ws } = yard;
  Deno.mkdirSync(`${ws}/d/e`, { recursive: true });
  Deno.writeTextFileSync(`${ws}/d/b.txt`, "inside too");
  Deno.symlinkSync("..", `${ws}/d/up`);
  Deno.symlinkSync("../..", `${ws}/d/out`);
  Deno.symlinkSync(yard.outside, `${ws}/d/e/far`);
  const part = fc.constantFrom(
    ..."d e up out far a.txt b.txt secret.txt outside ws ws-evil .. . %2e%2e ..\\ etc".split(" "),
    "",
    "…",
    "ｄ",
  );
  const path = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join("/"));
  fc.assert(
    fc.property(path, fc.boolean(), (relative, absolute) => {
      const asked = absolute ? `${ws}/${relative}` : relative;
      const reply = yard.do("readFile", asked);
      if (!reply.ok) return;
      const text = new TextDecoder().decode(reply.value as Uint8Array);
      assert.ok(text === "inside" || text === "inside too", `${asked} gave ${text}`);
      const real = yard.do("realPath", asked);
      assert.ok(real.ok && String(real.value).startsWith(`${ws}/`));
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("Broker answers any text with a reply and never throws", () => {
  using yard = new BrokerYard();
  const before = yard.fingerprint();
  const any = fc.oneof(fc.string({ unit: "binary", maxLength: 60 }), fc.anything());
  fc.assert(
    fc.property(any, (path) => {
      for (const op of ["readFile", "stat", "open", "mkdir", "rename", "writeFile", "nonsense"]) {
        assert.equal(typeof yard.do(op, path, path).ok, "boolean");
      }
    }),
    { numRuns: 200 },
  );
  assert.notEqual(codeOf(yard.do("readFile", "x".repeat(5_000))), "ok");
  assert.equal(yard.fingerprint(), before);
});

Deno.test("PathGuard.openFile() refuses a file that was replaced after its check", () => {
  using yard = new BrokerYard();
  const guard = new PathGuard(yard.ground());
  const attempt = { op: "open", requestedPath: "a.txt", access: "write" } as const;
  const old = guard.target(attempt);
  Deno.removeSync(`${yard.ws}/a.txt`);
  Deno.symlinkSync(`${yard.outside}/secret.txt`, `${yard.ws}/a.txt`);
  const open = () => guard.openFile(old, { attempt, open: { write: true } });
  assert.throws(open, /replaced while/);
  const fresh = { path: `${yard.ws}/d/new.txt`, info: undefined };
  Deno.symlinkSync(yard.outside, `${yard.ws}/d`);
  assert.throws(() => guard.openFile(fresh, { attempt, open: { write: true } }), /replaced/);
});

Deno.test("Broker refuses to open pipes and devices, and to read files above the limit", () => {
  using yard = new BrokerYard();
  const result = new Deno.Command("mkfifo", { args: [`${yard.ws}/pipe`] }).outputSync();
  assert.ok(result.success);
  assert.equal(codeOf(yard.do("readFile", "pipe")), "SANDBOX_DENIED");
  assert.equal(codeOf(yard.do("open", "pipe", { write: true })), "SANDBOX_DENIED");
  Deno.truncateSync(`${yard.ws}/a.txt`, 10 * 1024 ** 3);
  const reply = yard.do("readFile", "a.txt");
  assert.equal(codeOf(reply), "RESULT_TOO_LARGE");
  assert.match(reply.ok ? "" : reply.error.message, /10737418240 bytes/);
  assert.equal(codeOf(yard.do("readFile", ".")), "EISDIR");
  assert.equal(codeOf(yard.do("readDir", "a.txt")), "ENOTDIR");
});

Deno.test("Broker copies bytes that the Worker could still change", () => {
  using yard = new BrokerYard();
  const shared = new Uint8Array(new SharedArrayBuffer(4));
  assert.ok(!(copyBytes(shared).buffer instanceof SharedArrayBuffer));
  assert.equal(codeOf(yard.do("writeFile", "b.bin", shared, { create: true })), "ok");
  assert.equal(Deno.statSync(`${yard.ws}/b.bin`).size, 4);
});
