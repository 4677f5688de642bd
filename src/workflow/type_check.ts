/**
 * Checks the types of code before it runs, in a process that is started by the first check and
 * ended when it is idle. Code that cannot be checked runs all the same.
 *
 * @module
 */

import { after, unlessAborted } from "../io/waiting.ts";
import { CheckedText, Words } from "./_checked_text.ts";
import { LanguageServer, type LanguageServerOptions } from "./_language_server.ts";
import type { TypesChecked } from "./code_tool.ts";
import type { DeclarationOptions, DeclaredServer } from "./declarations.ts";

/** Checks code. The lines of problems are those of the code. */
export type CheckTypes = (code: string, signal: AbortSignal) => Promise<TypesChecked>;

/** The options of `TypeChecker`. */
export interface TypeCheckerOptions extends DeclarationOptions {
  /** The folder for the compiler's settings. */
  readonly folder: string;
  readonly groups: () => Promise<LanguageServerOptions["groups"]>;
  /** Returns how long the process may be idle. */
  readonly idleMs: () => number;
  /** Returns the names of all servers. */
  readonly names: () => readonly string[];
  /** Returns the tools of a server; undefined if they are not known. */
  readonly tools: (server: string) => Promise<DeclaredServer["tools"] | undefined>;
  /** Whether a name that is no server's can be called all the same. */
  readonly isOffered: (server: string) => Promise<boolean>;
  /** How long a check may take; 30,000 by default. */
  readonly checkMs?: number;
}

const CHECK_MS = 30_000;
const LONGEST_CODE = 200_000;
const MOST_WAITING = 16;
const MOST_USED = 50;
/** A process that has grown over this is replaced. */
const MOST_BYTES = 768 << 20;

/** Checks code, one piece after the other. */
export class TypeChecker implements AsyncDisposable {
  readonly #options: TypeCheckerOptions;
  #server: LanguageServer | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Takes the options; starts nothing. */
  constructor(options: TypeCheckerOptions) {
    this.#options = options;
  }

  /** Checks code against the tools that it uses. It throws only if `signal` aborts. */
  readonly check: CheckTypes = async (code, signal) => {
    signal.throwIfAborted();
    if (code.length > LONGEST_CODE) {
      return { kind: "unchecked", why: `it is longer than ${LONGEST_CODE} characters` };
    }
    // Code that calls nothing has no wait, and no process, for its check.
    if (!new Words(code).has("mcp")) return { kind: "checked" };
    if (this.#waiting >= MOST_WAITING) {
      return { kind: "unchecked", why: "too much other code waits for its check" };
    }
    this.#waiting++;
    clearTimeout(this.#idle);
    const work = this.#last.then(() => this.#checked(code, signal));
    this.#last = work.catch(() => {}).finally(() => {
      if (--this.#waiting === 0) this.#rest();
    });
    return await unlessAborted(work, signal);
  };

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#server?.[Symbol.asyncDispose]();
    await this.#last;
  }

  async #checked(code: string, signal: AbortSignal): Promise<TypesChecked> {
    signal.throwIfAborted();
    const { checkMs = CHECK_MS } = this.#options;
    try {
      const checked = new CheckedText(code, await this.#callable(code), this.#options);
      const server = this.#server = await this.#running();
      using _ = after(checkMs, () => server.end(`it took over ${checkMs} ms`));
      const problems = checked.problemsOf(await server.check(checked.text));
      if (typeof problems === "string") return { kind: "unchecked", why: problems };
      if (problems.length === 0) return { kind: "checked" };
      return { kind: "problems", problems };
    } catch (error) {
      return { kind: "unchecked", why: `the type checker failed: ${Object(error).message}` };
    }
  }

  async #running(): Promise<LanguageServer> {
    const server = this.#server;
    if (server !== undefined && !server.isOver) {
      if (server.bytes() <= MOST_BYTES) return server;
      await server[Symbol.asyncDispose]();
    }
    const { folder, groups } = this.#options;
    const known = await groups();
    if (this.#isClosed) throw new Error("PML is ending");
    return new LanguageServer({ folder, groups: known });
  }

  /** Returns what the code can call, with the tools of those servers that it names. */
  async #callable(code: string) {
    const { names, tools, isOffered } = this.#options;
    const words = new Words(code);
    const all = names();
    const strange = [...words.servers()].filter((name) => !all.includes(name)).slice(0, MOST_USED);
    // A whole name, as in `mcp["server:tool"](args)`, is looked up when it runs.
    const offered = await Promise.all(
      strange.map((name) => name.includes(":") || isOffered(name).catch(() => true)),
    );
    const named = all.filter((name) => words.has(name)).slice(0, MOST_USED);
    const used = await Promise.all(named.map(async (name) => {
      const known = await tools(name).catch(() => undefined);
      return known === undefined || known.length === 0 ? [] : [{ name, tools: known }];
    }));
    return { names: [...all, ...strange.filter((_, at) => offered[at])], used: used.flat() };
  }

  #rest(): void {
    if (this.#isClosed) return;
    this.#idle = setTimeout(() => {
      const server = this.#server;
      this.#server = undefined;
      void server?.[Symbol.asyncDispose]();
    }, this.#options.idleMs());
    // This timer does not keep PML running.
    Deno.unrefTimer(this.#idle as unknown as number);
  }
}
