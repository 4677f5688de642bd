/**
 * The meta-tools: they find tools, show them, and call them through the pipeline.
 *
 * @module
 */

import {
  type Call,
  type CallClient,
  type Outcome,
  textResult,
  type ToolResult,
} from "../protocol/call.ts";
import { wrongNames } from "../core/argument_names.ts";
import { confusableWith } from "../core/confusable.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import {
  defined,
  inset,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
} from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { numberOf } from "../core/exact_number.ts";
import type { MetaTool } from "../config/exposure.ts";
import { isForModel, withPageAddress } from "../protocol/apps.ts";
import { isRemark, outputOf } from "../protocol/output.ts";
import { safeItem } from "../protocol/safe_text.ts";
import { isServerName, splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { type CatalogEntry, type CatalogServer, WHOLE_SERVER } from "../search/catalog.ts";
import { noteText } from "../search/notes.ts";
import type { SearchAnswer, SearchHit } from "../search/search.ts";
import { signatureOf } from "../search/signature.ts";
import { runBatch } from "../workflow/batch.ts";
import { tooManyTasks } from "../workflow/run.ts";
import type { WorkflowRequest } from "../workflow/workflow_request.ts";
import { batchResult } from "./_batch_result.ts";
import { CODE_HINT, declared, type ShownTool } from "./_declared.ts";
import { CHANGED, CHANGED_HINT, destructiveLabel } from "./_tool_kind.ts";
import { cut, instructionLine, instructionLines } from "./instructions.ts";
import { isKept } from "./_own_resources.ts";
import type { ToolCaller, ToolRequest } from "./_tool_caller.ts";
import { type GatewayHost, verdictWithin } from "./options.ts";
import type { Toolset } from "../protocol/toolset.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { errorBody, errorResult } from "../protocol/failures.ts";
import { badArguments, type Schemas } from "../calls/schemas.ts";
import { strictTool } from "./strict_tool.ts";
import { toolsNamed, unknownServer, unknownTool } from "../servers/lists/unknown_tool.ts";

const DESCRIPTION_MAX = 90;
const QUERY_SHOWN = 60;
const REMARK_MAX = 200;
/** The maximum number of servers with a problem that an answer of `search` names. */
const TROUBLES_MAX = 3;
const TROUBLE_MAX = 120;
/** The maximum number of starting servers that an answer of `search` names. */
const STARTING_MAX = 10;
/** The maximum length of a signature in an answer of `search`, in characters. */
const SIGNATURE_MAX = 200;
/** The line for a server whose tools are unknown. */
const WHOLE_LINE = `${WHOLE_SERVER} (call it to see the tools of this server)`;

/** The lines of servers' instructions that each connection has got from `search`. */
const TOLD = new WeakMap<AbortSignal, Set<string>>();

/** Answers calls of the meta-tools. */
export class MetaCalls {
  readonly #host: GatewayHost;
  readonly #schemas: Schemas;
  readonly #caller: ToolCaller;
  readonly #toolset: Toolset | undefined;

  /** Takes the collaborators, and the tools that exist for the client; undefined for all. */
  constructor(
    host: GatewayHost,
    { schemas, caller, toolset }: {
      readonly schemas: Schemas;
      readonly caller: ToolCaller;
      readonly toolset?: Toolset | undefined;
    },
  ) {
    this.#host = host;
    this.#schemas = schemas;
    this.#caller = caller;
    this.#toolset = toolset;
  }

  /** Runs one meta-tool. The model gets the errors of its arguments. */
  call(name: MetaTool, request: ToolRequest): Promise<Outcome> {
    const configError = this.#host.problem();
    if (configError !== undefined) return Promise.reject(configError);
    const definition = strictTool(name, this.#host.settings().batchMax);
    const args = withParsedArguments(name, request.arguments);
    const checked = { ...request, arguments: args };
    if (name === "execute_workflow") this.#assertFewTasks(args);
    const checking = this.#schemas.checkOwnArguments(definition, args, name);
    if (checking instanceof Promise) return checking.then(() => this.#run(name, checked));
    return name === "call" ? this.#callForModel(checked) : this.#run(name, checked);
  }

  async #run(name: MetaTool, request: ToolRequest): Promise<Outcome> {
    if (name === "call") return await this.#callForModel(request);
    if (name === "batch") return await this.#batch(request);
    if (name === "execute_code") {
      return await (await this.#host.workflow()).code(this.#workflowRequest(request));
    }
    if (name === "execute_workflow") {
      const planned = this.#host.workflow()
        .then((workflow) => workflow.plan(this.#workflowRequest(request)));
      return await planned.catch(asErrorOutcome);
    }
    const { arguments: args } = request;
    const result = await (name === "search" ? this.#search(request) : this.#schema(args));
    return { kind: "result", result };
  }

  /** Throws if a plan has too many tasks, before each is checked. */
  #assertFewTasks({ plan }: JsonObject): void {
    const { tasks } = objectOf(plan);
    const { planMax } = this.#host.settings();
    if (Array.isArray(tasks) && tasks.length > planMax) throw tooManyTasks(tasks.length, planMax);
  }

  #workflowRequest({ arguments: args, scope }: ToolRequest): WorkflowRequest {
    // No `answer`: workflows ask the user with `onQuestion` while the request waits.
    const { actor } = this.#host.settings();
    const { client, cancellation: { signal } } = scope;
    return { arguments: args, client, signal, actor };
  }

  async #search({ arguments: args, scope }: ToolRequest): Promise<ToolResult> {
    const { servers } = this.#host;
    const { actor, metaTools } = this.#host.settings();
    await servers.lists.prepare();
    const { server } = args as { server?: string };
    const allowed = (id: ToolId) => this.#judge(id).kind !== "deny";
    const isOwn = server !== undefined && servers.has(server) &&
      allowed(toolId(server, WHOLE_SERVER));
    const queries = textsIn(args);
    const toldTo = linesToldTo(scope.client);
    if (queries.length === 0 && server !== undefined && isOwn) {
      return textResult(await this.#listTools(server, toldTo));
    }
    // Offers of registries are found by the name of their server.
    const texts = queries.length === 0 ? [server ?? ""] : queries;
    // Calls do not need it.
    const { SearchText, sharesOf } = await import("./search_text.ts");
    const shares = sharesOf(texts.length, numberOf(args.limit));
    const limit = shares.full + shares.names;
    const answer = await this.#host.search(texts, {
      ...defined({ server }),
      limit,
      allowed,
      actor,
    });
    if (answer.hits.length === 0 && server !== undefined && !isOwn) {
      return textResult(unknownServer(server, servers));
    }
    const text = await SearchText.of(answer, {
      queries: texts,
      shares,
      lineOf: (hit) => this.#line(hit),
      nameOf: (hit) => this.#name(hit),
    });
    // Only a model with several queries has several calls to make.
    const isMany = texts.length > 1 && answer.hits.length > 1 && metaTools.includes("execute_code");
    if (isMany) this.#expectCode();
    const notes = [
      ...remarks(answer),
      ...isMany ? [CODE_HINT] : [],
      ...this.#starting(server),
      ...this.#troubles(server),
    ];
    for (const note of notes) text.add(note);
    for (const one of this.#instructions(text.inFull.map(({ id }) => id))) {
      const line = instructionLine(...one);
      if (!toldTo.has(line) && text.addIfFits(line)) toldTo.add(line);
    }
    // The model has no use for it.
    return { ...textResult(text.toString()), _meta: { "pml/search": { mode: answer.mode } } };
  }

  /** Lists the known tools of one server, in its order. */
  async #listTools(server: string, toldTo: Set<string>): Promise<string> {
    const tools = this.#modelToolsOf(server);
    const lines = await Promise.all(tools.map((entry) => this.#line(entry)));
    const none = tools.length === 0 ? [`No tools of ${quoted(server)} are known`] : [];
    const instructions = this.#instructionLines(tools.map(({ id }) => id));
    for (const line of instructions) toldTo.add(line);
    const missing = [...this.#starting(server), ...this.#troubles(server)];
    return [...lines, ...instructions, ...none, ...missing].join("\n");
  }

  /** Returns the known tools of a server that a model may call and no rule denies. */
  #modelToolsOf(server: string): readonly CatalogEntry[] {
    return this.#host.catalog.toolsOf(server)
      .filter(({ id, tool }) => isForModel(tool) && this.#judge(id).kind !== "deny");
  }

  /** Returns the present decision for a tool: those that do not exist for the client are denied. */
  #judge(id: ToolId): Verdict {
    return verdictWithin(this.#toolset, this.#host, id);
  }

  /** Returns one line for each server of these tools that has instructions. */
  #instructionLines(ids: readonly ToolId[]): readonly string[] {
    return this.#instructions(ids).map(([server, text]) => instructionLine(server, text));
  }

  /** Returns the instructions of the servers of these tools. */
  #instructions(ids: readonly ToolId[]): readonly (readonly [server: string, text: string])[] {
    const names = new Set(ids.map((id) => splitToolId(id).server));
    return [...names].flatMap((name) => {
      const text = this.#host.servers.instructionsOf(name);
      return text === undefined ? [] : [[name, text] as const];
    });
  }

  /** Returns the servers whose tools are still loading: the requested one, or else a few. */
  #starting(server: string | undefined): readonly string[] {
    const all = this.#host.servers.lists.starting()
      .filter((name) => server === undefined || name === server);
    if (all.length === 0) return [];
    const more = all.length - STARTING_MAX;
    const names = [...all.slice(0, STARTING_MAX), ...more > 0 ? [`${more} more`] : []];
    return [`still starting: ${names.join(", ")}. Search again in a moment`];
  }

  /** Returns why tools may be missing: for the requested server, or else for a few. */
  #troubles(server: string | undefined): readonly string[] {
    const all = this.#host.servers.troubles()
      .filter(({ name }) => server === undefined || name === server);
    const lines = all.slice(0, TROUBLES_MAX)
      .map(({ name, state, why }) =>
        `${name} ${state === "failed" ? "failed" : `is ${state}`}: ${inset(why, TROUBLE_MAX)}`
      );
    const more = all.length - lines.length;
    if (more === 0) return lines;
    return [...lines, `${more} more have a problem: see pml://servers, or search with \`server\``];
  }

  /** Returns a tool in full: its signature, the marks that matter, and its first line. */
  async #line(
    { id, tool, server }: Pick<SearchHit, "id" | "tool" | "server">,
  ): Promise<string> {
    const isChanged = this.#isChanged(id);
    const asks = this.#judge(id).kind !== "allow" || isChanged;
    const firstLine = (tool.description ?? "").split("\n").find((each) => each.trim() !== "") ?? "";
    const line = cut(firstLine.trim(), DESCRIPTION_MAX);
    const call = tool.name === WHOLE_SERVER ? WHOLE_LINE : signatureOf(tool, SIGNATURE_MAX);
    const { onlyReads, remark } = server.isOffer ? {} : await this.#host.servers.about(id);
    const marks = [
      ...asks || server.asksFirst ? ["asks"] : [],
      ...this.#offerMarks(server),
      ...isChanged ? [CHANGED] : [],
      ...destructiveLabel(tool, { isShipped: server.isShipped, onlyReads }),
      ...remark ? [inset(remark, REMARK_MAX)] : [],
    ];
    // Facts of PML come before the server's own text, which could imitate them.
    const own = `${server.name}:${call}${marks.length > 0 ? ` [${marks.join(", ")}]` : ""}`;
    return line === "" ? own : `${own}\n  ${line}`;
  }

  /** Returns a tool by its name, with the marks of a server that was not used here. */
  #name({ id, server }: SearchHit): string {
    const marks = this.#offerMarks(server);
    return marks.length === 0 ? id : `${id} [${marks.join(", ")}]`;
  }

  /** Returns the marks of a server that was not used here. */
  #offerMarks({ name, isOffer, asksFirst }: CatalogServer): readonly string[] {
    const names = () => this.#host.servers.states().map((state) => state.name);
    const twin = isOffer ? confusableWith(name, names()) : undefined;
    return [
      ...asksFirst ? ["not installed"] : [],
      ...twin ? [`not ${twin} but a name like it`] : [],
    ];
  }

  /** Starts a child for code, so that it is ready when the model has read the answer. */
  #expectCode(): void {
    // If this fails, running the code reports why.
    this.#host.workflow().then((workflow) => workflow.prepareSandbox()).catch(() => {});
  }

  async #schema(args: JsonObject): Promise<ToolResult> {
    const { tools, as } = args as { tools: readonly string[]; as?: "typescript" };
    const { metaTools } = this.#host.settings();
    if (as === "typescript" && metaTools.includes("execute_code")) this.#expectCode();
    const schemas = await Promise.all(tools.map((name) => this.#look(name)));
    const isError = schemas.every((one) => "error" in one) || undefined;
    const text = as === "typescript"
      ? await declared(schemas, await this.#host.observed())
      : JSON.stringify(schemas.map((one) => this.#describe(one)));
    const ids = schemas.flatMap((one) => "error" in one || one.id === undefined ? [] : [one.id]);
    const instructions = this.#instructions(ids)
      .map(([server, own]) => ({ type: "text", text: instructionLines(server, own) }));
    return { content: [...textResult(text).content, ...instructions], ...defined({ isError }) };
  }

  async #look(name: string): Promise<LookedAt> {
    const { servers } = this.#host;
    try {
      const id = this.#idOf(name);
      if (this.#judge(id).kind === "deny") throw unknownTool(name, servers);
      const { server } = splitToolId(id);
      const definition = safeItem(await servers.shownDefinition(id));
      if (!isForModel(definition)) throw unknownTool(name, servers);
      const tool = this.#host.settings().prefix ? withPageAddress(definition, server) : definition;
      return { id, server, tool, remark: (await servers.about(id)).remark };
    } catch (error) {
      return { name, error };
    }
  }

  #describe(one: LookedAt): JsonObject {
    if ("error" in one) {
      return { tool: one.name, error: errorBody(asPmlError(one.error)) as unknown as Json };
    }
    const { id, server, remark, tool: { name, ...definition } } = one;
    const isRun = id !== undefined && this.#judge(id).kind === "allow" &&
      !this.#asksFirst(id) && !this.#isChanged(id);
    const isChanged = id !== undefined && this.#isChanged(id);
    return {
      tool: toolId(server, name),
      ...definition as JsonObject,
      permission: isRun ? "runs" : "asks the user first",
      ...defined({ remark }),
      ...(isChanged && { changed: CHANGED_HINT }),
    };
  }

  /** Calls a tool. The model gets all errors: it wrote the name and the arguments. */
  #callForModel(request: ToolRequest): Promise<Outcome> {
    try {
      return this.#call(request).catch(asErrorOutcome);
    } catch (error) {
      return Promise.resolve(asErrorOutcome(error));
    }
  }

  #call(request: ToolRequest): Promise<Outcome> {
    const { tool, arguments: args, select } = request.arguments as unknown as CallRequest;
    if (isKept(tool)) return this.#readKept(request);
    const id = this.#idOf(tool);
    const inner = { ...request, arguments: args ?? {}, via: "call" };
    if (splitToolId(id).tool === WHOLE_SERVER) return this.#toolsOf(id, inner);
    return select === undefined
      ? this.#caller.call(id, inner)
      : this.#callAndSelect(this.#caller.callOf(id, inner), select);
  }

  /** Reads a part of a result that an earlier answer did not contain. */
  async #readKept({ arguments: sent, scope }: ToolRequest): Promise<Outcome> {
    const { tool: uri, arguments: more, select } = sent as unknown as CallRequest;
    const { actor } = this.#host.settings();
    const { signal } = scope.cancellation;
    const { largeResults } = await this.#host.workflow();
    const { text } = await largeResults.read({ uri, more, select, actor, signal });
    const result = textResult(text);
    // Pages and lines have their own limit.
    if (select === undefined) return { kind: "result", result };
    const source = largeResults.sourceOf(uri, actor);
    return { kind: "result", result: await this.#caller.fitted(result, { via: "call", source }) };
  }

  /** Calls a tool, and returns the selected part of its result. */
  async #callAndSelect(call: Call, select: string): Promise<Outcome> {
    const { cancellation: { signal } } = call;
    const { largeResults } = await this.#host.workflow();
    // An expression that cannot be parsed fails before the tool runs.
    await largeResults.assertSelects(select, signal);
    const outcome = await this.#caller.runWhole(call);
    if (outcome.kind === "ask" || outcome.task !== undefined) return outcome;
    const { result } = outcome;
    const fit = { via: "call", source: call };
    if (result.isError === true) {
      return { ...outcome, result: await this.#caller.fitted(result, fit) };
    }
    const text = await largeResults.selectFrom(outputOf(result), { select, call });
    const remarks = result.content.filter(isRemark);
    const { _meta } = result;
    const selected = { content: [...textResult(text).content, ...remarks], ...defined({ _meta }) };
    return { ...outcome, result: await this.#caller.fitted(selected, fit) };
  }

  /** Lists the tools of a server. This passes all checks, like any other call. */
  async #toolsOf(id: ToolId, request: ToolRequest & { readonly via: string }): Promise<Outcome> {
    const { servers } = this.#host;
    const { server } = splitToolId(id);
    const outcome = await this.#caller.runWhole(
      this.#caller.callOf(id, { ...request, arguments: {}, method: "tools/list" }),
    );
    if (outcome.kind === "ask") return outcome;
    await servers.lists.prepare("tools", { only: server });
    const tools = this.#modelToolsOf(server);
    const lines = await Promise.all(tools.map((entry) => this.#line(entry)));
    const all = [...lines, ...this.#instructionLines(tools.map((entry) => entry.id))];
    return { kind: "result", result: textResult(all.join("\n") || "It has no tools") };
  }

  async #batch(request: ToolRequest): Promise<Outcome> {
    const { calls } = request.arguments as unknown as { calls: readonly BatchRequest[] };
    const { resultBytes: most } = this.#host.settings();
    // They share the size of one answer, so none is cut before all have ended.
    const callTool = (call: Call) => this.#caller.runWhole(call);
    const asCalls = calls.map((one) => ({
      id: one.id,
      tool: one.tool,
      call: this.#batchCall(one, request),
    }));
    const items = await runBatch(asCalls, { callTool, preflight: this.#host, most });
    const results = items.flatMap(({ result }, at) => {
      const call = asCalls[at]?.call;
      return result === undefined || call === undefined || call instanceof PmlError
        ? []
        : [[result, call] as const];
    });
    const fitted = await this.#caller.fittedBatch(new Map(results));
    const shown = items.map((item) => {
      const result = item.result && fitted.get(item.result);
      return result === undefined ? item : { ...item, result };
    });
    return { kind: "result", result: batchResult(shown) };
  }

  #batchCall(one: BatchRequest, request: ToolRequest): Call | PmlError {
    const id = this.#knownId(one.tool);
    if (id === undefined) return unknownTool(one.tool, this.#host.servers);
    const args = one.arguments ?? {};
    const why = this.#wrongNames(id, args);
    if (why !== undefined) return why;
    const scope = { ...request.scope, answer: undefined };
    return this.#caller.callOf(id, { ...request, arguments: args, via: "batch", scope });
  }

  /** Returns the error for arguments with wrong names, which shows the parameters of the tool. */
  #wrongNames(id: ToolId, args: JsonObject): PmlError | undefined {
    // guard: batch-denied
    if (this.#judge(id).kind === "deny") return undefined;
    const tool = this.#host.catalog.get(id)?.tool;
    const why = tool && wrongNames(tool.inputSchema, args);
    if (tool === undefined || why === undefined) return undefined;
    return badArguments(id, tool, why);
  }

  /** Returns whether a tool has another definition now, which is not approved. */
  #isChanged(id: ToolId): boolean {
    return this.#host.catalog.get(id)?.isChanged === true;
  }

  /** Returns whether a registry offers a tool whose server was not used here yet. */
  #asksFirst(id: ToolId): boolean {
    const { servers } = this.#host;
    return !servers.has(splitToolId(id).server) && servers.asksFirst(id);
  }

  #idOf(name: string): ToolId {
    const id = this.#knownId(name);
    if (id === undefined) throw unknownTool(name, this.#host.servers);
    return id;
  }

  #knownId(name: string): ToolId | undefined {
    const [server = "", tool] = name.split(":");
    if (tool === WHOLE_SERVER && isServerName(server)) return toolId(server, tool);
    return this.#existing(name) ?? this.#host.servers.idOf(name);
  }

  /**
   * Returns the id of an existing tool that a model named in another form: with the prefix that
   * clients add (`mcp__server__tool`), or by its bare name if only one visible tool has it.
   */
  #existing(name: string): ToolId | undefined {
    const { servers, catalog } = this.#host;
    const rest = /^mcp__(.+)$/.exec(name)?.[1];
    const ids = [name, ...rest === undefined ? [] : [rest]]
      .map((one) => servers.idOf(one))
      .filter((id) => id !== undefined && servers.has(splitToolId(id).server));
    const id = ids.find((id) => id !== undefined && catalog.get(id) !== undefined) ?? ids[0];
    if (id !== undefined || servers.idOf(name) !== undefined) return id;
    const [only, ...others] = toolsNamed(name, catalog)
      .filter((one) => this.#judge(one).kind !== "deny");
    return others.length === 0 ? only : undefined;
  }
}

