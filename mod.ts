/**
 * PML: one MCP server between an AI client and every tool. This is its library, and the
 * command `pml`.
 *
 * @example
 * ```ts
 * import { openGateway } from "@casys/pml";
 *
 * await using gateway = await openGateway();
 * const { content } = await gateway.callTool("filesystem:read_file", { path: "README.md" });
 * console.log(content);
 * ```
 *
 * @module
 */

import { main } from "./src/cli/cli.ts";
import type { Config } from "./src/config/current_config.ts";
import type { Progress, ToolResult } from "./src/protocol/call.ts";
import type { JsonObject } from "./src/core/json.ts";
import type { ToolDefinition } from "./src/protocol/tool.ts";
import type { ToolId } from "./src/core/tool_id.ts";
import type { SearchAnswer, SearchOptions } from "./src/search/search.ts";

export type { ContentBlock, Progress, ToolResult } from "./src/protocol/call.ts";
export type { Verdict } from "./src/protocol/verdict.ts";
export type { Audience, ErrorCode, PmlErrorOptions } from "./src/core/errors.ts";
export { audienceOf, ERROR_CODES, PmlError } from "./src/core/errors.ts";
export type {
  Database,
  ExecOptions,
  ExecOutput,
  ExecResult,
  Host,
  SampleBlock,
  SampleMessage,
  SampleRequest,
  SampleResult,
  SqlChanges,
  SqliteOptions,
  SqlParameters,
  SqlRows,
  SqlValue,
} from "./src/sandbox/host.ts";
export type { Json, JsonObject } from "./src/core/json.ts";
export { ToolError } from "./src/workflow/tool_error.ts";
export type { Condition, NamedTool, Pattern } from "./src/core/pattern.ts";
export type { Meta, Permissions, ToolDefinition, ToolMeta } from "./src/protocol/tool.ts";
export { parseToolId, type ToolId } from "./src/core/tool_id.ts";
export type { ToolSetting, ToolSettings } from "./src/core/tool_settings.ts";
export type { OAuthSettings } from "./src/core/authorization.ts";
export type {
  Company,
  Forbidding,
  PolicyFile,
  RestrictedParts,
  SaidPolicy,
  ServerLike,
} from "./src/config/company.ts";
export type { Config } from "./src/config/current_config.ts";
export type { Pause } from "./src/config/pause.ts";
export type { Grants } from "./src/config/server_grants.ts";
export type { RegistryEntry } from "./src/config/registries.ts";
export type {
  Exposure,
  GatewayOptions,
  HybridOptions,
  MetaTool,
} from "./src/config/gateway_options.ts";
export type { Rate } from "./src/config/current_config.ts";
export type { Identity } from "./src/config/current_config.ts";
export type { Restrictions } from "./src/config/current_config.ts";
export type { Toolset } from "./src/protocol/toolset.ts";
export type { LimitName, Limits } from "./src/config/limits.ts";
export type { OsLayer } from "./src/config/os_layer.ts";
export type { Channel, PersonSettings } from "./src/config/user_config.ts";
export type { RuleLine, Rules } from "./src/config/rules.ts";
export type { NetworkSection } from "./src/config/network.ts";
export type { SamplingSettings } from "./src/config/sampling.ts";
export type {
  ModuleDefinition as DenoDefinition,
  ProgramDefinition as StdioDefinition,
  RemoteDefinition as HttpDefinition,
  ServerDefinition,
} from "./src/servers/kind.ts";
export {
  inferCapabilityApprovalMode,
  type PermissionLists,
} from "./src/policy/capability_rules.ts";
export { getToolRouting, type ToolRouting } from "./src/servers/cloud/routing.ts";
export type { CatalogServer } from "./src/search/catalog.ts";
export type {
  QueryMemory,
  SearchAnswer,
  SearchHit,
  SearchMode,
  SearchOptions,
} from "./src/search/search.ts";
export type { SearchNote } from "./src/search/notes.ts";

/** The options of `openGateway()`. */
export interface OpenOptions {
  /**
   * A folder of the workspace; by default the current folder. The workspace is found as for `pml
   * stdio`.
   */
  readonly cwd?: string;
  /** Whether changes of the configuration take effect while the gateway is open; by default false. */
  readonly watch?: boolean;
}

