/**
 * `pml stdio`: serves the client that started this process.
 *
 * @module
 */

import type { Listening } from "../gateway/gateway.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import { stampAt } from "../io/path_info.ts";
import { settlesWithin, whenAborted, yieldTurn } from "../io/waiting.ts";
import type { App, AppOptions } from "../app/app.ts";
import type { Lists } from "../servers/lists/lists.ts";
import type { JsonObject } from "../core/json.ts";
import type { Hello } from "../protocol/connection.ts";
import type { RootsReceiver } from "../protocol/server.ts";
import type { ListenedItems } from "../protocol/subscriptions.ts";
import type { StdioHost } from "../transport/stdio/stdio.ts";
import type { FirstRoot } from "./_first_root.ts";
import { catchRejections, logError, showProcess } from "./_serving.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter } from "./command_process.ts";

const WATCH_AFTER_MS = 250;
/**
 * How long servers may take to accept the client's last notifications after it has disconnected, in
 * milliseconds.
 */
const NOTIFICATIONS_MS = 10_000;
/** How long PML waits for the lists of servers after the client has disconnected, in milliseconds. */
const LISTS_MS = 5_000;

/**
 * Serves until the client closes its end (exit code 0) or a signal comes (128 plus its number). If the
 * same user runs `pml serve`, this process only passes messages to it.
 */
export async function stdio(): Promise<number> {
  using signals = new Signals();
  const { cwd, variables, pipes } = commandProcess();
  const environment = readEnvironment(variables, cwd);
  const attachment = mayAttach(environment)
    ? await (await import("./_attach.ts")).tryAttach(environment, signals.signal)
    : undefined;
  if (attachment !== undefined && attachment.pipes === undefined) return signals.exitCode ?? 0;
  return await serveAlone(signals, { environment, pipes: attachment?.pipes ?? pipes });
}

async function serveAlone(
  signals: Signals,
  { environment, pipes }: Pick<AppOptions, "environment"> & Pick<StdioHost, "pipes">,
): Promise<number> {
  const [{ openApp }, firstCall, cost, { serveStdio }, { openStderr }] = await Promise.all([
    import("../app/app.ts"),
    import("../app/first_call.ts"),
    import("./_cost.ts"),
    import("../transport/stdio/stdio.ts"),
    import("../transport/stdio/stderr.ts"),
  ]);
  await using stderr = commandProcess().pipes === undefined ? openStderr() : undefined;
  try {
    // This handler outlives the app, so that errors during its closing are logged, too.
    let onRejection = (_: Error) => {};
    using _ = catchRejections((error) => onRejection(error));
    const appOptions = {
      cwd: commandProcess().cwd,
      environment,
      isLongRunning: true,
      hasClient: true,
    };
    await using app = await openApp({ ...appOptions, write: stderr?.write ?? logWriter() });
    onRejection = (error) => logError(app, error);
    using serving = new DisposableStack();
    using firstRoot = await openFirstRoot(app);
    await using _shown = showProcess({
      command: "stdio",
      app,
      identityApps: () => Promise.resolve([]),
    });
    const client = new StdioClient(app, pipes, firstRoot);
    const connections = async () => {
      const gateway = await app.gateway();
      // Nearly every client requests lists right after its handshake, so preparation starts at once.
      const preparing = firstCall.prepareFirstCall(app);
      // The first request that needs the failed part reports the error.
      preparing.catch(() => {}).finally(client.prepared.resolve);
      void app.ready.then(() => cost.logStart(app, "stdio"));
      if (!serving.disposed) serving.use(cost.followCost(app, "stdio"));
      return firstRoot?.wrapConnections(gateway) ?? gateway;
    };
    // Watching starts later, so that the first answers do not wait for it. It reads all files once when
    // it starts, so no change is missed.
    const watching = setTimeout(() => void app.ready.then(() => app.watch()), WATCH_AFTER_MS);
    await serveStdio(connections, client, signals.signal);
    clearTimeout(watching);
    await finishWork(app, signals.signal);
    app.log.debug("Served", { ...app.metrics.report() });
  } catch (error) {
    const { report } = await import("./_failure.ts");
    return report(error, []);
  }
  return signals.exitCode ?? 0;
}

