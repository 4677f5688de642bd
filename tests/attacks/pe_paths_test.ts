import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import fc from "fast-check";
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  assertRefused,
  plantLinks,
  plantSibling,
  READING,
  SECRET,
  use,
  WRITING,
} from "./file_tools.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

/**
 * Paths that lead outside, with the code; without one the path is taken literally, and does not
 * exist.
 */
function outsidePaths(ws: Workspace): Readonly<Record<string, string | undefined>> {
  const out = "PATH_OUTSIDE_WORKSPACE";
  return {
    "../outside/canary.txt": out,
    "../outside": out,
    "..": out,
    "../": out,
    "a/../../outside/canary.txt": out,
    "./.././outside//canary.txt": out,
    "ws/../../outside/canary.txt": out,
    [ws.outside]: out,
    [`${ws.path}/../outside/canary.txt`]: out,
    [`${ws.path}-evil/secret.txt`]: out,
    "../ws-evil/secret.txt": out,
    "../ws-evil": out,
    "/": out,
    "/etc/passwd": out,
    "/proc/self/environ": out,
    [`/proc/self/root${ws.outside}`]: out,
    [`/proc/self/cwd/../outside/canary.txt`]: out,
    [`/dev/fd/0`]: out,
    "%2e%2e/outside/canary.txt": undefined,
    "..%2foutside%2fcanary.txt": undefined,
    "..\\outside\\canary.txt": undefined,
    ".. /outside/canary.txt": undefined,
    "../ outside/canary.txt": out,
    ".../outside/canary.txt": undefined,
    "~/.pml/config.yaml": undefined,
    "$HOME/canary.txt": undefined,
    "．．/outside/canary.txt": undefined,
    [`file://${ws.outside}`]: undefined,
  };
}

Deno.test("no tool reads outside the workspace (PE1, PE2)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", prepare: plantSibling });
  const { ws, pml } = scene;
  for (const [path, code] of Object.entries(outsidePaths(ws))) {
    for (const tool of Object.keys(READING)) {
      const answer = await use(pml, tool, { path });
      assertRefused(answer, { code, what: `${tool} ${path}` });
    }
  }
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("no tool writes outside the workspace (PE1, PE2)", async () => {
  await using scene = await makeScene({ prepare: plantSibling });
  const { ws, pml } = scene;
  for (const [path, code] of Object.entries(outsidePaths(ws))) {
    if (code === undefined) continue;
    for (const tool of Object.keys(WRITING)) {
      const answer = await use(pml, tool, { path });
      // A folder above the workspace contains its protected files, whose error comes first.
      const wanted = codeOf(answer) === "PATH_PROTECTED" ? "PATH_PROTECTED" : code;
      assertRefused(answer, { code: wanted, what: `${tool} ${path}` });
    }
  }
  assert.deepEqual(await readdir(`${ws.path}-evil`), ["secret.txt"]);
  assert.equal(await readFile(`${ws.path}-evil/secret.txt`, "utf8"), SECRET);
  await endWell(ws, pml);
});

Deno.test("odd names only get a typed answer (PE7)", async () => {
  await using scene = await makeScene({ files: { "caf\u00e9.txt": "composed" } });
  const { ws, pml } = scene;
  const names = [
    "a\0b",
    "good.txt\0.png",
    "../outside/canary.txt\0",
    "a\nb",
    "x".repeat(5_000),
    `${"d/".repeat(3_000)}x`,
    "\ud800",
    "\u202egood.txt",
    "",
    " ",
    "con",
    "good.txt:stream",
    "good.txt.",
    "good.txt ",
    "GOOD.TXT",
    "-rf",
    "__proto__",
    "cafe\u0301.txt",
  ];
  for (const path of names) {
    for (const tool of Object.keys(READING).filter((name) => name.startsWith("read"))) {
      const answer = await use(pml, tool, { path });
      assertRefused(answer, { what: `${tool} ${JSON.stringify(path.slice(0, 40))}` });
    }
  }
  assert.equal(textOf(await use(pml, "read_file", { path: "caf\u00e9.txt" })), "composed");
  await use(pml, "write_file", { path: "a\nb" });
  const listed = textOf(await use(pml, "list_directory", { path: "." }));
  assert.doesNotMatch(listed, /^b$/m, "a name cannot pass for two entries");
  await endWell(ws, pml);
});

Deno.test("any text as a path is answered once, and leads nowhere (PE1, PE7)", async () => {
  await using scene = await makeScene({ prepare: plantLinks });
  const { ws, pml } = scene;
  const parts = fc.constantFrom(
    ...["..", ".", "", "ws", "outside", "canary.txt", "to-folder", "chain-1", "to-root", "proc"],
    ...["self", "deep", "%2e%2e", "..\\", "\0", "\u2024\u2024", "/", "//"],
  );
  const path = fc.oneof(
    { weight: 3, arbitrary: fc.array(parts, { maxLength: 8 }).map((all) => all.join("/")) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 60 }) },
  );
  const paths = fc.sample(path, { numRuns: 300, seed: 7 });
  const tools = ["read_file", "write_file", "get_file_info"] as const;
  await Promise.all(paths.map(async (path, at) => {
    const tool = tools[at % 3] ?? "read_file";
    const answer = await use(pml, tool, { path });
    assert.ok(!textOf(answer).includes(ws.canary), `${tool} ${JSON.stringify(path)}`);
  }));
  await endWell(ws, pml, { calls: 301 });
});
