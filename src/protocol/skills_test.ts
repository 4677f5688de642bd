import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import {
  childrenOf,
  fileOf,
  hasAddress,
  isChildOf,
  renameSkill,
  skillOf,
  skillProblem,
} from "./skills.ts";
import { addressInLists, splitListAddress } from "./placed_address.ts";

const DIGEST = `sha256:${"0".repeat(64)}`;
const ROOT = "skill://a/x";

function fileAt(uri: string, size = 1): JsonObject {
  return { uri, digest: DIGEST, size };
}

function entry(files: readonly string[] = [], more: JsonObject = {}): JsonObject {
  const uri = `${ROOT}/SKILL.md`;
  return {
    uri,
    frontmatter: { name: "x", description: "d" },
    resources: [uri, ...files].map((file) => fileAt(file)),
    ...more,
  };
}

function withFrontmatter(more: JsonObject): JsonObject {
  return entry([], { frontmatter: { name: "x", description: "d", ...more } });
}

Deno.test("a valid skill with unknown members passes", () => {
  assert.equal(skillProblem(entry()), undefined);
  assert.equal(skillProblem(entry([`${ROOT}/a/Q%26A%20%C3%A9.md`])), undefined);
  assert.equal(skillProblem(entry([], { resources: "dynamic", more: [1] })), undefined);
  const metadata = { "io.example/a": "1" };
  assert.equal(skillProblem(withFrontmatter({ metadata, "allowed-tools": "a" })), undefined);
  assert.equal(skillProblem(withFrontmatter({ description: "line\n— “é” 👩‍💻" })), undefined);
  const uri = "github://o/r/x/SKILL.md";
  assert.equal(skillProblem(entry([], { uri, resources: [fileAt(uri)] })), undefined);
});

Deno.test("a file outside of the directory of a skill, in any spelling, makes it invalid", () => {
  const outside = [
    "skill://a/x/../y/SKILL.md",
    "skill://a/x/%2e%2E/y",
    "skill://a/x/b%2f..%2fc",
    "skill://a/x/b\\..\\c",
    "skill://a/x/b%5cc",
    "skill://a/x/b//c",
    "skill://a/x/./c",
    "skill://a/xy/c",
    "skill://a/x",
    "skill://a/x/b?c",
    "skill://a/x/b#c",
    "skill://a/x/\u202eb",
    "skill://a/x/%00",
    "skill://a/x/%zz",
    "other://a/x/b",
    "skill:a/x/b",
    "https://127.0.0.1/x",
    `skill://a/x/${"b/".repeat(64)}c`,
    `skill://a/x/${"b".repeat(2_000)}`,
  ];
  for (const file of outside) {
    assert.match(skillProblem(entry([file])) ?? "", /outside of its directory/, file);
  }
});

Deno.test("an entry with too many files, bytes or levels is invalid", () => {
  const files = Array.from({ length: 10_000 }, (_, at) => `${ROOT}/${at}`);
  assert.match(skillProblem(entry(files)) ?? "", /10001 files/);
  assert.equal(skillProblem(entry(files.slice(0, 511))), undefined);
  const [first] = entry().resources as readonly JsonObject[];
  const heavy = [first ?? {}, fileAt(`${ROOT}/a`, 16_777_216)];
  assert.match(skillProblem(entry([], { resources: heavy })) ?? "", /bytes/);
  let deep: JsonObject = {};
  for (let level = 0; level < 40; level++) deep = { deep };
  assert.match(skillProblem(withFrontmatter({ deep })) ?? "", /levels/);
  assert.match(skillProblem(withFrontmatter({ long: "a".repeat(64_000) })) ?? "", /characters/);
});

Deno.test("an entry with hidden characters is invalid", () => {
  for (const hidden of ["\u202e", "\u{e0041}", "\u200b", "\u0007", "\u3164"]) {
    const all: readonly JsonObject[] = [
      { description: `a${hidden}` },
      { [`a${hidden}`]: "1" },
      { a: [hidden] },
    ];
    for (const more of all) {
      assert.match(skillProblem(withFrontmatter(more)) ?? "", /hidden characters/);
    }
  }
});

