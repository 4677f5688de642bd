import assert from "node:assert/strict";
import protectedPaths from "../../../config/protected-paths.json" with { type: "json" };
import { BrokerYard, bytes, codeOf, everyOp } from "../../../tests/fixtures/modules/broker_yard.ts";

Deno.test("Broker refuses to write protected names at any depth and in any spelling", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/deep/.git/hooks`, { recursive: true });
  Deno.mkdirSync(`${yard.ws}/.github/other`, { recursive: true });
  const paths = [
    ".pml.json",
    ".mcp.json",
    "pml.lock",
    ".git",
    ".git/hooks/pre-commit",
    "deep/.git/hooks/pre-commit",
    ".GIT/config",
    "．git/config",
    ".g\u200bit/config",
    ".env",
    ".env.local",
    ".ENVRC",
    ".npmrc",
    "deep/CLAUDE.md",
    "claude.MD",
    ".github/workflows/ci.yml",
    ".GitHub/Workflows",
    "server.key",
    "id_rsa",
  ];
  for (const path of paths) {
    const tries: [string, ...unknown[]][] = [
      ["writeFile", path, bytes("x"), { create: true }],
      ["open", path, { write: true, create: true }],
      ["mkdir", path, { recursive: true }],
      ["rename", "a.txt", path],
      ["copyFile", "a.txt", path],
      ["remove", path, { recursive: true }],
      ["truncate", path, 0],
      ["chmod", path, 0o777],
      ["utime", path, 1, 2],
      ["makeTempFile", { dir: path }],
      ["makeTempDir", { dir: path }],
    ];
    for (const [op, ...args] of tries) {
      assert.equal(codeOf(yard.do(op, ...args)), "PATH_PROTECTED", `${op} ${path}`);
    }
  }
  assert.equal(codeOf(yard.do("writeFile", ".github/README", bytes("x"), { create: true })), "ok");
});

Deno.test("Broker refuses to write unlisted dot names at the top of the workspace (GX12)", () => {
  using yard = new BrokerYard();
  const write = (path: string) => yard.do("writeFile", path, bytes("x"), { create: true });
  for (const path of [".newagent", ".newagentrc", "．newagent", ".\u200bx"]) {
    assert.equal(codeOf(write(path)), "PATH_PROTECTED", path);
    assert.equal(codeOf(yard.do("rename", "a.txt", path)), "PATH_PROTECTED", path);
  }
  assert.equal(codeOf(yard.do("mkdir", ".newagent/rules", { recursive: true })), "PATH_PROTECTED");
  const { error } = write(".newagent") as { error: { message: string } };
  assert.match(error.message, /grant "write": \["\.newagent"\] to the server in \.pml\.json/);
  Deno.mkdirSync(`${yard.ws}/deep`);
  for (const path of [".gitignore", ".prettierrc.json", ".GitIgnore", "deep/.newagent"]) {
    assert.equal(codeOf(write(path)), "ok", path);
  }
  Deno.writeTextFileSync(`${yard.ws}/.newagent`, "read");
  assert.equal(codeOf(yard.do("readFile", ".newagent")), "ok");
  const granted = [`${yard.ws}/.newagent`];
  const protection = { ...protectedPaths, paths: [], granted };
  const open = yard.with({ protection });
  assert.equal(codeOf(open.answer("writeFile", [".newagent", bytes("x"), {}])), "PATH_PROTECTED");
  const own = yard.with({ protection, write: [yard.ws, ...granted] });
  assert.equal(codeOf(own.answer("writeFile", [".newagent", bytes("x"), {}])), "ok");
});

Deno.test("Broker refuses to remove or move a folder with a protected file", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/deep/er`, { recursive: true });
  Deno.writeTextFileSync(`${yard.ws}/deep/er/.env`, "KEY=1");
  Deno.mkdirSync(`${yard.ws}/plain/workflows`, { recursive: true });
  assert.equal(codeOf(yard.do("remove", "deep", { recursive: true })), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("rename", "deep", "gone")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("rename", "plain", ".github")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("remove", ".", { recursive: true })), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("chmod", "deep", 0)), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("chmod", ".", 0)), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("chmod", "plain", 0o700)), "ok");
  assert.equal(codeOf(yard.do("remove", "plain", { recursive: true })), "ok");
  assert.equal(Deno.readTextFileSync(`${yard.ws}/deep/er/.env`), "KEY=1");
});

