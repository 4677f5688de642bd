/**
 * Runs tools of modules. Each runs in a sandbox child for its server, code and permissions.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../../protocol/call.ts";
import type { CheckedCall } from "../server.ts";
import { textResult } from "../../protocol/call.ts";
import { type CheckReport, runCheck } from "../../core/check.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { ending } from "../../core/errors.ts";
import { defined, isObject, type Json, type JsonObject } from "../../core/json.ts";
import type { Maybe } from "../../core/maybe.ts";
import { OwnSchemas } from "../../core/own_schemas.ts";
import { isPlainCheck } from "../../core/plain_schema.ts";
import { ownProgress } from "../../protocol/progress.ts";
import { checkBlocks } from "../../protocol/result_bounds.ts";
import { withoutForged } from "../../protocol/result_members.ts";
import { withTagRemark } from "../../protocol/safe_text.ts";
import { splitToolId } from "../../core/tool_id.ts";
import { type PlaceOwner, Places } from "../../io/places.ts";
import { Pool, type PoolLimits, type PoolOwner } from "../../io/pool.ts";
import { permissionLines } from "../../policy/permission_lines.ts";
import { readingOf } from "../../policy/reading.ts";
import type { ModuleOptions, Sandbox, SandboxCall } from "../../sandbox/sandbox.ts";
import { messageWithPosition, withGrant } from "./_failures.ts";
import { sampled } from "./_sampling.ts";
import { askedBy, type LoadedTool, type ToolChildren } from "./_tool_children.ts";
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
import { SelectChild } from "./select_child.ts";
import { WarmChildren } from "./warm_child.ts";

const SELF_TEST_MS = 10_000;
/** The time between two progress reports of a waiting call. */
const WAITS_MS = 1_000;

/** Runs modules on this machine. */
export class Modules implements ModuleInspector, PlaceOwner, PoolOwner, AsyncDisposable {
  /** The children for code, to which nothing is granted. */
  readonly code: CodeChildren;
  /** Checks values against schemas that others wrote. */
  readonly schemas: SchemaChild;
  /** Selects parts of results. */
  readonly selector: SelectChild;
  readonly deathCode = "SANDBOX_CRASHED";
  readonly #host: ModuleHost;
  readonly #own = new OwnSchemas();
  readonly #loader: Loader;
  readonly #pool: Pool<Sandbox>;
  readonly #warm: WarmChildren<Sandbox>;
  readonly #places: Places;
  readonly #children: ToolChildren;
  readonly #starter: ChildStarter;
  readonly #closing = new AbortController();

