/**
 * What the gateway needs of PML.
 *
 * @module
 */

import type { Metrics } from "../audit/metrics.ts";
import type { Answer, Call, CallClient, CallTool, Question } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { missingIn, type Toolset } from "../protocol/toolset.ts";
import type { Catalog } from "../search/catalog.ts";
import type { SearchAnswer, SearchOptions } from "../search/search.ts";
import type { Observed } from "../workflow/declarations.ts";
import type { Workflow } from "../workflow/workflow.ts";

import type { Schemas } from "../calls/schemas.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Exposure, HybridOptions, MetaTool } from "../config/exposure.ts";

/** What the configuration says of the face. */
export interface FaceSettings extends ExposureSettings {
  /** What clients are told as the name and the version of this server. */
  readonly name: string;
  readonly version: string;
  /** The name of the caller; `local` for the person. */
  readonly actor: string;
  /** Whether questions may go to the client at all. */
  readonly asksClient: boolean;
  /** How long a question waits for its answer. */
  readonly approvalMs: number;
  /** How many tasks a plan may have. */
  readonly planMax: number;
  /** The size from which a result stays outside of its answer; 0 if it never does. */
  readonly inlineBytes: number;
  /** How large the results of one batch may be together. */
  readonly resultBytes: number;
  /** The keys of `_meta` that the user lets pass without being shown. */
  readonly clientMeta: readonly string[];
  /** Returns the tools that exist for a client, by the name that it says it has. */
  readonly toolsetFor?: ((client: string) => Toolset | undefined) | undefined;
}

/** What the face needs of the house; functions are asked at each request. */
export interface GatewayOptions {
  readonly callTool: CallTool;
  readonly servers: Servers;
  readonly catalog: Catalog;
  /** Returns what checks arguments of the meta-tools; loaded by the first of them. */
  readonly schemas: () => Promise<Schemas>;
  readonly search: (
    query: string | readonly string[],
    options: SearchOptions,
  ) => Promise<SearchAnswer>;
  readonly judge: (id: ToolId, args?: JsonObject) => Verdict;
  readonly settings: () => FaceSettings;
  /** Tells the servers from which level on log messages are wanted. */
  readonly setLevel: (level: string) => void;
  /** Asks once for several calls. Returns what lets each pass, by its `callId`. */
  readonly askForAll: (calls: readonly Call[]) => Promise<ReadonlyMap<string, Answer>>;
  /** Gives what runs plans and code; loaded by the first of them. */
  readonly workflow: () => Promise<Workflow>;
  /** Gives what is known about the outputs of tools that declare none. */
  readonly observed: () => Promise<Observed>;
  /** Leaves a question for the terminal, for a client that cannot ask; gives the error to tell. */
  readonly leave: (question: Question) => Promise<PmlError>;
  /** Why nothing can be called at all, if so. */
  readonly problem: () => PmlError | undefined;
  /** Takes back a request to follow a resource, or a task. */
  readonly unfollow: (
    followed: { readonly server: string; readonly uri: string; readonly isTask?: boolean },
  ) => void;
  /** Is called after each list. */
  readonly onList?: () => void;
  /** Told of a resource that cannot be followed for a client that nobody can tell. */
  readonly onLost: (error: Error) => void;
  readonly onError: (error: Error) => void;
  /** Writes a line to the log. `server` is the server that the line is about. */
  readonly log: (level: "info" | "warn", text: string, server?: string) => void;
  /** Counts each list of tools and each answer of one, and tells what was counted. */
  readonly metrics: Pick<Metrics, "answered" | "report">;
}

/** Returns the options for a client with a tool set: the judge denies all other tools. */
export function optionsWithin(
  options: GatewayOptions,
  toolset: CallClient["toolset"],
): GatewayOptions {
  const set = toolset?.();
  if (set === undefined) return options;
  const { judge } = options;
  return { ...options, judge: (id, args) => missingIn([set], id) ?? judge(id, args) };
}

/** What a list of tools depends on beside the tools that there are. */
export interface ExposureSettings {
  /** What is listed. */
  readonly exposure: Exposure;
  /** What `semantic` lists: so many tools, that fit so well. */
  readonly semantic: { readonly most: number; readonly threshold: number };
  /** What `hybrid` lists. */
  readonly hybrid: HybridOptions;
  /** The meta-tools that are served. */
  readonly metaTools: readonly MetaTool[];
  /** Whether names in lists begin with their server's. */
  readonly prefix: boolean;
  /** Whether these names may have everything that MCP allows. */
  readonly longNames: boolean;
  /** The most calls of one batch, which the meta-tool says. */
  readonly batchMax: number;
  /** What the person works on: the query of a list that brings none. */
  readonly intent: string | undefined;
}
