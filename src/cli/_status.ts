/**
 * `pml` without a command: shows the state of PML here, and the next step.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { counted } from "../core/amounts.ts";
import { quoted, visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { type ClientState, readClientStates } from "./_client_setup.ts";
import type { CommandContext, CommandOutput } from "./_command_context.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";
import { pauseText } from "./_pause.ts";
import { trustState } from "./_trust.ts";
import { waitingEverywhere } from "./_waiting.ts";

/** The beginning of a warning about a variable that PML ignores. */
const IGNORED = "Ignored ";

/** Shows the workspace, the servers, the clients and waiting approvals, and names the next step. */
export async function status({ app, signal }: CommandContext): Promise<CommandOutput> {
  const { problem, warnings } = app.config();
  const { workspaceError: lost, workspace: { root, found, file } } = app.loaded();
  const clients = await readClientStates(app);
  const connected = clients.filter(({ startsPml }) => startsPml).map(({ client }) => client);
  const trust = problem === undefined ? await trustState(app) : undefined;
  await using apps = new WorkspaceApps(app, signal);
  const waiting = problem === undefined ? await countWaiting(apps) : { here: 0, elsewhere: 0 };
  const rules = file === undefined ? "default rules" : trust?.text ?? "not read";
  // Other warnings belong to parts with their own commands, which show them.
  const ignored = warnings.find((one) => one.startsWith(IGNORED))?.slice(IGNORED.length);
  const { pause } = app.config();
  const lines = {
    ...pause !== undefined && { paused: pauseText(pause) },
    workspace: lost !== undefined
      ? `none: ${lost.message}`
      : found === "default"
      ? `${root} (no project found in the current folder)`
      : `${root}, ${rules}`,
    servers: problem === undefined ? serversText(app) : "the configuration is broken",
    clients: connected.length === 0 ? "none starts PML yet" : connected.join(", "),
    ...ignored !== undefined && { ignored },
    waiting: waitingText(waiting),
    page: "`pml page` shows all this in your browser",
  };
  const next = chooseStep(app, { trust, waiting, clients });
  const value = { version: VERSION, ...lines, next: next.command };
  const rows = Object.entries(lines).map(([key, value]) =>
    `  ${key.padEnd(10)} ${visible(value, 400)}`
  );
  const text = [
    `PML ${VERSION}`,
    ...rows,
    "",
    `Next: ${next.command.padEnd(16)}${next.command.length > 16 ? "  " : " "}# ${next.text}`,
    "All commands: pml --help",
  ].join("\n");
  return { value, text };
}

/** The next step of the user. */
export interface NextStep {
  readonly command: string;
  /** The effect of the command. */
  readonly text: string;
}

/**
 * Returns the next step that the page proposes in a workspace; undefined if there is none, or if the
 * page itself shows it.
 */
export async function nextStep(app: App): Promise<NextStep | undefined> {
  const clients = await readClientStates(app);
  const trust = app.config().problem === undefined ? await trustState(app) : undefined;
  return chooseStep(app, { trust, waiting: { here: 0, elsewhere: 0 }, clients });
}

/** The numbers of waiting calls: of the present workspace, and of all others. */
interface WaitingCounts {
  readonly here: number;
  readonly elsewhere: number;
}

async function countWaiting(apps: WorkspaceApps): Promise<WaitingCounts> {
  const { workspace } = apps.here.config();
  const calls = await waitingEverywhere(apps);
  const here = calls.filter(({ pending }) => pending.subjects[0]?.workspace === workspace).length;
  return { here, elsewhere: calls.length - here };
}

function waitingText({ here, elsewhere }: WaitingCounts): string {
  if (elsewhere === 0) return here === 0 ? "nothing" : counted(here, "call");
  const others = `${counted(elsewhere, "call")} of other folders`;
  return here === 0 ? others : `${counted(here, "call")}, and ${others}`;
}

function chooseStep(app: App, { trust, waiting, clients }: {
  readonly trust: Awaited<ReturnType<typeof trustState>>;
  readonly waiting: WaitingCounts;
  readonly clients: readonly ClientState[];
}): NextStep {
  const { found } = app.loaded().workspace;
  const servers = new Set(app.servers.states().map(({ name }) => quoted(name)));
  const importable = clients.find(({ startsPml, others }) =>
    startsPml && others.some((name) => !servers.has(name))
  );
  if (app.config().problem !== undefined) {
    return { command: "pml doctor", text: "reports problems, with their lines" };
  }
  if (app.config().pause !== undefined) {
    return { command: "pml resume", text: "takes calls again" };
  }
  const approve = { command: "pml approve", text: "shows the calls that wait for you" };
  if (waiting.here > 0) return approve;
  if (trust?.isUndecided) {
    return { command: "pml trust", text: "shows the content of the workspace file, and asks" };
  }
  if (!clients.some(({ startsPml }) => startsPml)) {
    const where = found === "default" ? "in your project: " : "";
    return { command: "pml init", text: `${where}connects your client` };
  }
  if (waiting.elsewhere > 0) return approve;
  if (importable === undefined) {
    return { command: "pml search WORDS", text: "finds a tool by its purpose" };
  }
  const { client, imported } = importable;
  // PML has some of them, and without `--move` the client would still start these itself.
  return imported.length === 0
    ? {
      command: `pml import ${client}`,
      text: "copies the servers that it starts itself into PML",
    }
    : {
      command: `pml import ${client} --move`,
      text: "takes the servers that it starts itself into PML, and out of its file",
    };
}

function serversText(app: App): string {
  const states = app.servers.states();
  const ownCount = states.filter(({ name }) => !app.directory.get(name).origin.isShipped).length;
  const failed = states.filter(({ state }) => state === "failed").map(({ name }) => name);
  const failures = failed.length === 0 ? "" : `; ${failed.join(", ")} failed`;
  return `${states.length - ownCount} that come with PML, ${ownCount} of yours${failures}`;
}
