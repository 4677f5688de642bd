import assert from "node:assert/strict";
import { NO_PERMISSIONS, type Permissions } from "../protocol/tool.ts";
import { permissionLines } from "./permission_lines.ts";

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
  assert.deepEqual(lines(asked, given), [
    "reads the workspace",
    "reads and writes src in the workspace",
    "reads /docs, outside the workspace",
    'writes "out put" in the workspace',
    "connects to api.example.com:443",
    "runs git with your rights, outside the sandbox",
    "reads the variable TOKEN",
  ]);
  assert.deepEqual(lines({ read: ["."], write: ["."] }, { read: ["."], write: ["/ws"] }), [
    "reads and writes the workspace",
  ]);
});

Deno.test("permissionLines() describes requested permissions that are not granted", () => {
  const asked = { read: ["/", "../x", "src"], net: ["*"], run: ["sh"], env: ["AWS_KEY"] };
  assert.deepEqual(lines(asked, { read: ["/ws"], net: ["a.b"] }), [
    "reads the workspace",
    "connects to a.b",
    "asks for read /: not granted",
    "asks for read ../x: not granted",
    "asks for net *: not granted",
    "asks for run sh: not granted",
    "asks for env AWS_KEY: not granted",
  ]);
});

Deno.test("permissionLines() returns one sentence if there are no permissions", () => {
  const none = ["uses no files, no network, no programs and no variables"];
  assert.deepEqual(lines({}, {}), none);
  assert.deepEqual(lines({}, { read: [] }), none);
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
