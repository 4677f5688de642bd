/**
 * The options of the gateway.
 *
 * @module
 */

import type { Metrics } from "../audit/metrics.ts";
import type { ApprovalAnswer, Call, Outcome, Question } from "../protocol/call.ts";
import type { Log } from "../audit/log.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { missingVerdict, type Toolset } from "../protocol/toolset.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer, SearchOptions } from "../search/search.ts";
import type { Observed } from "../workflow/declarations.ts";
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
  /** How long an approval request waits for its answer, in milliseconds. */
  readonly approvalMs: number;
  /** The maximum number of tasks of a plan. */
  readonly planMax: number;
  /** The size in bytes from which a result is stored outside of its answer; 0 if never. */
  readonly inlineBytes: number;
  /** The maximum size of the results of one batch together, in bytes. */
  readonly resultBytes: number;
  /** The keys of `_meta` that the user lets pass without being shown. */
  readonly clientMeta: readonly string[];
  /** Returns the tools that exist for a client, by the name that it states. */
  readonly toolsetFor?: ((client: string) => Toolset | undefined) | undefined;
}

/** Notes the clients of a gateway. */
export interface ClientRecorder {
  /** Takes the name and the version, and the capabilities, that a client declared. */
  note(info: JsonObject, capabilities: JsonObject): void;
}

/** The PML that a gateway belongs to. `app` implements it: `AppGatewayHost`. */
export interface GatewayHost {
  readonly servers: Servers;
  readonly catalog: Catalog;
  readonly log: Log;
  /** Counts lists of tools and answers of tools, and reports the counts. */
  readonly metrics: Pick<Metrics, "answered" | "report">;
  /** Notes each client at its first request. */
  readonly notes?: ClientRecorder | undefined;
  /** Runs a call. Handlers of requests use `Requests.#callInOrder`, which uses this. */
  callTool(call: Call): Promise<Outcome>;
  /** Returns the checker of meta-tool arguments. The first meta-tool loads it. */
  schemas(): Promise<Schemas>;
  /** Finds tools by the words of a query. */
  search(query: string | readonly string[], options: SearchOptions): Promise<SearchAnswer>;
  /** Returns the tools that the user, or the identity, used lately in this workspace. */
  recent(): Promise<readonly ToolId[]>;
  /** Returns the present decision of the rules for a tool. */
  judge(id: ToolId): Verdict;
  /** Returns the present settings. */
  settings(): GatewaySettings;
  /** Sets the log level of the servers. */
  setLevel(level: string): void;
  /** Asks once for several calls. Returns the answer for each, by its `callId`. */
  askForAll(calls: readonly Call[]): Promise<ReadonlyMap<string, ApprovalAnswer>>;
  /** Returns the runner of plans and code. The first of them loads it. */
  workflow(): Promise<Workflow>;
  /** Returns the observed outputs of tools that declare no output schema. */
  observed(): Promise<Observed>;
  /** Leaves an approval request for the terminal, and returns the error that names it. */
  leave(question: Question): Promise<PmlError>;
  /** Returns the error of the configuration, if there is one: no tool can be called then. */
  problem(): PmlError | undefined;
  /** Stops following a resource, or a task. */
  unfollow(
    followed: { readonly server: string; readonly uri: string; readonly isTask?: boolean },
  ): void;
  /** Is called after each list. */
  onList(): void;
}

/** Returns the decision for a client with a tool set, for which other tools do not exist. */
export function verdictWithin(
  toolset: Toolset | undefined,
  host: Pick<GatewayHost, "judge">,
  id: ToolId,
): Verdict {
  const missing = toolset && missingVerdict([toolset], id);
  return missing ?? host.judge(id);
}

/** The settings that a list of tools depends on. */
export interface ExposureSettings {
  /** The exposure: which tools are listed. */
  readonly exposure: Exposure;
  /** The maximum number of tools that `semantic` lists, and the least score of each. */
  readonly semantic: { readonly most: number; readonly threshold: number };
  /** The options of `hybrid`. */
  readonly hybrid: HybridOptions;
  /** The available meta-tools. */
  readonly metaTools: readonly MetaTool[];
  /** Whether names in lists begin with the name of their server. */
  readonly prefix: boolean;
  /** Whether these names may have all characters and the length that MCP allows. */
  readonly longNames: boolean;
  /** The maximum number of calls of one batch, which the description of the meta-tool states. */
  readonly batchMax: number;
  /** The user's present work: the query of a list that has none. */
  readonly intent: string | undefined;
}
