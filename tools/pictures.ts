/**
 * Makes the pictures of the pages from real runs of PML on a terminal:
 *
 *     deno task pictures
 *
 * @module
 */

import { dirname, join } from "node:path";
import process from "node:process";
import { denoCommand, pmlCommand, repoFile } from "../tests/kit/pml_command.ts";
import { runPmlOnTerminal } from "../tests/kit/run.ts";
import { denoDir, makeWorkspace, type Workspace } from "../tests/kit/workspace.ts";
import { drawn, type Scene } from "./pictures/drawing.ts";
import { SERVERS } from "./pictures/servers.ts";
import { type Step, STORIES, type Story } from "./pictures/stories.ts";

/** Where the pictures are. */
export const FOLDER = "docs/pictures";

const MS = 120_000;
/** What begins a change of the screen. */
const ESCAPE = "\u001b[";

/** Runs each story, and returns its picture by the name of its file. */
export async function pictures(): Promise<Readonly<Record<string, string>>> {
  const all: [string, string][] = [];
  for (const [name, story] of Object.entries(STORIES)) {
    all.push([`${name}.svg`, drawn({ title: story.title, scenes: await told(story) })]);
  }
  return Object.fromEntries(all);
}

async function told({ files, steps }: Story): Promise<readonly Scene[]> {
  const { ".pml.json": pml, ...others } = files;
  await using ws = await makeWorkspace({
    files: others,
    ...(pml !== undefined && { pml }),
    env: { NO_COLOR: "" },
  });
  await writePrograms(ws);
  const scenes: Scene[] = [];
  for (const step of steps) {
    scenes.push({ said: step.said, line: step.line, shown: await seen(ws, step) });
  }
  return scenes;
}

/** Makes the programs that the lines of a story start. */
async function writePrograms(ws: Workspace): Promise<void> {
  const server = [process.execPath, "run", "--no-config", repoFile("tools/pictures/one_server.ts")];
  const programs: Readonly<Record<string, readonly string[]>> = {
    pml: pmlCommand(),
    "what-a-client-lists": denoCommand("tools/pictures/what_a_client_lists.ts"),
    ...Object.fromEntries(
      Object.keys(SERVERS).map((name) => [`${name}-mcp`, [...server, name]]),
    ),
  };
  await Deno.mkdir(binOf(ws));
  for (const [name, command] of Object.entries(programs)) {
    const text = `#!/bin/sh\nDENO_DIR='${denoDir()}' DENO_NO_UPDATE_CHECK=1 ` +
      `exec ${command.map((part) => `'${part}'`).join(" ")} "$@"\n`;
    await Deno.writeTextFile(join(binOf(ws), name), text, { mode: 0o755 });
  }
}

function binOf(ws: Workspace): string {
  return join(ws.root, "bin");
}

async function seen(ws: Workspace, { line, typed = [] }: Step): Promise<string> {
  const { code, stdout } = await runPmlOnTerminal(ws, [line], {
    command: ["sh", "-c"],
    env: { PATH: `${binOf(ws)}:${ws.env.PATH}` },
    echo: true,
    typed,
    ms: MS,
  });
  if (code !== 0) throw new Error(`\`${line}\` ends with ${code}:\n${stdout}`);
  return settled(stdout, ws);
}

/** Returns the final screen, without texts that differ from run to run. */
function settled(text: string, ws: Workspace): string {
  return text.replaceAll(/\r+\n/g, "\n")
    .split("\n").map((line) => line.split("\r").at(-1) ?? "").join("\n")
    .replaceAll(`${ESCAPE}K`, "")
    .replaceAll(ws.path, "~/project")
    .replaceAll(dirname(ws.home), "~")
    .trimEnd();
}

if (import.meta.main) {
  await Deno.mkdir(repoFile(FOLDER), { recursive: true });
  for (const [name, svg] of Object.entries(await pictures())) {
    await Deno.writeTextFile(join(repoFile(FOLDER), name), svg);
    console.log(`${FOLDER}/${name}: ${svg.length} bytes`);
  }
}
