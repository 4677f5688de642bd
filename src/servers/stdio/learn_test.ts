import assert from "node:assert/strict";
import { join } from "node:path";
import { readRequestedAccess } from "./_requested_access.ts";
import { toLesson, Trial, type TrialOptions } from "./learn.ts";

const OPTIONS: TrialOptions = {
  name: "s",
  workspace: "/u/me/work/ws",
  hasSystemLayer: true,
  cwd: "/u/me/work/ws",
  home: "/u/me/.pml",
  userHome: "/u/me",
  grants: { read: ["/granted"], net: ["known.example"], run: ["git"] },
  protection: {
    writeProtected: [".git", ".mcp.json"],
    readProtected: [".env*", ".ssh", "*.pem", ".docker/config.json"],
  },
  certificates: ["/etc/corp/ca.pem"],
  env: {},
  variableNames: ["HOME", "TOKEN"],
};

class Folder implements Disposable {
  readonly path = Deno.realPathSync(Deno.makeTempDirSync());

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

function line(permission: string, value: string | null): string {
  return JSON.stringify({ v: 1, permission, value });
}

function lesson(lines: readonly string[], texts = "") {
  const asked = readRequestedAccess(lines.join("\n"), { texts, cwd: OPTIONS.cwd });
  return toLesson(asked, OPTIONS);
}

Deno.test("a trial is confined by a layer of the system, or by grants that Deno alone enforces", async () => {
  using folder = new Folder();
  await Deno.mkdir(join(folder.path, "servers"));
  const isConfined = (hasSystemLayer: boolean, grants: TrialOptions["grants"]) => {
    using trial = new Trial({ ...OPTIONS, home: folder.path, hasSystemLayer, grants });
    return trial.isConfined;
  };
  assert.deepEqual(
    [isConfined(true, { run: ["git"] }), isConfined(false, { read: ["/x"], net: ["a:1"] })],
    [true, true],
  );
  assert.deepEqual(
    [isConfined(false, { run: ["git"] }), isConfined(false, { write: ["/x"] })],
    [false, false],
  );
});

Deno.test("A trial's lesson holds nothing that the server may do already", () => {
  const lines = [
    line("read", "/u/me/work/ws"),
    line("read", "src/a.ts"),
    line("write", "/u/me/work/ws/out.txt"),
    line("read", "/granted/x"),
    line("read", "/etc/corp/ca.pem"),
    line("read", "/u/me/.pml/servers/npm-1/node_modules/s/x.json"),
    line("net", "known.example:443"),
    line("net", "https://known.example/path?key=secret"),
    line("env", null),
    line("env", "TOKEN"),
    line("env", "NODE_ENV"),
    line("sys", "hostname"),
    "half a li",
  ];
  const none = { env: {}, dataEnv: {}, data: [], unseen: [] };
  const wanted = { missing: {}, left: [], variables: [], ...none };
  assert.deepEqual(lesson(lines, 'Requires run access to "git"'), wanted);
});

Deno.test("A trial's lesson is the smallest grants, folded and written as a person would", () => {
  const many = ["a", "b", "c", "d"].map((name) => line("read", `/u/me/work/docs/${name}.md`));
  const { missing, variables } = lesson([
    ...many,
    line("read", "/data/set/only.csv"),
    line("write", "../cache/one"),
    line("net", "https://api.example/v1?key=secret"),
    line("net", "api.example:8443"),
    line("env", "API_KEY"),
  ], 'Requires run access to "/usr/bin/gh", run again. Command failed: jq .');
  assert.deepEqual(missing, {
    read: ["/data/set/only.csv", "../docs"],
    write: ["../cache/one"],
    net: ["api.example", "api.example:8443"],
    run: ["gh", "jq"],
  });
  assert.deepEqual(variables, ["API_KEY"]);
  assert.doesNotMatch(JSON.stringify(missing), /secret/);
});

Deno.test("A trial's lesson proposes no key, no home, and nothing of PML's, and says so", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [line("read", "/u/me/.ssh/config"), /\.ssh is protected/],
    [line("read", ".env.local"), /\.env\* is protected/],
    [line("write", ".git/hooks/x"), /\.git is protected/],
    [line("read", "/data/server.pem"), /\*\.pem is protected/],
    [line("read", "/u/me"), /it is too wide/],
    [line("read", "/u"), /it is too wide/],
    [line("write", "/etc"), /it is too wide/],
    [line("read", "/"), /it is too wide/],
    [line("read", "/u/me/.pml/trust.json"), /it belongs to PML/],
    [line("write", "/u/me/.pml/servers/npm-1/x.jsonl"), /must not change/],
    [line("net", "0.0.0.0:0"), /port 0 cannot be granted/],
    [line("net", "127.0.0.1:8080"), /an IP address .*host names/],
    [line("net", "a.example,b.example:443"), /not a host/],
    [line("net", "*:443"), /not a host/],
    [line("read", "/data/a,/etc/passwd"), /path with a comma/],
    [line("ffi", "/x.node"), /ffi: .*be granted/],
    [line("write", null), /write without a bound: /],
  ];
  for (const [asked, like] of cases) {
    const { missing, left } = lesson([asked]);
    assert.deepEqual(missing, {}, asked);
    assert.match(left.join("\n"), like, asked);
  }
  const programs = [
    ...["sh", "bash", "/usr/bin/node", "python3", "cmd.exe"],
    ...[
      "nodejs",
      "node22",
      "python3.12-dbg",
      "busybox",
      "xargs",
      "timeout",
      "docker",
      "gawk",
      "su",
    ],
    "ld-linux-x86-64.so.2",
  ];
  const refused = [
    ...programs.map((program) => [program, /any code/] as const),
    ...["gh,sh", "*", "gh\u200b"].map((program) => [program, /its name has/] as const),
  ];
  for (const [program, like] of refused) {
    const { missing, left } = lesson([], `Requires run access to "${program}"`);
    assert.deepEqual(missing, {}, program);
    assert.match(left.join("\n"), like, program);
  }
});

