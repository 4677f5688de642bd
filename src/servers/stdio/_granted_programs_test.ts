import assert from "node:assert/strict";
import { join } from "node:path";
import { grantedPrograms } from "./_granted_programs.ts";

Deno.test("grantedPrograms() finds programs where the server cannot write, and closes those of the workspace", () => {
  const root = Deno.realPathSync(Deno.makeTempDirSync());
  try {
    const [workspace, bin, safe] = ["ws", "bin", "safe"].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ];
    for (const folder of [workspace, bin, safe]) Deno.mkdirSync(folder);
    for (const file of [join(bin, "tool"), join(safe, "tool"), join(workspace, "x.sh")]) {
      Deno.writeTextFileSync(file, "", { mode: 0o755 });
    }
    Deno.symlinkSync(join(bin, "tool"), join(safe, "link"));
    const options = {
      ...{ name: "s", workspace, cwd: workspace, write: [workspace, bin] },
      path: [bin, workspace, safe].join(":"),
    };
    assert.deepEqual(grantedPrograms(["tool"], options), { path: safe, files: [] });
    assert.deepEqual(grantedPrograms(["./x.sh"], options).files, [join(workspace, "x.sh")]);
    for (const program of ["link", join(bin, "tool")]) {
      assert.throws(() => grantedPrograms([program], options), /contains the program/);
    }
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
});