/** Returns arguments with JSON text of a model parsed to the object that it contains. */
function withParsedArguments(name: MetaTool, args: JsonObject): JsonObject {
  if (name === "call") return { ...args, ...parsedArguments(args) };
  if (name !== "batch" || !Array.isArray(args.calls)) return args;
  const calls = args.calls.map((one) =>
    isObject(one) ? { ...one, ...parsedArguments(one as JsonObject) } : one
  );
  return { ...args, calls: calls as Json };
}

function parsedArguments({ arguments: text }: JsonObject): JsonObject {
  if (typeof text !== "string") return {};
  try {
    const value: unknown = parseExact(text);
    return isObject(value) ? { arguments: value as JsonObject } : {};
  } catch {
    return {}; // the check of the schema reports that it is a text
  }
}

/** Returns the lines of instructions that a connection has got. */
function linesToldTo({ connection }: CallClient): Set<string> {
  // A client without a connection is another one with each request.
  const lines = connection && TOLD.get(connection) || new Set();
  if (connection !== undefined) TOLD.set(connection, lines);
  return lines;
}

/** Returns an error as a result: the model wrote the plan or the call, and corrects it. */
function asErrorOutcome(error: unknown): Outcome {
  return { kind: "result", result: errorResult(error) };
}

/** Returns the texts to search for. */
function textsIn(args: JsonObject): readonly string[] {
  // The schema was checked.
  const { query, queries = [] } = args as { query?: string; queries?: readonly string[] };
  const texts = query === undefined ? queries : [query, ...queries];
  if (texts.length > 0 || args.server !== undefined) return texts;
  throw new PmlError("BAD_ARGUMENTS", 'Cannot call "search": Missing argument: query', {
    hint: "Describe the task in `query`, or name a `server` to list its tools",
  });
}

/** Returns remarks about the quality of the search results. */
function remarks({ hits, unmet, isLoose, notes: all }: SearchAnswer): readonly string[] {
  const notes = all.map(noteText);
  if (hits.length === 0) return ["Nothing fits; try other words", ...notes];
  if (unmet.length > 0) {
    const queries = unmet.map((query) => quoted(query, QUERY_SHOWN)).join(", ");
    return [`Nothing fits ${queries}`, ...notes];
  }
  return [...isLoose ? ["These share few words with the query; try others"] : [], ...notes];
}

/** A tool as `schema` shows it. */
type LookedAt = ShownTool & { readonly id?: ToolId; readonly remark?: string | undefined };

interface CallRequest {
  /** The name of a tool, or the URI of a kept result. */
  readonly tool: string;
  readonly arguments?: JsonObject;
  readonly select?: string;
}

interface BatchRequest {
  readonly id?: string;
  readonly tool: string;
  readonly arguments?: JsonObject;
}
