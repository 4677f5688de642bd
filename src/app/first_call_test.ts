import assert from "node:assert/strict";
import type { Server } from "../servers/server.ts";
import type { App } from "./app.ts";
import { prepareFirstCall } from "./first_call.ts";

interface Scene {
  readonly isPinned?: boolean;
  /** Whether the policy blocks the server while its pins are read. */
  readonly isBlockedLate?: boolean;
  readonly isWarm?: boolean;
}

/** Returns the names of the servers that were started early in a stub of the app. */
async function startedIn(
  { isPinned = true, isBlockedLate = false, isWarm = true }: Scene,
): Promise<readonly string[]> {
  const started: string[] = [];
  let isBlocked = false;
  const server = {
    name: "one",
    kind: "stdio",
    whyBlocked: () => isBlocked ? "it is not approved" : undefined,
    identity: () => Promise.resolve({}),
  } as Partial<Server>;
  const programs = { prepare: () => Promise.resolve() };
  const upstreams = { warm: (name: string) => Promise.resolve(void started.push(name)) };
  const pins = {
    findUnapproved: () => {
      isBlocked = isBlockedLate;
      return Promise.resolve(isPinned ? undefined : {});
    },
  };
  const app = {
    directory: { all: () => [server] },
    policy: { now: { judge: () => ({ kind: "allow" }), config: { servers: [] } } },
    parts: {},
    config: () => ({
      warm: isWarm,
      home: "/nothing/there",
      servers: [],
      gateway: { exposure: "meta_only" },
    }),
    ready: Promise.resolve(),
    closing: AbortSignal.abort(),
    firstList: Promise.withResolvers(),
    callPath: () => Promise.resolve({ machine: { programs, upstreams } }),
    pins: () => Promise.resolve(pins),
    gateway: () => Promise.resolve({ prepareCalls: () => Promise.resolve() }),
    log: { debug: assert.fail },
  };
  await prepareFirstCall(app as unknown as App);
  return started;
}

Deno.test("warm starts a server whose program is the approved one", async () => {
  assert.deepEqual(await startedIn({}), ["one"]);
  assert.deepEqual(await startedIn({ isWarm: false }), []);
});

Deno.test("warm starts no server whose program is another one than the approved one", async () => {
  assert.deepEqual(await startedIn({ isPinned: false }), []);
});

Deno.test("warm starts no server that is blocked while its pins are read", async () => {
  assert.deepEqual(await startedIn({ isBlockedLate: true }), []);
});
