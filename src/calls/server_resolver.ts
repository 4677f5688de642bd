/**
 * Finds the server of a call, the arguments that the user fixed for its tool, and the decision of
 * the rules.
 *
 * @module
 */

import type { CallContext } from "./context.ts";
import type { CallResolver } from "./pipeline.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { asPmlError } from "../core/errors.ts";
import { isPage, toolPage } from "../protocol/apps.ts";
import type { Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import { settingOf } from "../core/tool_settings.ts";
import type { ServiceParts } from "../servers/server_services.ts";
import { allowingUnruled, decisionOf } from "./decisions.ts";
import { isOfOffer, offerVerdict } from "./offer_access.ts";
import type { Judge } from "../policy/rules.ts";

/** The call path of a resolver. */
interface DraftPath {
  /** The module that its author is writing, if there is one. Nothing is granted to it. */
  readonly draft: Server | undefined;
}

/** Resolves calls with the current configuration. */
export class ServerResolver implements CallResolver {
  readonly #parts: Pick<ServiceParts, "policy" | "directory" | "servers" | "pins">;
  readonly #path: DraftPath;

  /** Takes the collaborators. */
  constructor(
    parts: Pick<ServiceParts, "policy" | "directory" | "servers" | "pins">,
    path: DraftPath,
  ) {
    this.#parts = parts;
    this.#path = path;
  }

  /** Resolves a call. Returns a promise only if it has to wait for something. */
  resolve(call: CallContext): Promise<void> | undefined {
    const { policy } = this.#parts;
    if (!policy.isCurrent()) return policy.refresh().then(() => this.#resolveServer(call));
    return this.#resolveServer(call);
  }

  #resolveServer(call: CallContext): Promise<void> | undefined {
    const { policy: { now: { version, judge } }, directory } = this.#parts;
    const { server: name, tool } = call.names;
    const { draft } = this.#path;
    const server = draft?.name === name ? draft : directory.at(name);
    const own = server === draft ? allowingUnruled(judge) : judge;
    const isBlocked = server.settings !== undefined && server.blocked() !== undefined;
    call.resolve({ server, version, isBlocked });
    const settings = settingsOf(server, isBlocked);
    const hasSettings = call.method === undefined && settingOf(settings, tool) !== undefined;
    if (hasSettings) return this.#withSettings(call, own);
    if (isOfOffer(call)) return this.#decideOffer(call, own);
    const loading = this.#loadReader(call);
    if (loading !== undefined) return this.#decideLater(call, own, loading);
    call.verdict = decisionOf(own, call, call.toolset);
    return undefined;
  }

  async #decideLater(call: CallContext, judge: Judge, loading: Promise<void>): Promise<void> {
    await loading;
    call.verdict = decisionOf(judge, call, call.toolset);
  }

  async #withSettings(call: CallContext, judge: Judge): Promise<void> {
    const { servers } = this.#parts;
    const { id, server: source } = call;
    try {
      const given = { id, arguments: call.arguments, fixed: call.fixed };
      const own = await servers.withSettings(given, source);
      call.arguments = own.arguments;
      call.fixed = own.fixed;
    } catch (error) {
      call.settingsError = asPmlError(error);
    }
    await this.#loadReader(call);
    call.verdict = decisionOf(judge, call, call.toolset);
  }

  /**
   * Loads the module of a call if a rule names the tools of its server that read: their permissions
   * are unknown before.
   */
  #loadReader(
    { names: { server: name, tool }, server, method }: CallContext,
  ): Promise<void> | undefined {
    const hasRule = method === undefined && this.#parts.policy.now.readsRules.has(name);
    if (!hasRule || server.isReader?.(tool) !== false || server.blocked() !== undefined) {
      return undefined;
    }
    // A module that cannot be loaded has no tools that read, and the call reports why.
    return server.onlyReads(tool).then(() => {}, () => {});
  }

  async #decideOffer(call: CallContext, judge: Judge): Promise<void> {
    const ruled = decisionOf(judge, call, call.toolset);
    const tools = await this.#pageVerdicts(call, judge);
    call.verdict = offerVerdict(call, { ruled, tools });
  }

  /** Returns the decisions about the pinned tools that name the address of a request as their page. */
  async #pageVerdicts(call: CallContext, judge: Judge): Promise<readonly Verdict[]> {
    const { arguments: { uri }, toolset, server } = call;
    if (!isPage(uri)) return [];
    const { servers, pins } = this.#parts;
    const identity = await server.identity();
    const { items = [] } =
      servers.lists.itemsOf("tools").find((one) => one.server === server.name) ?? {};
    // The tools were validated when they were loaded.
    const tools = items as readonly ToolDefinition[];
    const pageTools = tools.filter((tool) => toolPage(tool) === uri);
    const pinned = await Promise.all(pageTools.map(async (tool) => ({
      tool,
      isPinned: identity === undefined || await pins.isPinned(identity, tool),
    })));
    return pinned.filter(({ isPinned }) => isPinned).map(({ tool }) =>
      decisionOf(judge, { id: toolId(server.name, tool.name), arguments: {} }, toolset)
    );
  }
}

/**
 * Returns the settings for the tools of a server, as far as the user trusts the file that has them.
 */
function settingsOf({ settings }: Server, isBlocked: boolean): Server["settings"] {
  // guard: fixed-untrusted
  if (isBlocked) return undefined;
  return settings;
}
