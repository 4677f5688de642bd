/**
 * Runs a tool of a module: in the sandbox child of its server and permissions, as MCP's result.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../core/call.ts";
import { textResult } from "../core/call.ts";
import { type Check, check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { defined, isObject, type Json } from "../core/json.ts";
import { checkBlocks } from "../core/result_bounds.ts";
import { joinedPermissions, NO_PERMISSIONS, type Permissions } from "../core/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { Places } from "../io/places.ts";
import { Pool, type PoolLimits } from "../io/pool.ts";
import { type Access, accessOf } from "../permissions/grants.ts";
import { permissionLines } from "../permissions/permission_lines.ts";
import type {
  ChildOptions,
  Groups,
  Layer,
  LogEntry,
  OsLayerChoice,
  OsLayers,
  Protection,
  Sandbox,
  SandboxLimits,
} from "../sandbox/sandbox.ts";
import { type Inspection, Loader, type Module, type ModuleUse } from "./loader.ts";
import type { ModuleFiles } from "./module_files.ts";
import { WarmChildren } from "./warm_child.ts";

/** What running modules needs from outside; functions are asked at each call. */
export interface ModulesOptions {
  readonly home: string;
  readonly files: Pick<ModuleFiles, "identify">;
  readonly workspace: () => string;
  readonly protection: () => Omit<Protection, "granted">;
  /** Gives a variable that was granted. */
  readonly variable: (name: string) => string | undefined;
  /** What the programs of a module find in their environment, as far as it is set. */
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: () => SandboxLimits & PoolLimits & {
    readonly moduleBytes: number;
    /** How many children live at once. */
    readonly children: number;
  };
  /** Keeps what is started, so that it ends with PML however it ends. */
  readonly groups: Groups;
  /** What the system is to hold modules with. */
  readonly osLayer: () => OsLayerChoice;
  /** Is told what modules log. */
  readonly onLog: (server: string, entry: LogEntry) => void;
}

const SELF_TEST_MS = 10_000;
/** How often a call tells that it waits. */
const WAITS_MS = 1_000;

const NO_ACCESS: Access = { ...NO_PERMISSIONS, granted: [] };

/** Runs modules on this machine. */
export class Modules implements AsyncDisposable {
  readonly #options: ModulesOptions;
  readonly #loader: Loader;
  readonly #pool: Pool<Sandbox>;
  readonly #warm: WarmChildren<Sandbox>;
  readonly #places: Places;
  readonly #layers = new Map<string, OsLayers>();
  readonly #closing = new AbortController();

