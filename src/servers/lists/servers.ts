/**
 * Returns facts about servers: their names, tools, instructions and problems.
 *
 * @module
 */

import type { Keys } from "../../config/keys.ts";
import type { Call } from "../../protocol/call.ts";
import type { PmlError } from "../../core/errors.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { Exposure } from "../../config/exposure.ts";
import { withoutUndefined } from "../../core/json.ts";
import { parseToolId, splitToolId, type ToolId, toolId } from "../../core/tool_id.ts";
import { skillDefinition } from "../../protocol/skills.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Server } from "../server.ts";
import { settingOf } from "../../core/tool_settings.ts";
import type { Policy } from "../../policy/policy.ts";
import { type CatalogEntry, type CatalogTool, WHOLE_SERVER } from "../../search/catalog.ts";
import { type ListedServer, type ServerState, stateOf, type Trouble, troubleOf } from "./_entry.ts";
import { Lists, type ListsHost } from "./lists.ts";

export type { ServerState, Trouble } from "./_entry.ts";

/** The services of PML that servers use. */
export interface ServersHost extends ListsHost {
  /** The policy, which decides which servers are disabled and which tools are denied. */
  readonly policy?: Pick<Policy, "fileThatDisables" | "whyForbidden" | "now">;
  /** Returns the values of the arguments that are fixed for a tool. */
  readonly keys?: Pick<Keys, "fillArguments">;
  /** Is called with the name of an unknown tool that a client used. */
  onUnknown?(name: string): void;
  /** Returns a tool that a registry or the cloud offers. */
  findOffer?(id: ToolId): Pick<CatalogEntry, "tool" | "server"> | undefined;
}

/** The facts for the error of an unknown tool. */
interface UnknownToolFacts {
  readonly host: ServersHost;
  readonly entries: ReadonlyMap<string, ListedServer>;
}

/** Facts about a tool that are not in its definition. */
interface ToolFacts {
  /** Whether the tool can neither write nor use the network; missing if that is unknown. */
  readonly onlyReads?: boolean;
  readonly remark?: string;
}

/** The servers, their lists and their tools. */
export class Servers implements Disposable {
  /** The lists of the servers. */
  readonly lists: Lists;
  readonly #host: ServersHost;

  /** Creates empty lists, without servers. */
  constructor(host: ServersHost) {
    this.#host = host;
    this.lists = new Lists(host);
  }

  /** Returns the known extensions of each server that is not blocked, by id. */
  extensions(): ReadonlyMap<string, readonly string[]> {
    const sources = this.#unblocked();
    return new Map(sources.map((source) => [source.name, source.extensions?.() ?? []]));
  }

  /**
   * Names and definitions of the servers that may run now. Leaves out servers without a definition.
   */
  get unblockedServers(): readonly { readonly name: string; readonly definition: object }[] {
    return this.#unblocked()
      .flatMap(({ name, definition }) => definition === undefined ? [] : [{ name, definition }]);
  }

