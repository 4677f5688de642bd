/**
 * A server of no kind, for tests.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Call } from "../protocol/call.ts";
import type { KnownServerOptions, Listing } from "./known_server.ts";
import type { CheckedCall, Origin, ResolvedCall, Server } from "./server.ts";
import { splitToolId } from "../core/tool_id.ts";

/** The origin of a server of the user. */
export const OWN: Origin = { name: "private", isShipped: false, isFetched: false };

/** Returns a server of the user without tools, with the changes of a test. */
export function serverDouble(name: string, change: Partial<Server> = {}): Server {
  return {
    name,
    origin: OWN,
    kind: "stdio",
    definition: undefined,
    reportsChanges: false,
    checksItself: true,
    identity: () => Promise.resolve(undefined),
    whyBlocked: () => undefined,
    findUnapproved: () => Promise.resolve(undefined),
    definitionFor: () => assert.fail("nobody was to ask for a definition"),
    consentLines: () => Promise.resolve([]),
    permissionLines: () => Promise.resolve([]),
    onlyReads: () => Promise.resolve(undefined),
    remarkOn: () => Promise.resolve(undefined),
    list: () => Promise.resolve([]),
    call: () => assert.fail("nothing was to run"),
    forget: () => {},
    ...change,
  };
}

/** Returns a call that was resolved to a test server, unless the test has its own. */
export function resolvedCall(
  call: Call,
  change: Partial<Pick<ResolvedCall, "server" | "version" | "isCurrent" | "definition">> = {},
): ResolvedCall {
  const definition = { name: "t", inputSchema: {} };
  return {
    ...call,
    server: serverDouble("double"),
    version: 1,
    isCurrent: () => true,
    definition: () => definition,
    ...change,
  };
}

/** Returns a call that passed all checks. Nothing has changed since then. */
export function checkedCall(call: Call): CheckedCall {
  const { tool } = splitToolId(call.id);
  return { ...call, tool, assertCurrent: () => {}, assertListed: () => {} };
}

/** Returns the options of a server, with the changes of a test. */
export function knownDouble(name: string, change: Partial<Listing> = {}): KnownServerOptions {
  const { title, origin, kind, definition, reportsChanges, checksItself, whyBlocked, ...double } =
    serverDouble(
      name,
    );
  const listing = {
    name,
    title,
    origin,
    kind,
    definition,
    reportsChanges,
    checksItself,
    whyBlocked,
  };
  return {
    listing: { ...listing, ...change },
    approval: { ...double, text: () => `the ${name} of a test` },
    find: () => assert.fail("nobody was to look for a tool"),
  };
}
