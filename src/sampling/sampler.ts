/**
 * Has a provider answer what servers ask a model: judged, asked about and journalled as every call,
 * and so is each tool that the model calls. It is loaded by the first such request.
 *
 * @module
 */

import type { JournalRecord } from "../audit/journal.ts";
import type { SamplingSettings } from "../config/sampling.ts";
import {
  type Call,
  type CallClient,
  type CallTool,
  changedClient,
  type Question,
  type ServerRequest,
} from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { type Check, check } from "../core/check.ts";
import { keyHint, PmlError } from "../core/errors.ts";
import { defined, type JsonObject, objectOf, quoted, textOf } from "../core/json.ts";
import { showsWork } from "../protocol/progress.ts";
import { shownId, type ToolId, toolId, wireName } from "../core/tool_id.ts";
import { missingIn } from "../protocol/toolset.ts";
import { fits, patternsOf, type RunnableTool, Sampling } from "./sampling.ts";
import { keepsChanging } from "../calls/restart.ts";
import { answeredResult, Run } from "../workflow/run.ts";
import type { Log } from "../audit/log.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import type { Fetch } from "../core/fetch.ts";
import type { Policy } from "../policy/policy.ts";
import type { Servers } from "../servers/lists/servers.ts";

/** The pipeline of calls, and the way to the network. */
interface SamplingPath {
  readonly callTool: CallTool;
  /** Leaves a question that no user can be asked now, and returns the error that says so. */
  leave(question: Question): Promise<PmlError>;
  readonly machine: { readonly fetch: Fetch };
}

/** The collaborators of `Sampler`. */
export interface SamplerOptions {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly keys: Keys;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly path: SamplingPath;
  /** Writes to the journal. */
  readonly note: (record: JournalRecord) => void;
}

/** The call during which a server asks, and the way to tell its client how that comes along. */
interface During {
  readonly call: Call;
  /** The client of the call, without this sampler. */
  readonly client: CallClient;
  readonly onSampled: (message: string) => void;
}

/** How many tools a model is offered. */
const TOOLS_MAX = 64;

