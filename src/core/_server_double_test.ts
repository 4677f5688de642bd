/**
 * A server of no kind, for tests.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Call } from "./call.ts";
import type { KnownServerOptions, Listing } from "./known_server.ts";
import type { Pass, PassCall, Server } from "./server.ts";

/** Returns a server of the person without tools, except for what a test sets. */
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
    onlyReads: () => Promise.resolve(undefined),
    remark: () => Promise.resolve(undefined),
    list: () => Promise.resolve([]),
    call: () => assert.fail("nothing was to run"),
    forget: () => {},
    ...change,
  };
}

/** Returns a call of a pass, with a test server unless the test has its own. */
export function passCall<C extends Call>(call: C, change: Partial<Pass> = {}): C & PassCall {
  const definition = { name: "t", inputSchema: {} };
  const pass = { version: 1, definition: () => Promise.resolve(definition), ...change };
  return { ...call, pass: { server: serverDouble("double"), ...pass } };
}

/** Returns the options of a server, except for what a test sets. */
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
