import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { assertAftermath, batchedCalls, codeOf, endWell, journalOf, ofKind } from "./oracles.ts";
import { FILES_ALLOWED, makeScene, type Scene } from "./stage.ts";

/** The rules for a pattern; `both` means an allow and an ask. */
const SAYINGS = ["none", "allow", "ask", "deny", "both"] as const;
type Saying = typeof SAYINGS[number];

/** Tools that only read, each with another exact rule. */
const TOOLS: Readonly<Record<Saying, string>> = {
  none: "list_directory",
  allow: "list_directory_with_sizes",
  ask: "directory_tree",
  deny: "get_file_info",
  both: "read_file",
};

/**
 * Returns the expected decision in ten lines: any deny, then the most specific, ask before allow.
 */
function verdictOf(sayings: readonly Saying[]): "allow" | "ask" | "deny" {
  if (sayings.includes("deny")) return "deny";
  const decided = sayings.find((saying) => saying !== "none");
  return decided === "allow" ? "allow" : "ask";
}

const CODES = { allow: undefined, ask: "APPROVAL_REQUIRED", deny: "PERMISSION_DENIED" } as const;

/** The entry points of a call. */
const DOORS: Readonly<
  Record<string, (pml: RawStdio, tool: string) => Promise<string | undefined>>
> = {
  direct: async (pml, tool) =>
    codeOf(await pml.callTool(`filesystem__${tool}`, { path: pathFor(tool) })),
  call: async (pml, tool) => {
    const args = { tool: `filesystem:${tool}`, arguments: { path: pathFor(tool) } };
    return codeOf(await pml.callTool("call", args));
  },
  batch: async (pml, tool) => {
    const call = { tool: `filesystem:${tool}`, arguments: { path: pathFor(tool) } };
    const answer = await pml.callTool("batch", { calls: [call] });
    return codeOf(answer) ?? batchedCalls(answer)[0]?.error?.code;
  },
};

for (const any of SAYINGS) {
  Deno.test(`rules apply in their order, at each entry point, with "*" ${any} (PM6)`, async () => {
    const written = (server: Saying) => ({ version: 1, permissions: rulesOf({ any, server }) });
    await using scene = await makeScene({ pml: written(SAYINGS[0]), capabilities: {} });
    for (const server of SAYINGS) {
      if (server !== SAYINGS[0]) await rewrite(scene, written(server), "was applied");
      for (const [exact, tool] of Object.entries(TOOLS)) {
        const wanted = CODES[verdictOf([exact as Saying, server, any])];
        for (const [door, use] of Object.entries(DOORS)) {
          const what = `${door}, "*" ${any}, "filesystem:*" ${server}, exact ${exact}`;
          assert.equal(await use(scene.pml, tool), wanted, what);
        }
      }
    }
    assert.equal((await scene.pml.close()).code, 0);
    await assertAftermath(scene.ws, scene.pml);
  });
}

/** Names that resemble the one in a deny rule, or no name at all. */
const LOOKALIKES = [
  "Filesystem:remove_file",
  "filesystem:Remove_File",
  "FILESYSTEM:REMOVE_FILE",
  "f\u0456lesystem:remove_file",
  "filesystem:rem\u043eve_file",
  "\uff46ilesystem:remove_file",
  "filesystem:remove\uff3ffile",
  "file\u200bsystem:remove_file",
  "filesystem:remove_file\u200b",
  "\u202efilesystem:remove_file",
  "filesystem:remove_file ",
  " filesystem:remove_file",
  "filesystem:remove_file\n",
  "filesystem:remove_file\0",
  "filesystem: remove_file",
  "filesystem::remove_file",
  "filesystem:remove_file:",
  "filesystem:filesystem:remove_file",
  "filesystem/remove_file",
  "filesystem.remove_file",
  "filesystem:remove__file",
  "filesystem:*",
  "*",
  "*:remove_file",
  ":remove_file",
  "remove_file",
  "filesystem:",
  "filesystem:__proto__",
  "filesystem:constructor",
  "__proto__:remove_file",
  "constructor:prototype",
  "",
];