Deno.test("Broker resolves links before it checks protected folders", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/.git/hooks`, { recursive: true });
  Deno.writeTextFileSync(`${yard.ws}/.git/HEAD`, "x");
  Deno.symlinkSync(".git", `${yard.ws}/g`);
  const tries: [string, ...unknown[]][] = [
    ["remove", "g/HEAD", {}],
    ["rename", "g/HEAD", "b.txt"],
    ["rename", "a.txt", "g/b.txt"],
    ["mkdir", "g/new", {}],
    ["mkdir", "g/new/deep", { recursive: true }],
    ["writeFile", "g/hooks/pre-commit", bytes("x"), { create: true }],
    ["chmod", "g/HEAD", 0o777],
    ["utime", "g", 1, 2],
    ["makeTempFile", { dir: "g" }],
    ["copyFile", "a.txt", "g/HEAD"],
  ];
  for (const [op, ...args] of tries) {
    assert.equal(codeOf(yard.do(op, ...args)), "PATH_PROTECTED", `${op} ${args}`);
  }
});

Deno.test("Broker refuses to remove or move a granted folder", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/out`);
  const broker = yard.with({ write: [yard.ws, `${yard.ws}/out`] });
  for (const path of [".", "out"]) {
    assert.equal(codeOf(broker.answer("remove", [path, { recursive: true }])), "PATH_PROTECTED");
    assert.equal(codeOf(broker.answer("rename", [path, "moved"])), "PATH_PROTECTED");
  }
});

Deno.test("Broker refuses to read a secret file unless a grant names it", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/.git`);
  for (const path of [".env", ".git/config", ".git/HEAD"]) {
    Deno.writeTextFileSync(`${yard.ws}/${path}`, "x");
  }
  assert.equal(codeOf(yard.do("readFile", ".env")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("copyFile", ".env", "b.txt")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("rename", ".env", "b.txt")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("readFile", ".git/config")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("readFile", ".git/HEAD")), "ok");
  const env = `${yard.ws}/.env`;
  const protection = { ...protectedPaths, paths: [], granted: [env] };
  const broker = yard.with({ read: [yard.ws, env], protection });
  assert.equal(codeOf(broker.answer("readFile", [".env"])), "ok");
  assert.equal(codeOf(broker.answer("writeFile", [".env", bytes("x")])), "PATH_PROTECTED");
  // A grant that only the module requests does not open the name.
  const asked = yard.with({ read: [yard.ws, env] });
  assert.equal(codeOf(asked.answer("readFile", [".env"])), "PATH_PROTECTED");
});

Deno.test("Broker recognizes a protected file under another name by its inode", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/.git/hooks`, { recursive: true });
  Deno.mkdirSync(`${yard.ws}/x/y`, { recursive: true });
  Deno.writeTextFileSync(`${yard.ws}/.git/hooks/pre-commit`, "hook");
  Deno.writeTextFileSync(`${yard.ws}/.env`, "KEY=1");
  Deno.linkSync(`${yard.ws}/.git/hooks/pre-commit`, `${yard.ws}/x/y/hook`);
  Deno.linkSync(`${yard.ws}/.env`, `${yard.ws}/x/plain`);
  Deno.linkSync(`${yard.ws}/a.txt`, `${yard.ws}/x/a2.txt`);
  assert.equal(codeOf(yard.do("writeFile", "x/y/hook", bytes("evil"))), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("chmod", "x/y/hook", 0o777)), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("utime", "x/y/hook", 1, 2)), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("truncate", "x/y/hook", 0)), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("copyFile", "x/plain", "c.txt")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("readFile", "x/y/hook")), "ok");
  assert.equal(codeOf(yard.do("readFile", "x/plain")), "PATH_PROTECTED");
  assert.equal(codeOf(yard.do("writeFile", "x/a2.txt", bytes("fine"))), "ok");
  assert.equal(Deno.readTextFileSync(`${yard.ws}/.git/hooks/pre-commit`), "hook");
});