/** Answers servers by the model of a provider. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #sampling: Sampling;

  /** Takes the options; sends nothing. */
  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#sampling = new Sampling({
      home: options.policy.now.config.home,
      fetch: (...asked) => options.path.machine.fetch(...asked),
      withoutSecrets: (said) => options.redactor.clean(said),
    });
  }

  /** Tells whether the client's model answers a request, and not the provider. */
  isForClient(params: JsonObject, able: JsonObject | undefined): boolean {
    const { prefer, tools: allowed } = this.#settings();
    const wantsTools = Array.isArray(params.tools) && params.tools.length > 0;
    if (prefer === "provider" || wantsTools && objectOf(able).tools === undefined) return false;
    // A client cannot run the tools of PML for a server.
    const isLoop = !wantsTools && patternsOf(params).length > 0 && allowed.length > 0;
    return prefer === "client" || !isLoop;
  }

  /** Answers a request, after it passed all gates. */
  async answer(asked: ServerRequest, during: During): Promise<JsonObject> {
    const { call, client } = during;
    const { server, method, params, signal } = asked;
    const settings = this.#settings();
    const prompt = this.#sampling.prompt(params);
    const { limits } = this.#options.policy.now.config;
    // guard: sampling-depth
    if ((call.depth ?? 0) >= limits.capabilityDepth) throw tooDeep(server, limits.capabilityDepth);
    this.#key(server, settings); // nobody is asked where it is missing
    const facts = this.#sampling.lines(prompt, settings);
    const run = this.#run(signal, during);
    using cancellation = Cancellation.of(signal);
    const own: Call = {
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
      client: {
        request: client.request,
        onQuestion: client.onQuestion,
        onProgress: (progress) => {
          if (showsWork(progress)) during.onSampled(progress.message ?? "");
        },
        onAsk: ({ signal }) => {
          const settings = this.#settings();
          return this.#sampling.answer(prompt, {
            assertCurrent: () => {
              // The person may have chosen another model, or none, since this was shown.
              const now = this.#sampling.lines(prompt, this.#settings());
              // guard: late-provider
              if (`${now}` !== `${facts}`) throw keepsChanging(own);
            },
            ...{ settings, key: this.#key(server, settings), signal },
            tools: (patterns) => this.#tools(patterns, { ...settings, toolset: client.toolset }),
            run: (id, args) => run.call({ id, arguments: args, signal }),
            onProgress: (message) => during.onSampled(`${server} samples at ${message}`),
            onAsked: (event) => this.#record({ server, run: run.options.id, ...event }),
          });
        },
      },
    };
    const result = await answeredResult(own, this.#options.path);
    // What the model said, as plain JSON.
    return result as unknown as JsonObject;
  }

  /** Says whether there is a model to ask, and what was used. */
  async check(): Promise<Check> {
    const { provider, model, key, tokensPerDay } = this.#settings();
    const said = `${model} of ${provider}`;
    return await check("sampling", said, () => {
      if (this.#keyOf(key) === undefined) {
        const why = `${said} needs ${key}, which is not set`;
        throw new PmlError("KEY_MISSING", why, { hint: keyHint(key) });
      }
      const { tokens } = this.#sampling.today();
      return `${said}, with ${key}; ${tokens} of ${tokensPerDay} tokens of today are used`;
    });
  }

  /** The run of one request: what its model calls passes all gates, and can ask the person. */
  #run(signal: AbortSignal, { call, client, onSampled }: During): Run {
    const { path: { callTool }, policy } = this.#options;
    const { depth = 0, actor } = call;
    return new Run({
      id: crypto.randomUUID(),
      via: "sampling",
      actor,
      depth: depth + 1,
      calls: policy.now.config.limits.codeCalls,
      callTool,
      signal,
      client: changedClient(client, {
        onProgress: (progress) => {
          const { message } = progress;
          if (message !== undefined && showsWork(progress)) onSampled(message);
        },
      }),
    });
  }

  /** Returns the tools that the server wants, the person allows, and no rule denies. */
  async #tools(
    patterns: readonly string[],
    { tools: allowed, toolset }: Pick<SamplingSettings, "tools"> & Pick<CallClient, "toolset">,
  ): Promise<readonly RunnableTool[]> {
    const { servers, policy, log } = this.#options;
    const names = allowed.map((pattern) => pattern.kind === "any" ? undefined : pattern.server);
    await Promise.all(names.map((only) => servers.lists.prepare("tools", { only })));
    const isFit = fits(patterns, allowed);
    const ids = servers.lists.listed("tools").flatMap(({ server, items }) =>
      items.map(({ name }) => toolId(server, textOf(name)))
    ).filter((id) =>
      isFit(id) && (missingIn([toolset?.()], id) ?? policy.now.judge(id)).kind !== "deny"
    ).sort();
    if (ids.length > TOOLS_MAX) {
      log.warn(`${ids.length} tools fit; a model is offered the first ${TOOLS_MAX} of them`);
    }
    const offered = ids.slice(0, TOOLS_MAX).map((id) => this.#offered(id));
    return (await Promise.all(offered)).filter((tool) => tool !== undefined);
  }

  async #offered(id: ToolId): Promise<RunnableTool | undefined> {
    try {
      const tool = await this.#options.servers.shown(id);
      const { description, inputSchema } = tool;
      const [server = ""] = id.split(":", 1);
      const name = wireName(shownId({ server: { name: server }, tool }));
      return { id, name, inputSchema, ...defined({ description }) };
    } catch {
      return undefined; // it was removed or switched off
    }
  }

  #record(event: object): void {
    const about = defined(event) as JsonObject; // names and numbers
    this.#options.note({ kind: "event", event: "sampled", about });
  }

  #key(server: string, { key: name, provider }: SamplingSettings): string {
    const key = this.#keyOf(name);
    if (key !== undefined) return key;
    const why = `Cannot sample for ${quoted(server)}: ${provider} requires ${name}`;
    throw new PmlError("KEY_MISSING", why, { hint: keyHint(name) });
  }

  // A file of the workspace must not choose whose account gets the person's texts.
  #keyOf(name: string): string | undefined {
    const key = this.#options.keys.find(name);
    // guard: sampling-key
    return key?.from === ".env" ? undefined : key?.value;
  }

  #settings(): SamplingSettings {
    const { sampling } = this.#options.policy.now.config;
    if (sampling !== undefined) return sampling;
    throw new PmlError("CONFIG_INVALID", "Cannot sample: no provider is configured any more", {
      hint: "Set `sampling` in config.yaml, or use a client that can sample",
    });
  }
}

function tooDeep(server: string, most: number): PmlError {
  const why = `Cannot sample for ${quoted(server)}: ${most} runs wait for this one already`;
  return new PmlError("OVERLOADED", why, {
    hint: "Narrow sampling.allowed_tool_patterns: tools ask models that call tools",
  });
}
