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
  indentLines,
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  withoutUndefined,
} from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { numberOf } from "../core/exact_number.ts";
import type { MetaTool } from "../config/exposure.ts";
import { isForModel, withPageAddress } from "../protocol/apps.ts";
import { safeItem } from "../protocol/safe_text.ts";
import { isServerName, splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { type CatalogEntry, type CatalogServer, WHOLE_SERVER } from "../search/catalog.ts";
import { noteText } from "../search/notes.ts";
import type { SearchAnswer, SearchHit } from "../search/search.ts";
import { signatureOf } from "../search/signature.ts";
import { runBatch } from "../workflow/batch.ts";
import { tooManyTasksError } from "../workflow/run.ts";
import type { WorkflowRequest } from "../workflow/workflow_request.ts";
import { batchResult } from "./_batch_result.ts";
import { CODE_HINT, declareTools, type ShownTool } from "./_declare_tools.ts";
import { CHANGED_HINT, CHANGED_MARK, destructiveLabel } from "./_tool_marks.ts";
import { instructionLine, instructionLines, shortenText } from "./instructions.ts";
import { isStoredOutput } from "./_own_resources.ts";
import type { ToolCaller, ToolRequest } from "./_tool_caller.ts";
import { type GatewayHost, verdictWithin } from "./options.ts";
import type { Toolset } from "../protocol/toolset.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { errorBody, errorResult } from "../protocol/failures.ts";
import { badArgumentsError, type Schemas } from "../calls/schemas.ts";
import { strictTool } from "./strict_tool.ts";
import { findToolsNamed, unknownServer, unknownTool } from "../servers/lists/unknown_tool.ts";

/** The maximum length of a description in an answer of `search`, in characters. */
const DESCRIPTION_MAX = 90;
/** The maximum length of a query in an answer of `search`, in characters. */
const QUERY_MAX = 60;
/** The maximum length of a remark about a tool, in characters. */
const REMARK_MAX = 200;
/** The maximum number of servers with a problem that an answer of `search` names. */
const TROUBLES_MAX = 3;
/** The maximum length of the text of a problem, in characters. */
const TROUBLE_MAX = 120;
/** The maximum number of starting servers that an answer of `search` names. */
const STARTING_MAX = 10;
/** The maximum length of a signature in an answer of `search`, in characters. */
const SIGNATURE_MAX = 200;
/** The line for a server whose tools are unknown. */
const WHOLE_LINE = `${WHOLE_SERVER} (call it to see the tools of this server)`;

/** The lines of servers' instructions that `search` has already sent, by connection. */
const SENT_LINES = new WeakMap<AbortSignal, Set<string>>();

/** Answers calls of the meta-tools. */
export class MetaCalls {
  readonly #host: GatewayHost;
  readonly #schemas: Schemas;
  readonly #caller: ToolCaller;
  readonly #toolset: Toolset | undefined;

  /** Takes the collaborators, and the tools that the client may use (undefined: all). */
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

  /** Runs one meta-tool. Rejects if its own arguments do not fit its schema. */
  call(name: MetaTool, request: ToolRequest): Promise<Outcome> {
    const configError = this.#host.configProblem();
    if (configError !== undefined) return Promise.reject(configError);
    const definition = strictTool(name, this.#host.settings().batchMax);
    const args = parseAllArguments(name, request.arguments);
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
      return await (await this.#host.workflow()).runCode(this.#workflowRequest(request));
    }
    if (name === "execute_workflow") {
      const planned = this.#host.workflow()
        .then((workflow) => workflow.runPlan(this.#workflowRequest(request)));
      return await planned.catch(asErrorOutcome);
    }
    const { arguments: args } = request;
    const result = await (name === "search" ? this.#search(request) : this.#schema(args));
    return { kind: "result", result };
  }

  /** Throws if a plan has too many tasks. Runs before the tasks are checked one by one. */
  #assertFewTasks({ plan }: JsonObject): void {
    const { tasks } = objectOf(plan);
    const { planMax } = this.#host.settings();
    if (Array.isArray(tasks) && tasks.length > planMax) {
      throw tooManyTasksError(tasks.length, planMax);
    }
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
    const isConfigured = server !== undefined && servers.has(server) &&
      allowed(toolId(server, WHOLE_SERVER));
    const queries = queriesIn(args);
    const sentLines = linesSentTo(scope.client);
    if (queries.length === 0 && server !== undefined && isConfigured) {
      return textResult(await this.#listTools(server, sentLines));
    }
    // Without a query, the name of the server finds the offers of registries.
    const texts = queries.length === 0 ? [server ?? ""] : queries;
    // Loaded on demand, because calls do not need it.
    const { SearchText, sharesOf } = await import("./search_text.ts");
    const shares = sharesOf(texts.length, numberOf(args.limit));
    const limit = shares.full + shares.names;
    const answer = await this.#host.search(texts, {
      ...withoutUndefined({ server }),
      limit,
      allowed,
      actor,
    });
    if (answer.hits.length === 0 && server !== undefined && !isConfigured) {
      return textResult(unknownServer(server, servers));
    }
    const text = await SearchText.create(answer, {
      queries: texts,
      shares,
      lineOf: (hit) => this.#fullTextOf(hit),
      marksOf: (server) => this.#offerMarks(server).join(", "),
    });
    // Only a model with several queries has several calls to make.
    const suggestsCode = texts.length > 1 && answer.hits.length > 1 &&
      metaTools.includes("execute_code");
    if (suggestsCode) this.#prepareSandbox();
    const notes = [
      ...remarksOn(answer),
      ...suggestsCode ? [CODE_HINT] : [],
      ...this.#startingLines(server),
      ...this.#troubleLines(server),
    ];
    for (const note of notes) text.add(note);
    for (const serverAndText of this.#instructions(text.fullHits.map(({ id }) => id))) {
      const line = instructionLine(...serverAndText);
      if (!sentLines.has(line) && text.addIfFits(line)) sentLines.add(line);
    }
    // The mode is in `_meta`, because it is not useful for the model.
    return { ...textResult(text.toString()), _meta: { "pml/search": { mode: answer.mode } } };
  }

  /** Lists the known tools of one server, in its order. */
  async #listTools(server: string, sentLines: Set<string>): Promise<string> {
    const tools = this.#modelToolsOf(server);
    const lines = await Promise.all(tools.map((entry) => this.#fullTextOf(entry)));
    const none = tools.length === 0 ? [`No tools of ${quoted(server)} are known`] : [];
    const instructions = this.#instructionLines(tools.map(({ id }) => id));
    for (const line of instructions) sentLines.add(line);
    const missing = [...this.#startingLines(server), ...this.#troubleLines(server)];
    return [...lines, ...instructions, ...none, ...missing].join("\n");
  }

  /** Returns the known tools of a server that a model may call and no rule denies. */
  #modelToolsOf(server: string): readonly CatalogEntry[] {
    return this.#host.catalog.toolsOf(server)
      .filter(({ id, tool }) => isForModel(tool) && this.#judge(id).kind !== "deny");
  }

  /** Returns the decision for a tool. Denies tools outside of the client's tool set. */
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

  /** Returns a line with the servers whose tools are loading: of all servers, or only of `server`. */
  #startingLines(server: string | undefined): readonly string[] {
    const all = this.#host.servers.lists.starting()
      .filter((name) => server === undefined || name === server);
    if (all.length === 0) return [];
    const more = all.length - STARTING_MAX;
    const names = [...all.slice(0, STARTING_MAX), ...more > 0 ? [`${more} more`] : []];
    return [`still starting: ${names.join(", ")}. Search again in a moment`];
  }

  /**
   * Returns lines with the problems because of which tools may be missing: the problems of all
   * servers, or only those of `server`.
   */
  #troubleLines(server: string | undefined): readonly string[] {
    const all = this.#host.servers.troubles()
      .filter(({ name }) => server === undefined || name === server);
    const lines = all.slice(0, TROUBLES_MAX)
      .map(({ name, state, why }) =>
        `${name} ${state === "failed" ? "failed" : `is ${state}`}: ${indentLines(why, TROUBLE_MAX)}`
      );
    const more = all.length - lines.length;
    if (more === 0) return lines;
    return [...lines, `${more} more have a problem: see pml://servers, or search with \`server\``];
  }

  /** Returns the full text of a tool: signature, marks, and the first line of its description. */
  async #fullTextOf(
    { id, tool, server }: Pick<SearchHit, "id" | "tool" | "server">,
  ): Promise<string> {
    const isChanged = this.#isChanged(id);
    const asks = this.#judge(id).kind !== "allow" || isChanged;
    const firstLine = (tool.description ?? "").split("\n").find((each) => each.trim() !== "") ?? "";
    const description = shortenText(firstLine.trim(), DESCRIPTION_MAX);
    const call = tool.name === WHOLE_SERVER ? WHOLE_LINE : signatureOf(tool, SIGNATURE_MAX);
    const { onlyReads, remark } = server.isOffer ? {} : await this.#host.servers.factsAbout(id);
    const marks = [
      ...asks || server.asksFirst ? ["asks"] : [],
      ...this.#offerMarks(server),
      ...isChanged ? [CHANGED_MARK] : [],
      ...destructiveLabel(tool, { isShipped: server.isShipped, onlyReads }),
      ...remark ? [indentLines(remark, REMARK_MAX)] : [],
    ];
    // Facts of PML come before the server's own text, which could imitate them.
    const firstText = `${server.name}:${call}${marks.length > 0 ? ` [${marks.join(", ")}]` : ""}`;
    return description === "" ? firstText : `${firstText}\n  ${description}`;
  }

  /** Returns the marks of a server that is not configured yet. */
  #offerMarks({ name, isOffer, asksFirst }: CatalogServer): readonly string[] {
    const names = () => this.#host.servers.states().map((state) => state.name);
    const twin = isOffer ? confusableWith(name, names()) : undefined;
    return [
      ...asksFirst ? ["not installed"] : [],
      ...twin ? [`not ${twin} but a name like it`] : [],
    ];
  }

  /** Starts the sandbox for code, so that it is ready when the model has read the answer. */
  #prepareSandbox(): void {
    // If this fails, running the code reports why.
    this.#host.workflow().then((workflow) => workflow.prepareSandbox()).catch(() => {});
  }

  async #schema(args: JsonObject): Promise<ToolResult> {
    const { tools, as } = args as { tools: readonly string[]; as?: "typescript" };
    const { metaTools } = this.#host.settings();
    if (as === "typescript" && metaTools.includes("execute_code")) this.#prepareSandbox();
    const schemas = await Promise.all(tools.map((name) => this.#findTool(name)));
    const isError = schemas.every((one) => "error" in one) || undefined;
    const text = as === "typescript"
      ? await declareTools(schemas, await this.#host.observedOutput())
      : JSON.stringify(schemas.map((one) => this.#describe(one)));
    const ids = schemas.flatMap((one) => "error" in one || one.id === undefined ? [] : [one.id]);
    const instructions = this.#instructions(ids)
      .map(([server, text]) => ({ type: "text", text: instructionLines(server, text) }));
    return {
      content: [...textResult(text).content, ...instructions],
      ...withoutUndefined({ isError }),
    };
  }

  async #findTool(name: string): Promise<DescribedTool> {
    const { servers } = this.#host;
    try {
      const id = this.#requireId(name);
      if (this.#judge(id).kind === "deny") throw unknownTool(name, servers);
      const { server } = splitToolId(id);
      const definition = safeItem(await servers.shownDefinition(id));
      if (!isForModel(definition)) throw unknownTool(name, servers);
      const tool = this.#host.settings().prefix ? withPageAddress(definition, server) : definition;
      return { id, server, tool, remark: (await servers.factsAbout(id)).remark };
    } catch (error) {
      return { name, error };
    }
  }

  #describe(one: DescribedTool): JsonObject {
    if ("error" in one) {
      return { tool: one.name, error: errorBody(asPmlError(one.error)) as unknown as Json };
    }
    const { id, server, remark, tool: { name, ...definition } } = one;
    const runsUnasked = id !== undefined && this.#judge(id).kind === "allow" &&
      !this.#asksFirst(id) && !this.#isChanged(id);
    const isChanged = id !== undefined && this.#isChanged(id);
    return {
      tool: toolId(server, name),
      ...definition as JsonObject,
      permission: runsUnasked ? "runs" : "asks the user first",
      ...withoutUndefined({ remark }),
      ...(isChanged && { changed: CHANGED_HINT }),
    };
  }

  /** Calls a tool. Returns all errors to the model, which wrote the name and the arguments. */
  #callForModel(request: ToolRequest): Promise<Outcome> {
    try {
      return this.#call(request).catch(asErrorOutcome);
    } catch (error) {
      return Promise.resolve(asErrorOutcome(error));
    }
  }

  #call(request: ToolRequest): Promise<Outcome> {
    const { tool, arguments: args, select } = request.arguments as unknown as CallRequest;
    if (isStoredOutput(tool)) return this.#readStored(request);
    const id = this.#requireId(tool);
    const toolRequest = { ...request, arguments: args ?? {}, via: "call" };
    if (splitToolId(id).tool === WHOLE_SERVER) return this.#listServer(id, toolRequest);
    return select === undefined
      ? this.#caller.call(id, toolRequest)
      : this.#callAndSelect(this.#caller.createCall(id, toolRequest), select);
  }

  /** Reads a part of a stored result. */
  async #readStored({ arguments: args, scope }: ToolRequest): Promise<Outcome> {
    const { tool: uri, arguments: more, select } = args as unknown as CallRequest;
    const { actor } = this.#host.settings();
    const { signal } = scope.cancellation;
    const { largeResults } = await this.#host.workflow();
    const { text } = await largeResults.read({ uri, overrides: more, select, actor, signal });
    const result = textResult(text);
    // Pages and lines have their own limit.
    if (select === undefined) return { kind: "result", result };
    const source = largeResults.sourceOf(uri, actor);
    return {
      kind: "result",
      result: await this.#caller.fitResult(result, { via: "call", source }),
    };
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
    const fitOptions = { via: "call", source: call };
    if (result.isError === true) {
      return { ...outcome, result: await this.#caller.fitResult(result, fitOptions) };
    }
    const selected = await largeResults.selectedResult(result, { select, call });
    return { ...outcome, result: await this.#caller.fitResult(selected, fitOptions) };
  }

  /** Lists the tools of a server. This passes all checks, like any other call. */
  async #listServer(id: ToolId, request: ToolRequest & { readonly via: string }): Promise<Outcome> {
    const { servers } = this.#host;
    const { server } = splitToolId(id);
    const outcome = await this.#caller.runWhole(
      this.#caller.createCall(id, { ...request, arguments: {}, method: "tools/list" }),
    );
    if (outcome.kind === "ask") return outcome;
    await servers.lists.prepare("tools", { only: server });
    const tools = this.#modelToolsOf(server);
    const lines = await Promise.all(tools.map((entry) => this.#fullTextOf(entry)));
    const all = [...lines, ...this.#instructionLines(tools.map((entry) => entry.id))];
    return { kind: "result", result: textResult(all.join("\n") || "It has no tools") };
  }

  async #batch(request: ToolRequest): Promise<Outcome> {
    const { calls } = request.arguments as unknown as { calls: readonly BatchRequest[] };
    const { resultBytes: resultsMax } = this.#host.settings();
    // The results share the size of one answer, so they are fitted after all calls have ended.
    const callTool = (call: Call) => this.#caller.runWhole(call);
    const batchCalls = calls.map((one) => ({
      id: one.id,
      tool: one.tool,
      call: this.#batchCall(one, request),
      select: one.select,
    }));
    const selector = calls.some(({ select }) => select !== undefined)
      ? (await this.#host.workflow()).largeResults
      : undefined;
    const items = await runBatch(batchCalls, {
      callTool,
      preflight: this.#host,
      selector,
      resultsMax,
    });
    const results = items.flatMap(({ result }, index) => {
      const call = batchCalls[index]?.call;
      return result === undefined || call === undefined || call instanceof PmlError
        ? []
        : [[result, call] as const];
    });
    const fitted = await this.#caller.fitBatch(new Map(results));
    const shown = items.map((item) => {
      const result = item.result && fitted.get(item.result);
      return result === undefined ? item : { ...item, result };
    });
    return { kind: "result", result: batchResult(shown) };
  }

  #batchCall(one: BatchRequest, request: ToolRequest): Call | PmlError {
    const id = this.#findId(one.tool);
    if (id === undefined) return unknownTool(one.tool, this.#host.servers);
    const args = one.arguments ?? {};
    const why = this.#wrongNamesError(id, args);
    if (why !== undefined) return why;
    const scope = { ...request.scope, answer: undefined };
    return this.#caller.createCall(id, { ...request, arguments: args, via: "batch", scope });
  }

  /** Returns the error for arguments with wrong names, which shows the parameters of the tool. */
  #wrongNamesError(id: ToolId, args: JsonObject): PmlError | undefined {
    // guard: batch-denied
    if (this.#judge(id).kind === "deny") return undefined;
    const tool = this.#host.catalog.get(id)?.tool;
    const why = tool && wrongNames(tool.inputSchema, args);
    if (tool === undefined || why === undefined) return undefined;
    return badArgumentsError(id, tool, why);
  }

  /** Returns whether a tool has a new definition that is not approved. */
  #isChanged(id: ToolId): boolean {
    return this.#host.catalog.get(id)?.isChanged === true;
  }

  /** Returns whether a registry offers a tool whose server was not used here yet. */
  #asksFirst(id: ToolId): boolean {
    const { servers } = this.#host;
    return !servers.has(splitToolId(id).server) && servers.asksFirst(id);
  }

  #requireId(name: string): ToolId {
    const id = this.#findId(name);
    if (id === undefined) throw unknownTool(name, this.#host.servers);
    return id;
  }

  #findId(name: string): ToolId | undefined {
    const [server = "", tool] = name.split(":");
    if (tool === WHOLE_SERVER && isServerName(server)) return toolId(server, tool);
    return this.#findByOtherName(name) ?? this.#host.servers.idOf(name);
  }

  /**
   * Returns the id of an existing tool for another form of its name: with the prefix that clients
   * add (`mcp__server__tool`), or the bare name if only one visible tool has it.
   */
  #findByOtherName(name: string): ToolId | undefined {
    const { servers, catalog } = this.#host;
    const own = this.#idOfServer(name);
    if (own !== undefined && catalog.get(own) !== undefined) return own;
    const unprefixed = /^mcp__(.+)$/.exec(name)?.[1];
    const other = unprefixed === undefined ? undefined : this.#idOfServer(unprefixed);
    const isOther = other !== undefined && catalog.get(other) !== undefined;
    const id = isOther ? other : own ?? other;
    if (id !== undefined || servers.idOf(name) !== undefined) return id;
    const [only, ...others] = findToolsNamed(name, catalog)
      .filter((one) => this.#judge(one).kind !== "deny");
    return others.length === 0 ? only : undefined;
  }

  /** Returns the id of a tool by its name; undefined if there is no server with its name. */
  #idOfServer(name: string): ToolId | undefined {
    const { servers } = this.#host;
    const id = servers.idOf(name);
    return id !== undefined && servers.has(splitToolId(id).server) ? id : undefined;
  }
}