Deno.test("Broker refuses writes to private module files and every access to the PML home", () => {
  using yard = new BrokerYard();
  const file = `${yard.ws}/mcp.ts`;
  Deno.writeTextFileSync(file, "code");
  const protection = { ...protectedPaths, paths: [file], granted: [] };
  const broker = yard.with({ read: [yard.root], write: [yard.root], protection });
  assert.equal(codeOf(broker.answer("readFile", [file])), "ok");
  assert.equal(codeOf(broker.answer("writeFile", [file, bytes("x")])), "PATH_PROTECTED");
  assert.equal(codeOf(broker.answer("remove", [file, {}])), "PATH_PROTECTED");
  for (const op of ["stat", "lstat", "readDir", "readFile", "chmod", "utime", "truncate"]) {
    assert.equal(codeOf(broker.answer(op, [yard.home])), "PATH_PROTECTED", op);
    assert.equal(codeOf(broker.answer(op, [`${yard.home}/lock`])), "PATH_PROTECTED", op);
  }
});

Deno.test("Broker refuses names that mean another file on Windows without using them", () => {
  using yard = new BrokerYard();
  for (const path of ["a.txt.", "a.txt ", "a.txt::$DATA", "C:x", "GIT~1", "con", "x/NUL.txt"]) {
    for (const [op, ...args] of everyOp(path)) {
      assert.equal(codeOf(yard.do(op, ...args)), "PATH_PROTECTED", `${op} ${path}`);
    }
  }
});

Deno.test("Broker allows reads and writes only where each is granted", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/out`);
  const broker = yard.with({ read: [yard.ws], write: [`${yard.ws}/out`] });
  assert.equal(codeOf(broker.answer("writeFile", ["b.txt", bytes("x")])), "SANDBOX_DENIED");
  assert.equal(codeOf(broker.answer("open", ["a.txt", { write: true }])), "SANDBOX_DENIED");
  assert.equal(
    codeOf(broker.answer("writeFile", ["out/b.txt", bytes("x"), { create: true }])),
    "ok",
  );
  const none = yard.with({ read: [], write: [] });
  assert.equal(codeOf(none.answer("readFile", ["a.txt"])), "SANDBOX_DENIED");
  const blind = yard.with({ read: [] });
  assert.equal(codeOf(blind.answer("rename", ["a.txt", "b.txt"])), "SANDBOX_DENIED");
  assert.equal(
    codeOf(blind.answer("open", ["a.txt", { read: true, write: true }])),
    "SANDBOX_DENIED",
  );
});

Deno.test("Broker refuses to create a root if a link replaced its folder", () => {
  using yard = new BrokerYard();
  const roots = [`${yard.ws}/a/new`, `${yard.ws}/a/made`];
  const broker = yard.with({ read: [], write: roots });
  const codes = () =>
    ([
      ["writeFile", "a/new", bytes("x"), { create: true }],
      ["open", "a/new", { write: true, create: true }],
      ["mkdir", "a/made", {}],
      ["mkdir", "a/made/deep", { recursive: true }],
    ] as const).map(([op, ...args]) => codeOf(broker.answer(op, args)));
  const before = yard.fingerprint();
  Deno.symlinkSync("../outside", `${yard.ws}/a`);
  assert.deepEqual(codes(), Array(4).fill("PATH_OUTSIDE_WORKSPACE"));
  assert.equal(yard.fingerprint(), before);
  Deno.removeSync(`${yard.ws}/a`);
  Deno.mkdirSync(`${yard.ws}/a`);
  assert.deepEqual(codes(), ["ok", "ok", "ok", "ok"]);
});

Deno.test("Broker allows writes in a workspace that is itself a bare repository", () => {
  using yard = new BrokerYard();
  Deno.mkdirSync(`${yard.ws}/objects`);
  for (const name of ["HEAD", "config"]) Deno.writeTextFileSync(`${yard.ws}/${name}`, "x");
  assert.equal(codeOf(yard.do("writeFile", "notes", bytes("x"), { create: true })), "ok");
  assert.equal(codeOf(yard.do("readFile", "config")), "ok");
  Deno.removeSync(`${yard.ws}/config`);
  const made = yard.do("writeFile", "config", bytes("x"), { create: true });
  assert.equal(codeOf(made), "PATH_PROTECTED");
});
