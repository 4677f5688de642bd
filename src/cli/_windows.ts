/**
 * Serves the windows of the same user and workspace: each `pml stdio` that attaches.
 *
 * @module
 */

import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { App } from "../app/app.ts";
import { REACHING } from "../config/child_environment.ts";
import { readEnvironment } from "../config/env.ts";
import { ownNames } from "../config/own_names.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { findWorkspace } from "../config/workspace.ts";
import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { Gateway, Listening } from "../gateway/gateway.ts";
import type { HttpEndpoint } from "../transport/http/endpoint.ts";
import { serveStdio, type StdioHost } from "../transport/stdio/stdio.ts";
import {
  hashed,
  LineExchange,
  listenAt,
  pipesOf,
  socketOf,
} from "../transport/attach/window_socket.ts";
import { pause, soon } from "../io/waiting.ts";
import { logError } from "./_serving.ts";
import { commandProcess } from "./command_process.ts";

/** The windows that are attached. */
export interface OpenWindows extends AsyncDisposable {
  /** Takes no more windows and requests, and waits until calls have ended, but not longer. */
  drain(ms: number): Promise<unknown>;
}

/** Lets windows attach until it is disposed. Undefined if another process serves them. */
export async function openWindows(
  app: App,
  endpoint: HttpEndpoint,
): Promise<OpenWindows | undefined> {
  const { home, workspace } = app.config();
  const windows = new Windows(app, endpoint, await app.gateway());
  const server = await listenAt(socketOf(home, workspace), (socket) => windows.take(socket));
  if (server === undefined) app.log.debug("Windows cannot attach here");
  else app.log.debug("Windows may attach");
  return server && windows.opened(server);
}

/** An answer that was made is on its way after so many milliseconds. */
const TURN_MS = 10;

/** How many of the largest answers may wait for all windows together. */
const MOST_ANSWERS = 4;

/** A window that is attached. */
class AttachedWindow implements StdioHost, Disposable {
  readonly mayPrepare = false;
  readonly socket: Duplex;
  /** Brings its work to its end. */
  readonly end: () => Promise<void>;
  /** How many bytes wait for it. */
  unread = 0;
  readonly #windows: Windows;
  readonly #most: number;
  #able: Disposable | undefined;

  /** Takes how many bytes may wait for all windows. */
  constructor(
    windows: Windows,
    socket: Duplex,
    { end, most }: Pick<AttachedWindow, "end"> & { readonly most: number },
  ) {
    this.#windows = windows;
    this.socket = socket;
    this.end = end;
    this.#most = most;
  }

  async prepare(): Promise<void> {}

  async listsAnswered(): Promise<void> {}

  waiting(size: number): void {
    this.unread = size;
    // One window must not block servers that others use.
    // guard: window-unread
    if (this.#windows.unread() > this.#most) this.#windows.shed();
  }

  onAnswersLost(requests: readonly string[]): void {
    this.#windows.app.recordLostAnswers(requests);
  }

  declared(able: JsonObject): void {
    const before = this.#able;
    this.#able = this.#windows.endpoint.holdCapabilities(able);
    before?.[Symbol.dispose]();
  }

  /** Its capabilities no longer count. */
  [Symbol.dispose](): void {
    this.#able?.[Symbol.dispose]();
  }

  failed(error: Error): void {
    this.#windows.app.log.debug(error.message);
  }
}

class Windows {
  /** The PML of the owner. */
  readonly app: App;
  /** The endpoint of the owner over HTTP. */
  readonly endpoint: HttpEndpoint;
  readonly #gateway: Gateway;
  readonly #process = commandProcess();
  readonly #environment = readEnvironment(this.#process.variables, this.#process.cwd);
  readonly #closing = new AbortController();
  readonly #attached = new Set<AttachedWindow>();
  #isDraining = false;
  readonly #open = new Set<Promise<void>>();
  /** The variables that were compared with each window. */
  readonly #agreed = new Map<Duplex, ReadonlySet<string>>();

