/**
 * Runs tools of modules in child processes. Tools share a child only if they have the same module,
 * code and permissions.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../../protocol/call.ts";
import type { CheckedCall } from "../server.ts";
import { textResult } from "../../protocol/call.ts";
import { type CheckReport, runCheck } from "../../core/check.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { durationText } from "../../core/amounts.ts";
import { endingError, PmlError } from "../../core/errors.ts";
import { integrityOf } from "../../core/hash.ts";
import { isObject, type Json, type JsonObject, quoted, withoutUndefined } from "../../core/json.ts";
import type { Maybe } from "../../core/maybe.ts";
import { OwnSchemas } from "../../core/own_schemas.ts";
import { isPlainCheck } from "../../core/plain_schema.ts";
import { ownProgress } from "../../protocol/progress.ts";
import { checkBlocks } from "../../protocol/result_bounds.ts";
import { withoutForged } from "../../protocol/result_members.ts";
import { withTagRemark } from "../../protocol/safe_text.ts";
import type { ModuleMeta } from "../../protocol/tool.ts";
import { splitToolId } from "../../core/tool_id.ts";
import { LateStarts, type StartKey } from "../../io/late_starts.ts";
import { Semaphore, type SemaphoreOwner } from "../../io/semaphore.ts";
import { Pool, type PoolLimits, type PoolOwner } from "../../io/pool.ts";
import { permissionLines } from "../../policy/permission_lines.ts";
import { readingOf } from "../../policy/tool_reading.ts";
import type { ModuleOptions, Sandbox, SandboxCall } from "../../sandbox/sandbox.ts";
import { messageWithPosition, withGrant } from "./_failures.ts";
import { sampleForModule } from "./_sampling.ts";
import { type LoadedTool, permissionsOf, type ToolChildren } from "./_tool_children.ts";
import { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";
import { CodeChildren } from "./code_children.ts";
import {
  type Inspection,
  Loader,
  type Module,
  type ModuleInspector,
  type ModuleUse,
  type NamedModule,
} from "./loader.ts";
import type { ModuleReader } from "./module_files.ts";
import { SchemaChild } from "./schema_child.ts";
import { SelectChildren } from "./select_children.ts";
import { WarmChildren } from "./warm_child.ts";

/** How long the self-test of the sandbox may take, in milliseconds. */
const SELF_TEST_MS = 10_000;
/** The time between two progress reports of a waiting call, in milliseconds. */
const REPORT_MS = 1_000;

/** Runs modules on this machine. */
export class Modules implements ModuleInspector, SemaphoreOwner, PoolOwner, AsyncDisposable {
  /** The children for code, which have no grants. */
  readonly code: CodeChildren;
  /** Checks values against schemas of other authors. */
  readonly schemas: SchemaChild;
  /** Selects parts of results. */
  readonly selector: SelectChildren;
  readonly deathCode = "SANDBOX_CRASHED";
  readonly #host: ModuleHost;
  readonly #ownSchemas = new OwnSchemas();
  readonly #files: ModuleReader;
  readonly #lateStarts: LateStarts;
  readonly #loader: Loader;
  readonly #pool: Pool<Sandbox>;
  readonly #warm: WarmChildren<Sandbox>;
  readonly #semaphore: Semaphore;
  readonly #children: ToolChildren;
  readonly #starter: ChildStarter;
  readonly #closing = new AbortController();

