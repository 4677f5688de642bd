/**
 * Prepares the first call of a server while a client connects, so that the call is faster.
 *
 * @module
 */

import { programsOf } from "../servers/kinds.ts";
import type { Server } from "../servers/server.ts";
import { stampAt } from "../io/path_info.ts";
import { pause, settlesWithin, whenAborted } from "../io/waiting.ts";
import type { App } from "./app.ts";

/** How long clients may take to request their first list, in milliseconds. Some request none. */
const FIRST_LIST_MS = 2_000;
/** How long clients may take to request their other lists after the first, in milliseconds. */
const OTHER_LISTS_MS = 50;

/** Resolves when a client got its first list, after 2 s, or when PML is closed. */
async function firstListAnswered({ firstList, closing }: App): Promise<void> {
  await settlesWithin(Promise.race([firstList.promise, whenAborted(closing)]), FIRST_LIST_MS);
}

/**
 * Starts a process that waits for the program of a server, and loads the code of a first call. Both
 * begin after the client has its lists, because the same thread answers the client: the process
 * would delay the first list by 15 ms, and the code by 70 ms. With `warm`, all approved servers
 * start. Without `warm`, only the first approved server starts, and only if the PML home is new,
 * because such a home has no stored list of tools.
 */
export async function prepareFirstCall(app: App): Promise<void> {
  const { warm: isWarm, gateway: { exposure } } = app.config();
  const isNew = isNewHome(app);
  // The first list then waits for new servers, so their programs are started before it.
  const isListed = isNew && exposure === "full_proxy";
  if (!isWarm && !isListed) await firstListAnswered(app);
  const { beginProgram, runnableServers, startSpare } = await import("./early_program.ts");
  startSpare(app);
  const startedServer = isWarm || isNew ? await beginProgram(app) : undefined;
  await firstListAnswered(app);
  await pause(OTHER_LISTS_MS, app.closing);
  // Runs before `callPath()`, because it loads files too, and each loaded file slows an `import()`.
  await (await app.gateway()).prepareCalls();
  const { machine } = await app.callPath();
  const programs = runnableServers(app);
  const definitions = programsOf(app.config().servers);
  if (programs.length > 0) await machine.programs.prepare(definitions, machine.closing);
  const earlyServers = isWarm ? programs : programs.filter((server) => server === startedServer);
  await Promise.all(earlyServers.map((server) => startEarly(app, server)));
}

/** Returns whether the PML home has never stored a list of a server. */
function isNewHome(app: App): boolean {
  return stampAt(`${app.config().home}/lists`) === undefined;
}

/** Starts a server whose program is the approved one, without a call. */
export async function startEarly(app: App, server: Server): Promise<void> {
  try {
    const identity = await server.identity();
    const pins = await app.pins();
    // guard: warm-pinned
    if (
      identity !== undefined &&
      await pins.findUnapproved(identity, { isWanted: true }) !== undefined
    ) return;
    const { mayStart } = await import("./early_program.ts");
    // guard: warm-approved
    if (!mayStart(app, server)) return;
    await (await app.callPath()).machine.upstreams.warm(server.name);
  } catch (error) {
    // The first call starts it again, and reports the error.
    app.log.debug("Cannot start a server early", { server: server.name, error });
  }
}
