/**
 * `pml` without a command: shows the state of PML here, and the next step.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { counted } from "../core/amounts.ts";
import { quoted, visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { clientStates } from "./_client_setup.ts";
import type { CommandContext, Shown } from "./_command_context.ts";
import { trustState } from "./_trust.ts";

/** How a warning about a variable begins that does not count. */
const IGNORED = "Ignored ";

/** Shows the workspace, the servers, the clients and waiting approvals, and names the next step. */
export async function status({ app }: CommandContext): Promise<Shown> {
  const { problem, warnings } = app.config();
  const { lost, workspace: { root, found, file } } = app.loaded();
  const clients = await clientStates(app);
  const connected = clients.filter(({ startsPml }) => startsPml).map(({ client }) => client);
  const trust = problem === undefined ? await trustState(app) : undefined;
  const waiting = problem === undefined ? (await (await app.callPath()).waitingCalls()).length : 0;
  const servers = new Set(app.servers.states().map(({ name }) => quoted(name)));
  const importable = clients.find(({ startsPml, others }) =>
    startsPml && others.some((name) => !servers.has(name))
  )?.client;
  const rules = file === undefined ? "default rules" : trust?.text ?? "not read";
  // The other warnings are about parts that a user looks at with their own commands.
  const ignored = warnings.find((one) => one.startsWith(IGNORED))?.slice(IGNORED.length);
  const lines = {
    workspace: lost !== undefined
      ? `none: ${lost.message}`
      : found === "default"
      ? `${root} (no project found in the current folder)`
      : `${root}, ${rules}`,
    servers: problem === undefined ? serversText(app) : "the configuration is broken",
    clients: connected.length === 0 ? "none starts PML yet" : connected.join(", "),
    ...ignored !== undefined && { ignored },
    waiting: waiting === 0 ? "nothing" : counted(waiting, "call"),
  };
  const next = problem !== undefined
    ? "pml doctor       # reports problems, with their lines"
    : waiting > 0
    ? "pml approve      # shows the calls that wait for you"
    : trust?.isOpen
    ? "pml trust        # shows the content of the workspace file, and asks"
    : connected.length === 0
    ? `pml init         # ${found === "default" ? "in your project: " : ""}connects your client`
    : importable !== undefined
    ? `pml import ${importable}  # takes the servers that it starts itself into PML`
    : "pml search WORDS # finds a tool by its purpose";
  const value = { version: VERSION, ...lines, next: next.replace(/ +#.*/, "") };
  const rows = Object.entries(lines).map(([key, value]) =>
    `  ${key.padEnd(10)} ${visible(value, 400)}`
  );
  const text = [
    `PML ${VERSION}`,
    ...rows,
    "",
    `Next: ${next}`,
    "All commands: pml --help",
  ].join("\n");
  return { value, text };
}

function serversText(app: App): string {
  const all = app.servers.states();
  const own = all.filter(({ name }) => !app.directory.at(name).origin.isShipped).length;
  const failed = all.filter(({ state }) => state === "failed").map(({ name }) => name);
  const but = failed.length === 0 ? "" : `; ${failed.join(", ")} failed`;
  return `${all.length - own} that come with PML, ${own} of yours${but}`;
}