  /** Takes what they run in; nothing is started before the first call. */
  constructor(options: ModulesOptions) {
    this.#options = options;
    this.#places = new Places({
      most: () => options.limits().children,
      ending: () => this.#pool.ending,
      free: () => this.#warm.giveUp() || this.#pool.giveUp(),
    });
    const { limits } = options;
    this.#pool = new Pool({ limits, code: "SANDBOX_CRASHED", places: this.#places });
    this.#warm = new WarmChildren(() => limits().idleMs);
    this.#loader = new Loader({
      home: options.home,
      files: options.files,
      moduleBytes: () => limits().moduleBytes,
      inspect: (name, code) => this.#inspect(name, code),
    });
  }

  /** Reads a module and what it says of itself; its hash must have been approved. */
  load(use: ModuleUse): Promise<Module> {
    return this.#loader.load(use);
  }

  /** Says in plain sentences what a tool of a module gets, and what it asks for in vain. */
  async permissionLines(use: ModuleUse, tool: string): Promise<readonly string[]> {
    const module = await this.load(use);
    const workspace = this.#options.workspace();
    return permissionLines(askedBy(module, tool), this.#accessOf(use, { module, tool }), workspace);
  }

  /** Tells whether a tool may neither write nor use the network or programs. */
  async onlyReads(use: ModuleUse, tool: string): Promise<boolean> {
    const module = await this.load(use);
    const { write, net, run } = this.#accessOf(use, { module, tool });
    return [...write, ...net, ...run].length === 0;
  }

  /** Runs a call that passed the gates, with the grants that were shown. */
  async call(use: ModuleUse, call: Call): Promise<Outcome> {
    const { server, tool } = splitToolId(call.id);
    const { isNested: hurried = false, signal } = call;
    using hurry = new DisposableStack();
    if (hurried) hurry.use(this.#places.hurry(server));
    const module = await this.load(use);
    const access = this.#accessOf(use, { module, tool });
    // What PML ships needs no more of its programs.
    const writesOnly = use.source.kind === "builtin" && !access.run.includes("*");
    const child = { ...this.#childOptions(access), writesOnly };
    const warm = JSON.stringify([child, this.#options.osLayer()]);
    const key = JSON.stringify([server, module.integrity, warm]);
    if (hurried) hurry.use(this.#places.hurry(key));
    hurry.defer(this.#tellWhileWaiting(key, call));
    let started = false;
    const value = await this.#pool.use(key, {
      ...{ name: server, signal, hurried },
      start: async () => {
        started = true;
        const open = async () => this.#open(child, await this.#places.take(key));
        return this.#load(await this.#warm.take(warm, open), module);
      },
      use: (sandbox) => answer(sandbox, call, tool),
    });
    // Only where one was used up: tools of other permissions in turn would each start one.
    if (started && !this.#closing.signal.aborted) {
      this.#warm.keep(warm, () => this.#open(child, this.#places.spare()));
    }
    return { kind: "result", result: value };
  }

  /** Has the deadline of a call wait with it for a place; gives the end of that. */
  #tellWhileWaiting(key: string, { onProgress }: Call): () => void {
    const message = "Waits until fewer sandbox children run (limits.children)";
    let told = 0;
    const timer = setInterval(() => {
      // It has to grow, and what the tool itself tells then may begin at nothing.
      if (this.#places.waits(key)) onProgress?.({ progress: -1 / ++told, message });
    }, WAITS_MS);
    return () => clearInterval(timer);
  }

  /** Proves that a module runs here and reaches nothing, and tells what the system adds to that. */
  async checks(): Promise<readonly Check[]> {
    let confined: string | undefined;
    const sandbox = await check("sandbox", "a module runs and reaches nothing", async () => {
      confined = await this.#selfTest();
    });
    const { osChecks } = await import("../sandbox/sandbox.ts");
    return [sandbox, ...(confined === undefined ? [] : await osChecks(confined))];
  }

  /** The sandbox tests itself at every start; gives what the system held it with. */
  async #selfTest(): Promise<string> {
    const code = new TextEncoder().encode("export const probe = () => true;");
    await using sandbox = await this.#closed("self-test", code);
    const signal = AbortSignal.timeout(SELF_TEST_MS);
    await sandbox.call({ fn: "probe", arguments: {}, signal });
    return sandbox.confined;
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A module that is still loading is not waited for.
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the module: PML is ending"));
    await Promise.all([this.#pool, this.#warm].map((kept) => kept[Symbol.asyncDispose]()));
  }

  async #inspect(name: string, code: Uint8Array): Promise<Inspection> {
    await using sandbox = await this.#closed(name, code);
    return { meta: sandbox.meta(), exports: sandbox.exports() };
  }

  /** Starts a module in a child that is granted nothing. */
  async #closed(name: string, code: Uint8Array): Promise<Sandbox> {
    const child = await this.#open(this.#childOptions(NO_ACCESS), await this.#places.take(name));
    return await this.#load(child, { name, code });
  }

  /** Starts a child on a place, which is free again when the child has ended. */
  async #open(child: ChildOptions, place: Disposable | undefined): Promise<Sandbox> {
    if (place === undefined) throw new Error("there is no place for one more child");
    using opening = new DisposableStack();
    opening.use(place);
    const sandbox = await this.#start(child);
    const held = opening.move();
    void sandbox.ended.then(() => held.dispose());
    return sandbox;
  }

  async #start(child: ChildOptions): Promise<Sandbox> {
    // The sandbox is loaded by the first call: a start that serves none goes without.
    const { OsLayers, Sandbox } = await import("../sandbox/sandbox.ts");
    const begin = (layer: Layer) =>
      Sandbox.open(child, { layer, groups: this.#options.groups, signal: this.#closing.signal });
    // Programs run with the person's rights: only limits hold them.
    if (child.run.length > 0) return await begin({ kind: "none", why: "it runs programs" });
    const [wanted, { workspace, environment }] = [this.#options.osLayer(), child];
    const key = JSON.stringify([wanted, workspace]);
    const layers = this.#layers.get(key) ??
      new OsLayers({ wanted, workspace, path: environment.PATH });
    this.#layers.set(key, layers);
    return await layers.start(begin);
  }

  #load(
    sandbox: Sandbox,
    { name, code }: { readonly name: string; readonly code: Uint8Array },
  ): Promise<Sandbox> {
    const { signal } = this.#closing;
    const onLog = (entry: LogEntry) => this.#options.onLog(name, entry);
    return sandbox.load({ name, code, onLog, signal });
  }

  #accessOf(
    { source, grants: granted }: ModuleUse,
    { module, tool }: { readonly module: Module; readonly tool: string },
  ): Access {
    const shipped = source.kind === "builtin" ? source.grants : undefined;
    // What ships with PML and what the person grants are one.
    const grants = joinedPermissions([shipped ?? {}, granted ?? {}]);
    return accessOf(askedBy(module, tool), { workspace: this.#options.workspace(), grants });
  }

  #childOptions({ granted, env, ...access }: Access): ChildOptions {
    const { home, limits, protection, workspace, variable, environment } = this.#options;
    const { heapMb, rssMb, frameBytes, frames, resultBytes, writeBytes, startMs } = limits();
    return {
      ...access,
      home,
      workspace: workspace(),
      env: Object.fromEntries(env.map((name) => [name, variable(name) ?? null])),
      environment,
      protection: { ...protection(), granted },
      limits: { heapMb, rssMb, frameBytes, frames, resultBytes, writeBytes, startMs },
    };
  }
}

function askedBy({ meta }: Module, tool: string): Permissions {
  const said = meta.tools.find(({ definition }) => definition.name === tool);
  return said?.permissions ?? NO_PERMISSIONS;
}

async function answer(sandbox: Sandbox, call: Call, tool: string): Promise<ToolResult> {
  try {
    const { signal, onProgress, arguments: args } = call;
    return asResult(await sandbox.call({ fn: tool, arguments: args, signal, onProgress }));
  } catch (error) {
    const { ModuleFailure } = await import("../sandbox/sandbox.ts");
    if (!(error instanceof ModuleFailure)) throw error;
    return { ...textResult(error.message), isError: true };
  }
}

/** Makes MCP's result of what a function returned: text, a result as it is, or structured JSON. */
export function asResult(value: Json): ToolResult {
  if (value === null) return { content: [] };
  if (typeof value === "string") return textResult(value);
  if (isToolResult(value)) return ownResult(value);
  return { ...textResult(JSON.stringify(value)), structuredContent: value };
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) &&
    value.content.every((block) => isObject(block) && typeof block.type === "string");
}

/** Takes what a module may say; with any other field it could pass for a question of PML. */
function ownResult(result: ToolResult): ToolResult {
  const { content, structuredContent, isError, _meta } = result;
  checkBlocks("the result", result);
  return { content, ...defined({ structuredContent, isError, _meta }) };
}
