import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertAllListed, ENTRY_POINTS, LOOP, makeDoorScene, NOT_OFFERED } from "./entry_points.ts";
import { batchedCalls, codeOf, endWell } from "./oracles.ts";
import { makeScene } from "./stage.ts";

type Arguments = Readonly<Record<string, unknown>>;

/** A forbidden call, the rules that deny it, and one call that they do not cover. */
interface Denied {
  readonly arguments: Arguments;
  /** A deny with a condition on the arguments. */
  readonly condition: string;
  readonly beside: Arguments;
}

const DENIED: Readonly<Record<string, Denied>> = {
  "shell:exec": {
    arguments: { command: "touch", args: ["made"] },
    condition: "shell:exec(command=touch)",
    beside: { command: "true" },
  },
  "git:commit": {
    arguments: { repo: "r", message: "made", allow_empty: true },
    condition: "git:commit(repo=r/**)",
    beside: { repo: "other", message: "beside", allow_empty: true },
  },
  "sqlite:execute": {
    arguments: { path: "a.db", sql: "CREATE TABLE made(a)" },
    condition: "sqlite:execute(path=a.db)",
    beside: { path: "b.db", sql: "CREATE TABLE IF NOT EXISTS beside(a)", create: true },
  },
};

for (const how of ["completely", "by a condition"] as const) {
  Deno.test(`a denied tool of a built-in runs at no entry point, denied ${how} (PM8)`, async () => {
    assertAllListed();
    const deny = Object.entries(DENIED).map(([tool, { condition }]) =>
      how === "completely" ? tool : condition
    );
    const allow = ["*", "filesystem:*", "shell:*", "git:*", "sqlite:*", ...Object.keys(DENIED)];
    await using scene = await makeDoorScene({
      pml: { version: 1, permissions: { allow, deny }, gateway: { tools_exposure: "full_proxy" } },
      capabilities: {},
      prepare: furnish,
    });
    const { ws, pml } = scene;
    for (const [tool, denied] of Object.entries(DENIED)) {
      for (const [door, use] of Object.entries(ENTRY_POINTS)) {
        const text = await use(scene, tool, denied.arguments);
        // A model does not even see a tool that is denied for all arguments.
        const isSeen = door !== LOOP || how !== "completely";
        assert.equal(text, isSeen ? "PERMISSION_DENIED" : NOT_OFFERED, `${door}: ${tool}`);
        // A command takes as long as thirty calls.
        if (door === "cli" || how === "completely") continue;
        assert.equal(await use(scene, tool, denied.beside), undefined, `${door}: ${tool} beside`);
      }
    }
    const nested = [{ tool: "batch", arguments: { calls: [{ tool: "shell:exec" }] } }];
    assert.notEqual(await inBatch(pml, nested), undefined, "a batch in a batch");
    await assertNothingMade(ws);
    await endWell(ws, pml);
  });
}

Deno.test("a condition on a built-in's path applies in any spelling of the path (PM8)", async () => {
  const allow = ["filesystem:*", "shell:exec", "git:commit", "sqlite:execute"];
  const deny = ["git:commit(repo=r/**)", "git:commit(repo=r)", "sqlite:execute(path=a.db)"];
  const pml = { version: 1, permissions: { allow, deny: [...deny, "shell:exec(cwd=r/**)"] } };
  await using scene = await makeScene({ pml, capabilities: {}, prepare: furnish });
  const { ws } = scene;
  const tried: readonly (readonly [tool: string, name: string, values: readonly string[]])[] = [
    ["git:commit", "repo", ["r", "./r", "r/", "other/../r", "link", ws.file("r"), "R/../r"]],
    ["sqlite:execute", "path", ["a.db", "./a.db", "r/../a.db", "a-link.db", ws.file("a.db")]],
    ["shell:exec", "cwd", ["r/d", "./r//d", "link/d", ws.file("r/d"), "other/../r/d"]],
  ];
  for (const [tool, name, values] of tried) {
    for (const value of values) {
      const args = { ...DENIED[tool]?.arguments, [name]: value };
      const text = codeOf(await scene.pml.callTool("call", { tool, arguments: args }));
      assert.equal(text, "PERMISSION_DENIED", `${tool} ${value}`);
    }
  }
  await assertNothingMade(ws);
  await endWell(ws, scene.pml);
});

async function inBatch(pml: RawStdio, calls: readonly unknown[]): Promise<string | undefined> {
  const answer = await pml.callTool("batch", { calls });
  return codeOf(answer) ?? batchedCalls(answer).at(-1)?.error?.code;
}

async function furnish(ws: Workspace): Promise<void> {
  await writeFile(
    join(dirname(ws.home), ".gitconfig"),
    "[user]\n\tname = Ada\n\temail = ada@example.com\n",
  );
  for (const name of ["r", "other"]) execFileSync("git", ["init", "-q", ws.file(name)]);
  await Deno.mkdir(ws.file("r/d"));
  using _db = new DatabaseSync(ws.file("a.db"));
  _db.exec("CREATE TABLE t(a)");
  await Deno.symlink("r", ws.file("link"));
  await Deno.symlink("a.db", ws.file("a-link.db"));
}

async function assertNothingMade(ws: Workspace): Promise<void> {
  const names = await readdir(ws.path, { recursive: true });
  assert.ok(!names.some((name) => name.endsWith("made")));
  assert.ok(!names.includes("r/.git/logs"), "nothing was committed");
  using db = new DatabaseSync(ws.file("a.db"), { readOnly: true });
  assert.equal(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n, 1);
}
