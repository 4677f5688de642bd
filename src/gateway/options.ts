/**
 * The options of the gateway.
 *
 * @module
 */

import type { Metrics } from "../audit/metrics.ts";
import type { ApprovalAnswer, Call, Outcome, Question } from "../protocol/call.ts";
import type { Log } from "../audit/log.ts";
import type { Tracer } from "../protocol/trace.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { type Toolset, toolsetDenial } from "../protocol/toolset.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer, SearchOptions } from "../search/search.ts";
import type { ObservedOutput } from "../workflow/declarations.ts";
import type { Workflow } from "../workflow/workflow.ts";

import type { Schemas } from "../calls/schemas.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Exposure, HybridOptions, MetaTool } from "../config/exposure.ts";

/** The settings of the gateway in the configuration. */
export interface GatewaySettings extends ExposureSettings {
  /** The name and the version of this server that clients see. */
  readonly name: string;
  readonly version: string;
  /** The name of the caller; `local` for the user. */
  readonly actor: string;
  /** Whether approval requests may be sent to the client. */
  readonly asksClient: boolean;
  /** Whether approval requests go to the page (`pml page`). */
  readonly asksPage: boolean;
  /** How long an approval request waits for its answer, in milliseconds. */
  readonly approvalMs: number;
  /** The maximum number of tasks of a plan. */
  readonly planMax: number;
  /** The number of characters above which a result is stored outside of its answer; 0 if never. */
  readonly inlineBytes: number;
  /** The maximum size of the results of one batch together, in bytes. */
  readonly resultBytes: number;
  /** The keys of `_meta` that servers get without an approval of the user. */
  readonly clientMeta: readonly string[];
  /** Returns the tools that exist for a client, by the name that it states. */
  readonly toolsetFor?: ((client: string) => Toolset | undefined) | undefined;
}

/** Records the clients of a gateway. */
export interface ClientRecorder {
  /**
   * Records a client with its declared name, version and capabilities. `isBrief` is whether the
   * client lives for one request.
   */
  note(info: JsonObject, capabilities: JsonObject, isBrief: boolean): void;
}

/** The collaborators of a gateway. `AppGatewayHost` implements it. */
export interface GatewayHost {
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly log: Log;
  /** Counts lists of tools and answers of tools, and reports the counts. */
  readonly metrics: Pick<Metrics, "countAnswer" | "report" | "countServed">;
  /** Records the spans of requests; undefined if PML records no traces. */
  readonly tracer?: Tracer | undefined;
  /** Records each client with its first request. */
  readonly notes?: ClientRecorder | undefined;
  /** Runs a call. Handlers of requests use `Requests.#callInOrder`, which uses this. */
  callTool(call: Call): Promise<Outcome>;
  /** Returns the checker of meta-tool arguments. The first meta-tool loads it. */
  schemas(): Promise<Schemas>;
  /** Finds tools by the words of a query. */
  search(query: string | readonly string[], options: SearchOptions): Promise<SearchAnswer>;
  /** Returns the tools that the user, or the identity, used recently in this workspace. */
  recentTools(): Promise<readonly ToolId[]>;
  /** Returns the current decision of the rules for a tool. */
  judge(id: ToolId): Verdict;
  /** Returns the current settings. */
  settings(): GatewaySettings;
  /** Sets the log level of the servers. */
  setLevel(level: string): void;
  /** Asks once for several calls. Returns the answer for each, by its `callId`. */
  askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>>;
  /** Returns the runner of plans and code. The first use loads it. */
  workflow(): Promise<Workflow>;
  /** Returns the observed outputs of tools that declare no output schema. */
  observedOutput(): Promise<ObservedOutput>;
  /** Leaves an approval request for the terminal, and returns the error that names it. */
  storeQuestion(question: Question): Promise<PmlError>;
  /** Returns the error of the configuration, if there is one: no tool can be called then. */
  configProblem(): PmlError | undefined;
  /** Stops following a resource, or a task. */
  unfollow(
    followed: { readonly server: string; readonly uri: string; readonly isTask?: boolean },
  ): void;
  /** Is called after each list. */
  onList(): void;
}

/** Returns the decision about a tool. Denies tools outside of the client's tool set. */
export function verdictWithin(
  toolset: Toolset | undefined,
  host: Pick<GatewayHost, "judge">,
  id: ToolId,
): Verdict {
  const missing = toolset && toolsetDenial([toolset], id);
  return missing ?? host.judge(id);
}

/** The settings that a list of tools depends on. */
export interface ExposureSettings {
  /** The exposure: which tools are listed. */
  readonly exposure: Exposure;
  /** The maximum number of tools that `semantic` lists, and the minimum score of each. */
  readonly semantic: { readonly most: number; readonly threshold: number };
  /** The options of `hybrid`. */
  readonly hybrid: HybridOptions;
  /** The available meta-tools. */
  readonly metaTools: readonly MetaTool[];
  /** Whether names in lists begin with the name of their server. */
  readonly prefix: boolean;
  /** Whether the names in lists may have all characters and the length that MCP allows. */
  readonly longNames: boolean;
  /** The maximum number of calls of one batch, which the description of the meta-tool states. */
  readonly batchMax: number;
  /** The user's current work, in the user's words. It is the default query of lists. */
  readonly intent: string | undefined;
}
