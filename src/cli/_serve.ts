/**
 * `pml serve`: serves clients over HTTP until a signal comes.
 *
 * @module
 */

import { once } from "node:events";
import { join } from "node:path";
import type { App } from "../app/app.ts";
import { readEnvironment } from "../config/env.ts";
import { isLoopback } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { objectOf, quoted, textOf as textIn } from "../core/json.ts";
import { inUrl, probed } from "../io/listener.ts";
import { readRegularText } from "../io/regular_file.ts";
import { soon } from "../io/waiting.ts";
import type { HttpEndpoint } from "../transport/http/endpoint.ts";
import {
  type HttpHost,
  type HttpListener,
  type HttpOptions,
  type HttpRequest,
  serveHttp,
  WRONG_TOKEN,
} from "../transport/http/http.ts";
import type { Replica, ReplicaHost } from "../transport/replicas/replica.ts";
import { keptToken, tokenHash } from "../transport/http/token.ts";
import type { Typed } from "./_command_context.ts";
import { followCost, logStart } from "./_cost.ts";
import { report, usage } from "./_failure.ts";
import { endpointLimits, UserEndpoints } from "./_user_endpoints.ts";
import { portOf, SERVE_PORT } from "./_port.ts";
import { Refusals } from "./_refusals.ts";
import { caught, logError } from "./_serving.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter, typedPath } from "./command_process.ts";
import { openWindows } from "./_windows.ts";
import { print, tell } from "./out.ts";

const HOST = "127.0.0.1";
/** How long calls that run may take when a signal came. The second signal ends them at once. */
const DRAIN_MS = 10_000;
const HOW = "See `pml serve --help`";
const TOKEN_LEAST = 16;

/** Serves until a signal comes, and returns the exit code. */
export async function serve(typed: Typed): Promise<number> {
  const address = addressOf(typed);
  using signals = new Signals();
  const { openApp } = await import("../app/app.ts");
  let onLost = (_: Error) => {};
  using _ = caught((error) => onLost(error));
  try {
    const { cwd, variables } = commandProcess();
    const environment = readEnvironment(variables, cwd);
    const place = { cwd, environment, stays: true, write: logWriter() };
    await using app = await openApp(place);
    onLost = (error) => logError(app, error);
    const token = await tokenOf(app, typed);
    app.parts.redactor.register(token.value);
    const open = async (identity: string) => await watched(await openApp({ ...place, identity }));
    const { serve: together } = app.loaded().person.others;
    const replica = together && (await import("./_replica.ts")).replicaOf(app, together);
    await using endpoints = new UserEndpoints({
      app,
      token: tokenHash(token.value),
      open,
      replica,
    });
    using refusals = new Refusals(app);
    const limits = { ...endpointLimits(app), unreadMs: app.config().limits.unreadMs };
    const host = new ServeHost({ app, endpoints, refusals, replica });
    await using link = await replica?.listen(host, limits);
    await using listener = await serveHttp(host, { ...address, ...limits })
      .catch(async (error) => {
        // At an address of another machine, nothing is sent.
        const isInUse = error instanceof PmlError && objectOf(error.cause).code === "EADDRINUSE";
        if (!isInUse || !await isServedAt(address)) throw error;
        throw usage(
          `Cannot serve MCP at "${address.host}:${address.port}": PML serves there already`,
          "Stop it first, or give another --port (0 takes a free one)",
        );
      });
    await using windows = await openWindows(app, await endpoints.owner);
    app.watch();
    logStart(app, listener.url);
    using _cost = followCost(app);
    await watched(app);
    show(listener, { typed, where: token.where });
    if (!signals.signal.aborted) await once(signals.signal, "abort");
    await endpoints.hush();
    // guard: http-drain
    await Promise.all([listener, link, windows].map((one) => one?.drain(DRAIN_MS)));
    await soon(endpoints.passedOn(), DRAIN_MS);
  } catch (error) {
    return report(error, typed.json ? ["--json"] : []);
  }
  return signals.exitCode === 143 ? 0 : signals.exitCode ?? 0;
}

/** The collaborators of `ServeHost`. */
interface ServeParts {
  readonly app: App;
  readonly endpoints: UserEndpoints;
  readonly refusals: Refusals;
  readonly replica: Replica | undefined;
}

/** Answers requests over HTTP and of other processes. */
class ServeHost implements HttpHost, ReplicaHost {
  readonly #parts: ServeParts;

  constructor(parts: ServeParts) {
    this.#parts = parts;
  }

  get problem(): string | undefined {
    return this.#parts.app.config().problem?.message;
  }

