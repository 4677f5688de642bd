/**
 * Opens the runner of plans, code and intents. The first plan, code or intent loads this file.
 *
 * @module
 */

import { join } from "node:path";
import { listedMetaTools } from "../config/exposure.ts";
import { Cancellation } from "../core/cancellation.ts";
import type { ToolId } from "../core/tool_id.ts";
import { onAbort } from "../io/waiting.ts";
import { isForModel } from "../protocol/apps.ts";
import type { Call, CallClient } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolsetDenial } from "../protocol/toolset.ts";
import {
  declarationsOf,
  type DeclaredServer,
  type ObservedOutput,
  type ToolTypes,
  toolTypes,
} from "../workflow/declarations.ts";
import type { Finder } from "../gateway/finder.ts";
import type { SearchAnswer } from "../search/search.ts";
import type { TypeCheckResult } from "../workflow/checked_code.ts";
import type { IntentTools } from "../workflow/intent.ts";
import type { IntentHost, PlannedCall } from "../workflow/intents.ts";
import type { Preflight } from "../workflow/plans.ts";
import { ListedToolNames } from "../workflow/tool_names.ts";
import type { CallableTools } from "../workflow/type_check.ts";
import type { CodeToCheck, TypeCheck } from "../workflow/checked_code.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";

/** Opens the runner of plans and code. Starts nothing. */
export async function openWorkflow(app: App): Promise<Workflow> {
  const callPath = await app.callPath();
  const { policy } = app;
  const modules = await callPath.machine.modules();
  return new Workflow({
    callTool: callPath.callTool,
    journal: callPath,
    preflight: callPath.checker,
    policy,
    opener: app,
    children: modules.code,
    selector: modules.selector,
    judge: (id, args) => policy.now.judge(id, args),
    types: new CodeTypes(app),
    tools: new ListedToolNames(app.servers),
    intents: new Intents(app, callPath.checker),
  });
}

/**
 * Checks the types of code. The first check loads the checker. It does not use observed types of
 * results: the next result may differ, and the check must not refuse correct code.
 */
class CodeTypes implements TypeCheck {
  readonly #app: App;
  #checker: Promise<TypeCheck> | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  async check(code: CodeToCheck): Promise<TypeCheckResult> {
    this.#checker ??= this.#open().catch((error) => {
      this.#checker = undefined; // the next code tries again
      throw error;
    });
    return await (await this.#checker).check(code);
  }

  async #open(): Promise<TypeCheck> {
    const app = this.#app;
    const { TypeChecker } = await import("../workflow/type_check.ts");
    const folder = join(app.config().home, "types");
    const callable = new AllowedTools(app);
    const checker = new TypeChecker({ folder, policy: app.policy, processes: app, callable });
    onAbort(app.closing, () => void checker[Symbol.asyncDispose]());
    return checker;
  }
}

/** The servers and the tools that code may call. Leaves out tools that a rule denies. */
class AllowedTools implements CallableTools {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  names(): readonly string[] {
    return this.#app.servers.states().map(({ name }) => name);
  }

  async tools(server: string): Promise<DeclaredServer["tools"]> {
    await this.#app.servers.lists.prepare("tools", { only: server });
    return allowedTools(this.#app, server);
  }

  async isCallable(server: string): Promise<boolean> {
    const app = this.#app;
    return app.catalog.toolsOf(server).length > 0 ||
      (await (await app.finder()).offeredTools(server)).length > 0;
  }
}

/** Returns the known tools of a server that models may call, by the names that clients see. */
export function allowedTools(app: App, server: string): DeclaredServer["tools"] {
  return app.catalog.toolsOf(server)
    .filter(({ id, tool }) => isForModel(tool) && app.policy.now.judge(id).kind !== "deny")
    .map(({ tool }) => tool);
}

/** Returns the declarations of servers as one text; undefined without servers. */
export function declarations(
  servers: readonly DeclaredServer[],
  observed: ObservedOutput,
): string | undefined {
  return servers.length === 0 ? undefined : declarationsOf(servers, observed);
}

/** Returns the types of one tool. */
export function typesOf(
  tool: ToolDefinition,
  { server, observed }: { readonly server: string; readonly observed: ObservedOutput },
): Pick<ToolTypes, "args" | "output"> {
  const { args, output } = toolTypes(server, tool, { observed });
  return { args, output };
}

/** Opens the tools of a caller, and checks whether the calls of an intent's plan may run. */
class Intents implements IntentHost {
  readonly #app: App;
  readonly #preflight: Preflight;

  constructor(app: App, preflight: Preflight) {
    this.#app = app;
    this.#preflight = preflight;
  }

  get requiredConfidence(): number {
    return this.#app.config().confidence;
  }

  get hasSearch(): boolean {
    return listedMetaTools(this.#app.config().gateway).includes("search");
  }

  async openTools(caller: Pick<Call, "actor" | "client">): Promise<IntentTools> {
    const app = this.#app;
    const [finder, memory] = await Promise.all([
      app.finder(),
      app.openMemory(),
      app.servers.lists.prepare(),
    ]);
    return new CallerTools(app, caller, { finder, memory });
  }

  async runsWithoutApproval(
    { tool, arguments: args, signal, ...call }: PlannedCall,
    unknownArguments: ReadonlySet<string>,
  ): Promise<boolean> {
    const { servers, policy } = this.#app;
    const id = servers.idOf(tool);
    if (id === undefined) return false;
    const verdict = policy.now.judge(id, unknownArguments.size > 0 ? undefined : args);
    if (verdict.kind !== "allow" || verdict.depends !== undefined) return false;
    using cancellation = Cancellation.of(signal);
    const base = { id, arguments: args, via: "plan", callId: crypto.randomUUID() };
    const request = { ...base, cancellation, ...call };
    // An invalid call is not an error here: PML does not run the plan, but shows it to the model.
    return await this.#preflight.check(request, unknownArguments).catch(() => false);
  }
}

/** The tools that one caller may call. */
class CallerTools implements IntentTools {
  readonly #app: App;
  readonly #actor: string;
  readonly #toolset: CallClient["toolset"];
  readonly #finder: Finder;
  readonly #memory: UseMemory;

  constructor(
    app: App,
    { actor, client: { toolset } }: Pick<Call, "actor" | "client">,
    { finder, memory }: { readonly finder: Finder; readonly memory: UseMemory },
  ) {
    this.#app = app;
    this.#actor = actor;
    this.#toolset = toolset;
    this.#finder = finder;
    this.#memory = memory;
  }

  async search(query: string): Promise<SearchAnswer> {
    const allowed = (id: ToolId) => this.#isAllowed(id);
    return await this.#finder.search(query, { allowed, memory: this.#memory });
  }

  output(id: ToolId, { outputSchema }: ToolDefinition): JsonObject | undefined {
    const own = this.#app.catalog.get(id)?.own;
    return outputSchema ?? (own && this.#memory.observedSchema(id, own));
  }

  next(id: ToolId): ReadonlyMap<ToolId, number> {
    const { catalog } = this.#app;
    const isAvailable = (next: ToolId) => catalog.get(next) !== undefined && this.#isAllowed(next);
    return new Map([...this.#memory.nextTools(id)].filter(([next]) => isAvailable(next)));
  }

  recordHits(query: string, tools: readonly ToolId[]): void {
    this.#memory.recordSearch(this.#actor, { query, foundTools: tools });
  }

  #isAllowed(id: ToolId): boolean {
    const missing = toolsetDenial([this.#toolset?.()], id);
    return (missing ?? this.#app.policy.now.judge(id)).kind !== "deny";
  }
}
