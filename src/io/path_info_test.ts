import assert from "node:assert/strict";
import { WINDOWS } from "../core/paths.ts";
import { isGone, isInside, realPathIfAny, realPathOf, staysInside } from "./path_info.ts";

Deno.test("isInside() compares whole names", () => {
  for (const path of ["/ws", "/ws/a", "/ws/..a", "/ws/...", "/ws/a/../b", "/ws/."]) {
    assert.ok(isInside("/ws", path), path);
  }
  for (const path of ["/", "/ws-evil", "/w", "/ws/..", "/ws/../b", "/other"]) {
    assert.ok(!isInside("/ws", path), path);
  }
});

Deno.test("realPathIfAny() returns undefined for a missing file", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  await Deno.symlink(folder, `${folder}/link`);
  assert.equal(realPathIfAny(`${folder}/link`), folder);
  assert.equal(realPathIfAny(`${folder}/none`), undefined);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("realPathOf() resolves what exists and keeps the rest", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  await Deno.mkdir(`${folder}/ws`);
  await Deno.symlink(`${folder}/ws`, `${folder}/link`);
  assert.equal(realPathOf(`${folder}/link/a/b`), `${folder}/ws/a/b`);
  assert.equal(realPathOf("/none/a"), "/none/a");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("staysInside() follows links, and accesses nothing outside of the folder", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const folder = `${root}/ws`;
  await Deno.mkdir(`${folder}/deep/er`, { recursive: true });
  await Deno.mkdir(`${root}/away/below`, { recursive: true });
  const links: Readonly<Record<string, string>> = {
    near: "deep/er",
    whole: `${folder}/deep`,
    away: "../away",
    far: `${root}/away/below`,
    back: "far/../../ws/deep",
    sly: `${folder}/far/../../ws/deep`,
    "deep/up": "../../ws/deep",
    loop: "loop",
    chain: "whole/../away",
  };
  for (const [name, target] of Object.entries(links)) {
    await Deno.symlink(target, `${folder}/${name}`);
  }
  const looked: string[] = [];
  const { lstatSync } = Deno;
  try {
    Deno.lstatSync = (path) => {
      looked.push(String(path));
      return lstatSync(path);
    };
    for (const name of ["", "a", "deep/er/a", "near/a", "whole/er", "deep/../a", "none/a/b"]) {
      assert.ok(staysInside(folder, name === "" ? folder : `${folder}/${name}`), name);
    }
    const outside = ["away", "away/x", "far/x", "back", "sly", "deep/up", "loop/x", "chain/x"];
    for (const name of [...outside, "../ws-evil/a", "../away/x"]) {
      assert.ok(!staysInside(folder, `${folder}/${name}`), name);
    }
    assert.ok(!staysInside(folder, "/proc/self/pagemap"));
  } finally {
    Object.assign(Deno, { lstatSync });
  }
  assert.ok(looked.every((path) => isInside(folder, path)), looked.join());
  await Deno.remove(root, { recursive: true });
});

Deno.test("isInside() compares Windows paths without case and with both separators", () => {
  const inside = [
    String.raw`C:\Work\ws`,
    String.raw`c:\work\WS\a`,
    "C:/Work/ws/..a",
    String.raw`C:\Work\x\..\ws\a`,
  ];
  for (const path of inside) assert.ok(isInside(String.raw`C:\Work\ws`, path, WINDOWS), path);
  const outside = [
    String.raw`C:\Work\ws2`,
    String.raw`C:\Work`,
    String.raw`D:\Work\ws`,
    String.raw`\\server\Work\ws`,
    // The Kelvin sign.
    "C:\\Wor\u212a\\ws\\a",
  ];
  for (const path of outside) assert.ok(!isInside(String.raw`C:\Work\ws`, path, WINDOWS), path);
  assert.ok(isInside("C:\\", String.raw`c:\a`, WINDOWS));
});

Deno.test("isGone() treats an impossible Windows name as missing", () => {
  // Deno throws this error for `lstat("https://h.example/?a=b")` on Windows.
  const impossible = Object.assign(new Error("Invalid name. (os error 123)"), { code: "ENOENT" });
  assert.ok(isGone(impossible));
  assert.ok(isGone(new Deno.errors.NotFound()));
  assert.ok(!isGone(Object.assign(new Deno.errors.PermissionDenied(), { code: "EPERM" })));
  assert.ok(!isGone(undefined));
});