Deno.test("an entry that clients would refuse is invalid", () => {
  const uri = `${ROOT}/SKILL.md`;
  const invalid: readonly JsonObject[] = [
    entry([], { uri: "skill://SKILL.md" }),
    entry([], { uri: "skill://a/x/skill.md" }),
    entry([], { uri: "pml://a/x/SKILL.md", resources: [fileAt("pml://a/x/SKILL.md")] }),
    entry([], { uri: 1 }),
    entry([], { frontmatter: "x" }),
    entry([], { resources: "static" }),
    entry([], { resources: [fileAt(`${ROOT}/a`)] }),
    entry([`${ROOT}/a`, `${ROOT}/%61`]),
    entry([], { resources: [{ uri, digest: DIGEST, size: -1 }] }),
    entry([], { resources: [{ uri, digest: DIGEST }] }),
    entry([], { resources: [{ uri, digest: DIGEST.toUpperCase(), size: 1 }] }),
    entry([], { _meta: 1 }),
    withFrontmatter({ name: "y" }),
    withFrontmatter({ name: "X" }),
    withFrontmatter({ description: "" }),
    withFrontmatter({ description: "d".repeat(1_025) }),
    withFrontmatter({ compatibility: 1 }),
    withFrontmatter({ metadata: { a: 1 } }),
    entry([], { frontmatter: JSON.parse('{"name":"x","description":"d","__proto__":{}}') }),
  ];
  for (const one of invalid) assert.notEqual(skillProblem(one), undefined, JSON.stringify(one));
});

Deno.test("an address belongs to the innermost skill that contains it", () => {
  const outer = entry([`${ROOT}/in/SKILL.md`, `${ROOT}/b/c.md`]);
  const uri = `${ROOT}/in/SKILL.md`;
  const inner = entry([], { uri, resources: [fileAt(uri)] });
  const both = [outer, inner];
  assert.equal(skillOf(both, `${ROOT}/b/c.md`), outer);
  assert.equal(skillOf(both, uri), inner);
  assert.equal(skillOf(both, "skill://a/xy"), undefined);
  assert.equal(hasAddress(outer, `${ROOT}/b`), true);
  assert.equal(hasAddress(outer, `${ROOT}/d`), false);
  assert.equal(hasAddress(entry([], { resources: "dynamic" }), `${ROOT}/d`), true);
  assert.deepEqual(fileOf(outer, `${ROOT}/%62/c.md`), { digest: DIGEST, size: 1 });
});

Deno.test("the children of a directory are its files and directories", () => {
  const skill = entry([`${ROOT}/b/c.md`, `${ROOT}/b/d%20e/f.md`]);
  assert.deepEqual(childrenOf(skill, ROOT), [
    { uri: `${ROOT}/SKILL.md`, name: "SKILL.md", size: 1 },
    { uri: `${ROOT}/b`, name: "b", mimeType: "inode/directory" },
  ]);
  assert.deepEqual(childrenOf(skill, `${ROOT}/b`), [
    { uri: `${ROOT}/b/c.md`, name: "c.md", size: 1 },
    { uri: `${ROOT}/b/d%20e`, name: "d e", mimeType: "inode/directory" },
  ]);
  assert.equal(childrenOf(skill, `${ROOT}/b/c.md`), undefined);
  assert.equal(childrenOf(skill, `${ROOT}/z`), undefined);
  assert.equal(isChildOf(ROOT, `${ROOT}/a`), true);
  for (const other of [`${ROOT}/a/b`, ROOT, `${ROOT}/%2e%2e`, "skill://a/y"]) {
    assert.equal(isChildOf(ROOT, other), false, other);
  }
});

Deno.test("addresses get the name of the server as their first segment, and lose it again", () => {
  const placed = (name: string) => addressInLists("skill://", { server: "s", name });
  assert.equal(placed("skill://x/SKILL.md"), "skill://s/x/SKILL.md");
  assert.deepEqual(splitListAddress("skill://", "skill://s/x"), { server: "s", name: "skill://x" });
  for (const other of ["skill://x", "skill://X/y", "pml://s/x", "skill:/s/x"]) {
    assert.equal(splitListAddress("skill://", other), undefined, other);
  }
  const renamed = renameSkill(entry([], { more: 1 }), placed);
  const uri = "skill://s/a/x/SKILL.md";
  assert.deepEqual(renamed, { ...entry(), more: 1, uri, resources: [fileAt(uri)] });
});
