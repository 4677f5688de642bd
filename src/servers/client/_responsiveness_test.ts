import assert from "node:assert/strict";
import { type CallClient, NO_CLIENT } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { RpcPeer } from "../../protocol/rpc_peer.ts";
import { Responsiveness } from "./_responsiveness.ts";

/** A connection to a server that answers nothing by itself, with short times. */
class Watched implements Disposable {
  /** The methods of sent messages, and the reports. */
  readonly events: string[] = [];
  readonly peer: RpcPeer;
  readonly responsiveness: Responsiveness;
  readonly hung: number[] = [];
  /** Whether nothing more can be sent. */
  isBroken = false;
  #sent: JsonObject = {};

  constructor() {
    this.peer = new RpcPeer({
      send: (message) => {
        if (this.isBroken) throw new Error("broken");
        this.#sent = message;
        this.events.push(String(message.method));
      },
      onRequest() {},
      onNotification() {},
    }, 6);
    const connection = {
      name: "s",
      probe: () => ({ method: "ping" }),
      onResponsive: (isResponsive: boolean) => {
        this.events.push(isResponsive ? "responsive" : "unresponsive");
      },
      onHung: (ms: number) => {
        this.hung.push(ms);
        this.peer.end(new Error("hung"));
      },
    };
    const times = { quietMs: 40, pongMs: 10 };
    this.responsiveness = new Responsiveness(this.peer, connection, times);
  }

  /** Begins a request. Returns how it ended. */
  begin(client: CallClient = NO_CLIENT, cancellation = new Cancellation()): Promise<unknown> {
    return this.peer.request("a", {}, { cancellation, client })
      .catch((error) => error instanceof Error ? error.message : error);
  }

  /** Answers the latest message for the server. */
  async answer(): Promise<void> {
    const message = { id: this.#sent.id ?? null, result: {} };
    this.peer.receive({ kind: "response", message });
    await Promise.resolve();
  }

  /** Sends a notification for the server. */
  note(): void {
    const message = { method: "notifications/message", params: {} };
    this.peer.receive({ kind: "notification", message });
  }

  async until(event: string, times = 1): Promise<void> {
    while (this.events.filter((one) => one === event).length < times) await pause(1);
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
  watched.begin();
  await watched.until("unresponsive");
  assert.equal(watched.responsiveness.isHung, false, "no request was cancelled");
  watched.note();
  assert.deepEqual(watched.events, ["a", "ping", "unresponsive", "responsive"]);
  assert.equal(watched.peer.pendingCount, 1, "a ping does not count");
});

Deno.test("a server that answers pings is quiet and stays responsive", async () => {
  using watched = new Watched();
  watched.begin();
  for (const times of [1, 2, 3]) {
    await watched.until("ping", times);
    await watched.answer();
  }
  assert.deepEqual(watched.events, ["a", "ping", "ping", "ping"]);
});

Deno.test("nothing is sent to an idle server, however long it is quiet", async () => {
  using watched = new Watched();
  watched.begin();
  await watched.answer();
  await pause(120);
  assert.deepEqual(watched.events, ["a"]);
});

Deno.test("a ping that cannot be sent does not mean that the server hangs", async () => {
  using watched = new Watched();
  watched.begin();
  watched.isBroken = true;
  await pause(120);
  assert.deepEqual(watched.events, ["a"]);
});

Deno.test("a server that is silent after a cancelled request is hung once no other request waits", async () => {
  using watched = new Watched();
  const [first, second] = [new Cancellation(), new Cancellation()];
  watched.begin(NO_CLIENT, first);
  watched.begin(NO_CLIENT, second);
  first.cancel("enough");
  await watched.until("unresponsive");
  assert.equal(watched.responsiveness.isHung, true);
  await pause(100);
  assert.deepEqual(watched.hung, [], "a request waits");
  second.cancel("enough");
  while (watched.hung.length === 0) await pause(1);
  assert.equal(watched.events.filter((event) => event === "ping").length, 1);
});

Deno.test("a server that answers the ping after a cancelled request is not hung", async () => {
  using watched = new Watched();
  const cancellation = new Cancellation();
  watched.begin(NO_CLIENT, cancellation);
  cancellation.cancel("enough");
  await watched.answer();
  await pause(120);
  assert.deepEqual(watched.events, ["a", "notifications/cancelled", "ping"]);
  assert.equal(watched.responsiveness.isHung, false);
});

Deno.test("requests report once that their server does not answer, also those that begin later", async () => {
  using watched = new Watched();
  const reports: unknown[] = [];
  const listening = (of: string): CallClient => ({
    onProgress: ({ ownReport: own, message }) => void reports.push([of, own, message]),
  });
  watched.begin(listening("first"));
  await watched.until("unresponsive");
  watched.begin(listening("second"));
  const said = "s has not answered for 10 s";
  assert.deepEqual(reports, [["first", "unresponsive", said], ["second", "unresponsive", said]]);
  watched.note();
  assert.deepEqual(reports.slice(2).map((report) => (report as string[])[1]), [
    ...["responsive", "responsive"],
  ]);
});

Deno.test("a server that sent nothing until the deadline of a request is hung, with all its requests", async () => {
  using watched = new Watched();
  const ended = [watched.begin(), watched.begin()];
  await watched.until("ping");
  await pause(20);
  watched.peer.cancel(7, new PmlError("TIMED_OUT", "late"));
  assert.deepEqual(await Promise.all(ended), ["late", "hung"]);
  assert.ok((watched.hung[0] ?? 0) >= 40);
});

Deno.test("a deadline ends no server that sent something meanwhile, and no other end does", async () => {
  using watched = new Watched();
  const late = new PmlError("TIMED_OUT", "late");
  watched.begin();
  watched.begin();
  await pause(1);
  watched.note();
  await watched.until("ping");
  await pause(20);
  watched.peer.cancel(7, late);
  const cancellation = new Cancellation();
  watched.begin(NO_CLIENT, cancellation);
  cancellation.cancel(new PmlError("CANCELLED", "no more"));
  assert.deepEqual(watched.hung, []);
  assert.equal(watched.responsiveness.isHung, true, "the next use starts another");
  watched.peer.cancel(8, late);
  watched.peer.end(new Error("over"));
});
