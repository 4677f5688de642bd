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
import type { ServiceParts } from "../servers/service_parts.ts";
import { allowUnruled, decisionOf } from "./decisions.ts";
import { isOfferRequest, offerVerdict } from "./offer_access.ts";
import type { Judge } from "../policy/rules.ts";

/** The part of `CallPath` that the resolver reads. */
interface DraftPath {
  /** The module that an author is writing, if there is one. */
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
    const server = draft?.name === name ? draft : directory.get(name);
    const callJudge = server === draft ? allowUnruled(judge) : judge;
    const isBlocked = server.settings !== undefined && server.whyBlocked() !== undefined;
    call.resolve({ server, version, isBlocked });
    const settings = settingsOf(server, isBlocked);
    const hasSettings = call.method === undefined && settingOf(settings, tool) !== undefined;
    if (hasSettings) return this.#withSettings(call, callJudge);
    if (isOfferRequest(call)) return this.#decideOffer(call, callJudge);
    const loading = this.#loadReader(call);
    if (loading !== undefined) return this.#decideLater(call, callJudge, loading);
    call.verdict = decisionOf(callJudge, call, call.toolset);
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
      const request = { id, arguments: call.arguments, fixed: call.fixed };
      const changed = await servers.withSettings(request, source);
      call.arguments = changed.arguments;
      call.fixed = changed.fixed;
    } catch (error) {
      call.settingsError = asPmlError(error);
    }
    await this.#loadReader(call);
    call.verdict = decisionOf(judge, call, call.toolset);
  }

  /**
   * Loads the module of a call if a rule names the tools of its server that only read: PML knows
   * which tools these are only after it has loaded the module.
   */
  #loadReader(
    { names: { server: name, tool }, server, method }: CallContext,
  ): Promise<void> | undefined {
    const hasRule = method === undefined && this.#parts.policy.now.readsRules.has(name);
    if (!hasRule || server.isReader?.(tool) !== false || server.whyBlocked() !== undefined) {
      return undefined;
    }
    // Ignore errors here: the call itself reports why the module cannot be loaded.
    return server.onlyReads(tool).then(() => {}, () => {});
  }

  async #decideOffer(call: CallContext, judge: Judge): Promise<void> {
    const ruleVerdict = decisionOf(judge, call, call.toolset);
    const pageVerdicts = await this.#pageVerdicts(call, judge);
    call.verdict = offerVerdict(call, { ruleVerdict, pageVerdicts });
  }

  /** Returns the decisions about the pinned tools whose page has the address of a request. */
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
 * Returns the settings for the tools of a server. Ignores them if the user does not trust their
 * file.
 */
function settingsOf({ settings }: Server, isBlocked: boolean): Server["settings"] {
  // guard: fixed-untrusted
  if (isBlocked) return undefined;
  return settings;
}
