/**
 * `pml install`: installs the package of a server, and asks the user whether its install scripts
 * may run.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
} from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { installForOffline } from "./_offline.ts";
import { askReply, assertTerminal, stopError } from "./_terminal.ts";
import { tell } from "./out.ts";

type Layer = Awaited<ReturnType<Machine["scriptsOf"]>>["layer"];
type Machine = Awaited<ReturnType<CommandContext["app"]["callPath"]>>["machine"];

const SCRIPTS_TEXT = "Its install scripts run once, now, and can use the network";
const PIN_TEXT = "The package is then pinned with the files that they changed.";

/**
 * Installs the package of a server, or with `--offline-ready` all files that PML fetches at first use.
 */
export async function install(
  context: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const { words: [server], offlineReady = false } = input;
  if (offlineReady === (server !== undefined)) {
    const why = offlineReady ? "--offline-ready installs for all servers" : "no server is named";
    throw usage(
      `Cannot install: ${why}`,
      "Write `pml install SERVER` or `pml install --offline-ready`",
    );
  }
  return server === undefined
    ? await installForOffline(context, input)
    : await installServer(context, { ...input, server });
}

/** Installs a package, and runs the install scripts that the user agrees to. */
async function installServer(
  { app, signal }: CommandContext,
  { server, json }: CommandInput & { readonly server: string },
): Promise<CommandOutput> {
  const { machine } = await app.callPath();
  const pending = await machine.scriptsOf(server);
  const { installed, packagesWithScripts: waiting, layer } = pending;
  const { version, integrity } = installed;
  const confined = layer.kind === "none" ? `no: ${layer.why}` : layer.kind;
  const value = { server, version, integrity, scripts: waiting, confined };
  if (json) return { value };
  const text = `Installed: ${server}, version ${visible(version)}, ${integrity}`;
  if (waiting.length === 0) {
    return { value, text: `${text}\nNo install script needs your decision` };
  }
  assertTerminal("Cannot run install scripts");
  tell(`${text}\n\n${warning(layer)}`);
  const approved = [];
  for (const each of waiting) {
    const { spec, hash } = each;
    // Shows the whole script and hash, because the user decides about exactly this text.
    const lines = Object.entries(each.scripts)
      .map(([event, script]) => `  ${event}: ${visible(script, Infinity)}`);
    tell(`\n${quoted(spec)} with the hash ${visible(hash, Infinity)}\n${lines.join("\n")}`);
    const reply = await askReply("Run exactly these scripts?", { yes: "once", signal });
    if (reply === "Yes") approved.push(each);
    // If the user stops at one package, the scripts that they approved before do not run, either.
    if (reply === "cancelled") throw stopError();
  }
  if (approved.length === 0) return { value, text: "Nothing was run", code: 1 };
  const scripts = approved.map(({ spec }) => spec);
  await recordAction({ app }, "install scripts", { server, integrity, scripts });
  await pending.run(approved, tell);
  return { value, text: `Ran the scripts of ${scripts.join(", ")}` };
}

/** Returns a text about the permissions of install scripts, which depend on the OS sandbox. */
function warning(layer: Layer): string {
  if (layer.kind === "none") {
    return `${SCRIPTS_TEXT}, and nothing confines them on this machine (${layer.why}): they can read ` +
      `and change your files with your rights. ${PIN_TEXT}`;
  }
  const name = layer.kind === "bwrap" ? "Bubblewrap" : "Landlock";
  return `${SCRIPTS_TEXT}. ${name} confines them: they can write only in their package and in a ` +
    `folder that is removed afterwards. They cannot read your files or the workspace. ${PIN_TEXT}`;
}
