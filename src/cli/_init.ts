/**
 * `pml init`: sets up a workspace, and connects clients.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import type { ClientName } from "../config/clients.ts";
import { DEFAULT_TEXTS } from "../config/rules.ts";
import { allowedLine } from "../config/workspace_lines.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { withoutUndefined } from "../core/json.ts";
import {
  chooseClients,
  type ClientSetup,
  readClientStates,
  readSetup,
  type SetupContext,
  type SetupStep,
  undoSetups,
  writeSetup,
} from "./_client_setup.ts";
import { servedUrl } from "../transport/attach/window_socket.ts";
import { allowTools, readAskState } from "./_ask_once.ts";
import { nextStep } from "./_client_steps.ts";
import { parsePort, SERVE_PORT } from "./_port.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { cheaperExposure, fitText, measureFit, type ModeFit } from "./_config_costs.ts";
import { usage } from "./_failure.ts";
import { CLOUD_KEY, saveKey } from "./_key.ts";
import { createFile } from "./_undoable_edits.ts";
import { importServers } from "./_import.ts";
import { afterDone, askSecret, isTerminal, stopError } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";
import { tell } from "./out.ts";

/** The address of the JSON Schema for editors. PML itself never requests it. */
const SCHEMA = "https://pml.casys.ai/pml.schema.json";

/** Sets up the workspace and the named clients; by default Claude Code. A second run changes nothing. */
export async function init(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  if (input.undo) return await undoSetups(context, input);
  const { yes = false, http = false, user = false, dryRun: isDryRun = false, client } = input;
  const serving = await findServing(context.app, input);
  const clients = client === undefined
    ? ["claude-code" as const]
    : chooseClients(context.app, client, http);
  const { root, found } = context.app.loaded().workspace;
  const isProject = found !== "default";
  checkSetup(input, isProject);
  const setupContext = { ...context, mayAsk: !yes, isDryRun };
  // Only the first setup of a workspace asks for a key.
  const isKeyOffered = setupContext.mayAsk && !isDryRun && isProject && isNewSetup(context.app);
  // All files are read and checked before one is written.
  const setups = [];
  for (const each of clients) {
    setups.push(await readSetup(context.app, each, { user: user || !isProject, http, ...serving }));
  }
  const steps: SetupStep[] = [];
  const undoLines = () =>
    steps.some(({ changed }) => changed) ? ["`pml init --undo` reverts its changes"] : [];
  const runStep = <T>(work: () => Promise<T>) => afterDone(context.signal, undoLines(), work);
  for (const setup of setups) steps.push(await runStep(() => writeSetup(setup, setupContext)));
  if (isProject) steps.push(await writeWorkspace(context.app, isDryRun));
  // Shows these steps before the next questions, because the user may stop at a question.
  const shownEarly = setupContext.mayAsk && !isDryRun ? steps.length : 0;
  const linesOf = (steps: readonly SetupStep[]) =>
    steps.map(({ path, message }) => `${path}: ${message}`).join("\n");
  if (shownEarly > 0) tell(linesOf(steps));
  const connected = setups.filter((_, index) => steps[index]?.todo === undefined);
  const isNewlyConnected = new Set(setups.filter((_, index) => steps[index]?.changed));
  const hints: string[] = [];
  const next: string[] = [];
  for (const setup of connected) {
    const isOffered = isNewlyConnected.has(setup);
    const isWanted = input.askOnce === true;
    const allowed = await runStep(() => allowTools(setup, setupContext, { isWanted, isOffered }));
    if (allowed !== undefined) steps.push(allowed);
    const { isAllowed, command } = await readAskState(setup, setupContext);
    if (!isDryRun) next.push(nextStep({ ...setup, isAllowed }, root));
    if (allowed === undefined && command !== undefined) hints.push(askOnceHint(setup, command));
  }
  const fit = await runStep(() => addHints(setupContext, { clients, hints }));
  const isKeyWanted = input.key === true && !isDryRun || isKeyOffered;
  const keyStep = isKeyWanted ? await runStep(() => storeCloudKey(context)) : undefined;
  if (keyStep !== undefined) steps.push(keyStep);
  return {
    value: { workspace: root, steps, ...withoutUndefined({ fit }) },
    text: linesOf(steps.slice(shownEarly)),
    note: [
      isDryRun ? "Nothing was changed" : noteOf(steps),
      ...(http ? [serveSteps(serving, next.length > 0)] : []),
      ...next,
      ...hints,
    ].join("\n"),
  };
}

