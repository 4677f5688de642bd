/**
 * Starts the child processes in which modules run, confined by a layer of the operating system.
 *
 * @module
 */

import type {
  ChildOptions,
  Layer,
  LogEntry,
  ModuleOptions,
  OsLayers,
  Sandbox,
} from "../../sandbox/sandbox.ts";
import { NO_ACCESS, ToolChildren } from "./_tool_children.ts";
import type { NamedModule } from "./loader.ts";
import type { ModuleHost } from "./module_host.ts";

/** Starts the child processes in which modules run. */
export class ChildStarter {
  /** The options of children. */
  readonly children: ToolChildren;
  readonly #host: ModuleHost;
  readonly #closing: AbortSignal;
  readonly #layers = new Map<string, OsLayers>();

  /** Starts nothing yet. `closing` aborts when PML ends. */
  constructor(host: ModuleHost, closing: AbortSignal) {
    this.children = new ToolChildren(host);
    this.#host = host;
    this.#closing = closing;
  }

  /** The options of children without grants. */
  get closedOptions(): ChildOptions {
    return this.children.optionsFor(NO_ACCESS);
  }

  /**
   * Starts a child. `place` counts under the limit of children; released when the child has ended.
   */
  async open(child: ChildOptions, place: Disposable | undefined): Promise<Sandbox> {
    if (place === undefined) throw new Error("there is no place for one more child");
    using opening = new DisposableStack();
    opening.use(place);
    const sandbox = await this.#start(child);
    const whileOpen = opening.move();
    void sandbox.ended.then(() => whileOpen.dispose());
    return sandbox;
  }

  /** Starts a child without grants, and loads a module into it. */
  async openClosed(module: NamedModule, place: Disposable | undefined): Promise<Sandbox> {
    return await this.load(await this.open(this.closedOptions, place), module);
  }

  /** Loads a module into a child. */
  load(
    sandbox: Sandbox,
    module: NamedModule & Pick<ModuleOptions, "results">,
  ): Promise<Sandbox> {
    const onLog = (entry: LogEntry) => this.#host.logModule(module.name, entry);
    return sandbox.load({ ...module, onLog, signal: this.#closing });
  }

  async #start(child: ChildOptions): Promise<Sandbox> {
    // Loaded here, so that a process of PML that runs no module does not load the sandbox.
    const { OsLayers, Sandbox } = await import("../../sandbox/sandbox.ts");
    const { groups, osLayer: choice } = this.#host;
    const begin = (layer: Layer) => Sandbox.open(child, { layer, groups, signal: this.#closing });
    // No layer confines a module that may run programs: the layer would also confine the programs,
    // which have the user's rights.
    if (child.run.length > 0) return await begin({ kind: "none", why: "it runs programs" });
    const { workspace, environment } = child;
    const key = JSON.stringify([choice, workspace]);
    const layers = this.#layers.get(key) ??
      new OsLayers(choice, environment.PATH, workspace);
    this.#layers.set(key, layers);
    return await layers.start(begin);
  }
}
