/**
 * A server on 127.0.0.1 for tests of network access.
 *
 * @module
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { CERTIFICATE, CERTIFICATE_KEY } from "../../../tests/kit/certificate.ts";

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** A server of a test. */
export interface Serving extends AsyncDisposable {
  readonly port: number;
  /** Closes the connections. */
  readonly close: () => void;
}

/** Serves on 127.0.0.1 with the handler of the test. */
export async function serving(
  answering: Answering,
  { isSecure = false }: { readonly isSecure?: boolean } = {},
): Promise<Serving> {
  const server: Server = isSecure
    ? createSecureServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, answering)
    : createServer(answering);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    port: (server.address() as AddressInfo).port,
    close: () => server.closeAllConnections(),
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await ended;
    },
  };
}