  endpointFor(authorization: string): Promise<HttpEndpoint | undefined> {
    return this.#parts.endpoints.for(authorization);
  }

  endpointOf(identity: string | null): Promise<HttpEndpoint | undefined> {
    return this.#parts.endpoints.of(identity);
  }

  answer(endpoint: HttpEndpoint, request: HttpRequest): ReturnType<HttpHost["answer"]> {
    return this.#parts.replica?.answer(endpoint, request) ?? endpoint.answer(request);
  }

  refused(status: number, why: string): void {
    this.#parts.refusals.add(status, why);
  }

  failed(error: Error): void {
    this.#parts.app.log.debug(error.message);
  }
}

/** Returns whether a PML answers at an address. No token is sent there. */
async function isServedAt({ host, port }: Pick<HttpOptions, "host" | "port">): Promise<boolean> {
  const { status, body } = await probed(`http://${inUrl(host)}:${port}/mcp`) ?? {};
  const { error } = objectOf(body);
  return status === 401 && textIn(objectOf(error).message).endsWith(WRONG_TOKEN);
}

/** Shows the calls of an app on a terminal. */
async function watched(app: App): Promise<App> {
  const { stderr } = commandProcess();
  if (!stderr.isTerminal()) return app;
  const { callLines } = await import("./_audit.ts");
  const { redactor } = app.parts;
  const show = callLines(tell);
  // A model can write a secret in the place of a tool.
  (await app.callPath()).watchRecords((record) => show(redactor.clean(record)));
  return app;
}

function show(
  { url, isLocal }: HttpListener,
  { typed, where }: { readonly typed: Typed; readonly where: string },
): void {
  if (!isLocal) tell("warning: other machines can reach it");
  if (typed.json) return print(JSON.stringify({ url, token: where }));
  print(`Serving MCP at ${url}\n  Clients send "Authorization: Bearer TOKEN"; the token: ${where}`);
}

/** Returns where to listen. Throws USAGE if that is not safe. */
function addressOf(typed: Typed): Pick<HttpOptions, "host" | "port" | "tls" | "names"> {
  const { host = HOST, cert, behindProxy = false, allowHost = [], allowOrigin = [] } = typed;
  const key = typeof typed.key === "string" ? typed.key : undefined;
  const refuse = (why: string, hint = HOW) =>
    usage(`Cannot serve at ${quoted(host)}: ${why}`, hint);
  const port = typed.port === undefined ? SERVE_PORT : portOf(typed.port, HOW);
  if ((cert === undefined) !== (key === undefined)) throw refuse("--cert and --key go together");
  const tls = cert !== undefined && key !== undefined
    ? { cert: textOf(cert), key: textOf(key) }
    : undefined;
  for (const origin of allowOrigin) {
    if (URL.parse(origin)?.origin !== origin) throw refuse(`${quoted(origin)} is no origin`);
  }
  const isLocal = isLoopback(host);
  // guard: http-remote
  if (!isLocal && tls === undefined && !behindProxy) {
    const why = "others could read the token on the way";
    throw refuse(why, "Give --cert and --key, or --behind-proxy");
  }
  if (!isLocal && allowHost.length === 0) {
    throw refuse("its names are not known", "Name them with --allow-host");
  }
  const hosts = allowHost.map((name) => name.toLowerCase());
  return {
    host,
    port,
    tls,
    names: {
      origins: new Set(allowOrigin),
      ...hosts.length > 0 &&
        { hosts: new Set([...hosts, ...hosts.map((one) => `${one}:${port}`)]) },
    },
  };
}

/** Returns the token that the user gave, or one in a file that only this user can read. */
async function tokenOf(
  app: App,
  { tokenEnv }: Typed,
): Promise<{ readonly value: string; readonly where: string }> {
  if (tokenEnv === undefined) {
    const where = join(app.config().home, "serve_token");
    return { value: await keptToken(where), where };
  }
  const value = app.keys.get(tokenEnv) ?? "";
  if (value.length < TOKEN_LEAST) {
    const what = value === "" ? "no token" : "a token that is too short";
    throw new PmlError("KEY_MISSING", `Cannot serve: ${tokenEnv} has ${what}`, {
      hint: `Set ${tokenEnv} to at least ${TOKEN_LEAST} random characters`,
    });
  }
  return { value, where: `the value of ${tokenEnv}` };
}

function textOf(file: string): string {
  try {
    return readRegularText(Deno.realPathSync(typedPath(file)));
  } catch {
    throw usage(`Cannot serve: ${quoted(file, 300)} cannot be read`, HOW);
  }
}
