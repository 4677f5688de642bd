/**
 * A server for tests that need one and no kind of it.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Call } from "./call.ts";
import type { KnownServerOptions, Listing } from "./known_server.ts";
import type { Pass, PassCall, Server } from "./server.ts";

/** Makes a server of the person's that has nothing, but for what a test says of it. */
export function serverDouble(name: string, change: Partial<Server> = {}): Server {
  return {
    name,
    origin: "private",
    kind: "stdio",
    definition: undefined,
    tells: false,
    checksArguments: true,
    identity: () => Promise.resolve(undefined),
    blocked: () => undefined,
    unapproved: () => Promise.resolve(undefined),
    definitionFor: () => assert.fail("nobody was to ask for a definition"),
    consentLines: () => Promise.resolve([]),
    permissionLines: () => Promise.resolve([]),
    onlyReads: () => Promise.resolve(false),
    list: () => Promise.resolve([]),
    call: () => assert.fail("nothing was to run"),
    forget: () => {},
    ...change,
  };
}

/** Makes a call of a pass, with a server double unless a test has its own. */
export function passCall<C extends Call>(call: C, change: Partial<Pass> = {}): C & PassCall {
  const definition = { name: "t", inputSchema: {} };
  const pass = { version: 1, definition: () => Promise.resolve(definition), ...change };
  return { ...call, pass: { server: serverDouble("double"), ...pass } };
}

/** Makes what a server of some kind is made with, as a test says of it. */
export function knownDouble(name: string, change: Partial<Listing> = {}): KnownServerOptions {
  const { title, origin, kind, definition, tells, checksArguments, blocked, ...double } =
    serverDouble(name);
  const listing = { name, title, origin, kind, definition, tells, checksArguments, blocked };
  return {
    listing: { ...listing, ...change },
    approval: { ...double, text: () => `the ${name} of a test` },
    find: () => assert.fail("nobody was to look for a tool"),
  };
}