  /** Starts nothing before the first call. */
  constructor(host: ModuleHost, files: ModuleReader) {
    this.#host = host;
    this.#files = files;
    this.#lateStarts = new LateStarts(host);
    this.#starter = new ChildStarter(host, this.#closing.signal);
    this.#children = this.#starter.children;
    this.#semaphore = new Semaphore(this);
    this.#pool = new Pool(this, this.#semaphore);
    this.#warm = new WarmChildren(() => host.limits.idleMs);
    this.code = new CodeChildren(this.#starter, host);
    this.schemas = new SchemaChild(this.#starter, host);
    this.selector = new SelectChildren(this.#starter, host);
    this.#loader = new Loader(host.home, files, this);
  }

  /** The limits of children with a module. */
  get poolLimits(): PoolLimits {
    return this.#host.limits;
  }

  /** The maximum number of children at the same time. */
  get maxPlaces(): number {
    return this.#host.limits.children;
  }

  /** The number of children that are ending. */
  get endingCount(): number {
    return this.#pool.endingCount;
  }

  /** The maximum size of a module, in bytes. */
  get moduleBytes(): number {
    return this.#host.limits.moduleBytes;
  }

  /** Begins to close a child that no call uses. Returns false if there is none. */
  closeUnused(): boolean {
    return this.#warm.closeWarm() || this.#pool.closeUnused();
  }

  /** Loads a module with its metadata. Its hash must be approved. */
  load(use: ModuleUse): Promise<Module> {
    return this.#loader.load(use);
  }

  /** Returns the metadata of code that was loaded before; undefined if PML no longer has it. */
  cachedMeta(integrity: string, path: string): ModuleMeta | undefined {
    return this.#loader.cachedMeta(integrity, path);
  }

  /** Returns why arguments do not match the schema of a tool; undefined if they do. */
  findWrongArguments(
    { source }: ModuleUse,
    { arguments: args, cancellation }: Pick<Call, "arguments" | "cancellation">,
    schema: JsonObject,
  ): Maybe<string | undefined> {
    // The schemas of built-in modules are PML's own, so a check needs no separate child.
    return source.kind === "builtin"
      ? this.#ownSchemas.findProblem(schema, args)
      : this.findWrongValue(schema, args, cancellation);
  }

  /** Returns why a value does not match a schema of another author; undefined if it does. */
  findWrongValue(
    schema: JsonObject,
    value: unknown,
    cancellation: Cancellation,
  ): Maybe<string | undefined> {
    // guard: schema-child
    if (!isPlainCheck(schema, value)) return this.schemas.wrong(schema, value, cancellation.signal);
    return this.#ownSchemas.findProblem(schema, value);
  }

  /**
   * Returns the error for a path in the arguments of a built-in tool that the sandbox would refuse.
   * For other tools, PML does not know which arguments are paths.
   */
  async whyRefused(
    use: ModuleUse,
    call: Pick<Call, "id" | "arguments">,
  ): Promise<PmlError | undefined> {
    const { source } = use;
    if (source.kind !== "builtin" || source.paths === undefined) return undefined;
    const { used = [], entered = [] } = source.paths;
    const pathsOf = (names: readonly string[]) =>
      names.flatMap((name) => call.arguments[name] ?? []).filter((arg) => typeof arg === "string");
    const called = { module: await this.load(use), tool: splitToolId(call.id).tool };
    const { options } = this.#children.of(use, called);
    const { pathRefusal } = await import("../../sandbox/path_refusal.ts");
    const access = permissionsOf(called).write.length > 0 ? "write" : "read";
    const attempts = [
      ...pathsOf(used).map((requestedPath) => ({ requestedPath, access } as const)),
      ...pathsOf(entered).map((requestedPath) => ({ requestedPath, access: "read" } as const)),
    ];
    const refusal = attempts.map((attempt) => pathRefusal(options, attempt))
      .find((error) => error !== undefined);
    return refusal && withGrant(refusal, call);
  }

  /** Returns sentences that list the grants of a tool, and the permissions that it lacks. */
  async permissionLines(use: ModuleUse, tool: string): Promise<readonly string[]> {
    const module = await this.load(use);
    const called = { module, tool };
    const access = this.#children.accessOf(use, called);
    return permissionLines(permissionsOf(called), access, this.#host.workspace);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  async onlyReads(use: ModuleUse, tool: string): Promise<boolean> {
    return this.#onlyReads(use, { module: await this.load(use), tool });
  }

  /**
   * Returns whether the permissions of a tool prove that it only reads; for a built-in tool, its
   * hint is enough. Returns false for a module that is not loaded or not approved, and for an
   * unknown tool.
   */
  isReader(use: ModuleUse, tool: string): boolean {
    const module = this.#loader.cachedModule(use);
    const definition = module?.definitions.find(({ name }) => name === tool);
    if (module === undefined || definition === undefined) return false;
    if (this.#onlyReads(use, { module, tool })) return true;
    // The hints of built-in modules are PML's own. Some tools of `git` run a program, but only
    // read.
    return use.source.kind === "builtin" && readingOf(definition).reads;
  }

  #onlyReads(use: ModuleUse, called: LoadedTool): boolean {
    // A permission to write may allow no path now, but can do so as soon as a link changes.
    // guard: reads-write
    if (permissionsOf(called).write.length > 0) return false;
    const { net, run } = this.#children.accessOf(use, called);
    return net.length === 0 && run.length === 0;
  }

  /** Runs a call that passed the checks, with the grants that the user was shown. */
  call(use: ModuleUse, call: CheckedCall): Promise<Outcome> {
    return call.isNested === true ? this.#runFirst(use, call) : this.#run(use, call);
  }

  /** Runs a nested call. It does not wait for a free child, because another call waits for it. */
  async #runFirst(use: ModuleUse, call: CheckedCall): Promise<Outcome> {
    using exceptions = new DisposableStack();
    exceptions.use(this.#semaphore.passLimit(splitToolId(call.id).server));
    return await this.#run(use, call, exceptions);
  }

  async #run(use: ModuleUse, call: CheckedCall, exceptions?: DisposableStack): Promise<Outcome> {
    const { server, tool } = splitToolId(call.id);
    const { isNested = false, cancellation: { signal } } = call;
    const module = await this.load(use);
    const { options, warmKey, key } = this.#children.of(use, { module, tool });
    exceptions?.use(this.#semaphore.passLimit(key));
    let started = false;
    const value = await this.#pool.use(key, {
      name: server,
      signal,
      isUrgent: isNested,
      start: async () => {
        started = true;
        const open = async () => this.#starter.open(options, await this.#semaphore.acquire(key));
        const results = await resultsOf(module);
        return this.#starter.load(await this.#warm.take(warmKey, open), { ...module, results });
      },
      onWait: () => this.#reportWhileWaiting(key, call),
      use: (sandbox) => this.#callTool(sandbox, call, { tool, file: module.file }),
    });
    // Starts a new warm child only after one was used. Otherwise, calls of tools with different
    // permissions in turn would start one for each call.
    if (started && !this.#closing.signal.aborted) {
      this.#warm.keep(warmKey, () => this.#starter.open(options, this.#semaphore.tryAcquire()));
    }
    return { kind: "result", result: value };
  }

  /**
   * Reports progress while a call waits for a free child. That extends the deadline of the call.
   */
  #reportWhileWaiting(key: string, { client: { onProgress } }: Call): Disposable {
    const message = "Waits until fewer sandbox children run (limits.children)";
    const timer = setInterval(() => {
      if (this.#semaphore.isWaiting(key)) onProgress?.(ownProgress("working", message));
    }, REPORT_MS);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /**
   * Checks that a module runs on this machine without any access, and reports which layer of the
   * operating system confines it.
   */
  async checks(): Promise<readonly CheckReport[]> {
    let confined: string | undefined;
    const sandbox = await runCheck("sandbox", "a module runs and reaches nothing", async () => {
      confined = await this.#selfTest();
    });
    const { osChecks } = await import("../../sandbox/sandbox.ts");
    return [sandbox, ...(confined === undefined ? [] : await osChecks(confined))];
  }

  /** Starts a sandbox, which tests itself. Returns the names of the layers that confined it. */
  async #selfTest(): Promise<string> {
    const code = new TextEncoder().encode("export const probe = () => true;");
    await using sandbox = await this.#openClosed({ name: "self-test", code });
    const signal = AbortSignal.timeout(SELF_TEST_MS);
    await sandbox.call({ fn: "probe", arguments: {}, signal });
    return sandbox.confined;
  }

  /** Ends the children of a server. Running calls fail; the next call starts a new child. */
  async end(server: string): Promise<void> {
    await this.#pool.end(server);
  }

  /** Returns the running children of a server. */
  runningOf(server: string): readonly Pick<Sandbox, "rss">[] {
    return this.#pool.findByName(server);
  }

  /** Ends the children that no call uses. */
  closeAllUnused(): void {
    while (this.#pool.closeUnused());
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    // Aborts modules that are still loading.
    this.#closing.abort(endingError("start the module"));
    const all = [this.#pool, this.#warm, this.code, this.schemas, this.selector];
    await Promise.all(all.map((child) => child[Symbol.asyncDispose]()));
  }

  /** Runs a module without grants, and returns its metadata and exports. */
  async inspect(module: NamedModule): Promise<Inspection> {
    const key = { name: module.name, definition: integrityOf(module.code) };
    await using sandbox = await this.#openClosed(module).catch((error) => {
      if (!(error instanceof PmlError) || error.detail?.reason !== "start") throw error;
      const late = lateLoadError(module, this.#host.limits.startMs, error);
      this.#lateStarts.record(key, late);
      throw late;
    });
    this.#lateStarts.forget(key);
    return { meta: sandbox.meta(), exports: sandbox.exports() };
  }

  /** Returns the error of a recent load that took too long. */
  lateStart({ source }: ModuleUse): PmlError | undefined {
    // The metadata of built-in modules is known without a start.
    return source.kind === "builtin" ? undefined : this.#lateStarts.errorOf(this.#startKey(source));
  }

  /** Forgets that a load took too long, so that the next load has the whole time limit. */
  forgetLateStart({ source }: ModuleUse): void {
    if (source.kind !== "builtin") this.#lateStarts.forget(this.#startKey(source));
  }

  #startKey(source: ModuleUse["source"]): StartKey {
    const { integrity } = this.#files.identify(source, this.moduleBytes);
    return { name: source.name, definition: integrity };
  }

  /** Starts a module in a child without grants. */
  async #openClosed(module: NamedModule): Promise<Sandbox> {
    return await this.#starter.openClosed(module, await this.#semaphore.acquire(module.name));
  }

  async #callTool(
    sandbox: Sandbox,
    call: CheckedCall,
    { tool, file }: { readonly tool: string; readonly file: string | undefined },
  ): Promise<ToolResult> {
    // guard: late-child
    call.assertCurrent();
    try {
      const { client: { onProgress }, cancellation: { signal }, arguments: args } = call;
      const onRequest: SandboxCall["onRequest"] = (...args) => sampleForModule(call, args);
      return asResult(
        await sandbox.call({ fn: tool, arguments: args, signal, onProgress, onRequest }),
      );
    } catch (error) {
      const { ModuleFailure } = await import("../../sandbox/sandbox.ts");
      if (!(error instanceof ModuleFailure)) throw withGrant(error, call);
      const whole = messageWithPosition(error, file);
      this.#host.logModule(splitToolId(call.id).server, { level: "debug", text: whole });
      // The position goes to the client only for errors that JavaScript itself throws.
      const isMistake = /^(?:Type|Reference|Syntax)Error$/.test(error.name);
      return { ...textResult(isMistake ? whole : error.message), isError: true };
    }
  }
}

