/**
 * Checks the types of code before it runs. The first check starts a process, which ends when it is
 * idle. Code that cannot be checked runs anyway.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { durationText } from "../core/amounts.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import { after, onAbort, unlessAborted } from "../io/waiting.ts";
import { type Callable, CheckedText, Words } from "./_checked_text.ts";
import { LanguageServer } from "./_language_server.ts";
import type { CodeToCheck, TypeCheck, TypesChecked } from "./checked_code.ts";
import type { DeclaredServer } from "./declarations.ts";

/** The tools that code may call. */
export interface CallableTools {
  /** Returns the names of all servers. */
  names(): readonly string[];
  /** Returns the tools of a server; undefined if they are not known. */
  tools(server: string): Promise<DeclaredServer["tools"] | undefined>;
  /** Returns whether a name that is not a server can still be called. */
  isOffered(server: string): Promise<boolean>;
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

const CHECK_MS = 5_000;
const WAIT_MS = 1_000;
/** Time limit of the start of the process. Running checks do not extend it. */
const START_MS = 30_000;
const LONGEST_CODE = 200_000;
const MOST_WAITING = 16;
const MOST_USED = 50;
/** The memory limit. A process that exceeds it is replaced. */
const MOST_BYTES = 768 << 20;

/** Checks one piece of code at a time. Others wait only briefly, then run unchecked. */
export class TypeChecker implements TypeCheck, AsyncDisposable {
  readonly #parts: TypeCheckParts;
  readonly #turns = new CheckTurns();
  #server: LanguageServer | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Creates a checker. Starts nothing. */
  constructor(parts: TypeCheckParts) {
    this.#parts = parts;
  }

  /** Checks code against the tools that it uses. Throws only if `signal` aborts. */
  async check({ code, actor, signal }: CodeToCheck): Promise<TypesChecked> {
    signal.throwIfAborted();
    if (code.length > LONGEST_CODE) {
      return { kind: "unchecked", why: `it is longer than ${LONGEST_CODE} characters` };
    }
    // Code that calls no tool needs no check.
    if (!new Words(code).has("mcp")) return { kind: "checked" };
    const { checkMs = CHECK_MS, waitMs = WAIT_MS } = this.#parts;
    // Finds the tools before taking a turn, so that a slow server delays no other code.
    const callable = await this.#timely(this.#callable(code), signal);
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
    const work = this.#checked(code, callable);
    this.#last = work.finally(() => {
      if (!this.#turns.pass()) this.#rest();
    });
    return await unlessAborted(work, signal);
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#server?.[Symbol.asyncDispose]();
    await this.#last;
  }

  async #checked(code: string, callable: Callable): Promise<TypesChecked> {
    const { checkMs = CHECK_MS } = this.#parts;
    try {
      const checked = new CheckedText(code, callable);
      const server = this.#server = await this.#running();
      await this.#started(server);
      using _ = after(checkMs, () => server.end(`it took over ${durationText(checkMs)}`));
      const problems = checked.problemsOf(await server.check(checked.text));
      if (typeof problems === "string") return { kind: "unchecked", why: problems };
      if (problems.length === 0) return { kind: "checked" };
      return { kind: "problems", problems };
    } catch (error) {
      return { kind: "unchecked", why: `the type checker failed: ${Object(error).message}` };
    }
  }

  /** Returns the result of work; undefined if it takes longer than a check may. */
  async #timely<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const late = Promise.withResolvers<undefined>();
    using _ = after(this.#parts.checkMs ?? CHECK_MS, () => late.resolve(undefined));
    return await unlessAborted(Promise.race([work, late.promise]), signal);
  }

  async #started(server: LanguageServer): Promise<void> {
    using _ = after(START_MS, () => server.end(`it did not start in ${durationText(START_MS)}`));
    await server.ready;
  }

  async #running(): Promise<LanguageServer> {
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

  /** Returns the servers that the code can call, with the tools of those that it names. */
  async #callable(code: string): Promise<Callable> {
    const { callable } = this.#parts;
    const words = new Words(code);
    const all = callable.names();
    const strange = [...words.servers()].filter((name) => !all.includes(name)).slice(0, MOST_USED);
    // A full name, as in `mcp["server:tool"](args)`, is resolved by the call.
    const offered = await Promise.all(
      strange.map((name) => name.includes(":") || callable.isOffered(name).catch(() => true)),
    );
    const named = all.filter((name) => words.has(name)).slice(0, MOST_USED);
    const used = await Promise.all(named.map(async (name) => {
      const tools = await callable.tools(name).catch(() => undefined);
      return tools === undefined || tools.length === 0 ? [] : [{ name, tools: tools }];
    }));
    return { names: [...all, ...strange.filter((_, at) => offered[at])], used: used.flat() };
  }

  #rest(): void {
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

/** Grants one turn at a time. Clients take turns, however many checks each one waits for. */
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
    const own = this.#waiting.get(client) ?? new Set();
    this.#waiting.set(client, own.add(resolve));
    this.#count++;
    const leave = () => void (this.#remove(client, resolve) && resolve(false));
    using _ = after(waitMs, leave);
    using __ = onAbort(signal, leave);
    return await promise;
  }

  /** Ends a turn and starts the one of the next client. Returns whether there was one. */
  pass(): boolean {
    const [[client, own] = []] = this.#waiting;
    const [next] = own ?? [];
    this.#isTaken = next !== undefined;
    if (client === undefined || own === undefined || next === undefined) return false;
    this.#remove(client, next);
    // Checks of other clients run before the next check of this client.
    if (this.#waiting.delete(client)) this.#waiting.set(client, own);
    next(true);
    return true;
  }

  #remove(client: string, one: ResolveTurn): boolean {
    const own = this.#waiting.get(client);
    if (!own?.delete(one)) return false;
    this.#count--;
    if (own.size === 0) this.#waiting.delete(client);
    return true;
  }
}
