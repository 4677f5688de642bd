/**
 * `pml init`: sets up a workspace, and connects clients.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import type { ClientName } from "../config/clients.ts";
import { DEFAULT_TEXTS } from "../config/rules.ts";
import { allowedLine } from "../config/shown.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { defined } from "../core/json.ts";
import {
  chosenClients,
  type ClientSetup,
  clientStates,
  readSetup,
  type SetupContext,
  type SetupStep,
  undoSetups,
  writeSetup,
} from "./_client_setup.ts";
import { allowTools, askState } from "./_ask_once.ts";
import { nextStep } from "./_client_steps.ts";
import { portOf, SERVE_PORT } from "./_port.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { fitOf, fitText, type ModeFit } from "./_config_costs.ts";
import { usage } from "./_failure.ts";
import { CLOUD_KEY, saveKey } from "./_key.ts";
import { make } from "./_import_file.ts";
import { importServers } from "./_import.ts";
import { askSecret, isTerminal } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";
import { tell } from "./out.ts";

/** The address of the JSON Schema for editors. PML itself never requests it. */
const SCHEMA = "https://pml.casys.ai/pml.schema.json";

/** Sets up the workspace, and the clients that the user names. A second run changes nothing. */
export async function init(at: CommandContext, typed: Typed): Promise<Shown> {
  if (typed.undo) return await undoSetups(at, typed);
  const { yes = false, http = false, user = false, dryRun: dry = false, client } = typed;
  const port = servedPort(typed);
  const clients = client === undefined
    ? ["claude-code" as const]
    : chosenClients(at.app, client, http);
  if (!yes && !dry && !isTerminal()) {
    throw usage("Cannot set up: there is no terminal", "Take the defaults with --yes");
  }
  const { root, found } = at.app.loaded().workspace;
  const isProject = found !== "default";
  if (!isProject && client === undefined) {
    throw usage(
      "Cannot set up: no project found in the current folder",
      "Run it in your project; `pml init --client NAME` connects a client everywhere",
    );
  }
  const asking = { ...at, ask: !yes, dry };
  // Only the first setup of a workspace asks.
  const isKeyOffered = asking.ask && !dry && isProject && isNew(at.app);
  // All files are read and checked before one is written.
  const setups = [];
  for (const each of clients) {
    setups.push(await readSetup(at.app, each, { user: user || !isProject, http, port }));
  }
  const steps: SetupStep[] = [];
  for (const setup of setups) steps.push(await writeSetup(setup, asking));
  if (isProject) steps.push(await writeWorkspace(at.app, dry));
  // Questions follow, and a user may stop there.
  const early = asking.ask && !dry ? steps.length : 0;
  const linesOf = (some: readonly SetupStep[]) =>
    some.map(({ path, message }) => `${path}: ${message}`).join("\n");
  if (early > 0) tell(linesOf(steps));
  const connected = setups.filter((_, at) => steps[at]?.todo === undefined);
  const isNewlyConnected = new Set(setups.filter((_, at) => steps[at]?.changed));
  const hints: string[] = [];
  const next: string[] = [];
  for (const setup of connected) {
    const isOffered = isNewlyConnected.has(setup);
    const step = await allowTools(setup, asking, { isWanted: typed.askOnce === true, isOffered });
    if (step !== undefined) steps.push(step);
    const { isAllowed, command } = await askState(setup, asking);
    if (!dry) next.push(nextStep({ ...setup, isAllowed }, root));
    if (step === undefined && command !== undefined) hints.push(askOnceHint(setup, command));
  }
  const fit = await addHints(asking, { clients, hints });
  const keyStep = typed.key === true && !dry || isKeyOffered ? await keepCloudKey(at) : undefined;
  if (keyStep !== undefined) steps.push(keyStep);
  return {
    value: { workspace: root, steps, ...defined({ fit }) },
    text: linesOf(steps.slice(early)),
    note: [
      dry ? "Nothing was changed" : noteOf(steps),
      ...(http ? [serveSteps(port, next.length > 0)] : []),
      ...next,
      ...hints,
    ].join("\n"),
  };
}

/** Returns the port of `pml serve` for the entries. Throws USAGE if it cannot be one. */
function servedPort({ port, http = false }: Typed): number {
  if (port === undefined) return SERVE_PORT;
  if (!http) throw usage("Cannot use --port: only --http writes an address", "Add --http");
  const number = portOf(port, "See `pml init --help`");
  if (number > 0) return number;
  throw usage("Cannot connect a client to port 0", "Name the port of `pml serve`");
}

/**
 * Adds the hints about servers of clients, and about the mode that costs less with the tools that are
 * known without starting a server. Returns the costs.
 */
