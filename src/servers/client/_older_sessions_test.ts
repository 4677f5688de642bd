import assert from "node:assert/strict";
import type { JsonObject } from "../../core/json.ts";
import type { ServerConnection } from "./connection.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { OlderSessions } from "./_older_sessions.ts";
import { NO_CLIENTS } from "./_upstreams_host_test.ts";
import type { UpstreamServer } from "./wire.ts";

/** Returns a connection of an older revision that a test can close. */
function sessionOf(closed: string[]): ServerConnection {
  const session = {
    ...{ isStateless: false, isAlive: true, pending: 0, isHung: false, lostAt: -Infinity },
    [Symbol.asyncDispose]() {
      if (session.isAlive) closed.push("closed");
      session.isAlive = false;
      return Promise.resolve();
    },
  };
  return session as unknown as ServerConnection;
}

Deno.test("a session whose task runs is not closed for a client with other capabilities", async () => {
  const closed: string[] = [];
  let able: JsonObject = {};
  const host = {
    limits: { idleMs: 60_000, idleChildren: 8 },
    clients: { ...NO_CLIENTS, capabilities: () => able },
  };
  await using sessions = new OlderSessions(host, () => Promise.resolve(sessionOf(closed)));
  const server = { name: "s", version: () => "1" } as UpstreamServer;
  const stateless = { isStateless: true } as ServerConnection;
  const task = Promise.withResolvers<void>();
  const cancellation = new Cancellation();
  const use = (during: () => void) => {
    const use = () => Promise.try(during);
    return sessions.use(server, { stateless, cancellation }, use);
  };
  let hold: Promise<void> | undefined;
  await use(() => {
    hold = sessions.hold(server, task.promise);
  });
  able = { sampling: {} };
  await use(() => assert.deepEqual(closed, []));
  task.resolve();
  await hold;
  await use(() => assert.deepEqual(closed, ["closed"]));
});
