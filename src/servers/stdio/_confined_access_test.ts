import assert from "node:assert/strict";
import { join } from "node:path";
import { availableLayer, confinedProgram } from "../../sandbox/confined_program.ts";
import { runProgram } from "../../sandbox/process.ts";
import {
  closedPaths,
  confinedAccess,
  confinedArgs,
  coversOf,
  withStreams,
} from "./_confined_access.ts";
import { dataFolder } from "./data_folder.ts";
import { serverReach } from "./_server_reach.ts";

const PROTECTION = {
  writeProtected: [".git", ".github/workflows", ".config/mise*"],
  readProtected: [".env*", ".docker/config.json"],
};

class Folders implements Disposable {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync());
  readonly workspace = join(this.root, "ws");

  constructor() {
    for (const name of ["ws/mcp/deep", "out", "home"]) {
      Deno.mkdirSync(join(this.root, name), { recursive: true });
    }
    Deno.writeTextFileSync(join(this.workspace, ".env.local"), "");
  }

  where(
    more: { write?: string[]; read?: string[]; run?: string[]; hasSystemLayer?: boolean } = {},
  ) {
    const { hasSystemLayer = true, ...grants } = more;
    const { root, workspace } = this;
    const paths = [join(workspace, "mcp/deep/m.js"), join(workspace, "late/deep/m.js")];
    return {
      ...{
        name: "s",
        folder: "/package",
        workspace,
        home: join(root, "home"),
        grants,
        hasSystemLayer,
      },
      ...{ certificates: [], protection: { ...PROTECTION, paths } },
    };
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.root, { recursive: true });
  }
}

Deno.test("closedPaths() closes the first folder of names with several parts, and missing folders (GX1)", () => {
  using folders = new Folders();
  const { workspace } = folders;
  const { read, write, above } = closedPaths(folders.where());
  const at = (paths: readonly string[]) => paths.map((path) => path.slice(workspace.length + 1));
  assert.deepEqual(at(read).sort(), [".docker/config.json", ".env", ".env.local"]);
  for (const name of [".github", ".config", ".docker", ".git", ".env", "late", "mcp/deep/m.js"]) {
    assert.ok(at(write).includes(name), name);
  }
  assert.ok(!at(write).includes("mcp"), "other files there can be written");
  assert.deepEqual(at(above).sort(), ["late", "late/deep", "mcp", "mcp/deep"]);
});

Deno.test("closedPaths() closes present names with a dot that are not writable (GX12)", () => {
  using folders = new Folders();
  const { workspace } = folders;
  for (const name of [".newagent", ".gitignore", ".prettierrc.json", ".granted"]) {
    Deno.writeTextFileSync(join(workspace, name), "");
  }
  const where = folders.where({ write: [".granted"] });
  const protection = { ...where.protection, writable: [".gitignore", ".prettierrc*"] };
  const { write } = closedPaths({ ...where, protection });
  const closed = (name: string) => write.includes(join(workspace, name));
  assert.deepEqual([closed(".newagent"), closed(".env.local")], [true, true]);
  assert.deepEqual([closed(".gitignore"), closed(".prettierrc.json"), closed(".granted")], [
    false,
    false,
    false,
  ]);
});

Deno.test("confinedAccess() makes the workspace writable only if a layer of the system confines (GX1)", () => {
  using folders = new Folders();
  const { workspace } = folders;
  assert.ok(confinedAccess(folders.where()).write.includes(workspace));
  const alone = confinedAccess(folders.where({ hasSystemLayer: false }));
  assert.ok(alone.read.includes(workspace) && !alone.write.includes(workspace));
  assert.equal(alone.write.length, 1, "its data folder");
  const granted = confinedAccess(folders.where({ hasSystemLayer: false, write: ["."] }));
  assert.ok(granted.write.includes(workspace));
});

Deno.test("confinedAccess() refuses a write grant that contains the workspace or another grant (GX1)", () => {
  using folders = new Folders();
  const { root } = folders;
  const out = join(root, "out");
  for (
    const grants of [
      { write: [root] },
      { write: [join(root, "home")] },
      { write: [out], read: [join(out, "x")] },
      { write: [out, join(out, "x")] },
    ]
  ) {
    assert.throws(() => confinedAccess(folders.where(grants)), /contains/, JSON.stringify(grants));
  }
  for (const grants of [{ write: [out], read: [out, root] }, { write: ["mcp"], read: ["mcp/x"] }]) {
    assert.ok(confinedArgs(folders.where(grants)).length > 0);
  }
});

Deno.test("serverReach() opens no more than Deno, but for grants that do not exist yet (GX1)", () => {
  using folders = new Folders();
  const { root, workspace } = folders;
  const options = { userHome: root, path: "/usr/bin:/bin", pmlPaths: ["/deno"] };
  const out = join(root, "out");
  const reach = serverReach(folders.where({ write: [out, "mcp"] }), options);
  assert.deepEqual(reach.fixed?.includes(workspace), true);
  assert.ok(reach.write.includes(out) && !reach.write.some((path) => path.startsWith(workspace)));
  assert.ok(!reach.read.includes("/usr"), "no program is granted");
  const later = serverReach(folders.where({ write: [join(out, "a/b")] }), options);
  assert.ok(later.fixed?.includes(out) && !later.write.includes(out));
});

