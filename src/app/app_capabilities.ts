/**
 * Opens the saved capabilities. This file is loaded if the PML home has capabilities, or when the
 * first is saved.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { settlesWithin } from "../io/waiting.ts";
import { askUntilYes } from "../calls/ask_all.ts";
import type { ApprovalEvent } from "../calls/decisions.ts";
import type { Subject } from "../policy/subject.ts";
import { getToolRouting, isListedLocal } from "../servers/cloud/routing.ts";
import type { Capability } from "../servers/capability/capability.ts";
import { quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { Capabilities, type KnownDefinition, type ToolSource } from "../workflow/capabilities.ts";
import {
  CapabilitySaving,
  type Review,
  type SavingApproval,
  type SavingContext,
  type TakenNames,
} from "../workflow/capability_saving.ts";
import type { App } from "./app.ts";
import { findKind } from "../servers/kinds.ts";
import type { OpenCapabilities } from "../workflow/capability_saving.ts";

export { escapeInvisible } from "../policy/trust_subject.ts";
export { exportForm } from "../workflow/capability_saving.ts";

/** How long a comparison of a capability waits for the list of a server, in milliseconds. */
const COMPARED_MS = 3_000;

/** Opens the capabilities. Logs a warning for each namespace that the name of a server hides. */
export function openCapabilities(app: App): OpenCapabilities {
  const { policy, log, servers } = app;
  const tools = new CalledTools(app);
  const capabilities = new Capabilities({ policy, log, tools, opener: app });
  const names = new AppNames(app);
  const approval = new UserSavingApproval(app);
  const saving = new CapabilitySaving({ capabilities, policy, servers, names, approval });
  const warnedNames = new Set<string>();
  policy.onChange(() => {
    for (const name of capabilities.namespaces.keys()) {
      const owner = warnedNames.has(name) ? undefined : findNameOwner(app, name);
      if (owner === undefined) continue;
      warnedNames.add(name);
      log.warn(`${hiddenWarning(name, owner)} (NAME_CONFLICT)`);
    }
  });
  return { capabilities, saving };
}

/** The tools that capabilities call. */
class CalledTools implements ToolSource {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  async definition(
    id: ToolId,
    { asksServer }: { readonly asksServer: boolean },
  ): Promise<KnownDefinition> {
    const app = this.#app;
    if (!asksServer) return app.catalog.get(id)?.own;
    const { server: name, tool } = splitToolId(id);
    const server = app.directory.get(name);
    if (!app.directory.has(name)) {
      const isDisabled = app.policy.fileThatDisables(name) !== undefined;
      // A registry or the cloud may have the tool, so PML does not report it as gone.
      const mayBeRemote = app.config().registries.length > 0 || getToolRouting(name) === "cloud";
      return mayBeRemote && !isDisabled ? undefined : "gone";
    }
    // Reading the list of a server runs its code, so a blocked server is not asked.
    if (server.whyBlocked() !== undefined) return undefined;
    try {
      const listed = server.list("tools");
      if (!await settlesWithin(listed, COMPARED_MS)) return undefined;
      const definition = (await listed).find((each) => each.name === tool);
      // A kind without unlisted tools lists all of its tools, so a missing tool no longer exists.
      const { hasUnlistedTools = false } = findKind(server.kind) ?? {};
      return definition === undefined && !hasUnlistedTools ? "gone" : definition as ToolDefinition;
    } catch {
      // The call of the tool reports why its server does not answer.
      return undefined;
    }
  }
}

/** Asks the user whether a capability is saved. */
class UserSavingApproval implements SavingApproval {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  async ask(review: Review, { client, signal, actor }: SavingContext): Promise<void> {
    const app = this.#app;
    const { onQuestion } = client;
    const { id, hash, facts } = review;
    const { approvals } = await app.callPath();
    const subject: Subject = {
      tool: id,
      arguments: {},
      definition: hash,
      rules: "save", // the kind of the question: the rules do not decide about it
      actor,
      workspace: app.config().workspace,
      isSaved: true,
      facts,
    };
    using cancellation = Cancellation.of(signal);
    const call: Call = {
      ...{ id, arguments: {}, actor, via: "save", callId: hash },
      ...{ cancellation, client },
    };
    const host = { approvals, record: ({ event }: ApprovalEvent) => this.record(event, review) };
    await askUntilYes([{ call, subject }], host, {
      ask: async (question) => {
        if (onQuestion === undefined) {
          throw new PmlError("APPROVAL_REQUIRED", `Cannot save "${id}": no user can be asked here`);
        }
        return await onQuestion(question, signal).catch(async (error) => {
          // Withdraws the pending question: the user can run `pml capability save` instead.
          const open = error?.detail?.approval;
          if (open !== undefined) await approvals.refuse(open).catch(() => {});
          throw error;
        });
      },
    });
  }

  async record(event: string, { id, hash }: Review): Promise<void> {
    const callPath = await this.#app.callPath();
    callPath.record(`capability ${event}`, { actor: "local", about: { tool: id, hash } });
  }
}

/**
 * Finds the owners of names that conflict with the name of a new capability. A server's name is
 * refused as its namespace. The capability of a registry that has its name becomes hidden.
 */
class AppNames implements TakenNames {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  ownerOf(namespace: string): string | undefined {
    return findNameOwner(this.#app, namespace);
  }

  describeHidden(id: ToolId): string | undefined {
    return this.#app.registryServers?.names().includes(id) === true
      ? "the capability of a registry of this name, which you use"
      : undefined;
  }
}

/** Throws if the code or the plan of a capability is not valid. Does not run it. */
export async function assertValid(
  app: App,
  capability: Pick<Capability, "kind" | "text">,
): Promise<void> {
  if (capability.kind === "plan") {
    const { strictTool } = await import("../gateway/strict_tool.ts");
    const schemas = await app.schemas();
    const plan = parseExact(capability.text);
    await schemas.checkOwnArguments(strictTool("execute_workflow", 1), { plan }, "the plan");
  }
  await (await app.workflow()).assertValid(capability);
}

/** Returns the warning that another owner of a name hides the capabilities of this namespace. */
export function hiddenWarning(namespace: string, owner: string): string {
  return `The capabilities of ${quoted(namespace)} are hidden: ${quoted(namespace)} is ${owner}; ` +
    "rename them with `pml capability rename`";
}

/** Returns the server that has this name already, as text; undefined if a namespace may have it. */
export function findNameOwner(app: App, name: string): string | undefined {
  const { builtins, policy, registryServers: used } = app;
  const { config: { servers }, loaded: { file } } = policy.now;
  const has = (definitions: readonly { readonly name: string }[] = []) =>
    definitions.some((definition) => definition.name === name);
  const disabledIn = policy.fileThatDisables(name);
  const owners: readonly (readonly [string, boolean | undefined])[] = [
    ["that a file of yours defines", has(servers)],
    ["that the workspace file defines", has(file?.servers)],
    [`that ${quoted(`${disabledIn}`, 400)} disables`, disabledIn !== undefined],
    ["that a registry has", used?.names().includes(name) || used?.offers.has(name)],
    [
      "that PML knows by this name",
      builtins.has(name) || isListedLocal(name) || getToolRouting(name) === "cloud",
    ],
  ];
  const [description] = owners.find(([, isOwner]) => isOwner) ?? [];
  return description && `a server ${description}`;
}
