import assert from "node:assert/strict";
import type { ConnectionFactory } from "../../protocol/connection.ts";
import type { ClientPipes } from "./_pipes.ts";
import { serveStdio, type StdioHost } from "./stdio.ts";

/** Returns the present listeners of a signal. */
function listenersOf(signal: AbortSignal): ReadonlySet<unknown> {
  const listeners = new Set<unknown>();
  const [add, remove] = [signal.addEventListener, signal.removeEventListener];
  Object.assign(signal, {
    addEventListener: (...of: Parameters<typeof add>) => {
      listeners.add(of[1]);
      add.apply(signal, of);
    },
    removeEventListener: (...of: Parameters<typeof remove>) => {
      listeners.delete(of[1]);
      remove.apply(signal, of);
    },
  });
  return listeners;
}

/** Serves a client whose first line is `initialize`. */
function serve(name: string, prepare: () => Promise<unknown>) {
  const written: string[] = [];
  const over = Promise.withResolvers<void>();
  const ended = new AbortController();
  const listeners = listenersOf(ended.signal);
  const params = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name, version: "1" },
  };
  const line = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const pipes: ClientPipes = {
    open: (take) => {
      queueMicrotask(() => take(new TextEncoder().encode(`${line}\n`)));
      const close = () => Promise.resolve(over.resolve());
      return { whenEnded: over.promise, pause: () => {}, resume: () => {}, close };
    },
    output: {
      write: (bytes) => Promise.resolve(void written.push(new TextDecoder().decode(bytes))),
    },
    discardOutput: () => {},
  };
  const host: StdioHost = {
    pipes,
    limits: { inputBytes: 1_000_000, queuedBytes: 1_000_000, unreadMs: 1_000 },
    hello: () => ({ capabilities: {}, serverInfo: { name: "pml", version: "1" } }) as never,
    listensTo() {},
    isTask: () => false,
    mayPrepare: true,
    prepare,
    codeLoaded: () => Promise.resolve(),
    reportWaiting() {},
    onAnswersLost() {},
    onDeclared() {},
    reportError() {},
  };
  const serving = serveStdio(() => Promise.resolve({} as ConnectionFactory), host, ended.signal);
  return {
    written,
    listeners,
    leave: async () => {
      over.resolve();
      await serving;
    },
    end: async () => {
      ended.abort();
      await serving;
    },
  };
}

Deno.test("serveStdio() answers initialize after preparing lists for clients that need them at once", async () => {
  for (const name of ["gemini-cli-mcp-client", "qwen-cli-mcp-client-pml"]) {
    const asked = Promise.withResolvers<void>();
    const ready = Promise.withResolvers<void>();
    const { written, end } = serve(name, () => {
      asked.resolve();
      return ready.promise;
    });
    await asked.promise;
    assert.deepEqual(written, []);
    ready.reject(new Error("the modules cannot be loaded"));
    while (written.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(written.join(""), /"protocolVersion":"2025-06-18"/);
    await end();
  }
});

Deno.test("serveStdio() answers initialize for other clients before it loads anything for lists", async () => {
  let count = 0;
  const { written, end } = serve("other", () => Promise.resolve(count++));
  while (written.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await end();
  assert.equal(count, 0);
});

Deno.test("serveStdio() leaves no listener at its signal after the client has gone", async () => {
  const { listeners, leave } = serve("other", () => Promise.resolve());
  assert.ok(listeners.size > 0);
  await leave();
  assert.equal(listeners.size, 0);
});
