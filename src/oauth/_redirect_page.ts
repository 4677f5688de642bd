/**
 * Waits on this machine for the browser that comes back from an authorization server.
 *
 * @module
 */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { sha256 } from "../core/hash.ts";
import { after } from "../io/waiting.ts";

const HOST = "127.0.0.1";
const CLOSE_MS = 500;
const DONE = "You are signed in. You can close this window.";
const FAILED = "The sign-in failed: PML says why.";
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

/** The page that a browser is sent back to. It takes one answer, which must have its state. */
export class RedirectPage implements AsyncDisposable {
  /** Resolves with the address that the browser was sent to. */
  readonly answer: Promise<URL>;
  readonly #state: string;
  readonly #server: Server;
  readonly #answered = Promise.withResolvers<URL>();
  readonly #outcome = Promise.withResolvers<boolean>();
  #isTaken = false;

  private constructor(state: string, server: Server) {
    this.#state = state;
    this.#server = server;
    this.answer = this.#answered.promise;
    server.on("request", async ({ url = "", method, headers }, response) => {
      const address = URL.parse(url, this.url);
      const isIt = method === "GET" && headers.host === new URL(this.url).host &&
        address !== null && this.take(address);
      if (!isIt) return void response.writeHead(404).end();
      const text = await this.#outcome.promise ? DONE : FAILED;
      response.writeHead(200, { ...HEADERS, connection: "close" });
      response.end(`<!doctype html><meta charset="utf-8"><title>PML</title><p>${text}</p>`);
    });
  }

  /** Listens on a port of this machine; 0 stands for a free one. Rejects if it is in use. */
  static async open(state: string, port: number): Promise<RedirectPage> {
    const { createServer } = await import("node:http");
    const server = createServer({ requestTimeout: 10_000 });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject).listen(port, HOST, resolve);
    await promise;
    return new RedirectPage(state, server);
  }

  /** The address that the browser is sent back to. */
  get url(): string {
    const { port } = this.#server.address() as AddressInfo; // it listens on a port
    return `http://${HOST}:${port}/callback`;
  }

  /** Takes the address that the browser was sent to. Returns whether it is the expected one. */
  take(address: URL): boolean {
    const isIt = address.pathname === "/callback" && !this.#isTaken &&
      // Hashes are compared, so that the time tells nothing of the text.
      sha256(address.searchParams.get("state") ?? "") === sha256(this.#state);
    if (isIt) this.#answered.resolve(address);
    this.#isTaken ||= isIt;
    return isIt;
  }

  /** Tells the browser how the sign-in ended. */
  tell(isDone: boolean): void {
    this.#outcome.resolve(isDone);
  }

  /** Stops listening, when the browser was told. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.tell(false);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    using _ = after(CLOSE_MS, () => this.#server.closeAllConnections());
    await promise;
  }
}
