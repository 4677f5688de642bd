/**
 * Makes the pictures of the pages from real runs of PML on a terminal:
 *
 *     deno task pictures
 *
 * @module
 */

import { dirname, join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { runPmlOnTerminal } from "../tests/kit/run.ts";
import { makeWorkspace, type Workspace } from "../tests/kit/workspace.ts";
import { drawn } from "./pictures/drawing.ts";
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
    all.push([`${name}.svg`, drawn({ title: story.title, text: await told(story) })]);
  }
  return Object.fromEntries(all);
}

async function told({ files, steps }: Story): Promise<string> {
  const trusted = files[".pml.json"] !== undefined;
  await using ws = await makeWorkspace({
    files,
    ...(trusted && { pml: files[".pml.json"] ?? "" }),
    env: { NO_COLOR: "" },
  });
  const shown: string[] = [];
  for (const step of steps) {
    const line = `${ESCAPE}1m$ ${["pml", ...step.args].map(worded).join(" ")}${ESCAPE}22m`;
    shown.push(`${line}\n${await seen(ws, step)}`);
  }
  return shown.join("\n");
}

async function seen(ws: Workspace, { args, typed = [], shown }: Step): Promise<string> {
  const { stdout } = await runPmlOnTerminal(ws, args, { typed, ms: MS });
  const lines = settled(stdout, ws).split("\n");
  const kept = shown === undefined ? lines : lines.filter((line) => shown.test(line));
  return `${kept.join("\n").trimEnd()}\n`;
}

/** Returns what a screen shows in the end, without what differs from run to run. */
function settled(text: string, ws: Workspace): string {
  return text.replaceAll("\r\n", "\n")
    .split("\n").map((line) => line.split("\r").at(-1) ?? "").join("\n")
    .replaceAll(`${ESCAPE}K`, "")
    .replaceAll(ws.path, "~/project")
    .replaceAll(dirname(ws.home), "~");
}

/** Returns an argument as a person types it. */
function worded(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text}'`;
}

if (import.meta.main) {
  await Deno.mkdir(repoFile(FOLDER), { recursive: true });
  for (const [name, svg] of Object.entries(await pictures())) {
    await Deno.writeTextFile(join(repoFile(FOLDER), name), svg);
    console.log(`${FOLDER}/${name}: ${svg.length} bytes`);
  }
}