/** Parses arguments that the model sent as JSON text in place of an object. */
function parseAllArguments(name: MetaTool, args: JsonObject): JsonObject {
  if (name === "call") return parseArguments(args);
  if (name !== "batch" || !Array.isArray(args.calls)) return args;
  const calls = args.calls.map((one) => isObject(one) ? parseArguments(one as JsonObject) : one);
  return { ...args, calls: calls as Json };
}

function parseArguments(call: JsonObject): JsonObject {
  const { arguments: text } = call;
  if (typeof text !== "string") return call;
  try {
    const value: unknown = parseExact(text);
    return isObject(value) ? { ...call, arguments: value as JsonObject } : call;
  } catch {
    return call; // the check of the schema reports that it is a text
  }
}

/** Returns the lines of instructions that were already sent on the connection of a client. */
function linesSentTo({ connection }: CallClient): Set<string> {
  // A client without a connection gets all lines with each request.
  const lines = connection && SENT_LINES.get(connection) || new Set();
  if (connection !== undefined) SENT_LINES.set(connection, lines);
  return lines;
}

/** Returns an error as a result, so that the model can correct its plan or call. */
function asErrorOutcome(error: unknown): Outcome {
  return { kind: "result", result: errorResult(error) };
}

/** Returns the texts to search for. */
function queriesIn(args: JsonObject): readonly string[] {
  // The schema was checked.
  const { query, queries = [] } = args as { query?: string; queries?: readonly string[] };
  const texts = query === undefined ? queries : [query, ...queries];
  if (texts.length > 0 || args.server !== undefined) return texts;
  throw new PmlError("BAD_ARGUMENTS", 'Cannot call "search": Missing argument: query', {
    hint: "Describe the task in `query`, or name a `server` to list its tools",
  });
}

/** Returns remarks about the quality of the search results. */
function remarksOn({ hits, unmet, isLoose, notes: all }: SearchAnswer): readonly string[] {
  const notes = all.map(noteText);
  if (hits.length === 0) return ["Nothing fits; try other words", ...notes];
  if (unmet.length > 0) {
    const queries = unmet.map((query) => quoted(query, QUERY_MAX)).join(", ");
    return [`Nothing fits ${queries}`, ...notes];
  }
  return [...isLoose ? ["These share few words with the query; try others"] : [], ...notes];
}

/** A tool as `schema` shows it. */
type DescribedTool = ShownTool & { readonly id?: ToolId; readonly remark?: string | undefined };

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
  readonly select?: string;
}
