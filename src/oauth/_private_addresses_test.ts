import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { CERTIFICATE } from "../../tests/kit/certificate.ts";
import { TcpSink } from "../../tests/kit/sinks.ts";
import { PmlError } from "../core/errors.ts";
import { serving } from "../servers/http/_serving_test.ts";
import { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import { SignIns } from "./sign_ins.ts";

type Fields = Record<string, unknown>;

const { signal } = new AbortController();
/** Host names that a public server may use, and the addresses that they resolve to. */
const NAMES: Readonly<Record<string, string>> = {
  "good.invalid": "127.0.0.1", // represents a public server, because the user configured it
  "rebound.invalid": "127.0.0.1",
  "cloud.invalid": "169.254.169.254",
  "inside.invalid": "10.0.0.1",
};
const HOSTS = "rebound.invalid cloud.invalid inside.invalid localhost 127.0.0.1 [::1] 0x7f000001 " +
  "169.254.169.254 10.0.0.1 [64:ff9b::a9fe:a9fe]";

/** A public server whose metadata PML follows, and the requests that it received. */
class Public implements AsyncDisposable {
  /** Overrides the metadata of the server and of its authorization server. */
  resource: Fields = {};
  metadata: Fields = {};
  /** The hosts that the user allows for the issuer. */
  hosts: readonly string[] = [];
  /** The redirect target of each path. */
  readonly away = new Map<string, string>();
  readonly asked: string[] = [];
  readonly #server: Awaited<ReturnType<typeof serving>>;
  readonly #network: GuardedFetch;

  private constructor(server: Awaited<ReturnType<typeof serving>>) {
    this.#server = server;
    this.#network = new GuardedFetch(undefined, {
      ca: CERTIFICATE,
      lookup: (host) => Promise.resolve([{ address: NAMES[host] ?? "127.0.0.1", family: 4 }]),
    });
  }

  static async open(): Promise<Public> {
    let made: Public | undefined;
    const server = await serving((request, response) => made?.answer(request, response), {
      isSecure: true,
    });
    return made = new Public(server);
  }

  get origin(): string {
    return `https://good.invalid:${this.#server.port}`;
  }

  answer({ url = "", method = "" }: IncomingMessage, response: ServerResponse): void {
    const [path = ""] = url.split("?");
    this.asked.push(`${method} ${path}`);
    const location = this.away.get(path);
    if (location !== undefined) return void response.writeHead(307, { location }).end();
    const { origin } = this;
    const said = {
      "/.well-known/oauth-protected-resource/mcp": {
        ...{ resource: `${origin}/mcp`, authorization_servers: [origin] },
        ...this.resource,
      },
      "/.well-known/oauth-authorization-server": {
        ...{ issuer: origin, token_endpoint: `${origin}/token` },
        ...{
          authorization_endpoint: `${origin}/authorize`,
          registration_endpoint: `${origin}/new`,
        },
        ...{ code_challenge_methods_supported: ["S256"] },
        ...this.metadata,
      },
      "/new": { client_id: "c", token_endpoint_auth_method: "none" },
      "/token": { access_token: "token-of-the-person", token_type: "Bearer" },
    }[path];
    const status = said !== undefined ? 200 : path === "/mcp" ? 401 : 404;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(said ?? {}));
  }

  /** Starts a first sign-in; the browser returns immediately. */
  async signIn(): Promise<void> {
    const folder = await Deno.makeTempDir({ prefix: "pml-private-" });
    try {
      await this.#signIn(folder);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }

  async #signIn(folder: string): Promise<void> {
    this.asked.length = 0;
    const signIns = new SignIns({
      ...{ folder, fetch: this.#network.fetch },
      // The hosts are allowed, so that only their addresses cause a refusal.
      issuerHosts: { [this.origin]: this.hosts },
      register: () => {},
      log: { warn: (message) => assert.fail(message) },
      refresh: () => assert.fail("nothing is refreshed"),
    });
    const url = `${this.origin}/mcp`;
    const named = new Set([new URL(url).host]);
    await using signIn = await signIns.begin({ name: "far", url, named }, { signal });
    const asked = new URL(signIn.url).searchParams;
    const back = new URL(asked.get("redirect_uri") ?? "");
    back.search = `${new URLSearchParams({ code: "c", state: asked.get("state") ?? "" })}`;
    const [done] = await Promise.allSettled([signIn.done, fetch(back).then((one) => one.text())]);
    if (done.status === "rejected") throw done.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#network[Symbol.dispose]();
    await this.#server[Symbol.asyncDispose]();
  }
}

Deno.test("a public server cannot lead a sign-in to a private address by name, number or redirect (NI4)", async () => {
  await using sink = new TcpSink();
  await using server = await Public.open();
  server.hosts = HOSTS.split(" ").map((host) => new URL(`https://${host}:${sink.port}`).host);
  const places = HOSTS.split(" ").flatMap((host) =>
    ["https", "http"].map((scheme) => `${scheme}://${host}:${sink.port}`)
  );
  for (const at of places) {
    for (const [what, change] of Object.entries(leading(server, at))) {
      Object.assign(server, { resource: {}, metadata: {} });
      server.away.clear();
      change();
      const refused = await server.signIn().then(() => undefined, (error) => error);
      assert.ok(refused instanceof PmlError, `${what} ${at}: ${refused}`);
      assert.match(refused.code, /^(PERMISSION_DENIED|UPSTREAM_PROTOCOL)$/, `${what} ${at}`);
    }
  }
  sink.assertSilent();
  Object.assign(server, { resource: {}, metadata: {} });
  server.away.clear();
  await server.signIn();
});

Deno.test("a public server cannot lead the browser to this machine or a private network (NI4)", async () => {
  await using server = await Public.open();
  for (
    const host of "localhost 127.0.0.1 127.1 [::1] 0x7f000001 10.0.0.1 169.254.169.254".split(" ")
  ) {
    for (const scheme of ["https", "http"]) {
      server.metadata = { authorization_endpoint: `${scheme}://${host}/authorize` };
      await assert.rejects(server.signIn(), (error: PmlError) => {
        return /^(PERMISSION_DENIED|UPSTREAM_PROTOCOL)$/.test(error.code);
      }, `${scheme} ${host}`);
      assert.ok(!server.asked.includes("POST /new"), "a client was registered");
    }
  }
});

/** The ways in which a server can lead PML to a URL. */
function leading(server: Public, at: string): Readonly<Record<string, () => void>> {
  return {
    "authorization server": () => server.resource = { authorization_servers: [at] },
    "registration": () => server.metadata = { registration_endpoint: `${at}/new` },
    "token": () => server.metadata = { token_endpoint: `${at}/token` },
    "redirect of a registration": () => server.away.set("/new", `${at}/new`),
    "redirect of a token": () => server.away.set("/token", `${at}/token`),
  };
}
