import assert from "node:assert/strict";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import { CLOSED, requireOpen, withoutSecrets } from "./secret.ts";

Deno.test("git closes exactly the names that are closed for reading everywhere", () => {
  const { readProtected } = protectedPaths;
  assert.deepEqual(CLOSED.split(" "), readProtected.filter((name) => name !== ".git/config"));
  for (const name of CLOSED.split(" ").map((each) => each.replace("*", "x"))) {
    for (const path of [name, `a/b/${name}`, `${name}/inside`, name.toUpperCase()]) {
      assert.throws(() => requireOpen("Cannot show it", path), { code: "PATH_PROTECTED" }, path);
    }
    const patch = `diff --git a/d/${name} b/d/${name}\n-SECRET\n`;
    assert.doesNotMatch(withoutSecrets(patch), /SECRET/, name);
  }
});

Deno.test("requireOpen() refuses names of secrets at any depth, and no other", () => {
  const closed = [".env", ".ENV.local", "a/.env", "deep/id_rsa", "x.pem", "a/b.KEY", ".ssh/config"];
  for (const path of closed) {
    assert.throws(() => requireOpen("Cannot show it", path), { code: "PATH_PROTECTED" }, path);
  }
  for (const path of ["env", "a.env.txt/b", "src/key.ts", "pem", "environment"]) {
    requireOpen("Cannot show it", path);
  }
});

Deno.test("withoutSecrets() keeps the content of secrets out of a patch, and all else in", () => {
  const of = (header: string, body: string) =>
    `diff --git ${header}\nindex 1..2\n@@ -1 +1 @@\n-${body}\n+${body}2\n`;
  const open = of("a/src/a.ts b/src/a.ts", "diff --git a/.env b/.env");
  const secrets = [
    "a/.env b/.env",
    "a/deep/.env.local b/deep/.env.local",
    "a/x.txt b/.env",
    "a/server.pem b/other.txt",
    '"a/\\303\\251/.env" "b/\\303\\251/.env"',
    "a/with blank/id_rsa b/with blank/id_rsa",
  ];
  for (const header of secrets) {
    const told = withoutSecrets(open + of(header, "TOKEN=1") + open);
    assert.equal(told, `${open}diff --git ${header}\n[its content is protected]\n${open}`, header);
  }
  assert.equal(withoutSecrets(open), open);
});