async function addHints(
  asking: SetupContext,
  { clients, hints }: { readonly clients: readonly ClientName[]; readonly hints: string[] },
): Promise<ModeFit | undefined> {
  const { app, dry } = asking;
  hints.push(...await offered(asking, clients));
  if (dry || app.config().problem !== undefined) return undefined;
  await app.servers.lists.prepareCached();
  const fit = await fitOf(app);
  hints.push(fitText(fit, app.config().gateway.exposure));
  return fit;
}

/** Returns the steps of the user for clients of `pml serve`. Lines about the clients may follow. */
function serveSteps(port: number, isFollowed: boolean): string {
  const command = `pml serve${port === SERVE_PORT ? "" : ` --port ${port}`}`;
  return `1. Run \`${command}\` in this folder. It prints the path of the file with its token\n` +
    `2. Set the variable PML_TOKEN to that token, and start your client${isFollowed ? ":" : ""}`;
}

/** Returns the line about a client that asks itself before each call of PML. */
function askOnceHint({ client }: ClientSetup, command: string): string {
  return `${client} asks before each call of PML, too: \`${command}\` leaves the questions to PML`;
}

/** Returns whether neither the workspace is set up nor a key for the cloud is known. */
function isNew(app: App): boolean {
  return app.loaded().workspace.file === undefined && app.keys.cloud() === undefined;
}

/** Keeps the key of the cloud, typed unseen or read from stdin. An empty answer keeps none. */
async function keepCloudKey(at: CommandContext): Promise<SetupStep | undefined> {
  const value = isTerminal()
    ? await askSecret(`${CLOUD_KEY}, for tools in the cloud (Enter goes on without it)`, at.signal)
    : (await readAll()).replace(/\r?\n$/, "");
  if (!value) return undefined;
  await saveKey(at, CLOUD_KEY, value);
  return {
    path: CLOUD_KEY,
    changed: true,
    message: "stored in your PML home, readable by you alone",
  };
}

/**
 * Offers to import the servers that these clients start themselves. Returns the remaining notes about
 * them, and about other clients.
 */
async function offered(
  { ask, dry, ...at }: SetupContext,
  clients: readonly ClientName[],
): Promise<readonly string[]> {
  const states = await clientStates(at.app);
  const lines: string[] = [];
  for (const { client, startsPml, others, imported } of states) {
    const count = others.length === 1 ? "one server" : `${others.length} servers`;
    const them = others.length === 1 ? "it" : "them";
    if (!clients.includes(client)) {
      if (!startsPml) lines.push(`${client} does not start PML: \`pml init --client ${client}\``);
    } else if (others.length > 0 && imported.length === others.length) {
      lines.push(
        `${client} still starts ${count} itself that PML has, too; ` +
          `\`pml import ${client} --move\` takes ${them} out of its file`,
      );
    } else if (others.length > 0 && ask && !dry) {
      tell(
        `\n${client} starts ${count} itself. PML can take ${them}:`,
      );
      const { text = "", note = "" } = await importServers(at, { words: [client] });
      tell([text, note].filter((each) => each !== "").join("\n"));
    } else if (others.length > 0) {
      lines.push(
        `${client} starts ${count} itself; \`pml import ${client}\` takes ${them} into PML`,
      );
    }
  }
  return lines;
}

/** Returns the open tasks of the user, which come before the next steps of the clients. */
function noteOf(steps: readonly SetupStep[]): string {
  const todos = steps.flatMap(({ todo = [] }) => todo);
  if (todos.length > 0) return `\n${todos.join("\n")}`;
  return steps.some((step) => step.changed) ? "\nNext:" : "Nothing was changed. Next:";
}

async function writeWorkspace(app: App, dry: boolean): Promise<SetupStep> {
  const { root, file } = app.loaded().workspace;
  const path = join(root, FILE_NAME);
  if (file !== undefined) {
    const but = app.config().trusted ? "" : ", and not trusted: run `pml trust`";
    return { path, changed: false, message: `is there already${but}` };
  }
  if (dry) return { path, changed: false, message: "would be created with the default rules" };
  // A later question marks changes since then.
  const shown = DEFAULT_TEXTS.allow.map(allowedLine);
  const made = { path, text: workspaceText(), shown };
  await app.policy.store.whileEditing(path, () => make(app, made));
  return { path, changed: true, message: "created with the default rules, and trusted" };
}

function workspaceText(): string {
  const { allow, ask, deny } = DEFAULT_TEXTS;
  const permissions = { allow, ask, deny };
  return `${
    JSON.stringify({ $schema: SCHEMA, version: 1, workspace: ".", permissions }, null, 2)
  }\n`;
}
