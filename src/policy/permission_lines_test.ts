import assert from "node:assert/strict";
import { join } from "node:path";
import { NO_PERMISSIONS, type Permissions } from "../protocol/tool.ts";
import { permissionLines, ungrantedPermissions } from "./permission_lines.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

function lines(asked: Partial<Permissions>, effective: Partial<Permissions>): readonly string[] {
  const all = (some: Partial<Permissions>) => ({ ...NO_PERMISSIONS, ...some });
  return permissionLines(all(asked), all(effective), "/ws");
}

Deno.test("permissionLines() describes granted permissions, with absolute and relative paths", () => {
  const given = {
    read: ["/ws", "/ws/src", "/docs"],
    write: ["/ws/src", "/ws/out put"],
    net: ["api.example.com:443"],
    run: ["git"],
    env: ["TOKEN"],
  };
  const asked = { ...given, read: [".", "src"], write: ["src", "out put"] };
  assertGolden("question/granted permissions", lines(asked, given).join("\n"));
  const both = lines({ read: ["."], write: ["."] }, { read: ["."], write: ["/ws"] });
  assertGolden("question/a workspace to read and write", both.join("\n"));
});

Deno.test("permissionLines() describes requested permissions that are not granted", () => {
  const asked = { read: ["/", "../x", "src"], net: ["*"], run: ["sh"], env: ["AWS_KEY"] };
  const text = lines(asked, { read: ["/ws"], net: ["a.b"] });
  const missing = text.filter((line) => line.endsWith(": not granted"));
  assert.deepEqual(missing.map((line) => /(\w+ \S+): not granted$/.exec(line)?.[1]), [
    ...["read /", "read ../x", "net *", "run sh", "env AWS_KEY"],
  ]);
  assertGolden("question/permissions that are not granted", text.join("\n"));
});

Deno.test("permissionLines() describes a path over a link as granted if its target is", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  for (const name of ["data", "ws"]) await Deno.mkdir(join(root, name));
  await Deno.symlink(join(root, "data"), join(root, "link"));
  await Deno.symlink(join(root, "data"), join(root, "ws", "inside"));
  const permissions = (read: readonly string[]) => ({ ...NO_PERMISSIONS, read });
  const missingOf = (requested: readonly string[], effective: readonly string[]) =>
    ungrantedPermissions(permissions(requested), permissions(effective), join(root, "ws")).read ??
      [];
  const paths = [join(root, "link"), join(root, "link", "new", "file"), "inside", "src"];
  assert.deepEqual(missingOf(paths, [join(root, "data")]), ["src"]);
  assert.deepEqual(missingOf(paths, [join(root, "ws")]), paths.slice(0, 3));
});

Deno.test("permissionLines() returns one sentence if there are no permissions", () => {
  for (const none of [{}, { read: [] }]) {
    assertGolden("question/no permissions", lines({}, none).join("\n"));
  }
});

Deno.test("permissionLines() quotes names so that they cannot continue the sentence", () => {
  const evil = ["a: granted\nconnects to b", "\u202egit", "x; reads nothing", ""];
  const said = lines({ net: evil, read: evil }, {});
  for (const line of said) assert.match(line, /^asks for (?:net|read) ".*": not granted$/);
  assert.ok(!said.join().includes("\n") && !said.join().includes("\u202e"));
  const given = lines({}, { run: evil, read: evil.map((name) => `/ws/${name}x`) });
  for (const line of given) {
    assert.match(line, /^(?:runs ".*" with|reads (?:".*"|x) in the workspace)/);
  }
});
