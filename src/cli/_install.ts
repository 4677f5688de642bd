/**
 * `pml install`: installs the package of a server, and asks the user whether its install scripts
 * may run.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import { type CommandContext, recordAction, type Shown, type Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { installForOffline } from "./_offline.ts";
import { askReply, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type Layer = Awaited<ReturnType<Machine["scriptsOf"]>>["layer"];
type Machine = Awaited<ReturnType<CommandContext["app"]["callPath"]>>["machine"];

const ONCE = "Its install scripts run once, now, and can use the network";
const PINNED = "The package is pinned as they leave it.";

/**
 * Installs the package of a server, or with `--offline-ready` all that is fetched at its first use.
 */
export async function install(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [server], offlineReady = false } = typed;
  if (offlineReady === (server !== undefined)) {
    const why = offlineReady ? "--offline-ready installs for all servers" : "no server is named";
    throw usage(
      `Cannot install: ${why}`,
      "Write `pml install SERVER` or `pml install --offline-ready`",
    );
  }
  return server === undefined
    ? await installForOffline(at, typed)
    : await installServer(at, { ...typed, server });
}

/** Installs a package, and runs the install scripts that the user agrees to. */
async function installServer(
  { app, signal }: CommandContext,
  { server, json }: Typed & { readonly server: string },
): Promise<Shown> {
  const { machine } = await app.callPath();
  const pending = await machine.scriptsOf(server);
  const { installed, waiting, layer } = pending;
  const { version, integrity } = installed;
  const confined = layer.kind === "none" ? `no: ${layer.why}` : layer.kind;
  const value = { server, version, integrity, scripts: waiting, confined };
  if (json) return { value };
  const text = `Installed: ${server}, version ${visible(version)}, ${integrity}`;
  if (waiting.length === 0) {
    return { value, text: `${text}\nNo install script needs your decision` };
  }
  needPerson("Cannot run install scripts");
  tell(`${text}\n\n${warning(layer)}`);
  const agreed = [];
  for (const one of waiting) {
    const lines = Object.entries(one.scripts)
      .map(([event, script]) => `  ${event}: ${visible(script, Infinity)}`);
    tell(`\n${quoted(one.spec)} with the hash ${visible(one.hash, Infinity)}\n${lines.join("\n")}`);
    const reply = await askReply("Run exactly these scripts?", { once: true, signal });
    if (reply === "Yes") agreed.push(one);
    if (reply === "cancelled") break;
  }
  if (agreed.length === 0) return { value, text: "Nothing was run", code: 1 };
  const scripts = agreed.map(({ spec }) => spec);
  await recordAction({ app }, "install scripts", { server, integrity, scripts });
  await pending.run(agreed, tell);
  return { value, text: `Ran the scripts of ${scripts.join(", ")}` };
}

/** Returns a text about the permissions of install scripts, which depend on the OS sandbox. */
function warning(layer: Layer): string {
  if (layer.kind === "none") {
    return `${ONCE}, and nothing confines them on this machine (${layer.why}): they can read and change ` +
      `your files with your rights. ${PINNED}`;
  }
  const name = layer.kind === "bwrap" ? "Bubblewrap" : "Landlock";
  return `${ONCE}. ${name} confines them: they can write only in their package and in a folder ` +
    `removed after them. They cannot read your files or the workspace. ${PINNED}`;
}
