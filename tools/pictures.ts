/**
 * Creates the pictures in the documentation from real runs of PML, on a terminal and in a browser:
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
import { drawPicture, type Scene } from "./pictures/drawing.ts";
import { SCREENS, screens } from "./pictures/screens.ts";
import { SERVERS } from "./pictures/servers.ts";
import { type Step, STORIES, type Story } from "./pictures/stories.ts";

/** The folder of the pictures of terminals. */
export const FOLDER = "docs/pictures";

const MS = 120_000;
/** The beginning of a terminal control sequence. */
const ESCAPE = "\u001b[";

/** Runs each story, and returns its picture by the name of its file. */
export async function pictures(): Promise<Readonly<Record<string, string>>> {
  const all: [string, string][] = [];
  for (const [name, story] of Object.entries(STORIES)) {
    all.push([`${name}.svg`, drawPicture({ title: story.title, scenes: await playStory(story) })]);
  }
  return Object.fromEntries(all);
}

async function playStory({ files, steps }: Story): Promise<readonly Scene[]> {
  const { ".pml.json": pml, ...others } = files;
  await using ws = await makeWorkspace({
    files: others,
    ...(pml !== undefined && { pml }),
    env: { NO_COLOR: "" },
  });
  await writePrograms(ws);
  const scenes: Scene[] = [];
  for (const step of steps) {
    scenes.push({ caption: step.caption, line: step.line, screen: await runStep(ws, step) });
  }
  return scenes;
}

/** Writes the programs that a story starts. */
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

async function runStep(ws: Workspace, { line, typed = [] }: Step): Promise<string> {
  const { code, stdout } = await runPmlOnTerminal(ws, [line], {
    command: ["sh", "-c"],
    env: { PATH: `${binOf(ws)}:${ws.env.PATH}` },
    echo: true,
    typed,
    ms: MS,
  });
  if (code !== 0) throw new Error(`\`${line}\` ends with ${code}:\n${stdout}`);
  return finalScreen(stdout, ws);
}

/** Returns the final screen, without control sequences and texts that differ between runs. */
function finalScreen(text: string, ws: Workspace): string {
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
  await Deno.mkdir(repoFile(SCREENS), { recursive: true });
  for (const [name, png] of Object.entries(await screens())) {
    await Deno.writeFile(join(repoFile(SCREENS), name), png);
    console.log(`${SCREENS}/${name}: ${png.length} bytes`);
  }
}
