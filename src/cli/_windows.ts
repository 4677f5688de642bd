/**
 * Serves the windows of the same user and workspace: each `pml stdio` that attaches.
 *
 * @module
 */

import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { App } from "../app/app.ts";
import { REACHING_NAMES } from "../config/child_environment.ts";
import { readEnvironment } from "../config/env.ts";
import { ownNames } from "../config/own_names.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { findWorkspace } from "../config/workspace.ts";
import { type JsonObject, objectOf, textOf } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { Gateway, Listening } from "../gateway/gateway.ts";
import type { Hello } from "../protocol/connection.ts";
import type { ListenedItems } from "../protocol/subscriptions.ts";
import type { HttpEndpoint } from "../transport/http/endpoint.ts";
import { serveStdio, type StdioHost } from "../transport/stdio/stdio.ts";
import { ANSWER_MS, LineExchange } from "../transport/attach/private_socket.ts";
import {
  hashVariable,
  type KeyCheck,
  listenAt,
  pipesOf,
  socketPathOf,
} from "../transport/attach/window_socket.ts";
import { pause, settlesWithin } from "../io/waiting.ts";
import { logError } from "./_serving.ts";
import { commandProcess } from "./command_process.ts";

/** The windows that are attached. */
export interface OpenWindows extends AsyncDisposable {
  /** Takes no more windows and requests, and waits until calls have ended, at most `ms` milliseconds. */
  drain(ms: number): Promise<unknown>;
}

/**
 * Lets windows attach until the result is disposed, and returns `url` to other commands that ask.
 * Returns undefined if another process serves the windows.
 */
export async function openWindows(
  app: App,
  endpoint: HttpEndpoint,
  url: string,
): Promise<OpenWindows | undefined> {
  const { home, workspace } = app.config();
  const windows = new Windows(app, { endpoint, url }, await app.gateway());
  const take = (socket: Duplex, isKey: KeyCheck) => windows.take(socket, isKey);
  const server = await listenAt(socketPathOf(home, workspace), take);
  if (server === undefined) app.log.debug("Windows cannot attach here");
  else app.log.debug("Windows may attach");
  return server && windows.handleFor(server);
}

/** How often unread bytes are checked: by then, a finished answer is in its socket's buffer. */
const POLL_MS = 10;

/** The maximum of unread bytes of all windows together, as a number of answers of the maximum size. */
const ANSWERS_MAX = 4;

/** An attached window: a `pml stdio` that passes the messages of its client to this process. */
class AttachedWindow implements StdioHost, Disposable {
  readonly mayPrepare = false;
  readonly socket: Duplex;
  /** Resolves when the calls of the window have ended. */
  readonly end: () => Promise<void>;
  /** The number of bytes that the window has not read yet. */
  unread = 0;
  readonly pipes: StdioHost["pipes"];
  readonly limits: StdioHost["limits"];
  readonly #windows: Windows;
  readonly #listen: () => Listening;
  #listening: Listening | undefined;
  #capabilities: Disposable | undefined;

  /** `listen` and `end` are the window's part of the gateway. */
  constructor(
    windows: Windows,
    socket: Duplex,
    { listen, end }: Pick<ReturnType<Gateway["separateConnections"]>, "listen" | "end">,
  ) {
    this.#windows = windows;
    this.socket = socket;
    this.pipes = pipesOf(socket);
    this.limits = windows.app.config().limits;
    this.#listen = listen;
    this.end = end;
  }

  hello(isStateless: boolean): Hello {
    return this.#windows.app.hello(isStateless);
  }

  listensTo(listened: ListenedItems): void {
    this.#listening ??= this.#listen();
    this.#listening.set(listened);
  }

  isTask(id: string): boolean {
    return this.#windows.gateway.hasTask(id);
  }

  async prepare(): Promise<void> {}

  async codeLoaded(): Promise<void> {}

  reportWaiting(size: number): void {
    this.unread = size;
    // One window must not block servers that others use.
    // guard: window-unread
    if (this.#windows.unread() > ANSWERS_MAX * this.limits.queuedBytes) {
      this.#windows.dropSlowest();
    }
  }

  onAnswersLost(requests: readonly string[]): void {
    this.#windows.app.recordLostAnswers(requests);
  }

  onDeclared(capabilities: JsonObject): void {
    const earlier = this.#capabilities;
    this.#capabilities = this.#windows.endpoint.holdCapabilities(capabilities);
    earlier?.[Symbol.dispose]();
  }

  /** Ends the window's subscriptions, and removes its capabilities. */
  [Symbol.dispose](): void {
    this.#listening?.[Symbol.dispose]();
    this.#capabilities?.[Symbol.dispose]();
  }

  reportError(error: Error): void {
    this.#windows.app.log.debug(error.message);
  }
}

