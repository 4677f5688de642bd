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
import { hostForUrl, probe } from "../io/listener.ts";
import { readRegularText } from "../io/regular_file.ts";
import { settlesWithin } from "../io/waiting.ts";
import type { HttpEndpoint } from "../transport/http/endpoint.ts";
import {
  type HttpHost,
  type HttpListener,
  type HttpMetrics,
  type HttpOptions,
  type HttpRequest,
  serveHttp,
  WRONG_TOKEN,
} from "../transport/http/http.ts";
import type { Replica, ReplicaHost } from "../transport/replicas/replica.ts";
import { readOrCreateToken, tokenHash } from "../transport/http/token.ts";
import type { CommandInput } from "./_command_context.ts";
import { followCost, logStart } from "./_cost.ts";
import { report, usage } from "./_failure.ts";
import { endpointLimits, UserEndpoints } from "./_user_endpoints.ts";
import { parsePort, SERVE_PORT } from "./_port.ts";
import { Refusals } from "./_refusals.ts";
import { catchRejections, logError, showProcess } from "./_serving.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter, typedPath } from "./command_process.ts";
import { openWindows } from "./_windows.ts";
import { print, tell } from "./out.ts";

const HOST = "127.0.0.1";
/**
 * How long running calls may take after the first signal, in milliseconds. A second signal ends them
 * at once.
 */
const DRAIN_MS = 10_000;
const USAGE_HINT = "See `pml serve --help`";
const TOKEN_LENGTH_MIN = 16;

/** Serves until a signal comes, and returns the exit code. */
export async function serve(input: CommandInput): Promise<number> {
  const address = parseAddress(input);
  using signals = new Signals();
  const { openApp } = await import("../app/app.ts");
  let onRejection = (_: Error) => {};
  using _ = catchRejections((error) => onRejection(error));
  try {
    const { cwd, variables } = commandProcess();
    const environment = readEnvironment(variables, cwd);
    const appOptions = { cwd, environment, isLongRunning: true, write: logWriter() };
    await using app = await openApp(appOptions);
    onRejection = (error) => logError(app, error);
    const token = await readToken(app, { tokenEnv: input.tokenEnv, file: "serve_token" });
    app.parts.redactor.register(token.value);
    const openIdentity = async (identity: string) =>
      await showCalls(await openApp({ ...appOptions, identity }));
    const replica = await openReplica(app);
    const options = { app, tokenHash: tokenHash(token.value), open: openIdentity, replica };
    await using endpoints = new UserEndpoints(options);
    using refusals = new Refusals(app);
    const limits = { ...endpointLimits(app), unreadMs: app.config().limits.unreadMs };
    const metrics = await openMetrics(app, endpoints, { input, token });
    const host = new ServeHost({ app, endpoints, refusals, replica, metrics: metrics?.endpoint });
    await using link = await replica?.listen(host, limits);
    await using listener = await serveHttp(host, { ...address, ...limits })
      .catch(async (error) => {
        // An address that is in use belongs to this machine, so the probe reaches no other one.
        const isInUse = error instanceof PmlError && objectOf(error.cause).code === "EADDRINUSE";
        if (!isInUse || !await isServedAt(address)) throw error;
        throw usage(
          `Cannot serve MCP at "${address.host}:${address.port}": PML serves there already`,
          "Stop it first, or give another --port (0 takes a free one)",
        );
      });
    await using windows = await openWindows(app, await endpoints.owner, listener.url);
    await using _shown = showProcess({
      command: "serve",
      app,
      identityApps: () => endpoints.identityApps(),
    });
    app.watch();
    logStart(app, listener.url);
    using _cost = followCost(app, "serve");
    await showCalls(app);
    printAddress(listener, { input, where: token.where, metrics: metrics?.where });
    if (input.open) {
      (await import("./_page_start.ts")).startPage(input.json === true);
    }
    if (!signals.signal.aborted) await once(signals.signal, "abort");
    await endpoints.closeStandalone();
    // guard: http-drain
    await Promise.all([listener, link, windows].map((one) => one?.drain(DRAIN_MS)));
    await settlesWithin(endpoints.whenPassedOn(), DRAIN_MS);
  } catch (error) {
    return report(error, input.json ? ["--json"] : []);
  }
  return signals.exitCode === 143 ? 0 : signals.exitCode ?? 0;
}

/** The collaborators of `ServeHost`. */
interface ServeParts {
  readonly app: App;
  readonly endpoints: UserEndpoints;
  readonly refusals: Refusals;
  readonly replica: Replica | undefined;
  readonly metrics: HttpMetrics | undefined;
}

/** Answers requests over HTTP, and those that other replicas pass on. */
class ServeHost implements HttpHost, ReplicaHost {
  readonly #parts: ServeParts;

  constructor(parts: ServeParts) {
    this.#parts = parts;
  }

  get metrics(): HttpMetrics | undefined {
    return this.#parts.metrics;
  }

  get problem(): string | undefined {
    return this.#parts.app.config().problem?.message;
  }

  endpointFor(authorization: string): Promise<HttpEndpoint | undefined> {
    return this.#parts.endpoints.forAuthorization(authorization);
  }

  endpointOf(identity: string | null): Promise<HttpEndpoint | undefined> {
    return this.#parts.endpoints.forTokenHash(identity);
  }

  answer(endpoint: HttpEndpoint, request: HttpRequest): ReturnType<HttpHost["answer"]> {
    return this.#parts.replica?.answer(endpoint, request) ?? endpoint.answer(request);
  }

