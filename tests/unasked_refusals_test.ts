/**
 * Calls of built-in tools that the sandbox refuses in any case: the user is not asked about them,
 * alone or in a batch.
 *
 * @module
 */

import assert from "node:assert/strict";
import { ERAS } from "./kit/json_rpc.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const WRITE = "filesystem:write_file";
const REFUSED: readonly (readonly [tool: string, args: object, code?: string])[] = [
  [WRITE, { path: "../x", content: "x" }],
  [WRITE, { path: "/etc/x", content: "x" }],
  [WRITE, { path: ".git/config", content: "x" }, "PATH_PROTECTED"],
  ["filesystem:move_file", { source: "a.txt", destination: "../a.txt" }],
  ["filesystem:remove_directory", { path: "sub/../.." }],
  ["sqlite:execute", { path: "../x.db", sql: "CREATE TABLE t(a)", create: true }],
  ["shell:exec", { command: "ls", cwd: ".." }],
  ["git:add", { repo: "..", all: true }],
];
const FINE = ["sub/new.txt", "other.txt"].map((path) => [WRITE, { path, content: "x" }] as const);

/** Connects a client that answers no, and collects the questions. */
function connectAsker(ws: Workspace, era: (typeof ERAS)[number]) {
  const questions: string[] = [];
  const pml = new RawStdio(ws, {
    era,
    capabilities: { elicitation: { form: {} } },
    answer: (method, params) => {
      assert.equal(method, "elicitation/create");
      questions.push(String(params?.message));
      return { action: "accept", content: { answer: "No" } };
    },
  });
  return { pml, questions };
}

Deno.test("a call with a path that its built-in tool may use asks, as before", async () => {
  await using ws = await makeWorkspace({ files: { "a.txt": "a" } });
  const { pml, questions } = connectAsker(ws, "2025-11-25");
  await using _ = pml;
  await pml.open();
  const fine: readonly (readonly [tool: string, args: object])[] = [
    ...FINE,
    [WRITE, { path: ws.file("b.txt"), content: "x" }],
    ["shell:exec", { command: "ls", cwd: "." }],
    ["git:add", { repo: ".", all: true }],
    ["sqlite:execute", { path: "x.db", sql: "CREATE TABLE t(a)", create: true }],
  ];
  for (const [tool, args] of fine) await pml.callTool("call", { tool, arguments: args });
  assert.equal(questions.length, fine.length);
  await pml.close();
});

for (const era of ERAS) {
  Deno.test(`a call that a built-in tool refuses in any case asks no user, on ${era}`, async () => {
    await using ws = await makeWorkspace({ files: { "a.txt": "a" } });
    const { pml, questions } = connectAsker(ws, era);
    await using _ = pml;
    await pml.open();
    for (const [tool, args, code = "PATH_OUTSIDE_WORKSPACE"] of REFUSED) {
      const answer = await pml.callTool("call", { tool, arguments: args });
      assert.equal(codeOf(answer), code, `${tool} ${JSON.stringify(args)}: ${textOf(answer)}`);
    }
    assert.deepEqual(questions, []);
    await pml.close();
  });
}

Deno.test("a batch asks only about the calls that are not refused in any case", async () => {
  await using ws = await makeWorkspace({ files: { "a.txt": "a" } });
  const { pml, questions } = connectAsker(ws, "2025-11-25");
  await using _ = pml;
  await pml.open();
  const all = [...REFUSED.slice(0, 2), ...FINE];
  await pml.callTool("batch", {
    calls: all.map(([tool, args]) => ({ tool, arguments: args })),
  });
  assert.equal(questions.length, 1);
  assert.match(questions[0] ?? "", /sub\/new\.txt/);
  assert.doesNotMatch(questions[0] ?? "", /\.\.\/x|\/etc\/x/);
  await pml.close();
});
