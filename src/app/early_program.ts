/**
 * Starts the program of a server before the code of calls is loaded: first a supervisor process
 * that waits for a program, and then an approved program in it. The first connection uses this
 * program if it would otherwise start exactly the same program.
 *
 * @module
 */

import { plainCommand, runsContainers } from "../core/plain_command.ts";
import { toolId } from "../core/tool_id.ts";
import { containerEnvironment, serverEnvironment } from "../config/child_environment.ts";
import { mayHavePins } from "../policy/pins_file.ts";
import type { Program } from "../sandbox/program.ts";
import { SpareKeeper } from "../sandbox/process.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import type { ProgramDefinition } from "../servers/kind.ts";
import { isProgramKind, programsOf } from "../servers/kinds.ts";
import type { Server } from "../servers/server.ts";
import type { App } from "./app.ts";

/** Returns the servers whose programs may be started before a call. */
export function runnableServers(app: App): readonly Server[] {
  return app.directory.all().filter((server) =>
    isProgramKind(server.kind) && mayStart(app, server)
  );
}

/** Returns whether PML may start a server now to list its tools. */
export function mayStart(app: App, server: Server): boolean {
  const isDenied = app.policy.now.judge(toolId(server.name, WHOLE_SERVER)).kind === "deny";
  return !isDenied && server.whyBlocked() === undefined;
}

/** Starts a supervisor process, unless no program may run. */
export function startSpare(app: App): void {
  if (app.closing.aborted || runnableServers(app).length === 0) return;
  app.spare ??= new SpareKeeper();
  app.spare.start(app.config().limits.idleMs);
}

/**
 * Starts the first program that may run, in the supervisor process. Returns its server; undefined
 * if no program was started.
 */
export async function beginProgram(app: App): Promise<Server | undefined> {
  await app.ready;
  for (const server of runnableServers(app)) {
    try {
      const program = await approvedProgram(app, server);
      if (program === undefined) continue;
      // The rules or the trust may have changed while the pins of the server were read.
      // guard: early-approved
      if (!mayStart(app, server)) continue;
      // A call came first, and its connection starts the program.
      if (app.openCallPath !== undefined) return undefined;
      app.spare?.begin(program);
      return server;
    } catch (error) {
      // The first call starts it again, and reports the error.
      app.log.debug("Cannot start a program early", { server: server.name, error });
    }
  }
  return undefined;
}

/**
 * Returns the program of a server of a trusted file. Returns undefined if the server runs in a
 * container, if its command installs it first, or if the program is not the approved one.
 */
async function approvedProgram(app: App, { definition }: Server): Promise<Program | undefined> {
  const { policy, keys, parts: { redactor } } = app;
  const [program] = programsOf(policy.now.config.servers.filter((server) => server === definition));
  if (program === undefined || runsContainers(plainCommand(program))) return undefined;
  await keys.waitForOutside();
  const [{ DefinitionValues }, { prepareStart, OwnProgram }] = await Promise.all([
    import("../servers/definition_values.ts"),
    import("../servers/stdio/own_program.ts"),
  ]);
  const { environment } = policy.now.loaded;
  const { workspace } = policy.now.config;
  const host = {
    home: environment.home,
    workspace,
    serverEnvironment: serverEnvironment(environment),
    containerEnvironment: containerEnvironment(environment),
    groups: { mark: app.runMark },
  };
  const values = new DefinitionValues({ policy, keys, redactor }).stdio(program);
  const launched = OwnProgram.of(prepareStart(values, host), host);
  if (launched === undefined) return undefined;
  // guard: early-pinned
  if (await differsFromPin(app, program)) return undefined;
  return launched.program;
}

/** Returns whether a program differs from its pin. The command of the program installs nothing. */
async function differsFromPin(app: App, program: ProgramDefinition): Promise<boolean> {
  const { home, root } = app.policy;
  // A new home has no pins, so the code that compares need not be loaded.
  if (!mayHavePins(home, root)) return false;
  const pins = await app.pins();
  return await pins.findUnapproved(pins.identityOf(program), { isWanted: true }) !== undefined;
}