Deno.test("serverReach() opens to granted programs no folder around a missing path", () => {
  using folders = new Folders();
  const { root, workspace } = folders;
  const options = { userHome: root, path: "/usr/bin:/bin", pmlPaths: ["/deno"] };
  const out = join(root, "out");
  Deno.mkdirSync(dataFolder({ home: join(root, "home"), workspace, name: "s" }), {
    recursive: true,
  });
  const reach = serverReach(folders.where({ read: [join(out, "a")], run: ["git"] }), options);
  assert.ok(reach.read.includes("/usr") && !reach.read.includes(out));
  const missing = folders.where({ write: [join(out, "a/b")], run: ["git"] });
  assert.throws(() => serverReach(missing, options), /write is missing/);
});

const bubblewrap = await availableLayer("bwrap", Deno.env.get("PATH"), "/nowhere");

Deno.test({
  name: "coversOf() has bubblewrap hide and fix closed paths, without the help of Deno (GX1)",
  ignore: bubblewrap.kind !== "bwrap",
  fn: async () => {
    using folders = new Folders();
    const { workspace } = folders;
    for (const name of [".docker/config.json", ".git/config", ".newagent/rules", "mcp/deep/m.js"]) {
      Deno.mkdirSync(join(workspace, name, ".."), { recursive: true });
      Deno.writeTextFileSync(join(workspace, name), "closed");
    }
    Deno.writeTextFileSync(join(workspace, ".env"), "closed");
    Deno.mkdirSync(join(workspace, ".ssh"));
    Deno.writeTextFileSync(join(workspace, ".ssh/id"), "closed");
    // A link gets no mount: bubblewrap would follow it, or fail.
    Deno.writeTextFileSync(join(folders.root, "out/file"), "outside");
    Deno.symlinkSync(join(folders.root, "out"), join(workspace, ".config"));
    const run = async (script: string, grants: object = {}) => {
      const program = {
        file: "/bin/sh",
        args: ["-c", script],
        cwd: workspace,
        env: {},
        hasKeeper: true,
      };
      const reach = { read: ["/usr", "/bin"], write: [workspace] };
      const where = folders.where(grants);
      const readProtected = [...PROTECTION.readProtected, ".ssh"];
      const covers = coversOf({ ...where, protection: { ...where.protection, readProtected } });
      const confined = confinedProgram(program, { layer: bubblewrap, reach, covers });
      const { code, stdout, stderr } = await runProgram(confined, { ms: 60_000, maxBytes: 10_000 });
      return { code, stdout, stderr };
    };
    assert.equal((await run("cat .config/file ../out/file")).stdout, "");
    for (const name of [".env", ".docker/config.json", ".ssh/id"]) {
      assert.equal((await run(`cat ${name}`)).stdout, "", name);
      // A granted program may need to read it.
      assert.equal((await run(`cat ${name}`, { run: ["git"] })).stdout, "closed", name);
    }
    const refused = [
      ...[".env", ".docker/config.json", ".git/config", ".newagent/rules", "mcp/deep/m.js"]
        .flatMap((name) => [`echo evil > ${name}`, `rm ${name}`, `mv ${name} moved`]),
      ...[".docker", ".git", ".newagent", "mcp", "mcp/deep"].map((name) => `mv ${name} moved`),
      ...[".docker/new", ".git/new", ".newagent/new"].map((name) => `echo evil > ${name}`),
    ];
    // Each attempt has its own target: `mv` between mounts copies, and leaves one behind.
    const all = refused.map((script, at) =>
      `(${script.replace("moved", `moved${at}`)}) 2>/dev/null && echo "${script}"`
    ).join("\n");
    for (const grants of [{}, { run: ["git"] }]) {
      assert.equal((await run(all, grants)).stdout, "", "what succeeded");
      for (const name of [".env", "mcp/deep/m.js", ".newagent/rules", ".git/config"]) {
        assert.equal(Deno.readTextFileSync(join(workspace, name)), "closed", name);
      }
    }
    const allowed = "echo a > new && mkdir made && mv made other && echo b > mcp/deep/new";
    assert.deepEqual(await run(allowed), { code: 0, stdout: "", stderr: "" });
    assert.equal(Deno.readTextFileSync(join(workspace, "mcp/deep/new")), "b\n");
  },
});

Deno.test("withStreams() adds the streams of present files and folders on Windows", () => {
  using folders = new Folders();
  const { workspace } = folders;
  const [file, folder, missing] = [".env.local", "mcp", ".env"].map((one) => join(workspace, one));
  const paths = [file, folder, missing].map(String);
  assert.deepEqual(withStreams(paths, "windows"), [
    ...[file, `${file}::$DATA`],
    ...[folder, `${folder}::$INDEX_ALLOCATION`, `${folder}:$I30:$INDEX_ALLOCATION`],
    missing,
  ]);
  assert.deepEqual(withStreams(paths, "linux"), paths);
});
