/**
 * Answers sampling requests of servers with the model of a provider. The request and each tool call
 * of the model pass the same checks, approvals and journal as every call. The first sampling
 * request loads this module.
 *
 * @module
 */

import type { EventRecord } from "../audit/journal.ts";
import type { SamplingSettings } from "../config/sampling.ts";
import {
  type Call,
  type CallClient,
  type CallTool,
  changeClient,
  type Question,
  type ServerRequest,
  type ToolResult,
} from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { type CheckReport, runCheck } from "../core/check.ts";
import { keyHint, PmlError } from "../core/errors.ts";
import { type JsonObject, objectOf, quoted, textOf, withoutUndefined } from "../core/json.ts";
import { ownProgress, showsWork } from "../protocol/progress.ts";
import { shownId, type ToolId, toolId, wireName } from "../core/tool_id.ts";
import { toolsetDenial } from "../protocol/toolset.ts";
import {
  createToolFilter,
  parsePatterns,
  type RunnableTool,
  type SampledEvent,
  Sampling,
  type SamplingRequest,
} from "./sampling.ts";
import type { Prompt } from "./_request.ts";
import { configChangesError } from "../calls/restart.ts";
import { callWithApproval, Run } from "../workflow/run.ts";
import type { Log } from "../audit/log.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import type { Fetch } from "../core/fetch.ts";
import type { Policy } from "../policy/policy.ts";
import type { Servers } from "../servers/lists/servers.ts";

/** The call pipeline, the journal and the network of PML. */
export interface SamplingPath {
  readonly callTool: CallTool;
  /** Stores an approval request for later, and returns the error for the caller. */
  storeQuestion(question: Question): Promise<PmlError>;
  /** Writes an event to the journal. */
  record(event: string, details: Pick<EventRecord, "about">): void;
  readonly machine: { readonly fetch: Fetch };
}

/** The collaborators of `Sampler`. */
export interface SamplerParts {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly keys: Keys;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly path: SamplingPath;
}

/** The call during which a server sends its request, and the client of the call. */
interface SamplingContext {
  readonly call: Call;
  /**
   * The client before `samplingClient()` replaced its `onServerRequest`, so that requests to it do
   * not lead back to this sampler.
   */
  readonly client: CallClient;
}

/** The maximum number of tools that a model is offered. */
const TOOLS_MAX = 64;

/** Answers sampling requests of servers with the model of a provider. */
export class Sampler {
  readonly #parts: SamplerParts;
  readonly #sampling: Sampling;

  /** Creates a sampler. Sends nothing. */
  constructor(parts: SamplerParts) {
    const { policy, path, redactor } = parts;
    this.#parts = parts;
    this.#sampling = new Sampling(policy.now.config.home, path.machine.fetch, redactor);
  }