  #unblocked(): readonly Server[] {
    return [...this.lists.entries.values()].map(({ source }) => source)
      .filter((source) => source.whyBlocked() === undefined);
  }

  /** Returns whether there is a server of this name. */
  has(server: string): boolean {
    return this.lists.entries.has(server);
  }

  /**
   * Returns the id of a tool, by its name in a list or a configuration. If the user renamed the
   * tool, the id contains the name at the server, as in rules.
   */
  idOf(name: string): ToolId | undefined {
    const id = this.#host.catalog.byWireName(name) ?? parseToolId(name);
    if (id === undefined) return undefined;
    const { server, tool } = splitToolId(id);
    const settings = this.#sourceOf(id)?.settings;
    if (settings === undefined) return id;
    const originalName = [...settings.of].find(([, { rename }]) => rename === tool)?.[0];
    return originalName === undefined ? id : toolId(server, originalName);
  }

  /**
   * Returns a call with the arguments that the user fixed for its tool. Throws if the tool is
   * disabled, or if the call itself contains a fixed argument. Call it only for a trusted server,
   * because the settings come from the same file.
   */
  async withSettings<C extends Pick<Call, "id" | "arguments" | "fixed">>(
    call: C,
    { settings }: Server,
  ): Promise<C> {
    const { fixed } = call;
    const request = fixed ? { ...call, arguments: fixed.callerArguments, fixed: undefined } : call;
    const { server, tool } = splitToolId(call.id);
    const setting = settingOf(settings, tool);
    if (settings === undefined || setting === undefined) return request;
    // guard: tool-disabled
    if (setting.disabled === true) throw await unknownToolError(call.id, this);
    const filled = setting.arguments &&
      await this.#host.keys?.fillArguments(setting.arguments, {
        server,
        isOfUser: settings.file !== this.#host.policy?.now.loaded.file?.realPath,
      });
    if (filled === undefined) return request;
    const { withFixed } = await import("./_tool_settings.ts");
    return withFixed(request, { ...filled, file: settings.file });
  }

  #sourceOf(id: ToolId): Server | undefined {
    return this.lists.entries.get(splitToolId(id).server)?.source;
  }

  /**
   * Returns a tool's definition as its server has it now. Throws `UNKNOWN_TOOL`, or the error of
   * the server.
   */
  definition(id: ToolId): Maybe<ToolDefinition> {
    const { server } = splitToolId(id);
    const loaded = this.lists.isLoaded(server) ? this.#host.catalog.get(id) : undefined;
    return loaded?.own ?? this.#loadDefinition(id, server);
  }

  async #loadDefinition(id: ToolId, server: string): Promise<ToolDefinition> {
    await this.lists.renew(server);
    return (await this.#knownTool(id)).own;
  }

  async #knownTool(id: ToolId): Promise<CatalogTool> {
    await this.lists.load(splitToolId(id).server);
    const tool = this.#host.catalog.get(id);
    if (tool !== undefined) return tool;
    throw await unknownToolError(id, this);
  }

  /** Returns facts about a tool that are not in its definition. */
  async factsAbout(id: ToolId): Promise<ToolFacts> {
    return await readToolFacts(this.#sourceOf(id), splitToolId(id).tool);
  }

  /**
   * Returns the approved instructions of a server, for models. Undefined if the server may not run,
   * or if all of its tools are denied.
   */
  instructionsOf(server: string): string | undefined {
    const { source, instructions } = this.lists.entries.get(server) ?? {};
    return source?.whyBlocked() !== undefined || this.#isDenied(server) ? undefined : instructions;
  }

  /** Returns whether rules deny a whole server or all of its tools, so that no client sees it. */
  #isDenied(server: string): boolean {
    const { policy, catalog } = this.#host;
    const isDenied = (id: ToolId) => policy?.now.judge(id).kind === "deny";
    const tools = this.lists.entries.get(server)?.lists.has("tools") === true
      ? catalog.toolsOf(server)
      : [];
    return isDenied(toolId(server, WHOLE_SERVER)) ||
      tools.length > 0 && tools.every(({ id }) => isDenied(id));
  }

  /**
   * Returns the instructions of servers, by name, that PML's own instructions include. Only the
   * exposure `full_proxy` includes any, and only without tool sets: PML writes its instructions
   * before it knows the tool set of the client.
   */
  instructionsIn(
    { exposure, toolsetFor }: { readonly exposure: Exposure; readonly toolsetFor?: unknown },
  ): ReadonlyMap<string, string> {
    if (exposure !== "full_proxy" || toolsetFor !== undefined) return new Map();
    const all = [...this.lists.entries.keys()].map((name) =>
      [name, this.instructionsOf(name)] as const
    );
    return new Map(all.flatMap(([name, text]) => text === undefined ? [] : [[name, text]]));
  }

  /** Returns the instructions that a server sent last, approved or not. */
  sentInstructionsOf(server: string): ToolDefinition | undefined {
    return this.lists.entries.get(server)?.sentInstructions;
  }

  /** Returns a skill that a server listed last, approved or not, by the name of its pin. */
  skillOf(server: string, name: string): ToolDefinition | undefined {
    return this.lists.entries.get(server)?.lists.get("skills")?.map(skillDefinition)
      .find((skill) => skill.name === name);
  }

  /**
   * Sets instructions that were approved earlier. They are used until the server lists its tools.
   */
  setRecalledInstructions(server: string, instructions: string): void {
    const entry = this.lists.entries.get(server);
    if (entry?.lists.has("tools") === false) entry.instructions = instructions;
  }

  /**
   * Returns whether a tool is an offer whose first use asks the user, even if a rule allows it.
   */
  asksFirst(id: ToolId): boolean {
    return this.#host.findOffer?.(id)?.server.asksFirst === true;
  }

  /** Returns the definition of a tool that clients get, also if its server is not approved yet. */
  async shownDefinition(id: ToolId): Promise<ToolDefinition> {
    await this.lists.reviewAll();
    const offered = this.has(splitToolId(id).server) ? undefined : this.#host.findOffer?.(id);
    return offered?.tool ?? (await this.#knownTool(id)).tool;
  }

  /** The facts for the error of an unknown tool. */
  get unknownToolFacts(): UnknownToolFacts {
    return { entries: this.lists.entries, host: this.#host };
  }

  /** Returns the state of every server, by name. */
  states(): readonly ServerState[] {
    return [...this.lists.entries.values()].map(stateOf);
  }

  /** Returns why the tools of a server could not be listed; undefined if that did not fail. */
  failureOf(server: string): PmlError | undefined {
    return this.lists.entries.get(server)?.failures.get("tools");
  }

  /** Returns the states of the servers that clients see. */
  shownStates(): readonly ServerState[] {
    return this.states().filter(({ name }) => !this.#isDenied(name));
  }

  /** Returns the servers with a problem, by name; failed servers come first. */
  troubles(): readonly Trouble[] {
    const all = [...this.lists.entries.values()].flatMap((entry) => troubleOf(entry) ?? []);
    const last = ({ state }: Trouble) => Number(state !== "failed");
    return all.sort((one, other) => last(one) - last(other));
  }

  /**
   * Makes servers (or one) that could not be reached a short time ago count as failed, although their
   * tools are cached: for commands that show states and contact no server with a cached list.
   */
  async noteUnreached(only?: string): Promise<void> {
    await Promise.all([...this.lists.entries.values()].map(async ({ source, failures }) => {
      const isAsked = only === undefined || source.name === only;
      if (!isAsked || failures.has("tools") || source.whyBlocked() !== undefined) return;
      const error = await source.unreachedError?.().catch(() => undefined);
      if (error !== undefined) failures.set("tools", error);
    }));
  }

  /** Stops loading changed lists. */
  [Symbol.dispose](): void {
    this.lists[Symbol.dispose]();
  }
}

async function readToolFacts(server: Server | undefined, tool: string): Promise<ToolFacts> {
  const hints = [server?.onlyReads(tool), server?.remarkOn(tool)] as const;
  const [onlyReads, remark] = await Promise.all(hints).catch(() => []);
  return withoutUndefined({ onlyReads, remark });
}

async function unknownToolError(name: string, servers: Servers): Promise<PmlError> {
  const { unknownTool } = await import("./unknown_tool.ts");
  return unknownTool(name, servers);
}
