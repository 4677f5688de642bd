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
import { splitToolId } from "../core/tool_id.ts";
import { NO_PERMISSIONS } from "../core/tool.ts";
import type {
  OsLayerChoice,
  OsLayers,
  Protection,
  Sandbox,
  SandboxLimits,
  SandboxOptions,
} from "../sandbox/sandbox.ts";
import { fileAccess, type Grants } from "./grants.ts";
import { type Inspection, Loader, type Module } from "./loader.ts";
import type { ModuleCode, ModuleFiles, ModuleSource } from "./module_files.ts";
import { Pool } from "./pool.ts";

/** What running modules needs from outside; functions are asked at each call. */
export interface LocalOptions {
  readonly home: string;
  /** Gives the bytes of a module, and only those that were approved. */
  readonly files: Pick<ModuleFiles, "identify">;
  readonly source: (server: string) => ModuleSource | undefined;
  readonly workspace: () => string;
  readonly grants: (server: string) => Grants | undefined;
  readonly protection: () => Omit<Protection, "granted">;
  readonly limits: () => SandboxLimits & { readonly idleMs: number; readonly moduleBytes: number };
  /** What the system is to hold modules with, and the person's `PATH`. */
  readonly osLayer: () => OsLayerChoice;
  readonly path: string | undefined;
  /** Is told what modules log. */
  readonly onLog: (
    server: string,
    entry: { readonly level: string; readonly text: string },
  ) => void;
}

/** The SDK looks at each block on the thread that serves everybody: a million took it 9 s. */
const BLOCKS_MAX = 4_096;
const SELF_TEST_MS = 10_000;

/** Runs modules on this machine. */
export class Local implements AsyncDisposable {
  readonly #options: LocalOptions;
  readonly #loader: Loader;
  readonly #pool: Pool<Sandbox>;
  readonly #layers = new Map<string, OsLayers>();
  readonly #closing = new AbortController();

  /** Makes the local side; nothing is started before the first call. */
  constructor(options: LocalOptions) {
    this.#options = options;
    this.#pool = new Pool(() => options.limits().idleMs);
    this.#loader = new Loader({
      home: options.home,
      files: options.files,
      moduleBytes: () => options.limits().moduleBytes,
      inspect: (name, code) => this.#inspect(name, code),
    });
  }

  /** Reads a module's bytes and hash without running it. */
  identify(server: string): ModuleCode {
    const { files, limits } = this.#options;
    return files.identify(this.#source(server), limits().moduleBytes);
  }

  /** Reads a module and what it says of itself; its hash must have been approved. */
  load(server: string): Promise<Module> {
    return this.#loader.load(this.#source(server));
  }

  /** Runs a call that passed the gates. */
  async call(call: Call): Promise<Outcome> {
    const { server, tool } = splitToolId(call.id);
    const module = await this.load(server);
    const asked = module.meta.tools.find((one) => one.definition.name === tool)?.permissions;
    const workspace = this.#options.workspace();
    const grants = this.#options.grants(server);
    const access = fileAccess(asked ?? NO_PERMISSIONS, { workspace, grants });
    const { read, write, granted } = access;
    const plain = this.#sandboxOptions(server, module.code);
    const protection = { ...plain.protection, granted };
    const options = { ...plain, workspace, read, write, protection };
    const layer = this.#options.osLayer();
    const key = JSON.stringify([server, module.integrity, workspace, access, layer]);
    const value = await this.#pool.use(key, {
      start: () => this.#start(options),
      use: (sandbox) => answer(sandbox, call, tool),
    });
    return { kind: "result", result: value };
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
    await using sandbox = await this.#start(this.#sandboxOptions("self-test", code));
    const signal = AbortSignal.timeout(SELF_TEST_MS);
    await sandbox.call({ fn: "probe", arguments: {}, signal });
    return sandbox.confined;
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A module that is still loading is not waited for.
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the module: PML is ending"));
    await this.#pool[Symbol.asyncDispose]();
  }

  async #inspect(name: string, code: Uint8Array): Promise<Inspection> {
    await using sandbox = await this.#start(this.#sandboxOptions(name, code));
    return { meta: sandbox.meta(), exports: sandbox.exports() };
  }

  /** The sandbox is loaded by the first call: a start that serves none goes without. */
  async #start(options: SandboxOptions): Promise<Sandbox> {
    const { OsLayers, Sandbox } = await import("../sandbox/sandbox.ts");
    const wanted = this.#options.osLayer();
    const { workspace } = options;
    const key = JSON.stringify([wanted, workspace]);
    const layers = this.#layers.get(key) ??
      new OsLayers({ wanted, workspace, path: this.#options.path });
    this.#layers.set(key, layers);
    return await layers.start((layer) => Sandbox.start({ ...options, layer }));
  }

  #sandboxOptions(name: string, code: Uint8Array): SandboxOptions {
    const { home, limits, protection, workspace, onLog } = this.#options;
    return {
      name,
      code,
      home,
      workspace: workspace(),
      read: [],
      write: [],
      protection: { ...protection(), granted: [] },
      limits: limits(),
      signal: this.#closing.signal,
      onLog: (entry) => onLog(name, entry),
    };
  }

  #source(server: string): ModuleSource {
    const source = this.#options.source(server);
    if (source !== undefined) return source;
    throw new PmlError("UNKNOWN_TOOL", `Cannot find the server "${server}": nothing defines it`);
  }
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
function ownResult({ content, structuredContent, isError, _meta }: ToolResult): ToolResult {
  if (content.length > BLOCKS_MAX) {
    const size = content.length;
    const message = `Cannot return the result: it has ${size} blocks, more than ${BLOCKS_MAX}`;
    const hint = "Ask for less: a part, a page or a narrower question";
    throw new PmlError("RESULT_TOO_LARGE", message, { hint, detail: { size, max: BLOCKS_MAX } });
  }
  return { content, ...defined({ structuredContent, isError, _meta }) };
}