/** The options of `OpenedGateway.callTool()`. */
export interface CallOptions {
  /** Cancels the call when it aborts. */
  readonly signal?: AbortSignal;
  /** Called with each progress report of the call. */
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * A gateway inside this process. The same rules, approvals and sandbox apply as for a client.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { openGateway } from "@casys/pml";
 *
 * await using gateway = await openGateway();
 * const names = (await gateway.listTools()).map(({ name }) => name);
 * assert.ok(names.includes("filesystem:read_file"));
 *
 * const { hits } = await gateway.search("read a file", { limit: 3 });
 * assert.ok(hits.length > 0);
 * ```
 */
export interface OpenedGateway extends AsyncDisposable {
  /**
   * Runs a tool named `server:tool`. A tool that ran and failed returns a result with `isError`.
   *
   * @throws {PmlError} UNKNOWN_TOOL if there is no such tool; PERMISSION_DENIED if a rule denies the
   * call; APPROVAL_REQUIRED if the user must approve it: `pml approve` does, and the same call then
   * passes once; BAD_ARGUMENTS for arguments that a module does not take; TIMED_OUT after
   * `limits.call_ms`; CANCELLED if `signal` aborts; CONFIG_INVALID while the configuration is not
   * valid; the codes of the server, such as UPSTREAM_DOWN.
   */
  callTool(name: string, args?: JsonObject, options?: CallOptions): Promise<ToolResult>;
  /**
   * Returns the tools as functions that return their outputs, with the types that `pml types` writes:
   * `gateway.tools<Mcp>().filesystem.read_file({ path })`.
   *
   * @throws {ToolError} A function throws it if its tool ran and failed. Otherwise it throws the errors
   * of `callTool()`.
   */
  tools<T extends object>(): T;
  /**
   * Finds tools for a task, or for up to 5 tasks, the best first. `server` limits the search to one
   * server, `limit` (by default 10) the number of hits.
   *
   * @throws {PmlError} BAD_ARGUMENTS for more than 5 queries; INPUT_TOO_LARGE for a query of more
   * than 32,768 characters.
   */
  search(query: string | readonly string[], options?: SearchOptions): Promise<SearchAnswer>;
  /**
   * Returns every tool that no rule denies, each named `server:tool`. A server that waits for an
   * approval is not started for it.
   */
  listTools(): Promise<readonly ToolDefinition[]>;
  /** Returns the current configuration. It is frozen. */
  config(): Config;
  /** Ends all servers and child processes of the gateway. `await using` does the same. */
  close(): Promise<void>;
}

/**
 * Opens a gateway on the workspace of a folder. It reads the configuration as `pml stdio` does. Close
 * it, or declare it with `await using`.
 *
 * @throws {PmlError} CONFIG_INVALID if the folder is no workspace, or a configuration file is not
 * valid.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { openGateway } from "@casys/pml";
 *
 * const cwd = await Deno.makeTempDir();
 * await Deno.writeTextFile(`${cwd}/notes.txt`, "Buy milk");
 * {
 *   await using gateway = await openGateway({ cwd });
 *   const { content } = await gateway.callTool("filesystem:read_file", { path: "notes.txt" });
 *   assert.match(String(content[0]?.text), /Buy milk/);
 * }
 * await Deno.remove(cwd, { recursive: true });
 * ```
 */
export async function openGateway(options: OpenOptions = {}): Promise<OpenedGateway> {
  const [{ openApp }, { callForProgram, named, toolsFor }] = await Promise.all([
    import("./src/app/app.ts"),
    import("./src/cli/library.ts"),
  ]);
  const { cwd = Deno.cwd(), watch = false } = options;
  const app = await openApp({ cwd });
  if (watch) app.watch();
  const { problem } = app.config();
  const close = async () => await app[Symbol.asyncDispose]();
  if (problem !== undefined) {
    await close();
    throw problem;
  }
  const allowed = (id: ToolId) => app.policy.now.judge(id).kind !== "deny";
  return {
    config: () => app.config(),
    callTool: async (name, args = {}, more = {}) =>
      await callForProgram(app, { ...more, name, args }),
    tools: <T extends object>() => toolsFor<T>(app),
    search: async (query, more = {}) => {
      await app.servers.lists.prepare("tools", { only: more.server });
      const answer = await (await app.finder()).search(query, { allowed, ...more });
      return { ...answer, hits: answer.hits.map((hit) => ({ ...hit, id: named(hit) })) };
    },
    listTools: async () => {
      await app.servers.lists.prepare();
      return app.catalog.list().filter(({ id }) => allowed(id))
        .map((entry) => ({ ...entry.tool, name: named(entry) }));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

if (import.meta.main) Deno.exitCode = await main(Deno.args);