/** Throws `USAGE` if PML cannot ask without a terminal, or has no project or client to set up. */
function checkSetup({ yes, dryRun, client }: CommandInput, isProject: boolean): void {
  if (!yes && !dryRun && !isTerminal()) {
    throw usage("Cannot set up: there is no terminal", "Take the defaults with --yes");
  }
  if (isProject || client !== undefined) return;
  throw usage(
    "Cannot set up: no project found in the current folder",
    "Run it in your project; `pml init --client NAME` connects a client everywhere",
  );
}

/** The `pml serve` to which clients are connected. */
interface Serving {
  readonly port: number;
  /** The address of a running `pml serve` of this workspace; undefined if none runs. */
  readonly running: URL | undefined;
}

/** Finds the port of `pml serve` for the entries. Throws `USAGE` if the typed port is not valid. */
async function findServing(app: App, { port, http = false }: CommandInput): Promise<Serving> {
  if (!http && port !== undefined) {
    throw usage("Cannot use --port: only --http writes an address", "Add --http");
  }
  const { home, workspace } = app.config();
  const running = http ? await servedUrl(home, workspace) : undefined;
  if (port === undefined) {
    return { port: running === undefined ? SERVE_PORT : Number(running.port || 80), running };
  }
  const number = parsePort(port, "See `pml init --help`");
  if (number > 0) return { port: number, running };
  throw usage("Cannot connect a client to port 0", "Name the port of `pml serve`");
}

/**
 * Adds hints about the servers of clients, and about the cheaper mode of listing tools. Starts no
 * server for this: it counts only known tools. Returns the costs.
 */
async function addHints(
  setupContext: SetupContext,
  { clients, hints }: { readonly clients: readonly ClientName[]; readonly hints: string[] },
): Promise<ModeFit | undefined> {
  const { app, isDryRun } = setupContext;
  hints.push(...await offerImports(setupContext, clients));
  if (isDryRun || app.config().problem !== undefined) return undefined;
  await app.servers.lists.prepareCached();
  const fit = await measureFit(app);
  const { exposure } = app.config().gateway;
  if (cheaperExposure(fit) !== exposure) hints.push(fitText(fit, exposure));
  return fit;
}

/**
 * Returns the user's steps for clients of `pml serve`. With `isFollowed`, the text ends with a colon,
 * because lines about the clients follow.
 */
function serveSteps({ port, running }: Serving, isFollowed: boolean): string {
  const command = `pml serve${port === SERVE_PORT ? "" : ` --port ${port}`}`;
  const first = running?.port === `${port}`
    ? `1. \`pml serve\` runs at ${running.href}. It has printed the path of the file with its token`
    : `1. Run \`${command}\` in this folder. It prints the path of the file with its token`;
  return `${first}\n2. Set the variable PML_TOKEN to that token, and start your client${
    isFollowed ? ":" : ""
  }`;
}

/** Returns the line about a client that itself asks before each call of a PML tool. */
function askOnceHint({ client }: ClientSetup, command: string): string {
  return `${client} also asks before each call to PML: \`${command}\` leaves the questions to PML`;
}

/** Returns whether the workspace has no file yet and no key for the cloud is stored. */
function isNewSetup(app: App): boolean {
  return app.loaded().workspace.file === undefined && app.keys.cloud() === undefined;
}

