/**
 * Checks the types of code before it runs. The first check starts a process, which ends when it is
 * idle. Code that cannot be checked runs anyway.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { durationText } from "../core/amounts.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import { callAfter, onAbort, unlessAborted } from "../io/waiting.ts";
import { type CallableServers, CheckedText, Words } from "./_checked_text.ts";
import { LanguageServer } from "./_language_server.ts";
import type { CodeToCheck, TypeCheck, TypeCheckResult } from "./checked_code.ts";
import type { DeclaredServer } from "./declarations.ts";

/** The tools that code may call. */
export interface CallableTools {
  /** Returns the names of all servers. */
  names(): readonly string[];
  /** Returns the tools of a server; undefined if they are not known. */
  tools(server: string): Promise<DeclaredServer["tools"] | undefined>;
  /** Returns whether code can call a name that `names()` lacks, such as a server of a registry. */
  isCallable(server: string): Promise<boolean>;
}

/** The collaborators and the limits of `TypeChecker`. */
export interface TypeCheckParts {
  /** The folder for the compiler's settings. */
  readonly folder: string;
  readonly policy: ConfigOwner<"limits">;
  readonly processes: GroupsOpener;
  readonly callable: CallableTools;
  /** Time limit of a check, and of finding its tools, in milliseconds; 5,000 by default. */
  readonly checkMs?: number;
  /** Time limit of waiting for other checks, in milliseconds; 1,000 by default. */
  readonly waitMs?: number;
}

/** The default time limits; see `TypeCheckParts`. */
const CHECK_MS = 5_000;
const WAIT_MS = 1_000;
/** Time limit of the start of the process. Running checks do not extend it. */
const START_MS = 30_000;
const LONGEST_CODE = 200_000;
const MOST_WAITING = 16;
/** The maximum number of servers whose tools are declared, and of unlisted names to look up. */
const MOST_USED_SERVERS = 50;
/** The memory limit. A process that exceeds it is replaced. */
const MOST_BYTES = 768 << 20;

/** Checks one piece of code at a time. Other code waits only briefly, then runs unchecked. */
export class TypeChecker implements TypeCheck, AsyncDisposable {
  readonly #parts: TypeCheckParts;
  readonly #turns = new CheckTurns();
  #server: LanguageServer | undefined;
  #lastCheck: Promise<unknown> = Promise.resolve();
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Creates a checker. Starts nothing. */
  constructor(parts: TypeCheckParts) {
    this.#parts = parts;
  }

  /** Checks code against the tools that it uses. Throws only if `signal` aborts. */
  async check({ code, actor, signal }: CodeToCheck): Promise<TypeCheckResult> {
    signal.throwIfAborted();
    if (code.length > LONGEST_CODE) {
      return { kind: "unchecked", why: `it is longer than ${LONGEST_CODE} characters` };
    }
    // Code that calls no tool needs no check.
    if (!new Words(code).has("mcp")) return { kind: "checked" };
    const { checkMs = CHECK_MS, waitMs = WAIT_MS } = this.#parts;
    // Finds the tools before waiting for a turn, so that a slow server does not delay other code.
    const callable = await this.#withinTime(this.#findCallable(code), signal);
    if (callable === undefined) {
      return {
        kind: "unchecked",
        why: `its tools were not listed within ${durationText(checkMs)}`,
      };
    }
    if (!await this.#turns.take(actor, { waitMs, signal })) {
      signal.throwIfAborted();
      return { kind: "unchecked", why: "other code is being checked" };
    }
    clearTimeout(this.#idle);
    const work = this.#checkNow(code, callable);
    this.#lastCheck = work.finally(() => {
      if (!this.#turns.pass()) this.#scheduleEnd();
    });
    return await unlessAborted(work, signal);
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#server?.[Symbol.asyncDispose]();
    await this.#lastCheck;
  }