  /**
   * Returns whether the client's model answers a request instead of the provider. `clientSampling`
   * are the sampling capabilities that the client declared.
   */
  isForClient(params: JsonObject, clientSampling: JsonObject | undefined): boolean {
    const { prefer, tools: allowed } = settingsOf(this.#parts);
    const wantsTools = Array.isArray(params.tools) && params.tools.length > 0;
    if (prefer === "provider" || wantsTools && objectOf(clientSampling).tools === undefined) {
      return false;
    }
    // The client's model cannot call PML's tools for a server.
    const pmlRunsTools = !wantsTools && parsePatterns(params).length > 0 && allowed.length > 0;
    return prefer === "client" || !pmlRunsTools;
  }

  /** Answers a request after it passes all checks. */
  async answer(serverRequest: ServerRequest, context: SamplingContext): Promise<JsonObject> {
    const { call, client } = context;
    const { server, method, params, signal } = serverRequest;
    const settings = settingsOf(this.#parts);
    const prompt = this.#sampling.parse(params);
    const { limits } = this.#parts.policy.now.config;
    // guard: sampling-depth
    if ((call.depth ?? 0) >= limits.capabilityDepth) throw tooDeep(server, limits.capabilityDepth);
    keyOf(this.#parts, server, settings); // fails before the user is asked
    const facts = this.#sampling.describe(prompt, settings);
    const run = this.#createRun(signal, context);
    using cancellation = Cancellation.of(signal);
    const samplingCall: Call = {
      id: toolId(server, "@sampling"),
      method,
      arguments: params,
      cancellation,
      via: "server",
      isNested: true,
      run: run.options.id,
      actor: call.actor,
      callId: crypto.randomUUID(),
      facts,
      // The provider takes the place of the client: `onServerRequest` runs after all checks, and
      // asks the provider's model. `onQuestion` still asks the user.
      client: {
        requestId: client.requestId,
        trace: client.trace,
        onQuestion: client.onQuestion,
        onProgress: (progress) => {
          if (showsWork(progress)) reportProgress(client, progress.message ?? "");
        },
        onServerRequest: ({ signal }) => {
          const shownRequest = { samplingCall, server, prompt, facts, run, client };
          const request = new ApprovedRequest(this.#parts, this.#sampling, {
            ...shownRequest,
            signal,
          });
          return this.#sampling.answer(prompt, request);
        },
      },
    };
    const result = await callWithApproval(samplingCall, this.#parts.path);
    // The answer of the model is plain JSON.
    return result as unknown as JsonObject;
  }

  /** Checks whether the provider's key is set, and reports the use of today. */
  async check(): Promise<CheckReport> {
    const { provider, model, key, tokensPerDay } = settingsOf(this.#parts);
    const label = `${model} of ${provider}`;
    return await runCheck("sampling", label, () => {
      if (findKey(key, this.#parts) === undefined) {
        const why = `${label} needs ${key}, which is not set`;
        throw new PmlError("KEY_MISSING", why, { hint: keyHint(key) });
      }
      const { tokens } = this.#sampling.today();
      return `${label}, with ${key}; ${tokens} of ${tokensPerDay} tokens of today are used`;
    });
  }

  /**
   * Creates the run of one request. The tool calls of the run pass all checks and can ask the user.
   */
  #createRun(signal: AbortSignal, { call, client }: SamplingContext): Run {
    const { path: { callTool }, policy } = this.#parts;
    const { depth = 0, actor } = call;
    return new Run({
      id: crypto.randomUUID(),
      via: "sampling",
      actor,
      depth: depth + 1,
      maxCalls: policy.now.config.limits.codeCalls,
      callTool,
      signal,
      client: changeClient(withoutSession(client), {
        onProgress: (progress) => {
          const { message } = progress;
          if (message !== undefined && showsWork(progress)) reportProgress(client, message);
        },
      }),
    });
  }
}

/**
 * Returns a client without its connection, so that approvals for its session do not apply: a
 * server, not the client, began the model's calls.
 */
function withoutSession(client: CallClient): CallClient {
  // guard: session-sampling
  if (client.connection !== undefined) return changeClient(client, { connection: undefined });
  return client;
}

/** A request of a server, as shown to the user. */
interface ShownRequest {
  /** The call that the approval request shows. */
  readonly samplingCall: Call;
  readonly server: string;
  readonly prompt: Prompt;
  readonly facts: readonly string[];
  /** The run for the model's tool calls. */
  readonly run: Run;
  readonly client: CallClient;
  readonly signal: AbortSignal;
}

/** A request that the user or a rule approved. */
class ApprovedRequest implements SamplingRequest {
  readonly settings: SamplingSettings;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly #parts: SamplerParts;
  readonly #sampling: Sampling;
  readonly #request: ShownRequest;

  /** Reads the current settings. Throws KEY_MISSING without the key of the provider. */
  constructor(parts: SamplerParts, sampling: Sampling, request: ShownRequest) {
    this.settings = settingsOf(parts);
    this.key = keyOf(parts, request.server, this.settings);
    this.signal = request.signal;
    this.#parts = parts;
    this.#sampling = sampling;
    this.#request = request;
  }

  assertCurrent(): void {
    const { samplingCall, prompt, facts } = this.#request;
    // The user may have changed or removed the model since the facts were shown.
    const now = this.#sampling.describe(prompt, settingsOf(this.#parts));
    // guard: late-provider
    if (`${now}` !== `${facts}`) throw configChangesError(samplingCall);
  }

  run(id: ToolId, args: JsonObject): Promise<ToolResult> {
    return this.#request.run.call({ id, arguments: args, signal: this.signal });
  }

  report(message: string): void {
    const { client, server } = this.#request;
    reportProgress(client, `${server} asks a model: ${message}`);
  }

  record(event: SampledEvent): void {
    const { server, run } = this.#request;
    // The members are texts and numbers, which are JSON.
    const about = withoutUndefined({ server, run: run.options.id, ...event }) as JsonObject;
    this.#parts.path.record("sampled", { about });
  }

  /** Returns the tools that the server requests, the user allows and no rule denies. */
  async tools(patterns: readonly string[]): Promise<readonly RunnableTool[]> {
    const { servers, policy, log } = this.#parts;
    const { tools: allowed } = this.settings;
    const { toolset } = this.#request.client;
    const names = allowed.map((pattern) => pattern.kind === "any" ? undefined : pattern.server);
    await Promise.all(names.map((only) => servers.lists.prepare("tools", { only })));
    const isFit = createToolFilter(patterns, allowed);
    const ids = servers.lists.itemsOf("tools").flatMap(({ server, items }) =>
      items.map(({ name }) => toolId(server, textOf(name)))
    ).filter((id) =>
      isFit(id) && (toolsetDenial([toolset?.()], id) ?? policy.now.judge(id)).kind !== "deny"
    ).sort();
    if (ids.length > TOOLS_MAX) {
      log.warn(`${ids.length} tools fit; a model is offered the first ${TOOLS_MAX} of them`);
    }
    const offered = ids.slice(0, TOOLS_MAX).map((id) => this.#toRunnable(id));
    return (await Promise.all(offered)).filter((tool) => tool !== undefined);
  }

  async #toRunnable(id: ToolId): Promise<RunnableTool | undefined> {
    try {
      const tool = await this.#parts.servers.shownDefinition(id);
      const { description, inputSchema } = tool;
      const [server = ""] = id.split(":", 1);
      const name = wireName(shownId({ server: { name: server }, tool }));
      return { id, name, inputSchema, ...withoutUndefined({ description }) };
    } catch {
      return undefined; // the tool was removed or disabled
    }
  }
}

/** Reports the progress of sampling to the client of a call. */
function reportProgress({ onProgress }: CallClient, message: string): void {
  onProgress?.(ownProgress("working", message));
}

/** Returns the key of the provider. Throws KEY_MISSING without one. */
function keyOf(
  parts: Pick<SamplerParts, "keys">,
  server: string,
  { key: name, provider }: SamplingSettings,
): string {
  const key = findKey(name, parts);
  if (key !== undefined) return key;
  const why = `Cannot sample for ${quoted(server)}: ${provider} requires ${name}`;
  throw new PmlError("KEY_MISSING", why, { hint: keyHint(name) });
}

// A file in the workspace must not select the account that receives the user's texts.
function findKey(name: string, { keys }: Pick<SamplerParts, "keys">): string | undefined {
  const key = keys.find(name);
  // guard: sampling-key
  return key?.from === ".env" ? undefined : key?.value;
}

function settingsOf({ policy }: Pick<SamplerParts, "policy">): SamplingSettings {
  const { sampling } = policy.now.config;
  if (sampling !== undefined) return sampling;
  throw new PmlError("CONFIG_INVALID", "Cannot sample: the provider is no longer configured", {
    hint: "Set `sampling` in config.yaml, or use a client that can sample",
  });
}

function tooDeep(server: string, most: number): PmlError {
  const why = `Cannot sample for ${quoted(server)}: ${most} nested runs are already waiting for it`;
  return new PmlError("OVERLOADED", why, {
    hint: "Narrow sampling.allowed_tool_patterns so that tools do not start sampling in a loop",
  });
}
