/**
 * Calls the built-in tools of PML on stdio, also with hostile paths, without an MCP library.
 *
 * @module
 */

import { textOf } from "../../tests/attacks/oracles.ts";
import type { Answerer } from "../../tests/kit/raw_stdio.ts";
import type { Part } from "./part.ts";
import { ANSWER_MS, makeScene } from "./scene.ts";

/** A call of a tool, and the pattern of its answer. */
type CallCheck = readonly [tool: string, args: Readonly<Record<string, unknown>>, wanted: RegExp];

const CMD = "C:\\windows\\system32\\cmd.exe";
const OTHER_FILE = /^PATH_PROTECTED: .*its name means another file on Windows/;
const OUTSIDE = /^PATH_OUTSIDE_WORKSPACE: .*it is outside the workspace/;

const CALL_CHECKS: readonly CallCheck[] = [
  ["filesystem:read_file", { path: "a.txt" }, /^AAA\r?\n$/],
  ["filesystem:read_file", { path: "A.TXT" }, /^AAA\r?\n$/],
  [
    "filesystem:write_file",
    { path: "src\\b.txt", content: "hi" },
    /^Wrote 2 bytes to src[\\/]b\.txt/,
  ],
  [
    "filesystem:write_file",
    { path: "src/c.txt", content: "hi" },
    /^Wrote 2 bytes to src[\\/]c\.txt/,
  ],
  ["filesystem:list_directory", { path: "." }, /\[FILE\] a\.txt[^]*\[DIR\] src/],
  ["filesystem:read_file", { path: "..\\home\\.pml\\config.yaml" }, OUTSIDE],
  ["filesystem:read_file", { path: ".ENV" }, /^PATH_PROTECTED: .*it is protected/],
  ["filesystem:read_file", { path: "C:\\windows\\win.ini" }, OUTSIDE],
  ["filesystem:write_file", { path: "a.txt::$DATA", content: "x" }, OTHER_FILE],
  ["filesystem:write_file", { path: "CON", content: "x" }, OTHER_FILE],
  ["filesystem:write_file", { path: "a.txt. ", content: "x" }, OTHER_FILE],
  [
    "sqlite:query",
    { path: "x.db", sql: "select 1" },
    /^Cannot open "x\.db": there is no such file/,
  ],
  ["shell:exec", { command: "cmd", args: ["/c", "echo hi"] }, /^hi\b/],
  ["shell:exec", { command: CMD, args: ["/c", "echo hi"] }, /^hi\b/],
];

/** Answers each question of PML with the choice that begins with "Yes". */
export const YES: Answerer = (_method, { requestedSchema }) => {
  const { properties = {} } = requestedSchema as {
    properties?: Record<string, { enum?: string[] }>;
  };
  const [[key, { enum: choices = [] }] = ["", {}]] = Object.entries(properties);
  const choice = choices.find((option) => /^yes/i.test(option)) ?? choices[0];
  return { action: "accept", content: { [key]: choice } };
};

/** Calls tools and compares each answer. */
export const SMOKE: Part = {
  name: "smoke",
  run: async (wine, checks) => {
    const files = { "a.txt": "AAA\r\n", ".env": "SECRET=1", "src/d.txt": "d" };
    await using scene = await makeScene(wine, { files });
    // PML ignores answers that come faster than a user can read the question.
    const answer: Answerer = async (...question) => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return YES(...question);
    };
    await using client = scene.open({ answer });
    const hello = await client.open();
    checks.match("initialize", JSON.stringify(hello), /"protocolVersion":"2025-11-25"/);
    const list = await client.request("tools/list", {}, { ms: ANSWER_MS });
    checks.match("tools/list", JSON.stringify(list), /"name":"search"/);
    for (const [tool, args, wanted] of CALL_CHECKS) {
      const name = `${tool} ${JSON.stringify(args)}`;
      await checks.try(name, async () => {
        const message = await client.callTool("call", { tool, arguments: args }, { ms: ANSWER_MS });
        checks.match(name, textOf(message), wanted);
      });
    }
    const { code } = await client.close();
    checks.match("end of input", `code ${code}`, /^code 0$/);
  },
};