class Windows {
  /** The PML of the owner. */
  readonly app: App;
  /** The endpoint of the owner over HTTP. */
  readonly endpoint: HttpEndpoint;
  /** The gateway of the owner. Each window gets separate connections of it. */
  readonly gateway: Gateway;
  readonly #url: string;
  readonly #process = commandProcess();
  readonly #environment = readEnvironment(this.#process.variables, this.#process.cwd);
  readonly #closing = new AbortController();
  readonly #attached = new Set<AttachedWindow>();
  #isDraining = false;
  readonly #open = new Set<Promise<void>>();
  /** The variables that were compared with each window. */
  readonly #comparedNames = new Map<Duplex, ReadonlySet<string>>();

  constructor(
    app: App,
    { endpoint, url }: { readonly endpoint: HttpEndpoint; readonly url: string },
    gateway: Gateway,
  ) {
    this.app = app;
    this.endpoint = endpoint;
    this.gateway = gateway;
    this.#url = url;
    // If the configuration names a new variable, its value was not compared with the window's value, so
    // the window must attach again.
    app.policy.onChange(() => {
      for (const [socket, compared] of this.#comparedNames) {
        if (!this.#hasAll(compared)) socket.destroy();
      }
    });
  }

  /** Serves a connection until it ends. */
  take(socket: Duplex, isKey: KeyCheck): void {
    const { app } = this;
    socket.on("error", () => {}); // the end event follows
    const isFull = this.#open.size >= app.config().limits.connections;
    if (isFull || this.#closing.signal.aborted) return void socket.destroy();
    const served: Promise<void> = this.#serve(socket, isKey).catch((error) => logError(app, error))
      .finally(() => {
        // The other side may never close its end.
        socket.end(() => void Deno.unrefTimer(setTimeout(() => socket.destroy(), ANSWER_MS)));
        this.#comparedNames.delete(socket);
        this.#open.delete(served);
      });
    this.#open.add(served);
  }

  handleFor(server: Server): OpenWindows {
    return {
      drain: async (ms) => {
        const since = performance.now();
        server.close();
        this.#isDraining = true;
        await settlesWithin(Promise.all(this.#attached.values().map(({ end }) => end())), ms);
        do await pause(POLL_MS, this.#closing.signal); while (
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

  async #serve(socket: Duplex, isKey: KeyCheck): Promise<void> {
    const { app } = this;
    const exchange = new LineExchange(socket);
    const names = new Set(this.#names());
    const hello = objectOf(await exchange.next());
    // A program in a sandbox may reach this socket, but cannot read the key in the PML home.
    // guard: window-key
    if (!isKey(hello.key)) return exchange.send({ no: "it does not have the key" });
    if (hello.asks === "url") return exchange.send({ url: this.#url });
    const no = await this.#findRefusal(exchange, { hello, names: [...names] }) ??
      (this.#isDraining ? "it ends" : undefined) ??
      (this.#hasAll(names) ? undefined : "the configuration names other variables now");
    if (no !== undefined) return exchange.send({ no });
    this.#comparedNames.set(socket, names);
    exchange.end();
    exchange.send({ inputBytes: app.config().limits.inputBytes });
    const { listen, end, ...connections } = this.gateway.separateConnections();
    using attached = new AttachedWindow(this, socket, { listen, end });
    this.#attached.add(attached);
    try {
      await serveStdio(() => Promise.resolve(connections), attached, this.#closing.signal);
    } finally {
      this.#attached.delete(attached);
    }
  }

  /** Returns the number of bytes that wait for all windows. */
  unread(): number {
    return this.#attached.values().reduce((sum, { unread }) => sum + unread, 0);
  }

  /** Disconnects the window with the most unread bytes. It then serves its client alone. */
  dropSlowest(): void {
    const [slowest] = [...this.#attached].toSorted((one, other) => other.unread - one.unread);
    slowest?.socket.destroy();
  }

  /** Returns the names of the variables that must be equal, besides PML's own. */
  #names(): readonly string[] {
    const { app } = this;
    const config = app.config();
    return [
      ...REACHING_NAMES,
      ...wantedKeys(config, app.registryKeys()).map(({ name }) => name),
      ...config.sampling ? [config.sampling.key] : [],
    ];
  }

  /** Returns whether all variables that must be equal were compared. */
  #hasAll(compared: ReadonlySet<string>): boolean {
    // guard: window-named
    return this.#names().every((name) => compared.has(name));
  }

  /** Returns why a window may not attach. */
  async #findRefusal(
    exchange: LineExchange,
    { hello, names }: { readonly hello: JsonObject; readonly names: readonly string[] },
  ): Promise<string | undefined> {
    const { app } = this;
    const config = app.config();
    if (hello.version !== VERSION) return "it has another version";
    const { root } = findWorkspace(this.#environment, textOf(hello.cwd));
    if (root !== config.workspace) return "it has another workspace";
    const nonce = crypto.randomUUID();
    exchange.send({ nonce, names });
    const { own = [], values } = objectOf(await exchange.next());
    const windowNames = Array.isArray(own) ? own.map(String) : [];
    const { get } = this.#environment;
    const different = [...new Set([...names, ...windowNames, ...ownNames(this.#process.variables)])]
      .find((name) => objectOf(values)[name] !== hashVariable(nonce, get(name)));
    return different && `its ${different} is another`;
  }
}
