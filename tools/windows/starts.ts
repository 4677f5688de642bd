/**
 * Checks how PML starts and ends as a child of a Windows program, and measures its first answer.
 *
 * @module
 */

import type { Command } from "../../tests/kit/pml_command.ts";
import type { Part } from "./part.ts";
import { makeScene, type WindowsScene } from "./scene.ts";
import type { Wine } from "./wine.ts";

const ROUNDS = 7;
const INITIALIZE = {
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "starts", version: "1" },
  },
};

/** Starts PML with the pipes of Node for Windows. */
export const PARENT: Part = {
  name: "below Node",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine);
    const { env, ws } = scene;
    const pml = ["Z:\\opt\\win\\deno.exe", ...wine.pml("stdio").slice(2)];
    const parent = wine.command("node.exe", "Z:\\pml\\tools\\windows\\parent.mjs", ...pml);
    // Node for Windows cannot write to a pipe of Linux, so it writes to a file.
    const log = ws.file("parent.log");
    const command: Command = ["bash", "-c", 'exec "$@" >"$0" 2>&1', log, ...parent];
    await wine.run(command, { cwd: ws.path, env });
    const output = await Deno.readTextFile(log);
    const name = "200 answers, some unread for a while, and the end of input";
    checks.match(name, output, /"pausedAt":0,.*"lines":200,"code":0/);
  },
};

/** Measures the first answer, and an empty script for comparison. Has no time limit. */
export const FIRST_ANSWER: Part = {
  name: "first answer",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine, { files: { "empty.js": "console.log(1);\n" } });
    const script = wine.windowsPath(scene.ws.file("empty.js"));
    const empty = wine.command("deno.exe", "run", "-A", script);
    const times: [number, number][] = [];
    // The first round starts Wine's own server.
    for (let round = 0; round <= ROUNDS; round++) {
      const [plain, pml] = [await firstOutput(scene, empty), await pmlAnswer(scene, wine)];
      if (round > 0) times.push([plain, pml]);
    }
    const [plain = NaN, pml = NaN] = [0, 1].map((index) =>
      median(times.map((pair) => pair[index] ?? 0))
    );
    const ratio = (pml / plain).toFixed(1);
    console.log(
      `     PML ${pml.toFixed(0)} ms, an empty script ${plain.toFixed(0)} ms: ${ratio} times`,
    );
    checks.pass(times.length);
  },
};

function pmlAnswer(scene: WindowsScene, wine: Wine): Promise<number> {
  return firstOutput(scene, wine.pml("stdio"), `${JSON.stringify(INITIALIZE)}\n`);
}

/** Returns the time from the start of a program to its first output, in milliseconds. */
async function firstOutput(
  { ws, env }: WindowsScene,
  [file, ...args]: Command,
  input = "",
): Promise<number> {
  const since = performance.now();
  const child = new Deno.Command(file, {
    args,
    cwd: ws.path,
    env,
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  const reader = child.stdout.getReader();
  await reader.read();
  const time = performance.now() - since;
  await writer.close().catch(() => {}); // it ended already
  while (!(await reader.read()).done);
  await child.status;
  return time;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Infinity;
}