  async #checkNow(code: string, callable: CallableServers): Promise<TypeCheckResult> {
    const { checkMs = CHECK_MS } = this.#parts;
    try {
      const checked = new CheckedText(code, callable);
      const server = this.#server = await this.#openServer();
      await this.#waitUntilReady(server);
      using _ = callAfter(checkMs, () => server.end(`it took over ${durationText(checkMs)}`));
      const problems = checked.problemsOf(await server.check(checked.text));
      if (typeof problems === "string") return { kind: "unchecked", why: problems };
      if (problems.length === 0) return { kind: "checked" };
      return { kind: "problems", problems };
    } catch (error) {
      return { kind: "unchecked", why: `the type checker failed: ${Object(error).message}` };
    }
  }

  /** Returns the result of work; undefined if it takes longer than `checkMs`. */
  async #withinTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const late = Promise.withResolvers<undefined>();
    using _ = callAfter(this.#parts.checkMs ?? CHECK_MS, () => late.resolve(undefined));
    return await unlessAborted(Promise.race([work, late.promise]), signal);
  }

  async #waitUntilReady(server: LanguageServer): Promise<void> {
    using _ = callAfter(
      START_MS,
      () => server.end(`it did not start in ${durationText(START_MS)}`),
    );
    await server.ready;
  }

  async #openServer(): Promise<LanguageServer> {
    const server = this.#server;
    if (server !== undefined && !server.isOver) {
      if (server.bytes() <= MOST_BYTES) return server;
      await server[Symbol.asyncDispose]();
    }
    const { folder, processes } = this.#parts;
    const groups = await processes.groups();
    if (this.#isClosed) throw new Error("PML is ending");
    return new LanguageServer(folder, groups);
  }

  /** Returns the servers that the code can call, with the tools of the servers that it names. */
  async #findCallable(code: string): Promise<CallableServers> {
    const { callable } = this.#parts;
    const words = new Words(code);
    const serverNames = callable.names();
    const otherNames = [...words.servers()].filter((name) => !serverNames.includes(name)).slice(
      0,
      MOST_USED_SERVERS,
    );
    // A full name, as in `mcp["server:tool"](args)`, is not looked up. If it is unknown, the call
    // fails.
    const areCallable = await Promise.all(
      otherNames.map((name) => name.includes(":") || callable.isCallable(name).catch(() => true)),
    );
    const namedServers = serverNames.filter((name) => words.has(name)).slice(0, MOST_USED_SERVERS);
    const usedServers = await Promise.all(namedServers.map(async (name) => {
      const tools = await callable.tools(name).catch(() => undefined);
      return tools === undefined || tools.length === 0 ? [] : [{ name, tools }];
    }));
    return {
      serverNames: [...serverNames, ...otherNames.filter((_, index) => areCallable[index])],
      usedServers: usedServers.flat(),
    };
  }

  #scheduleEnd(): void {
    if (this.#isClosed) return;
    this.#idle = setTimeout(() => {
      const server = this.#server;
      this.#server = undefined;
      void server?.[Symbol.asyncDispose]();
    }, this.#parts.policy.config.limits.idleMs);
    // The timer must not keep PML running.
    Deno.unrefTimer(this.#idle as unknown as number);
  }
}

/** Resolves the wait for a turn. */
type ResolveTurn = (isTaken: boolean) => void;

/** Allows one check after another. Clients take turns, regardless of the number of their checks. */
class CheckTurns {
  #isTaken = false;
  #count = 0;
  readonly #waiting = new Map<string, Set<ResolveTurn>>();

  /** Waits for a turn. Resolves with false after the time limit, or if too many checks wait. */
  async take(
    client: string,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    if (!this.#isTaken) return this.#isTaken = true;
    if (this.#count >= MOST_WAITING) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting = this.#waiting.get(client) ?? new Set();
    this.#waiting.set(client, waiting.add(resolve));
    this.#count++;
    const stopWaiting = () => void (this.#remove(client, resolve) && resolve(false));
    using _ = callAfter(waitMs, stopWaiting);
    using __ = onAbort(signal, stopWaiting);
    return await promise;
  }

  /** Ends a turn and starts the turn of the next client. Returns whether a client waited. */
  pass(): boolean {
    const [[client, waiting] = []] = this.#waiting;
    const [next] = waiting ?? [];
    this.#isTaken = next !== undefined;
    if (client === undefined || waiting === undefined || next === undefined) return false;
    this.#remove(client, next);
    // Checks of other clients run before the next check of this client.
    if (this.#waiting.delete(client)) this.#waiting.set(client, waiting);
    next(true);
    return true;
  }

  #remove(client: string, resolve: ResolveTurn): boolean {
    const waiting = this.#waiting.get(client);
    if (!waiting?.delete(resolve)) return false;
    this.#count--;
    if (waiting.size === 0) this.#waiting.delete(client);
    return true;
  }
}