function lateLoadError({ name }: NamedModule, ms: number, cause: PmlError): PmlError {
  return new PmlError(
    "SANDBOX_CRASHED",
    `Cannot load ${quoted(name)}: it did not load within ${durationText(ms)}`,
    {
      hint: "It is loaded without any grant: do all work in the functions of its tools",
      cause,
      ...withoutUndefined({ detail: cause.detail }),
    },
  );
}

/** Returns the schemas of the structured results of a module; undefined if it has none. */
async function resultsOf({ definitions }: Module): Promise<ModuleOptions["results"]> {
  const schemas = definitions.flatMap(({ name, outputSchema }) =>
    outputSchema === undefined ? [] : [[name, outputSchema] as const]
  );
  if (schemas.length === 0) return undefined;
  const { SCHEMA_CODE: code } = await import("../../sandbox/schema_module.ts");
  return { code, schemas: Object.fromEntries(schemas) };
}

/**
 * Converts the value that a function returned to a tool result: a text, structured JSON, or the
 * value itself if it is a tool result.
 */
export function asResult(value: Json): ToolResult {
  if (value === null) return { content: [] };
  if (typeof value === "string") return withTagRemark(textResult(value));
  if (isToolResult(value)) return ownResult(value);
  return withTagRemark({ ...textResult(JSON.stringify(value)), structuredContent: value });
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) &&
    value.content.every((block) => isObject(block) && typeof block.type === "string");
}

/**
 * Removes the members that a module may not set: with them, a result could look like an approval
 * request of PML.
 */
function ownResult(result: ToolResult): ToolResult {
  const { content, structuredContent, isError, _meta } = result;
  checkBlocks("the result", result);
  const allowed = withoutForged({
    content,
    ...withoutUndefined({ structuredContent, isError, _meta }),
  });
  return withTagRemark(allowed);
}
