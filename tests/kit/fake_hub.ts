/**
 * A hub of models on loopback, which serves files as the real one does: small ones directly, large
 * ones by a redirect that contains their hash.
 *
 * @module
 */

import { createHash } from "node:crypto";

/** The faults of a hub. */
export interface HubFaults {
  /** Cuts each response after so many bytes, at most `times` times. */
  readonly cut?: { readonly after: number; times: number };
  /** Ignores range requests. */
  readonly noRanges?: boolean;
  /** Sends a hash that differs from the content. */
  readonly wrongHash?: boolean;
  /** Sends this size instead of the real one. */
  readonly told?: number;
  /** Answers every request with this status. */
  readonly status?: number;
  /** Redirects to this address instead of its storage. */
  readonly location?: string;
  /** Begins a response and sends nothing of it. */
  readonly stalls?: boolean;
  /** Has other content from the second request for it on. */
  readonly changes?: boolean;
}

/** A running hub. */
export class FakeHub implements AsyncDisposable {
  /** The requests: method, path, and the range if there was one. */
  readonly asked: string[] = [];
  /** The present faults. */
  faults: HubFaults = {};
  readonly #files: Readonly<Record<string, Uint8Array>>;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #stalled: ReadableStreamDefaultController[] = [];
  #served = 0;

  /** Serves files by their name in the model. */
  constructor(files: Readonly<Record<string, Uint8Array>>) {
    this.#files = files;
    const options = { hostname: "127.0.0.1", port: 0, onListen() {}, onError: () => CLOSED };
    this.#server = Deno.serve(options, (request) => this.#answer(request));
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Stops the hub. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const body of this.#stalled) body.error(new Error("over"));
    await this.#server.shutdown();
  }

  #answer(request: Request): Response {
    const { pathname } = new URL(request.url);
    const range = request.headers.get("range") ?? "";
    this.asked.push(`${request.method} ${pathname} ${range}`.trim());
    const { status, location, changes } = this.faults;
    if (status !== undefined) return new Response("", { status });
    const [, name = ""] = /\/(?:resolve\/[0-9a-f]{40}|storage)\/(.+)$/.exec(pathname) ?? [];
    const content = this.#files[name];
    if (content === undefined) return new Response("", { status: 404 });
    const isMoved = pathname.startsWith("/storage/");
    if (name.endsWith(".onnx") && !isMoved) return this.#moved(name, content, location);
    const now = changes && this.#served++ > 0 ? content.map((byte) => byte ^ 1) : content;
    return this.#content(request, now);
  }

  /** Redirects large files to the storage, with their size and hash, as the real hub does. */
  #moved(name: string, content: Uint8Array, location = `/storage/${name}`): Response {
    const { wrongHash, told } = this.faults;
    const hash = wrongHash ? "0".repeat(64) : createHash("sha256").update(content).digest("hex");
    return new Response(null, {
      status: 302,
      headers: {
        location,
        "x-linked-size": `${told ?? content.length}`,
        "x-linked-etag": `"${hash}"`,
      },
    });
  }

  #content(request: Request, content: Uint8Array): Response {
    const { noRanges } = this.faults;
    const etag = `"${createHash("md5").update(content).digest("hex")}"`;
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers.get("range") ?? "") ?? [];
    const isPart = !noRanges && from !== undefined && request.headers.get("if-range") === etag;
    const rest = content.subarray(isPart ? Number(from) : 0);
    const headers = {
      etag,
      "content-length": `${rest.length}`,
      ...(isPart && {
        "content-range": `bytes ${from}-${content.length - 1}/${content.length}`,
      }),
    };
    const status = isPart ? 206 : 200;
    if (request.method === "HEAD") return new Response(null, { status, headers });
    return new Response(this.#body(rest), { status, headers });
  }

  #body(content: Uint8Array): ReadableStream<Uint8Array> {
    const { cut, stalls } = this.faults;
    const isCut = cut !== undefined && cut.times-- > 0;
    return new ReadableStream({
      start: (body) => {
        const most = stalls ? 0 : isCut ? cut.after : content.length;
        body.enqueue(new Uint8Array(content.subarray(0, most)));
        if (stalls) return void this.#stalled.push(body);
        if (isCut && most < content.length) setTimeout(() => body.error(new Error("cut")), 20);
        else body.close();
      },
    });
  }
}

const CLOSED = new Response("", { status: 500 });
