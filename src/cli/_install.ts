/**
 * `pml install`: installs the package that a server is, and asks the person about its install scripts.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { askWord, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type Layer = Awaited<ReturnType<Machine["scriptsOf"]>>["layer"];
type Machine = Awaited<ReturnType<CommandContext["app"]["callPath"]>>["machine"];

const ALONE =
  "PML runs no script of a package by itself. These run once, now. They reach the network";
const PINNED =
  "What they leave in the package is pinned; another version or another hash asks anew.";

/** Installs a package, and runs those of its scripts that the person says yes to. */
export async function install(
  { app, signal }: CommandContext,
  { words: [server = ""], json }: Typed,
): Promise<Shown> {
  const { machine } = await app.callPath();
  const { installed, waiting, layer, run } = await machine.scriptsOf(server);
  const { version, integrity } = installed;
  const confined = layer.kind === "none" ? `no: ${layer.why}` : layer.kind;
  const held = waiting.length === 0 ? {} : { confined };
  const value = { server, version, integrity, scripts: waiting, ...held };
  if (json) return { value };
  const text = `Installed: ${server}, version ${visible(version)}, ${integrity}`;
  if (waiting.length === 0) return { value, text: `${text}\nNo install script waits for you` };
  needPerson("Cannot run install scripts", `pml install ${server}`);
  tell(`${text}\n\n${warning(layer)}`);
  const agreed = [];
  for (const one of waiting) {
    const lines = Object.entries(one.scripts)
      .map(([event, script]) => `  ${event}: ${visible(script, Infinity)}`);
    tell(`\n${quoted(one.spec)} with the hash ${visible(one.hash, Infinity)}\n${lines.join("\n")}`);
    const word = await askWord('Type "run" to run exactly these scripts of it', signal);
    if (word === "run") agreed.push(one);
    if (word === undefined) break;
  }
  if (agreed.length === 0) return { value, text: "Nothing was run", code: 1 };
  await run(agreed, tell);
  return { value, text: `Ran the scripts of ${agreed.map(({ spec }) => spec).join(", ")}` };
}

/** Says what scripts may do, by what holds them. */
function warning(layer: Layer): string {
  if (layer.kind === "none") {
    return `${ALONE}, and nothing confines them here (${layer.why}): they can read and change ` +
      `your files with your rights. ${PINNED}`;
  }
  const name = layer.kind === "bwrap" ? "Bubblewrap" : "Landlock";
  return `${ALONE}. ${name} confines them: they write in their package and in a folder that is ` +
    "removed after them, and read the programs of the system, but neither your files nor the " +
    `workspace. ${PINNED}`;
}
