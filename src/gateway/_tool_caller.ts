/**
 * Calls tools of servers for requests of clients, and keeps large results outside of answers.
 *
 * @module
 */

import { isLonger } from "../core/json_length.ts";
import { type Json, type JsonObject, objectOf } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { showsPages } from "../protocol/apps.ts";
import {
  type Call,
  type CallTool,
  type ContentBlock,
  type Outcome,
  textResult,
  type ToolResult,
} from "../protocol/call.ts";
import { headerMismatch } from "../protocol/failures.ts";
import { differingHeader } from "../protocol/marked_arguments.ts";
import { isRemark, outputOf } from "../protocol/output.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { RequestScope } from "./interaction/client_request.ts";
import { appTools } from "../search/app_tools.ts";
import type { Reader } from "../workflow/kept_results.ts";
import type { KeptSource } from "../workflow/results.ts";
import type { GatewayHost, GatewaySettings } from "./options.ts";

/** A request to call a tool, without the name of the tool. */
export interface ToolRequest {
  readonly arguments: JsonObject;
  readonly scope: RequestScope;
  /** The keys of its `_meta` that pass without being shown. */
  readonly meta?: JsonObject | undefined;
  /** Its other members, which the user sees. Plans and code pass neither on. */
  readonly members?: Call["members"];
  /** The client's wishes about tasks. */
  readonly task?: Call["task"];
  /** The headers of its HTTP request, which repeat arguments. */
  readonly headers?: Pick<Headers, "get"> | undefined;
}

/** Calls tools of servers. */
export class ToolCaller {
  readonly #host: GatewayHost;
  readonly #callTool: CallTool;

  /** Takes the host of the gateway, and the function that makes the calls of this gateway. */
  constructor(host: GatewayHost, callTool: CallTool) {
    this.#host = host;
    this.#callTool = callTool;
  }

  /** Calls a tool. */
  call(id: ToolId, request: ToolRequest & { readonly via: string }): Promise<Outcome> {
    return this.run(this.callOf(id, request));
  }

  /** Returns the call of a tool, or of another method of its server. */
  callOf(id: ToolId, request: ToolRequest & Pick<Call, "via" | "method">): Call {
    const { scope, headers, arguments: args, meta, members, task, via, method } = request;
    return {
      id,
      arguments: args,
      meta,
      members,
      task,
      via,
      method,
      actor: this.#host.settings().actor,
      callId: crypto.randomUUID(),
      cancellation: scope.cancellation,
      client: scope.client,
      answer: scope.answer,
      assertMatches: headers && ((tool: ToolDefinition) => {
        const header = differingHeader(tool, { args, headers });
        if (header !== undefined) throw headerMismatch(header);
      }),
    };
  }

  /** Runs a call. A large result may stay outside of the answer. */
  run(call: Call): Promise<Outcome> {
    const isWhole = readerFor(this.#host.settings(), call.via) === undefined;
    return isWhole ? this.#callTool(call) : this.#fitting(call);
  }

  /** Makes a call, whose result stays whole. */
  runWhole(call: Call): Promise<Outcome> {
    return this.#callTool(call);
  }

  /** Returns a result for the model that may be large, such as the selected part of another one. */
  async fitted(
    result: ToolResult,
    { via, source, max }: {
      readonly via: string;
      readonly source: KeptSource | undefined;
      /** The maximum number of characters, if it is less than `limits.inline_bytes`. */
      readonly max?: number;
    },
  ): Promise<ToolResult> {
    // The configuration may have changed since the call began.
    const settings = this.#host.settings();
    const reader = readerFor(settings, via);
    const most = Math.min(max ?? settings.inlineBytes, settings.inlineBytes);
    if (reader === undefined || !isLarge(result, most)) return result;
    const { largeResults } = await this.#host.workflow();
    const { actor } = settings;
    const stored = await largeResults.keep(keptOutput(result), { actor, reader, source });
    return stored === undefined ? result : { ...result, ...replaced(result, stored) };
  }

  /**
   * Returns the results of a batch, by the whole ones. Together they share the size of one answer:
   * the smaller ones stay whole as far as it allows.
   */
  async fittedBatch(
    results: ReadonlyMap<ToolResult, Call>,
  ): Promise<ReadonlyMap<ToolResult, ToolResult>> {
    let remaining = this.#host.settings().inlineBytes;
    const fitted = new Map<ToolResult, ToolResult>();
    const sizes = [...results].map(([result, call]) => ({ result, call, size: sizeOf(result) }));
    for (const { result, call, size } of sizes.sort((one, other) => one.size - other.size)) {
      // The answer for a shorter result would not be shorter.
      const max = Math.max(remaining, ANSWER_MAX);
      remaining -= size;
      fitted.set(result, await this.#fit(result, call, max));
    }
    return fitted;
  }

  async #fitting(call: Call): Promise<Outcome> {
    const outcome = await this.#callTool(call);
    if (outcome.kind === "ask" || outcome.task !== undefined) return outcome;
    const { result } = outcome;
    const fitted = await this.#fit(result, call, this.#host.settings().inlineBytes);
    return fitted === result ? outcome : { ...outcome, result: fitted };
  }

  async #fit(result: ToolResult, call: Call, max: number): Promise<ToolResult> {
    if (!isLarge(result, max) || this.#isForPage(call)) return result;
    const definition = await this.#definitionOf(call.id);
    // A client that validates the result with the schema would reject another one.
    // guard: whole-result
    if (definition === undefined || definition.outputSchema !== undefined) return result;
    return await this.fitted(result, { via: call.via, source: call, max });
  }

  /** Returns whether a page may have made the call: it reads the result itself. */
  #isForPage({ id, via, client }: Call): boolean {
    if (via !== "tools/call" || !showsPages(client.able ?? {})) return false;
    return appTools(this.#host.catalog.list()).servers.has(splitToolId(id).server);
  }

  /** Returns the definition of a tool that has run; undefined if its server has ended since. */
  async #definitionOf(id: ToolId): Promise<ToolDefinition | undefined> {
    try {
      return await this.#host.servers.definition(id);
    } catch {
      return undefined;
    }
  }
}