/** Asks for the key of the cloud, or reads it from stdin, and stores it. Ignores an empty answer. */
async function storeCloudKey(context: CommandContext): Promise<SetupStep | undefined> {
  const value = isTerminal()
    ? await askSecret(
      `${CLOUD_KEY}, for tools in the cloud (Enter goes on without it)`,
      context.signal,
    )
    : (await readAll()).replace(/\r?\n$/, "");
  if (value === undefined) throw stopError();
  if (value === "") return undefined;
  await saveKey(context, CLOUD_KEY, value);
  return {
    path: CLOUD_KEY,
    changed: true,
    message: "stored in your PML home, readable by you alone",
  };
}

/**
 * Offers to import the servers that these clients start themselves. Returns notes about servers that
 * it cannot offer, and about other clients.
 */
async function offerImports(
  { mayAsk, isDryRun, ...context }: SetupContext,
  clients: readonly ClientName[],
): Promise<readonly string[]> {
  const states = await readClientStates(context.app);
  const lines: string[] = [];
  for (const { client, startsPml, others, imported, refused } of states) {
    const isImported = imported.length > 0 && imported.length + refused.length === others.length;
    const servers = isImported ? imported : others;
    const count = servers.length === 1 ? "one server" : `${servers.length} servers`;
    const them = servers.length === 1 ? "it" : "them";
    if (!clients.includes(client)) {
      if (!startsPml) lines.push(`${client} does not start PML: \`pml init --client ${client}\``);
    } else if (isImported) {
      lines.push(
        `${client} itself still starts ${count} that PML has, too; ` +
          `\`pml import ${client} --move\` takes ${them} out of its file`,
        ...refused.length === 0 ? [] : [`PML cannot import from ${client}: ${refused.join(", ")}`],
      );
    } else if (others.length > 0 && refused.length === others.length) {
      lines.push(`${client} itself starts ${count} that PML cannot import: ${refused.join(", ")}`);
    } else if (others.length > 0 && mayAsk && !isDryRun) {
      tell(
        `\n${client} starts ${count} itself. PML can copy ${them} into its own file; ` +
          `${client} keeps ${them}:`,
      );
      const { text = "", note = "" } = await importServers(context, { words: [client] });
      tell([text, note].filter((each) => each !== "").join("\n"));
    } else if (others.length > 0) {
      lines.push(
        `${client} starts ${count} itself; \`pml import ${client}\` copies ${them} into PML`,
      );
    }
  }
  return lines;
}

/** Returns the remaining tasks of the user, and the heading of the next steps of the clients. */
function noteOf(steps: readonly SetupStep[]): string {
  const todos = steps.flatMap(({ todo = [] }) => todo);
  if (todos.length > 0) return `\n${todos.join("\n")}`;
  return steps.some((step) => step.changed) ? "\nNext:" : "Nothing was changed. Next:";
}

async function writeWorkspace(app: App, isDryRun: boolean): Promise<SetupStep> {
  const { root, file } = app.loaded().workspace;
  const path = join(root, FILE_NAME);
  if (file !== undefined) {
    const trustText = app.config().trusted ? "" : ", and not trusted: run `pml trust`";
    return { path, changed: false, message: `is there already${trustText}` };
  }
  if (isDryRun) return { path, changed: false, message: "would be created with the default rules" };
  // A later question about the file marks the lines that differ from these.
  const shown = DEFAULT_TEXTS.allow.map(allowedLine);
  const newFile = { path, text: workspaceText(), shown };
  await app.policy.store.whileEditing(path, () => createFile(app, newFile));
  return { path, changed: true, message: "created with the default rules, and trusted" };
}

function workspaceText(): string {
  const { allow, ask, deny } = DEFAULT_TEXTS;
  const permissions = { allow, ask, deny };
  return `${
    JSON.stringify({ $schema: SCHEMA, version: 1, workspace: ".", permissions }, null, 2)
  }\n`;
}
