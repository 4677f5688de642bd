/**
 * Listens on this machine for the browser that returns from an authorization server.
 *
 * @module
 */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { sha256 } from "../core/hash.ts";
import { callAfter } from "../io/waiting.ts";

const HOST = "127.0.0.1";
/** How long open connections may continue after the end, in milliseconds. */
const CLOSE_MS = 500;
const DONE = "You are signed in. You can close this window.";
const FAILED = "The sign-in failed. PML shows the reason.";
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

/** The redirect page of a sign-in. It accepts one answer, which must contain its state. */
export class RedirectPage implements AsyncDisposable {
  /** Resolves with the URL that the browser requested. */
  readonly answer: Promise<URL>;
  /** The redirect URL. */
  readonly url: string;
  readonly #state: string;
  readonly #server: Server;
  readonly #answered = Promise.withResolvers<URL>();
  readonly #outcome = Promise.withResolvers<boolean>();
  #isTaken = false;

  private constructor(state: string, server: Server) {
    this.#state = state;
    this.#server = server;
    const { port } = server.address() as AddressInfo; // the server listens on a port
    // Computed now, because the port is unknown once the server is closed, and a request may
    // follow.
    this.url = `http://${HOST}:${port}/callback`;
    this.answer = this.#answered.promise;
    server.on("request", async ({ url = "", method, headers }, response) => {
      const address = URL.parse(url, this.url);
      const isExpected = method === "GET" && headers.host === new URL(this.url).host &&
        address !== null && this.acceptAddress(address);
      if (!isExpected) return void response.writeHead(404).end();
      const text = await this.#outcome.promise ? DONE : FAILED;
      response.writeHead(200, { ...HEADERS, connection: "close" });
      response.end(`<!doctype html><meta charset="utf-8"><title>PML</title><p>${text}</p>`);
    });
  }

  /** Listens on a port of this machine; 0 selects a free one. Rejects if the port is in use. */
  static async open(state: string, port: number): Promise<RedirectPage> {
    const { createServer } = await import("node:http");
    const server = createServer({ requestTimeout: 10_000 });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject).listen(port, HOST, resolve);
    await promise;
    return new RedirectPage(state, server);
  }

  /** Accepts the URL that the browser requested. Returns whether it is the expected URL. */
  acceptAddress(address: URL): boolean {
    const isExpected = address.pathname === "/callback" && !this.#isTaken &&
      // Comparing hashes prevents a timing attack on the state.
      sha256(address.searchParams.get("state") ?? "") === sha256(this.#state);
    if (isExpected) this.#answered.resolve(address);
    this.#isTaken ||= isExpected;
    return isExpected;
  }

  /** Shows the result of the sign-in in the browser. */
  showResult(isDone: boolean): void {
    this.#outcome.resolve(isDone);
  }

  /** Stops listening after the browser received the result. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.showResult(false);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    using _ = callAfter(CLOSE_MS, () => this.#server.closeAllConnections());
    await promise;
  }
}
