import assert from "node:assert/strict";
import { Responsiveness } from "./_responsiveness.ts";

/** A connection whose requests the test begins, with short times. */
class Watched implements Disposable {
  readonly events: string[] = [];
  readonly responsiveness: Responsiveness;
  since: number | undefined;
  #id = 0;

  constructor() {
    this.responsiveness = new Responsiveness({
      nextId: () => ++this.#id,
      ping: (id) => void this.events.push(`ping ${id}`),
      waitingSince: () => this.since,
      onChange: (isUnresponsive) => {
        this.events.push(isUnresponsive ? "unresponsive" : "responsive");
      },
      onHung: () => void this.events.push("hung"),
      times: { quietMs: 40, pongMs: 10 },
    });
  }

  begin(): void {
    this.since = performance.now();
    this.responsiveness.began();
  }

  async until(event: string): Promise<void> {
    while (!this.events.includes(event)) await pause(1);
  }

  [Symbol.dispose](): void {
    this.responsiveness[Symbol.dispose]();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

Deno.test("a quiet server gets one ping, and is unresponsive until it sends something", async () => {
  using watched = new Watched();
  const { responsiveness, events } = watched;
  watched.begin();
  await watched.until("unresponsive");
  assert.equal(responsiveness.isUnresponsive, true);
  assert.equal(responsiveness.hung, false, "no request was cancelled");
  assert.ok((responsiveness.silentSince(watched.since ?? 0) ?? 0) >= 40);
  responsiveness.heard();
  assert.deepEqual(events, ["ping 1", "unresponsive", "responsive"]);
  assert.equal(responsiveness.silentSince(watched.since ?? 0), undefined);
  assert.equal(responsiveness.isPing(1), true);
  responsiveness.pinged();
  assert.equal(responsiveness.isPing(1), false);
});

Deno.test("a server that answers pings is quiet and stays responsive", async () => {
  using watched = new Watched();
  watched.begin();
  for (const id of [1, 2, 3]) {
    await watched.until(`ping ${id}`);
    assert.equal(watched.responsiveness.isPing(id), true);
    watched.responsiveness.pinged();
  }
  assert.deepEqual(watched.events, ["ping 1", "ping 2", "ping 3"]);
});

Deno.test("nothing is sent to an idle server, however long it is quiet", async () => {
  using watched = new Watched();
  watched.begin();
  watched.since = undefined;
  await pause(120);
  assert.deepEqual(watched.events, []);
});

Deno.test("a server that is silent after a cancelled request is hung once no other request waits", async () => {
  using watched = new Watched();
  const { responsiveness, events } = watched;
  watched.begin();
  responsiveness.cancelled();
  await watched.until("unresponsive");
  assert.equal(responsiveness.hung, true);
  await pause(100);
  assert.ok(!events.includes("hung"), "a request waits");
  watched.since = undefined;
  await watched.until("hung");
  assert.equal(events.filter((event) => event.startsWith("ping")).length, 1);
});

Deno.test("a server that answers the ping after a cancelled request is not hung", async () => {
  using watched = new Watched();
  const { responsiveness, events } = watched;
  responsiveness.cancelled();
  responsiveness.pinged();
  await pause(120);
  assert.deepEqual(events, ["ping 1"]);
  assert.equal(responsiveness.hung, false);
});
