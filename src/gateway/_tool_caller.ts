/**
 * Calls tools of servers for requests of clients, and stores results that are too large for answers.
 *
 * @module
 */

import { isLonger } from "../core/json_length.ts";
import { type Json, type JsonObject, objectOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
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
import { headerMismatchError } from "../protocol/failures.ts";
import { differingHeader } from "../protocol/marked_arguments.ts";
import { isRemark, outputOf } from "../protocol/output.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { RequestScope } from "./interaction/request_client.ts";
import { appTools } from "../search/app_tools.ts";
import type { Reader } from "../workflow/large_results.ts";
import type { ResultSource } from "../workflow/results.ts";
import type { GatewayHost, GatewaySettings } from "./options.ts";

/** A request to call a tool, without the name of the tool. */
export interface ToolRequest {
  readonly arguments: JsonObject;
  readonly scope: RequestScope;
  /** The members of the request's `_meta` that need no approval. */
  readonly meta?: JsonObject | undefined;
  /**
   * The request's other members, which the user must approve. Calls by plans and code have neither
   * `meta` nor `members`.
   */
  readonly members?: Call["members"];
  /** Set if the client wants a task. */
  readonly task?: Call["task"];
  /** The headers of the HTTP request, which repeat arguments and must match them. */
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
    return this.run(this.createCall(id, request));
  }

  /** Returns the call of a tool, or of another method of its server. */
  createCall(id: ToolId, request: ToolRequest & Pick<Call, "via" | "method">): Call {
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
        if (header !== undefined) throw headerMismatchError(header);
      }),
    };
  }

  /** Runs a call. Stores a result that is too large for the answer if the client can read it then. */
  run(call: Call): Promise<Outcome> {
    const staysWhole = readerFor(this.#host.settings(), call.via) === undefined;
    return staysWhole ? this.#callTool(call) : this.#callAndFit(call);
  }

  /** Runs a call. Returns its whole result, of any size. */
  runWhole(call: Call): Promise<Outcome> {
    return this.#callTool(call);
  }

  /**
   * Returns a result for the model. Stores a large result, and returns a short one with a link to it.
   */
  async fitResult(
    result: ToolResult,
    { via, source, max }: {
      readonly via: string;
      readonly source: ResultSource | undefined;
      /** The maximum number of characters, if it is less than `limits.inline_bytes`. */
      readonly max?: number;
    },
  ): Promise<ToolResult> {
    // The configuration may have changed since the call began.
    const settings = this.#host.settings();
    const reader = readerFor(settings, via);
    const maxLength = Math.min(max ?? settings.inlineBytes, settings.inlineBytes);
    if (reader === undefined || !isLarge(result, maxLength)) return result;
    const { largeResults } = await this.#host.workflow();
    const { actor } = settings;
    const stored = await largeResults.keep(storedOutput(result), { actor, reader, source });
    return stored === undefined ? result : { ...result, ...replacementFor(result, stored) };
  }

  /**
   * Returns the results of a batch for the model, by the whole results. Together they have about the
   * size of one answer: the smallest results stay whole, as many as fit, and PML stores all others.
   */
  async fitBatch(
    results: ReadonlyMap<ToolResult, Call>,
  ): Promise<ReadonlyMap<ToolResult, ToolResult>> {
    let remaining = this.#host.settings().inlineBytes;
    const fitted = new Map<ToolResult, ToolResult>();
    const sizes = [...results].map(([result, call]) => ({ result, call, size: sizeOf(result) }));
    for (const { result, call, size } of sizes.sort((one, other) => one.size - other.size)) {
      // The text in place of a stored result has up to this length, so a shorter result stays whole.
      const max = Math.max(remaining, LINK_TEXT_MAX);
      remaining -= size;
      fitted.set(result, await this.#fitCallResult(result, call, max));
    }
    return fitted;
  }

  #callAndFit(call: Call): Promise<Outcome> {
    return this.#callTool(call).then((outcome) => {
      if (outcome.kind === "ask" || outcome.task !== undefined) return outcome;
      const fitting = this.#fitCallResult(outcome.result, call, this.#host.settings().inlineBytes);
      const fitted = (result: ToolResult) =>
        result === outcome.result ? outcome : { ...outcome, result };
      return fitting instanceof Promise ? fitting.then(fitted) : outcome;
    });
  }

  /** Returns a result that fits: the same one without a promise, unless it is large. */
  #fitCallResult(result: ToolResult, call: Call, max: number): Maybe<ToolResult> {
    if (!isLarge(result, max) || this.#mayBeOfPage(call)) return result;
    return this.#fitLarge(result, call, max);
  }

  async #fitLarge(result: ToolResult, call: Call, max: number): Promise<ToolResult> {
    const definition = await this.#definitionOf(call.id);
    // A client that validates the result with the output schema would reject the text with a link.
    // guard: whole-result
    if (definition === undefined || definition.outputSchema !== undefined) return result;
    return await this.fitResult(result, { via: call.via, source: call, max });
  }

  /** Returns whether a page may have made the call. A page needs the whole result. */
  #mayBeOfPage({ id, via, client }: Call): boolean {
    if (via !== "tools/call" || !showsPages(client.capabilities ?? {})) return false;
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

/** The maximum number of characters of the text in place of a stored result. */
const LINK_TEXT_MAX = 2_000;
/** The meta-tools that read stored results, the simpler one first. */
const READERS: readonly Reader[] = ["call", "execute_workflow"];

/**
 * Returns the meta-tool with which the client of a call reads stored results; undefined if its list
 * has none. With `meta_only`, models cannot call a tool by its own name, so such a caller is not a
 * model.
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
 * Returns whether a result without images and other media is longer than `max` characters. The
 * content and the structured content count separately, because clients show only one of them.
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

/** Returns about how many characters of a result a model reads. */
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

/** Returns the output to store. Joins several blocks of text, so that the output has lines. */
function storedOutput(result: ToolResult): Json {
  const texts = result.content.filter((block) => !isRemark(block));
  const isOneText = result.structuredContent === undefined && texts.length > 1 &&
    texts.every(({ type }) => type === "text");
  return isOneText ? texts.map(({ text }) => text).join("\n") : outputOf(result);
}

/** Returns the members that replace those of a large result. Remarks of PML stay. */
function replacementFor(
  { content }: ToolResult,
  { uri, text }: { readonly uri: string; readonly text: string },
): Pick<ToolResult, "content" | "structuredContent"> {
  const link = { type: "resource_link", uri, name: "result" };
  const remarks = content.filter(isRemark);
  return { content: [...textResult(text).content, link, ...remarks], structuredContent: undefined };
}