/** Waits for the notifications of the client, and for lists that are being loaded. */
async function finishWork(app: App, signal: AbortSignal): Promise<void> {
  const passedOn = app.openGateway?.whenPassedOn() ?? Promise.resolve();
  await Promise.all([
    settlesWithin(Promise.race([passedOn, whenAborted(signal)]), NOTIFICATIONS_MS),
    finishLists(app.servers.lists, { ms: LISTS_MS, signal }),
  ]);
}

/**
 * Waits until all requests for lists have ended or are older than `ms`, or until the signal aborts.
 * Lists are cached in files: without this wait, short sessions would never cache those of a slow server.
 */
export async function finishLists(
  lists: Pick<Lists, "allLoaded">,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<void> {
  // The last request of the client begins its requests to servers in this turn of the event loop.
  await yieldTurn();
  await settlesWithin(Promise.race([lists.allLoaded(ms), whenAborted(signal)]), ms);
}

/** The client of `pml stdio`. */
class StdioClient implements StdioHost {
  readonly pipes: StdioHost["pipes"];
  readonly limits: StdioHost["limits"];
  readonly roots: RootsReceiver;
  readonly questions: App["clientQuestions"];
  readonly #app: App;
  readonly #firstRoot: FirstRoot | undefined;
  /** Resolved when the first call is prepared. */
  readonly prepared = Promise.withResolvers<void>();
  #listening: Promise<Listening> | undefined;

  constructor(app: App, pipes: StdioHost["pipes"], firstRoot: FirstRoot | undefined) {
    this.#app = app;
    this.pipes = pipes;
    this.limits = app.config().limits;
    this.roots = firstRoot?.wrapReceiver(app.clientRoots) ?? app.clientRoots;
    this.questions = app.clientQuestions;
    this.#firstRoot = firstRoot;
  }

  /** The client is alone, so it gets the experimental capabilities of servers, too. */
  hello(isStateless: boolean): Hello {
    return this.#app.hello(isStateless, { isAlone: true });
  }

  listensTo(listened: ListenedItems): void {
    this.#listening ??= this.#app.gateway().then((gateway) => gateway.listen());
    this.#listening.then((one) => one.set(listened), (error) => this.reportError(error));
  }

  isTask(id: string): boolean {
    return this.#app.openGateway?.hasTask(id) === true;
  }

  /** False while lists wait for the roots of the client, which it sends after its handshake. */
  get mayPrepare(): boolean {
    return this.#firstRoot === undefined;
  }

  /** Loads the cached prompts of servers, and everything else that lists need. */
  prepare(): Promise<unknown> {
    return this.#app.servers.lists.prepare("prompts", { onlyCached: true });
  }

  /** Resolves when everything that can be prepared for a first call is ready. */
  codeLoaded(): Promise<void> {
    return this.prepared.promise;
  }

  reportWaiting(size: number): void {
    this.#app.backlog.size = size;
  }

  onAnswersLost(requests: readonly string[]): void {
    this.#app.recordLostAnswers(requests);
  }

  onDeclared(capabilities: JsonObject, info: JsonObject | undefined): void {
    this.#firstRoot?.takeCapabilities(capabilities);
    this.#app.takeCapabilities(capabilities, info);
  }

  reportError(error: Error): void {
    logError(this.#app, error);
  }
}

/**
 * Returns the object that waits for the client's first root: PML was started outside of a project, but
 * that root may be one. Returns undefined if PML was started in a project.
 */
async function openFirstRoot(app: App): Promise<FirstRoot | undefined> {
  if (app.loaded().workspace.found !== "default") return undefined;
  return new (await import("./_first_root.ts")).FirstRoot(app);
}

/** Returns whether a `pml serve` may be running with this PML home. */
function mayAttach({ home }: Environment): boolean {
  return stampAt(`${home}/windows`) !== undefined;
}