  reportRefused(status: number, why: string): void {
    this.#parts.refusals.add(status, why);
  }

  reportError(error: Error): void {
    this.#parts.app.log.debug(error.message);
  }
}

/** Returns whether a PML answers at an address. No token is sent there. */
async function isServedAt({ host, port }: Pick<HttpOptions, "host" | "port">): Promise<boolean> {
  const { status, body } = await probe(`http://${hostForUrl(host)}:${port}/mcp`) ?? {};
  const { error } = objectOf(body);
  return status === 401 && textIn(objectOf(error).message).endsWith(WRONG_TOKEN);
}

/** Shows the calls of an app on a terminal. */
async function showCalls(app: App): Promise<App> {
  const { stderr } = commandProcess();
  if (!stderr.isTerminal()) return app;
  const { callLines } = await import("./_audit.ts");
  const { redactor } = app.parts;
  const show = callLines(tell);
  // A model can pass a secret as the name of a tool, so the whole record is redacted.
  (await app.callPath()).watchRecords((record) => show(redactor.clean(record)));
  return app;
}

function printAddress(
  { url, origin, isLocal }: HttpListener,
  { input, where, metrics }: {
    readonly input: CommandInput;
    readonly where: string;
    /** The place of the token for metrics; undefined if they are not served. */
    readonly metrics: string | undefined;
  },
): void {
  if (!isLocal) tell("warning: other machines can reach it");
  const metricsUrl = `${origin}/metrics`;
  if (input.json) {
    const value = metrics === undefined ? {} : { metrics: { url: metricsUrl, token: metrics } };
    return print(JSON.stringify({ url, token: where, ...value }));
  }
  const metricsLines = metrics === undefined
    ? ""
    : `\nMetrics at ${metricsUrl}\n  The token: ${metrics}`;
  const how = `Clients send "Authorization: Bearer TOKEN"; the token: ${where}`;
  print(`Serving MCP at ${url}\n  ${how}${metricsLines}`);
}

/** Returns the address to listen at. Throws `USAGE` if listening there is not safe. */
function parseAddress(input: CommandInput): Pick<HttpOptions, "host" | "port" | "tls" | "names"> {
  const { host = HOST, cert, behindProxy = false, allowHost = [], allowOrigin = [] } = input;
  const key = typeof input.key === "string" ? input.key : undefined;
  const refuse = (why: string, hint = USAGE_HINT) =>
    usage(`Cannot serve at ${quoted(host)}: ${why}`, hint);
  const port = input.port === undefined ? SERVE_PORT : parsePort(input.port, USAGE_HINT);
  if ((cert === undefined) !== (key === undefined)) throw refuse("--cert and --key go together");
  const tls = cert !== undefined && key !== undefined
    ? { cert: readPemFile(cert), key: readPemFile(key) }
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

/** A token, and the place where the user finds it. */
interface Token {
  readonly value: string;
  readonly where: string;
}

/** Returns the token in the variable `tokenEnv`, or one in a file that only this user can read. */
async function readToken(
  app: App,
  { tokenEnv, file }: { readonly tokenEnv: string | undefined; readonly file: string },
): Promise<Token> {
  if (tokenEnv === undefined) {
    const where = join(app.config().home, file);
    return { value: await readOrCreateToken(where), where };
  }
  const value = app.keys.get(tokenEnv) ?? "";
  if (value.length < TOKEN_LENGTH_MIN) {
    const what = value === "" ? "no token" : "a token that is too short";
    throw new PmlError("KEY_MISSING", `Cannot serve: ${tokenEnv} has ${what}`, {
      hint: `Set ${tokenEnv} to at least ${TOKEN_LENGTH_MIN} random characters`,
    });
  }
  return { value, where: `the value of ${tokenEnv}` };
}

/** Makes this process a replica, if the user configured replicas. */
async function openReplica(app: App): Promise<Replica | undefined> {
  const { serve: settings = {} } = app.loaded().userConfig.others;
  if ((settings.sealing_key ?? settings.replica_address) === undefined) return undefined;
  return (await import("./_replica.ts")).createReplica(app, settings);
}

/**
 * Opens the endpoint of metrics, if the user wants it. A program that reads metrics must not be able
 * to call tools, so they have their own token.
 */
async function openMetrics(
  app: App,
  endpoints: UserEndpoints,
  { input, token }: { readonly input: CommandInput; readonly token: Token },
): Promise<{ readonly endpoint: HttpMetrics; readonly where: string } | undefined> {
  if (!input.metrics && app.loaded().userConfig.others.serve?.metrics !== true) return undefined;
  const metricsToken = await readToken(app, {
    tokenEnv: input.metricsTokenEnv,
    file: "metrics_token",
  });
  // guard: metrics-own-token
  if (metricsToken.value === token.value) {
    throw usage("Cannot serve metrics: their token is that of MCP", "Give them another token");
  }
  app.parts.redactor.register(metricsToken.value);
  const { MetricsEndpoint } = await import("./_metrics_endpoint.ts");
  const identityApps = () => endpoints.identityApps();
  const endpoint = new MetricsEndpoint(app, identityApps, tokenHash(metricsToken.value));
  return { endpoint, where: metricsToken.where };
}

function readPemFile(file: string): string {
  try {
    return readRegularText(Deno.realPathSync(typedPath(file)));
  } catch {
    throw usage(`Cannot serve: ${quoted(file, 300)} cannot be read`, USAGE_HINT);
  }
}