Deno.test("Many files of the home folder are not folded into it", () => {
  const files = ["a", "b", "c", "d", "e"].map((name) => line("read", `/u/me/${name}`));
  assert.deepEqual(lesson(files).missing.read?.length, 5);
});

Deno.test("A trial's lesson proposes no folder that contains a protected name", () => {
  using folder = new Folder();
  Deno.mkdirSync(join(folder.path, "other/.git"), { recursive: true });
  Deno.writeTextFileSync(join(folder.path, "server.pem"), "");
  const files = ["a", "b", "c", "d"].map((name) => join(folder.path, name));
  const many = lesson(files.map((path) => line("read", path)));
  assert.deepEqual(many.missing, { read: files }, "they are not folded");
  const parts = ["a", "b", "c", "d"].map((name) => `/u/me/.docker/${name}`);
  assert.deepEqual(lesson(parts.map((path) => line("read", path))).missing, { read: parts });
  const cases: readonly (readonly ["read" | "write", string, RegExp])[] = [
    ["read", folder.path, /it contains \*\.pem, which is protected/],
    ["read", "/u/me/.docker", /it contains \.docker\/config\.json, which is protected/],
    ["write", join(folder.path, "other"), /it contains \.git, which is protected/],
  ];
  for (const [kind, path, like] of cases) {
    const { missing, left } = lesson([line(kind, path)]);
    assert.deepEqual(missing, {}, path);
    assert.match(left.join("\n"), like);
  }
  const other = join(folder.path, "other");
  assert.deepEqual(lesson([line("read", other)]).missing, { read: [other] });
});

Deno.test("A trial's lesson proposes no process, socket or name with hidden characters", () => {
  using folder = new Folder();
  const path = join(folder.path, "s.sock");
  using _socket = Deno.listen({ transport: "unix", path });
  for (const asked of [path, "/proc/1/environ", "/data/\u202egnp.txt", "/data/a\u200bb"]) {
    for (const kind of ["read", "write"]) {
      const { missing, left } = lesson([line(kind, asked)]);
      assert.deepEqual(missing, {}, asked);
      assert.match(left.join("\n"), /nor a folder|hidden characters/, asked);
    }
  }
});

Deno.test("A trial's lesson sets no variable that changes how programs run, and no odd value", () => {
  const lines = [
    ...["LD_LIBRARY_PATH", "GIT_EXEC_PATH", "DENO_DIR", "MEMORY_FILE_PATH"]
      .map((name) => line("env", name)),
    line("write", "/u/me/.pml/servers/npm-1/lib\u202e"),
  ];
  assert.deepEqual(lesson(lines).env, { MEMORY_FILE_PATH: "${dataFolder}/data" });
});