  /** Nothing is started before the first call. */
  constructor(host: ModuleHost, files: ModuleReader) {
    this.#host = host;
    this.#starter = new ChildStarter(host, this.#closing.signal);
    this.#children = this.#starter.children;
    this.#places = new Places(this);
    this.#pool = new Pool(this, this.#places);
    this.#warm = new WarmChildren(() => host.limits.idleMs);
    this.code = new CodeChildren(this.#starter, host);
    this.schemas = new SchemaChild(this.#starter, host);
    this.selector = new SelectChild(this.#starter, host);
    this.#loader = new Loader(host.home, files, this);
  }

  /** The limits of children with a module. */
  get poolLimits(): PoolLimits {
    return this.#host.limits;
  }

  /** The maximum number of children at the same time. */
  get mostPlaces(): number {
    return this.#host.limits.children;
  }

  /** How many children are about to end. */
  get ending(): number {
    return this.#pool.ending;
  }

  /** The maximum size of a module, in bytes. */
  get moduleBytes(): number {
    return this.#host.limits.moduleBytes;
  }

  /** Begins to close a child that no call uses. Returns whether there was one. */
  giveUp(): boolean {
    return this.#warm.giveUp() || this.#pool.giveUp();
  }

  /** Loads a module with its metadata. Its hash must be approved. */
  load(use: ModuleUse): Promise<Module> {
    return this.#loader.load(use);
  }

  /** Returns why arguments do not match the schema of a tool; undefined if they do. */
  wrongArguments(
    { source }: ModuleUse,
    { arguments: args, cancellation }: Pick<Call, "arguments" | "cancellation">,
    schema: JsonObject,
  ): Maybe<string | undefined> {
    // Schemas of built-in modules are PML's own.
    return source.kind === "builtin"
      ? this.#own.wrong(schema, args)
      : this.wrongValue(schema, args, cancellation);
  }

  /** Returns why a value does not match a schema that others wrote; undefined if it does. */
  wrongValue(
    schema: JsonObject,
    value: unknown,
    cancellation: Cancellation,
  ): Maybe<string | undefined> {
    // guard: schema-child
    if (!isPlainCheck(schema, value)) return this.schemas.wrong(schema, value, cancellation.signal);
    return this.#own.wrong(schema, value);
  }

  /** Returns sentences that list the grants of a tool, and the permissions that it lacks. */
  async permissionLines(use: ModuleUse, tool: string): Promise<readonly string[]> {
    const module = await this.load(use);
    const called = { module, tool };
    const access = this.#children.accessOf(use, called);
    return permissionLines(askedBy(called), access, this.#host.workspace);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  async onlyReads(use: ModuleUse, tool: string): Promise<boolean> {
    return this.#onlyReads(use, { module: await this.load(use), tool });
  }

  /**
   * Returns whether PML itself derives that a tool only reads. False for a module that is not loaded
   * or not approved, and for a tool that it does not have.
   */
  isReader(use: ModuleUse, tool: string): boolean {
    const module = this.#loader.loaded(use);
    const definition = module?.definitions.find(({ name }) => name === tool);
    if (module === undefined || definition === undefined) return false;
    if (this.#onlyReads(use, { module, tool })) return true;
    // The hints of built-in modules are PML's own. Those of git read by running a program.
    return use.source.kind === "builtin" && readingOf(definition).reads;
  }

  #onlyReads(use: ModuleUse, called: LoadedTool): boolean {
    // A path to write that is no access now becomes one if a link changes.
    // guard: reads-write
    if (askedBy(called).write.length > 0) return false;
    const { net, run } = this.#children.accessOf(use, called);
    return net.length === 0 && run.length === 0;
  }

  /** Runs a call that passed the checks, with the grants that the user was shown. */
  call(use: ModuleUse, call: CheckedCall): Promise<Outcome> {
    return call.isNested === true ? this.#hurried(use, call) : this.#run(use, call);
  }

  /** Runs a call that another call waits for: it comes before others that wait for a place. */
  async #hurried(use: ModuleUse, call: CheckedCall): Promise<Outcome> {
    using hurry = new DisposableStack();
    hurry.use(this.#places.hurry(splitToolId(call.id).server));
    return await this.#run(use, call, hurry);
  }

  async #run(use: ModuleUse, call: CheckedCall, hurry?: DisposableStack): Promise<Outcome> {
    const { server, tool } = splitToolId(call.id);
    const { isNested: hurried = false, cancellation: { signal } } = call;
    const module = await this.load(use);
    const { options, warmKey, key } = this.#children.of(use, { module, tool });
    hurry?.use(this.#places.hurry(key));
    let started = false;
    const value = await this.#pool.use(key, {
      name: server,
      signal,
      hurried,
      start: async () => {
        started = true;
        const open = async () => this.#starter.open(options, await this.#places.take(key));
        const results = await resultsOf(module);
        return this.#starter.load(await this.#warm.take(warmKey, open), { ...module, results });
      },
      onWait: () => this.#tellWhileWaiting(key, call),
      use: (sandbox) => this.#answer(sandbox, call, { tool, file: module.file }),
    });
    // Only if the warm child was used: otherwise tools with different permissions would start one
    // each in turn.
    if (started && !this.#closing.signal.aborted) {
      this.#warm.keep(warmKey, () => this.#starter.open(options, this.#places.spare()));
    }
    return { kind: "result", result: value };
  }

  /** Reports progress while a call waits for a free child, so that its deadline waits with it. */
  #tellWhileWaiting(key: string, { client: { onProgress } }: Call): Disposable {
    const message = "Waits until fewer sandbox children run (limits.children)";
    const timer = setInterval(() => {
      if (this.#places.waits(key)) onProgress?.(ownProgress("working", message));
    }, WAITS_MS);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  /**
   * Checks that a module runs here and can reach nothing, and which layer of the system confines
   * it.
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
    await using sandbox = await this.#closed({ name: "self-test", code });
    const signal = AbortSignal.timeout(SELF_TEST_MS);
    await sandbox.call({ fn: "probe", arguments: {}, signal });
    return sandbox.confined;
  }

  /** Ends the children that no call uses. */
  rest(): void {
    while (this.#pool.giveUp());
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    // This does not wait for a module that is still loading.
    this.#closing.abort(ending("start the module"));
    const all = [this.#pool, this.#warm, this.code, this.schemas, this.selector];
    await Promise.all(all.map((child) => child[Symbol.asyncDispose]()));
  }

  /** Runs a module without grants, and returns its metadata and exports. */
  async inspect(module: NamedModule): Promise<Inspection> {
    await using sandbox = await this.#closed(module);
    return { meta: sandbox.meta(), exports: sandbox.exports() };
  }

  /** Starts a module in a child without grants. */
  async #closed(module: NamedModule): Promise<Sandbox> {
    return await this.#starter.openClosed(module, await this.#places.take(module.name));
  }

  async #answer(
    sandbox: Sandbox,
    call: CheckedCall,
    { tool, file }: { readonly tool: string; readonly file: string | undefined },
  ): Promise<ToolResult> {
    // guard: late-child
    call.assertCurrent();
    try {
      const { client: { onProgress }, cancellation: { signal }, arguments: args } = call;
      const onRequest: SandboxCall["onRequest"] = (...args) => sampled(call, args);
      return asResult(
        await sandbox.call({ fn: tool, arguments: args, signal, onProgress, onRequest }),
      );
    } catch (error) {
      const { ModuleFailure } = await import("../../sandbox/sandbox.ts");
      if (!(error instanceof ModuleFailure)) throw withGrant(error, call);
      const whole = messageWithPosition(error, file);
      this.#host.logModule(splitToolId(call.id).server, { level: "debug", text: whole });
      // A client gets the place of errors of the language only.
      const isMistake = /^(?:Type|Reference|Syntax)Error$/.test(error.name);
      return { ...textResult(isMistake ? whole : error.message), isError: true };
    }
  }
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
 * Returns MCP's result for the value of a function: text, a result as it is, or structured JSON.
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
 * Keeps the fields that a module may set. With other fields, a result could look like an approval
 * request of PML.
 */
function ownResult(result: ToolResult): ToolResult {
  const { content, structuredContent, isError, _meta } = result;
  checkBlocks("the result", result);
  const own = withoutForged({ content, ...defined({ structuredContent, isError, _meta }) });
  return withTagRemark(own);
}