Deno.test("only a tool's exact name runs it, and a rule's exact name covers it (PM7)", async () => {
  const { version } = FILES_ALLOWED;
  const permissions = { allow: ["*", "filesystem:*"], deny: ["filesystem:remove_file"] };
  await using scene = await makeScene({ pml: { version, permissions }, capabilities: {} });
  const { ws, pml } = scene;
  for (const name of LOOKALIKES) {
    const args = { path: "good.txt" };
    const answers = [
      await pml.callTool("call", { tool: name, arguments: args }),
      await pml.callTool(name.replaceAll(":", "__"), args),
      await pml.callTool(name, args),
    ];
    for (const answer of answers) {
      const code = codeOf(answer) ?? "nothing";
      assert.match(code, /^(UNKNOWN_TOOL|BAD_ARGUMENTS|PERMISSION_DENIED|-32602)$/, name);
    }
  }
  for (const name of ["filesystem:remove_file", "filesystem__remove_file"]) {
    for (const tool of [name, "call"]) {
      const args = { path: "good.txt" };
      const answer = await pml.callTool(
        tool,
        tool === name ? args : { tool: name, arguments: args },
      );
      assert.equal(codeOf(answer), "PERMISSION_DENIED");
    }
  }
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
  const ends = ofKind(await journalOf(ws), "end");
  assert.deepEqual(ends.filter(({ outcome }) => outcome === "result"), []);
});

/** Patterns that do not parse: no rule is ignored, so nothing runs. */
const BAD_PATTERNS = [
  "",
  ":",
  "filesystem",
  "file*",
  "file*:read_file",
  "*:read_file",
  "filesystem:read*",
  "**",
  "filesystem:**",
  "a:b:c",
  "{a,b}:c",
  "!filesystem:read_file",
  "[a-z]:x",
  "filesystem:read_file\n",
  " filesystem:read_file",
  "Filesystem:read_file",
  "f\u0456lesystem:read_file",
  "filesystem:@none",
  "..:x",
  "a__b:x",
];

Deno.test("a pattern outside the grammar denies everything (PM5, PM7)", async () => {
  const written = (pattern: string) => ({
    version: 1,
    permissions: { allow: ["filesystem:*"], deny: [pattern] },
  });
  const [first = "", ...others] = BAD_PATTERNS;
  await using scene = await makeScene({ pml: written(first) });
  for (const pattern of [first, ...others]) {
    if (pattern !== first) await rewrite(scene, written(pattern), "Cannot use the configuration");
    const answer = await scene.pml.callTool("filesystem__read_file", { path: "good.txt" });
    assert.equal(codeOf(answer), "CONFIG_INVALID", JSON.stringify(pattern));
  }
  await rewrite(scene, FILES_ALLOWED, "was applied");
  await endWell(scene.ws, scene.pml);
});

/** Replaces the workspace file, and waits until PML reports a text about it. */
async function rewrite({ ws, pml }: Scene, content: unknown, says: string): Promise<void> {
  const told = () => pml.stderr.split(says).length;
  const before = told();
  await writeFile(ws.file("new"), JSON.stringify(content));
  await rename(ws.file("new"), ws.file(".pml.json"));
  await until(() => told() > before);
}

function rulesOf({ any, server }: { readonly any: Saying; readonly server: Saying }) {
  const lists: Record<"allow" | "ask" | "deny", string[]> = { allow: [], ask: [], deny: [] };
  const say = (pattern: string, saying: Saying) => {
    if (saying === "both") { for (const list of [lists.allow, lists.ask]) list.push(pattern); }
    else if (saying !== "none") lists[saying].push(pattern);
  };
  say("*", any);
  say("filesystem:*", server);
  for (const [exact, tool] of Object.entries(TOOLS)) say(`filesystem:${tool}`, exact as Saying);
  return lists;
}

function pathFor(tool: string): string {
  return tool === "read_file" ? "good.txt" : ".";
}
