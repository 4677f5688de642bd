/**
 * The PMLs of other workspaces, for the page and for `pml approve`: one for each workspace that they
 * show, opened when it is first needed.
 *
 * @module
 */

import { isAbsolute } from "node:path";
import { type App, openApp } from "../app/app.ts";
import { HOMES, readEnvironment } from "../config/env.ts";
import { pathExists } from "../config/workspace.ts";
import { messageOf, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import { commandProcess, logWriter } from "./command_process.ts";

/** The maximum number of workspaces that are open at once. */
const OPEN_MAX = 30;

/** The open PML of a workspace. */
interface OpenApp {
  readonly app: Promise<App>;
  /** The number of actions and plans that use the PML now. */
  uses: number;
}

/** Opens a PML for each workspace. */
export class WorkspaceApps implements AsyncDisposable {
  /** The PML of the folder that the command was started in. */
  readonly here: App;
  readonly #signal: AbortSignal;
  readonly #process = commandProcess();
  readonly #write = logWriter();
  readonly #maxOpen: number;
  /** The PMLs by the folders of workspaces. The least recently used one comes first. */
  readonly #open = new Map<string, OpenApp>();

  /** `here` stays open when this object is disposed. */
  constructor(here: App, signal: AbortSignal, maxOpen = OPEN_MAX) {
    this.here = here;
    this.#signal = signal;
    this.#maxOpen = maxOpen;
  }

  /** The number of other workspaces that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Returns whether the folder of a workspace exists. */
  has(root: string): boolean {
    return root === this.here.config().workspace || pathExists(root);
  }

  /**
   * Runs an action in a workspace, with its present configuration. The workspace stays open until
   * the action has ended. Throws `BAD_ARGUMENTS` if `root` is not a workspace, or too many are in use.
   */
  async use<T>(root: string, act: (context: CommandContext) => T | Promise<T>): Promise<T> {
    if (root === this.here.config().workspace) return await act(await this.#contextOf(this.here));
    const entry = await this.#openAt(root);
    try {
      return await act(await this.#contextOf(await entry.app));
    } finally {
      entry.uses--;
    }
  }

  /** Keeps the workspace of a context open until the result is disposed. */
  hold({ app }: Pick<CommandContext, "app">): Disposable {
    const entry = this.#open.get(app.config().workspace);
    const stack = new DisposableStack();
    if (entry !== undefined) {
      entry.uses++;
      stack.defer(() => entry.uses--);
    }
    return stack;
  }

  /** Closes all PMLs that it opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    const entries = [...this.#open.values()];
    this.#open.clear();
    await Promise.allSettled(entries.map(closeApp));
  }

  /**
   * Returns the variables for other workspaces, without those that a file in the first folder may have
   * set: they could name a home, or trust a file elsewhere.
   */
  #variables(): Readonly<Record<string, string>> {
    const { environment: { get } } = this.here.loaded();
    const variables: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.#process.variables)) {
      // PML_WORKSPACE would replace the folder of the other workspace.
      if (name === "PML_WORKSPACE") continue;
      // guard: page-variables
      if (get(name) === undefined) continue;
      variables[name] = HOMES.includes(name) ? get(name) ?? value : value;
    }
    return variables;
  }

  async #contextOf(app: App): Promise<CommandContext> {
    if (!app.policy.isCurrent()) await app.policy.refresh();
    return { app, signal: this.#signal };
  }

  /** Returns the PML of a workspace, and counts one more use of it. */
  async #openAt(root: string): Promise<OpenApp> {
    if (!this.#open.has(root)) await this.#closeUnused();
    const existing = this.#open.get(root);
    if (existing !== undefined) {
      // A new entry of a map comes last, so this one is now the most recently used.
      this.#open.delete(root);
      this.#open.set(root, existing);
      existing.uses++;
      return existing;
    }
    // guard: page-workspace
    if (!isAbsolute(root) || !this.has(root) || this.#open.size >= this.#maxOpen) {
      throw new PmlError("BAD_ARGUMENTS", `Cannot open the workspace ${quoted(root, 400)}`);
    }
    // A command on a terminal logs only warnings.
    const { logLevel } = this.here.loaded().environment;
    const environment = { ...readEnvironment(this.#variables(), root), logLevel };
    const app = openApp({ cwd: root, environment, write: this.#write }).then(async (app) => {
      if (app.config().workspace === root) return app;
      await app[Symbol.asyncDispose]();
      throw new PmlError("BAD_ARGUMENTS", `${quoted(root, 400)} is no longer a workspace`);
    });
    const entry: OpenApp = { app, uses: 1 };
    this.#open.set(root, entry);
    app.catch(() => this.#open.delete(root));
    return entry;
  }

  /** If too many workspaces are open, closes the unused one whose last use is the oldest. */
  async #closeUnused(): Promise<void> {
    if (this.#open.size < this.#maxOpen) return;
    for (const [root, entry] of this.#open) {
      if (entry.uses > 0) continue;
      this.#open.delete(root);
      await closeApp(entry).catch((error) => this.here.log.warn(messageOf(error)));
      return;
    }
  }
}

async function closeApp({ app }: OpenApp): Promise<void> {
  await (await app)[Symbol.asyncDispose]();
}
