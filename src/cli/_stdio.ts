/**
 * `pml stdio`: serves the client that started this process.
 *
 * @module
 */

import type { Gateway, Listening } from "../gateway/gateway.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import { stampAt } from "../io/place.ts";
import { aborted, soon, yieldTurn } from "../io/waiting.ts";
import type { App, AppOptions } from "../app/app.ts";
import type { Lists } from "../servers/lists/lists.ts";
import type { JsonObject } from "../core/json.ts";
import type { StdioHost, StdioOptions } from "../transport/stdio/stdio.ts";
import type { FirstRoot } from "./_first_root.ts";
import { caught, logError } from "./_serving.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter } from "./command_process.ts";

const WATCH_AFTER_MS = 250;
/**
 * How long servers may take to take the client's notifications after the client has left, in
 * milliseconds.
 */
const LAST_MS = 10_000;
/** How long a server may take for its lists if the client disconnects meanwhile, in milliseconds. */
const LISTS_MS = 5_000;

/**
 * Serves until the client closes its end (exit code 0) or a signal comes (128 plus its number). A
 * running `pml serve` does the work, if it is the same user's.
 */
export async function stdio(): Promise<number> {
  using signals = new Signals();
  const { cwd, variables, pipes } = commandProcess();
  const environment = readEnvironment(variables, cwd);
  const attachment = mayAttach(environment)
    ? await (await import("./_attach.ts")).attached(environment, signals.signal)
    : undefined;
  if (attachment !== undefined && attachment.pipes === undefined) return signals.exitCode ?? 0;
  return await serveAlone(signals, { environment, pipes: attachment?.pipes ?? pipes });
}

async function serveAlone(
  signals: Signals,
  { environment, pipes }: Pick<AppOptions, "environment"> & Pick<StdioOptions, "pipes">,
): Promise<number> {
  const [{ openApp }, { serveStdio }, { openStderr }] = await Promise.all([
    import("../app/app.ts"),
    import("../transport/stdio/stdio.ts"),
    import("../transport/stdio/stderr.ts"),
  ]);
  await using stderr = commandProcess().pipes === undefined ? openStderr() : undefined;
  try {
    // This lives longer than the app, so that errors while the app closes are logged, too.
    let tell = (_: Error) => {};
    using _ = caught((error) => tell(error));
    const place = { cwd: commandProcess().cwd, environment, stays: true, hasClient: true };
    await using app = await openApp({ ...place, write: stderr?.write ?? logWriter() });
    tell = (error) => logError(app, error);
    using serving = new DisposableStack();
    let isTask = (_: string) => false;
    using rooting = await rootingOf(app);
    let listening: Promise<Listening> | undefined;
    const connections = async () => {
      const gateway = await preparedGateway(app);
      isTask = (id) => gateway.hasTask(id);
      void logging(app, serving).catch((error) => logError(app, error));
      return rooting?.wrapping(gateway) ?? gateway;
    };
    // Watching starts after the first answer. It reads all files once when it starts, so no change
    // is missed.
    const watching = setTimeout(() => void app.ready.then(() => app.watch()), WATCH_AFTER_MS);
    await serveStdio(connections, new StdioClient(app, rooting), {
      ...app.config().limits,
      ...{ pipes, hello: (isStateless) => app.hello(isStateless, { isAlone: true }) },
      roots: rooting?.receiving(app.clientRoots) ?? app.clientRoots,
      questions: app.clientQuestions,
      isTask: (id) => isTask(id),
      onListen: (listened) => {
        listening ??= app.gateway().then((gateway) => gateway.listen());
        listening.then((one) => one.set(listened), (error) => logError(app, error));
      },
      signal: signals.signal,
    });
    clearTimeout(watching);
    await finishWork(app, signals.signal);
    app.log.debug("Served", { ...app.metrics.report() });
  } catch (error) {
    const { report } = await import("./_failure.ts");
    return report(error, []);
  }
  return signals.exitCode ?? 0;
}

/**
 * Opens the gateway, and begins to load the code of a first call, without waiting for it: nearly every
 * client asks for lists right after its handshake, and one shows prompts only if they come within
 * 100 ms.
 */
async function preparedGateway(app: App): Promise<Gateway> {
  const gateway = await app.gateway();
  const preparing = import("../app/first_call.ts").then((one) => one.prepareFirstCall(app));
  preparing.catch(() => {}); // the first request that needs it reports the error
  return gateway;
}

/** Logs how this process serves, and the cost of the list of tools until `serving` is disposed. */
async function logging(app: App, serving: DisposableStack): Promise<void> {
  const { followCost, logStart } = await import("./_cost.ts");
  void app.ready.then(() => logStart(app, "stdio"));
  if (!serving.disposed) serving.use(followCost(app));
}

/** Waits for the notifications of the client, and for lists that are being loaded. */
async function finishWork(app: App, signal: AbortSignal): Promise<void> {
  const passedOn = app.openGateway?.passedOn() ?? Promise.resolve();
  await Promise.all([
    soon(Promise.race([passedOn, aborted(signal)]), LAST_MS),
    finishLists(app.servers.lists, { ms: LISTS_MS, signal }),
  ]);
}

/**
 * Waits until no server is being asked for a list, all were asked `ms` ago or the signal aborts. Lists
 * are cached in files: without this, no short session would have the lists of a slow server.
 */
export async function finishLists(
  lists: Pick<Lists, "allLoaded">,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<void> {
  // A request that came last begins to ask servers in this turn.
  await yieldTurn();
  await soon(Promise.race([lists.allLoaded(ms), aborted(signal)]), ms);
}

/** The client of `pml stdio`. */
class StdioClient implements StdioHost {
  readonly #app: App;
  readonly #rooting: FirstRoot | undefined;

  constructor(app: App, rooting: FirstRoot | undefined) {
    this.#app = app;
    this.#rooting = rooting;
  }

  /** Otherwise lists wait for the roots of the client, which it sends after its handshake. */
  get mayPrepare(): boolean {
    return this.#rooting === undefined;
  }

  /** Loads the cached prompts of servers, and all that lists need. */
  prepare(): Promise<unknown> {
    return this.#app.servers.lists.prepare("prompts", { atOnce: true });
  }

  /** Resolves when the client has the lists that it asks for after the handshake. */
  async listsAnswered(): Promise<void> {
    await (await import("../app/first_call.ts")).listsAnswered(this.#app);
  }

  waiting(size: number): void {
    this.#app.backlog.size = size;
  }

  onAnswersLost(requests: readonly string[]): void {
    this.#app.recordLostAnswers(requests);
  }

  declared(able: JsonObject, info: JsonObject | undefined): void {
    this.#rooting?.takeCapabilities(able);
    this.#app.takeCapabilities(able, info);
  }

  failed(error: Error): void {
    logError(this.#app, error);
  }
}

/** A client that started PML in no project may have a root that is one. */
async function rootingOf(app: App): Promise<FirstRoot | undefined> {
  if (app.loaded().workspace.found !== "default") return undefined;
  return new (await import("./_first_root.ts")).FirstRoot(app);
}

/** Returns whether a `pml serve` may run with this PML home. */
function mayAttach({ home }: Environment): boolean {
  return stampAt(`${home}/windows`) !== undefined;
}
