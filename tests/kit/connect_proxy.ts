/**
 * A proxy on loopback that accepts CONNECT, and TLS servers behind it.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from "node:tls";
import { CERTIFICATE, CERTIFICATE_KEY } from "./certificate.ts";

/** The behaviour of a proxy. */
export interface ConnectProxyOptions {
  /** The ports on loopback behind each `host:port`; requests for others get 502. */
  readonly behind?: Readonly<Record<string, number>>;
  /** The required user and password, with a colon between them. */
  readonly login?: string;
  /** Whether the proxy itself uses TLS. */
  readonly isSecure?: boolean;
  /** Answers instead of the proxy. */
  readonly answer?: (socket: Socket, to: string) => void;
}

/** A proxy that keeps its requests. */
export class ConnectProxy implements AsyncDisposable {
  /** The `host:port` of each request, in order. */
  readonly asked: string[] = [];
  /** The headers of the requests. */
  readonly heads: string[] = [];
  /** The number of open connections. */
  get open(): number {
    return this.#ends.size;
  }
  readonly #ends = new Set<Socket>();
  readonly #options: ConnectProxyOptions;
  readonly #server: Server;

  private constructor(options: ConnectProxyOptions) {
    this.#options = options;
    const heard = (socket: Socket) => this.#heard(socket);
    const secure = { cert: CERTIFICATE, key: CERTIFICATE_KEY };
    this.#server = options.isSecure ? createTlsServer(secure, heard) : createServer(heard);
  }

  /** Opens a proxy on a free port of 127.0.0.1. */
  static async listen(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    await listening(proxy.#server);
    return proxy;
  }

  /** The port. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops it, with all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await closed(this.#server, this.#ends);
  }

  #heard(socket: Socket): void {
    this.#keep(socket);
    let head = "";
    const hear = (piece: Uint8Array) => {
      head += new TextDecoder().decode(piece);
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", hear);
      this.#answer(socket, head);
    };
    socket.on("data", hear);
  }

  #answer(socket: Socket, head: string): void {
    const { login, behind = {}, answer } = this.#options;
    const [, to = ""] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? [];
    this.asked.push(to);
    this.heads.push(head);
    if (answer !== undefined) return answer(socket, to);
    const proof = /^Proxy-Authorization: Basic (.*)\r$/im.exec(head)?.[1];
    if (login !== undefined && proof !== Buffer.from(login).toString("base64")) {
      const wants = 'Proxy-Authenticate: Basic realm="p"';
      return void socket.end(`HTTP/1.1 407 No\r\n${wants}\r\nContent-Length: 0\r\n\r\n`);
    }
    const port = behind[to];
    if (port === undefined) return void socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    joined(socket, { port, keep: (end) => this.#keep(end), first: "HTTP/1.1 200 OK\r\n\r\n" });
  }

  #keep(socket: Socket): void {
    this.#ends.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#ends.delete(socket));
  }
}

/** Provides TLS in front of a server of plain HTTP. */
export class TlsFront implements AsyncDisposable {
  /** The names in the certificates of the clients, one for each connection; empty for none. */
  readonly clients: string[] = [];
  readonly #ends = new Set<Socket>();
  readonly #server: Server;

  private constructor(port: number, options: TlsOptions) {
    const own = { cert: CERTIFICATE, key: CERTIFICATE_KEY, ...options };
    this.#server = createTlsServer(own, (socket: TLSSocket) => {
      this.clients.push(`${socket.getPeerCertificate()?.subject?.CN ?? ""}`);
      this.#keep(socket);
      joined(socket, { port, keep: (end) => this.#keep(end), first: "" });
    });
    this.#server.on("tlsClientError", () => {});
  }

  /** Opens it in front of a port of 127.0.0.1. */
  static async before(port: number, options: TlsOptions = {}): Promise<TlsFront> {
    const front = new TlsFront(port, options);
    await listening(front.#server);
    return front;
  }

  /** The port. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops it, with all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await closed(this.#server, this.#ends);
  }

  #keep(socket: Socket): void {
    this.#ends.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#ends.delete(socket));
  }
}

function joined(
  socket: Socket,
  { port, keep, first }: {
    readonly port: number;
    readonly keep: (socket: Socket) => void;
    readonly first: string;
  },
): void {
  const far = connect(port, "127.0.0.1", () => {
    if (first !== "") socket.write(first);
    socket.pipe(far);
    far.pipe(socket);
  });
  keep(far);
  socket.on("close", () => far.destroy());
  far.on("close", () => socket.destroy());
}

async function listening(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
}

async function closed(server: Server, ends: ReadonlySet<Socket>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  server.close(resolve);
  for (const end of ends) end.destroy();
  await promise;
}
