/**
 * The servers: their names, tools, instructions and problems.
 *
 * @module
 */

import type { Keys } from "../../config/keys.ts";
import type { Call } from "../../protocol/call.ts";
import type { PmlError } from "../../core/errors.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { Exposure } from "../../config/exposure.ts";
import { defined } from "../../core/json.ts";
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

/** The PML that servers belong to. */
export interface ServersHost extends ListsHost {
  /** The policy, which knows disabled servers and denied tools. */
  readonly policy?: Pick<Policy, "disabledIn" | "forbidden" | "now">;
  /** Fills in the arguments that are fixed for a tool. */
  readonly keys?: Pick<Keys, "fixed">;
  /** Is called with the name of an unknown tool that a client used. */
  onUnknown?(name: string): void;
  /** Returns a tool that a registry or the cloud offers. */
  offered?(id: ToolId): Pick<CatalogEntry, "tool" | "server"> | undefined;
}

/** The present servers, and the policy for them. */
interface Around {
  readonly host: ServersHost;
  readonly entries: ReadonlyMap<string, ListedServer>;
}

/** Facts about a tool that are not in its definition. */
interface About {
  /** Whether it can neither write nor use the network; missing if that is unknown. */
  readonly onlyReads?: boolean;
  readonly remark?: string;
}

/** The servers, their lists and their tools. */
export class Servers implements Disposable {
  /** Their lists. */
  readonly lists: Lists;
  readonly #host: ServersHost;

  /** Takes the host. There is no server yet. */
  constructor(host: ServersHost) {
    this.#host = host;
    this.lists = new Lists(host);
  }

  /** Returns the ids of the extensions of each server that may be asked, as far as they are known. */
  extensions(): ReadonlyMap<string, readonly string[]> {
    const sources = this.#unblocked();
    return new Map(sources.map((source) => [source.name, source.extensions?.() ?? []]));
  }

  /** The names and the definitions of the servers that may run now and have a definition. */
  get unblocked(): readonly { readonly name: string; readonly definition: object }[] {
    return this.#unblocked()
      .flatMap(({ name, definition }) => definition === undefined ? [] : [{ name, definition }]);
  }

  #unblocked(): readonly Server[] {
    return [...this.lists.entries.values()].map(({ source }) => source)
      .filter((source) => source.blocked() === undefined);
  }

  /** Returns whether there is a server of this name. */
  has(server: string): boolean {
    return this.lists.entries.has(server);
  }

  /**
   * Parses the name of a tool, as in a list or a configuration. If the user renamed the tool, its
   * id contains the name at its server, as in rules.
   */
  idOf(name: string): ToolId | undefined {
    const id = this.#host.catalog.byWireName(name) ?? parseToolId(name);
    if (id === undefined) return undefined;
    const { server, tool } = splitToolId(id);
    const settings = this.#sourceOf(id)?.settings;
    if (settings === undefined) return id;
    const own = [...settings.of].find(([, { rename }]) => rename === tool)?.[0];
    return own === undefined ? id : toolId(server, own);
  }

  /**
   * Returns a call with the arguments that the user fixed for its tool. Throws if the tool is
   * disabled, or the call has a fixed argument itself. The server must be trusted.
   */
  async withSettings<C extends Pick<Call, "id" | "arguments" | "fixed">>(
    call: C,
    { settings }: Server,
  ): Promise<C> {
    const { fixed } = call;
    const request = fixed ? { ...call, arguments: fixed.given, fixed: undefined } : call;
    const { server, tool } = splitToolId(call.id);
    const setting = settingOf(settings, tool);
    if (settings === undefined || setting === undefined) return request;
    // guard: tool-disabled
    if (setting.disabled === true) throw await unknown(call.id, this);
    const filled = setting.arguments &&
      await this.#host.keys?.fixed(setting.arguments, {
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
   * Returns a tool's definition as its server has it now. Throws UNKNOWN_TOOL, or the server's
   * error.
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
    throw await unknown(id, this);
  }

  /** Returns facts about a tool that are not in its definition. */
  async about(id: ToolId): Promise<About> {
    return await aboutOf(this.#sourceOf(id), splitToolId(id).tool);
  }

  /**
   * Returns the approved instructions of a server, for models. Undefined if the server may not run,
   * or every tool of it is denied.
   */
  instructionsOf(server: string): string | undefined {
    const { source, instructions } = this.lists.entries.get(server) ?? {};
    return source?.blocked() !== undefined || this.#isDenied(server) ? undefined : instructions;
  }

  /** Returns whether the rules deny a whole server, or each of its tools. No client sees it then. */
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
   * Returns the instructions of the servers, by name, that are included in PML's with an exposure.
   * If clients have tool sets there are none: PML writes its own before it knows the client.
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

  /** Returns the instructions of a server as it sent them last, approved or not. */
  saidBy(server: string): ToolDefinition | undefined {
    return this.lists.entries.get(server)?.sentInstructions;
  }

  /** Returns a skill of a server as it listed it last, approved or not, by the name of its pin. */
  skillOf(server: string, name: string): ToolDefinition | undefined {
    return this.lists.entries.get(server)?.lists.get("skills")?.map(skillDefinition)
      .find((one) => one.name === name);
  }

  /** Takes instructions that were approved earlier, until the server is asked. */
  recall(server: string, instructions: string): void {
    const entry = this.lists.entries.get(server);
    if (entry?.lists.has("tools") === false) entry.instructions = instructions;
  }

  /**
   * Returns whether a registry offers a tool, so that its first use asks the user under any rules.
   */
  asksFirst(id: ToolId): boolean {
    return this.#host.offered?.(id)?.server.asksFirst === true;
  }

  /** Returns a tool's definition as it is shown, also for a server that is not approved yet. */
  async shownDefinition(id: ToolId): Promise<ToolDefinition> {
    await this.lists.reviewAll();
    const offered = this.has(splitToolId(id).server) ? undefined : this.#host.offered?.(id);
    return offered?.tool ?? (await this.#knownTool(id)).tool;
  }

  /** The facts for the error of an unknown tool. */
  get around(): Around {
    return { entries: this.lists.entries, host: this.#host };
  }

  /** Returns the state of every server, by name. */
  states(): readonly ServerState[] {
    return [...this.lists.entries.values()].map(stateOf);
  }

  /** Returns the states of the servers that clients see. */
  shownStates(): readonly ServerState[] {
    return this.states().filter(({ name }) => !this.#isDenied(name));
  }

  /** Returns the servers with a problem: failed ones first, then by name. */
  troubles(): readonly Trouble[] {
    const all = [...this.lists.entries.values()].flatMap((entry) => troubleOf(entry) ?? []);
    const last = ({ state }: Trouble) => Number(state !== "failed");
    return all.sort((one, other) => last(one) - last(other));
  }

  /** Stops loading changed lists. */
  [Symbol.dispose](): void {
    this.lists[Symbol.dispose]();
  }
}

async function aboutOf(server: Server | undefined, tool: string): Promise<About> {
  const hints = [server?.onlyReads(tool), server?.remark(tool)] as const;
  const [onlyReads, remark] = await Promise.all(hints).catch(() => []);
  return defined({ onlyReads, remark });
}

async function unknown(name: string, servers: Servers): Promise<PmlError> {
  const { unknownTool } = await import("./unknown_tool.ts");
  return unknownTool(name, servers);
}