/** The maximum number of characters of an answer for a large result. */
const ANSWER_MAX = 2_000;
/** The meta-tools that read kept results, the simpler one first. */
const READERS: readonly Reader[] = ["call", "execute_workflow"];

/**
 * Returns the meta-tool with which the client of a call reads kept results; undefined if its list has
 * none. With `meta_only`, the caller of a tool of a server by its own name is no model.
 */
function readerFor(
  { inlineBytes, exposure, hybrid, metaTools }: Pick<
    GatewaySettings,
    "inlineBytes" | "exposure" | "hybrid" | "metaTools"
  >,
  via: string,
): Reader | undefined {
  const isListed = exposure === "hybrid" ? hybrid.exposeMetaTools : exposure !== "full_proxy";
  if (inlineBytes === 0 || !isListed) return undefined;
  if (via === "tools/call" && exposure === "meta_only") return undefined;
  return READERS.find((name) => metaTools.includes(name));
}

/**
 * Returns whether a result of texts is longer than `max`. Clients show either the content or the
 * structured content.
 */
function isLarge({ content, structuredContent }: ToolResult, max: number): boolean {
  let length = 0;
  for (const block of content) {
    const text = textIn(block);
    if (text === undefined) return false;
    length += text.length;
  }
  return length > max || structuredContent !== undefined && isLonger(structuredContent, max);
}

/** Returns about the number of characters of a result that a model reads. */
function sizeOf({ content, structuredContent }: ToolResult): number {
  const size = content.reduce((sum, block) => sum + (textIn(block)?.length ?? 0), 0);
  return structuredContent === undefined
    ? size
    : Math.max(size, JSON.stringify(structuredContent).length);
}

/** Returns the text of a block; undefined for images and other blocks without one. */
function textIn({ type, text, resource }: ContentBlock): string | undefined {
  const part = type === "text" ? text : type === "resource" ? objectOf(resource).text : undefined;
  return typeof part === "string" ? part : undefined;
}

/** Returns the output to keep: several blocks of text become one text, which has lines. */
function keptOutput(result: ToolResult): Json {
  const texts = result.content.filter((block) => !isRemark(block));
  const isOneText = result.structuredContent === undefined && texts.length > 1 &&
    texts.every(({ type }) => type === "text");
  return isOneText ? texts.map(({ text }) => text).join("\n") : outputOf(result);
}

/** Returns the content that replaces a large result. Remarks of PML stay. */
function replaced(
  { content }: ToolResult,
  { uri, text }: { readonly uri: string; readonly text: string },
): Pick<ToolResult, "content" | "structuredContent"> {
  const link = { type: "resource_link", uri, name: "result" };
  const remarks = content.filter(isRemark);
  return { content: [...textResult(text).content, link, ...remarks], structuredContent: undefined };
}