  constructor(app: App, endpoint: HttpEndpoint, gateway: Gateway) {
    this.app = app;
    this.endpoint = endpoint;
    this.#gateway = gateway;
    // The value of a variable that is named only now may be another one in the window.
    app.policy.onChange(() => {
      for (const [socket, compared] of this.#agreed) {
        if (!this.#hasAll(compared)) socket.destroy();
      }
    });
  }

  /** Serves a connection until it ends. */
  take(socket: Duplex): void {
    const { app } = this;
    socket.on("error", () => {}); // the end event follows
    const isFull = this.#open.size >= app.config().limits.connections;
    if (isFull || this.#closing.signal.aborted) return void socket.destroy();
    const served: Promise<void> = this.#serve(socket).catch((error) => logError(app, error))
      .finally(() => {
        socket.end();
        this.#agreed.delete(socket);
        this.#open.delete(served);
      });
    this.#open.add(served);
  }

  opened(server: Server): OpenWindows {
    return {
      drain: async (ms) => {
        const since = performance.now();
        server.close();
        this.#isDraining = true;
        await soon(Promise.all(this.#attached.values().map(({ end }) => end())), ms);
        do await pause(TURN_MS, this.#closing.signal); while (
          this.unread() > 0 && performance.now() - since < ms
        );
      },
      [Symbol.asyncDispose]: async () => {
        server.close();
        this.#closing.abort();
        await Promise.all(this.#open);
      },
    };
  }

  async #serve(socket: Duplex): Promise<void> {
    const { app } = this;
    const exchange = new LineExchange(socket);
    const names = new Set(this.#names());
    const no = await this.#refused(exchange, [...names]) ??
      (this.#isDraining ? "it ends" : undefined) ??
      (this.#hasAll(names) ? undefined : "the configuration names other variables now");
    if (no !== undefined) return exchange.say({ no });
    this.#agreed.set(socket, names);
    const { inputBytes, queuedBytes, unreadMs } = app.config().limits;
    exchange.end();
    exchange.say({ inputBytes });
    const { listen, end, ...own } = this.#gateway.apart();
    using attached = new AttachedWindow(this, socket, { end, most: MOST_ANSWERS * queuedBytes });
    this.#attached.add(attached);
    let listening: Listening | undefined;
    try {
      await serveStdio(() => Promise.resolve(own), attached, {
        pipes: pipesOf(socket),
        hello: (isStateless) => app.hello(isStateless),
        inputBytes,
        queuedBytes,
        unreadMs,
        isTask: (id) => this.#gateway.hasTask(id),
        onListen: (listened) => (listening ??= listen()).set(listened),
        signal: this.#closing.signal,
      });
    } finally {
      this.#attached.delete(attached);
      listening?.[Symbol.dispose]();
    }
  }

  /** Returns how many bytes wait for all windows. */
  unread(): number {
    return this.#attached.values().reduce((sum, { unread }) => sum + unread, 0);
  }

  /** Closes the window that reads the least. It goes on alone. */
  shed(): void {
    const [slowest] = [...this.#attached].toSorted((one, other) => other.unread - one.unread);
    slowest?.socket.destroy();
  }

  /** Returns the names of the variables that must be equal, besides PML's own. */
  #names(): readonly string[] {
    const { app } = this;
    const config = app.config();
    return [
      ...REACHING,
      ...wantedKeys(config, app.registryKeys()).map(({ name }) => name),
      ...config.sampling ? [config.sampling.key] : [],
    ];
  }

  /** Returns whether these are all variables that must be equal. */
  #hasAll(compared: ReadonlySet<string>): boolean {
    // guard: window-named
    return this.#names().every((name) => compared.has(name));
  }

  /** Returns why a window may not attach. */
  async #refused(exchange: LineExchange, names: readonly string[]): Promise<string | undefined> {
    const { app } = this;
    const config = app.config();
    const hello = objectOf(await exchange.next());
    if (hello.version !== VERSION) return "it has another version";
    const { root } = findWorkspace(this.#environment, textOf(hello.cwd));
    if (root !== config.workspace) return "it has another workspace";
    const nonce = crypto.randomUUID();
    exchange.say({ nonce, names });
    const { own = [], values } = objectOf(await exchange.next());
    const theirs = Array.isArray(own) ? own.map(String) : [];
    const { get } = this.#environment;
    const other = [...new Set([...names, ...theirs, ...ownNames(this.#process.variables)])]
      .find((name) => objectOf(values)[name] !== hashed(nonce, get(name)));
    return other && `its ${other} is another`;
  }
}
