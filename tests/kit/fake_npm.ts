/**
 * An npm registry on loopback with packages from texts, and a log of its requests.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";

/** The files of each version of each package, without `package.json`'s name and version. */
export type Packages = Readonly<
  Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>
>;

/** A running registry. */
export class FakeNpm implements AsyncDisposable {
  /** A settings file of npm that names this registry. Stopping the registry removes it. */
  readonly settings: string;
  /** The requested paths. */
  readonly asked: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #packages: Packages;
  #held: Promise<void> | undefined;
  #token: string | undefined;
  #isWithheld = false;

  /** Serves the packages. */
  constructor(packages: Packages) {
    this.#packages = packages;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        const path = decodeURIComponent(new URL(request.url).pathname);
        this.asked.push(path);
        await this.#held;
        const said = request.headers.get("authorization");
        if (this.#token !== undefined && said !== `Bearer ${this.#token}`) {
          return Response.json({ error: "no token" }, { status: 401 });
        }
        return this.#answer(path);
      },
    );
    this.settings = Deno.makeTempFileSync({ suffix: ".npmrc" });
    Deno.writeTextFileSync(this.settings, `registry=${this.url}\n`);
  }

  /** The address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  /** Serves other packages from now on. */
  publish(packages: Packages): void {
    this.#packages = packages;
  }

  /** Requires a token from now on. */
  guard(token: string): void {
    this.#token = token;
  }

  /** From now on, lists packages but sends none of their archives. */
  withhold(): void {
    this.#isWithheld = true;
  }

  /** Sends no response until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return resolve;
  }

  /** Stops the registry. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    await Deno.remove(this.settings).catch(() => {}); // it was stopped before
  }

  #answer(path: string): Response {
    const [, name = "", version] = /^\/(.+?)(?:\/-\/(.+)\.tgz)?$/.exec(path) ?? [];
    const versions = this.#packages[name];
    if (versions === undefined || version !== undefined && this.#isWithheld) {
      return Response.json({ error: "not found" }, { status: 404 });
    }
    if (version !== undefined) {
      return new Response(tarball(name, version, versions[version] ?? {}));
    }
    const all = Object.entries(versions).map(([each, files]) => {
      const integrity = createHash("sha512").update(tarball(name, each, files)).digest("base64");
      const tarballUrl = `${this.url}${name}/-/${each}.tgz`;
      const said = packageJson(name, each, files);
      // A package may override the address of its archive.
      const dist = {
        tarball: tarballUrl,
        integrity: `sha512-${integrity}`,
        ...said.dist as object,
      };
      return [each, { ...said, dist }];
    });
    const latest = Object.keys(versions).at(-1);
    return Response.json({ name, "dist-tags": { latest }, versions: Object.fromEntries(all) });
  }
}

type Files = Readonly<Record<string, string>>;

function packageJson(name: string, version: string, files: Files): Record<string, unknown> {
  return { name, version, ...JSON.parse(files["package.json"] ?? "{}") };
}

function tarball(name: string, version: string, files: Files): Uint8Array<ArrayBuffer> {
  const whole = { ...files, "package.json": JSON.stringify(packageJson(name, version, files)) };
  const blocks = Object.entries(whole).flatMap(([path, text]) => entry(`package/${path}`, text));
  // Without a time, so that the bytes are always the same.
  return new Uint8Array(gzipSync(concat([...blocks, new Uint8Array(1_024)])));
}

function entry(path: string, text: string): Uint8Array[] {
  const content = new TextEncoder().encode(text);
  const head = new Uint8Array(512);
  const put = (at: number, value: string) => head.set(new TextEncoder().encode(value), at);
  put(0, path);
  put(100, "0000755\0");
  put(124, `${content.length.toString(8).padStart(11, "0")}\0`);
  put(136, "00000000000\0");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar\x0000");
  const sum = head.reduce((all, byte) => all + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  const padded = new Uint8Array(Math.ceil(content.length / 512) * 512);
  padded.set(content);
  return [head, padded];
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
