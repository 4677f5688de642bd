/**
 * Prepares the first call of a server after the greeting, so that the call waits less.
 *
 * @module
 */

import type { Server } from "../servers/server.ts";
import { toolId } from "../core/tool_id.ts";
import { aborted, pause, soon } from "../io/waiting.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import { isProgramKind } from "../servers/kinds.ts";
import type { App } from "./app.ts";

/** How long clients may take to ask for their first list, in milliseconds. Some ask for none. */
const FIRST_LIST_MS = 2_000;
/** How long they may take to ask for their other lists after it. */
const OTHER_LISTS_MS = 50;

/**
 * Resolves when a client has the lists that it asks for after the handshake. Loading the call path
 * before that took the first list from 95 to 165 ms, in one thread.
 */
export async function listsAnswered(app: App): Promise<void> {
  await firstListAnswered(app);
  await pause(OTHER_LISTS_MS, app.closing);
}

async function firstListAnswered({ firstList, closing }: App): Promise<void> {
  await soon(Promise.race([firstList.promise, aborted(closing)]), FIRST_LIST_MS);
}

/**
 * Starts a keeper that waits for the program of a server, and loads the code of a first call. Starts
 * the approved servers only if the user has set `warm`.
 */
export async function prepareFirstCall(app: App): Promise<void> {
  await firstListAnswered(app);
  const programs = app.directory.all().filter((server) =>
    isProgramKind(server.kind) && mayStart(app, server)
  );
  if (programs.length > 0) await startSpare(app);
  await pause(OTHER_LISTS_MS, app.closing);
  const { machine } = await app.callPath();
  if (programs.length > 0) await machine.programs.prepare(machine.closing);
  const isWarm = app.config().warm;
  const starts = isWarm ? programs.map((server) => startEarly(app, server)) : [];
  await Promise.all([(await app.gateway()).prepareCalls(), ...starts]);
}

/** Returns whether a list may start a server now. */
function mayStart(app: App, server: Server): boolean {
  const isDenied = app.policy.now.judge(toolId(server.name, WHOLE_SERVER)).kind === "deny";
  return !isDenied && server.blocked() === undefined;
}

/** Starts the keeper. It starts while the call path is loaded, which takes as long. */
async function startSpare(app: App): Promise<void> {
  const { SpareKeeper } = await import("../sandbox/process.ts");
  if (app.closing.aborted) return;
  app.spare ??= new SpareKeeper();
  app.spare.start(app.config().limits.idleMs);
}

/** Starts a server whose program is the approved one. */
async function startEarly(app: App, server: Server): Promise<void> {
  try {
    const identity = await server.identity();
    const pins = await app.pins();
    // guard: warm-pinned
    if (
      identity !== undefined && await pins.unapproved(identity, { isWanted: true }) !== undefined
    ) return;
    // guard: warm-approved
    if (!mayStart(app, server)) return;
    await (await app.callPath()).machine.upstreams.warm(server.name);
  } catch (error) {
    // The first call starts it again, and reports the error.
    app.log.debug("Cannot start a server early", { server: server.name, error });
  }
}
