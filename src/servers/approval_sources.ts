/**
 * What nobody has approved yet: of a server that a file defines, of one that a registry has, of one
 * that nobody here knows.
 *
 * @module
 */

import { envFileNames } from "../config/env_file.ts";
import type { ServerDefinition } from "./kind.ts";
import { serverText } from "../config/shown.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Approval } from "./known_server.ts";
import { instructionsIn } from "../protocol/lists.ts";
import type { ResolvedCall } from "./server.ts";
import { isOwnPin, type ServerIdentity, type Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { isFreeName, splitToolId, type ToolId } from "../core/tool_id.ts";
import { allowsBeforehand } from "../policy/always_rule.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { fqdnOf } from "../registry/fqdn.ts";
import { kindOf } from "./kinds.ts";
import type { RegistryServers } from "./registries/registry_servers.ts";
import { assertTrusted } from "./workspace_code.ts";

/** What approvals are found in. */
export interface ApprovalSources {
  readonly policy: Policy;
  readonly pins: Pins;
  /** Returns the servers of registries. */
  readonly registries: () => Promise<RegistryServers>;
}

/** For servers of which the person is asked nothing: what ships with PML, and names that are disabled. */
export const NOTHING_TO_APPROVE: Approval = {
  text: () => "a module that ships with PML, in the sandbox",
  identity: () => Promise.resolve(undefined),
  unapproved: () => undefined,
};

/** The person approved the content of each capability that was saved. */
export const CAPABILITY_APPROVAL: Approval = {
  ...NOTHING_TO_APPROVE,
  text: () => "a capability that you saved: it calls tools, and nothing else",
};

/** Makes the approval of a name in a namespace of capabilities under which none is saved. */
export function actionApproval(sources: ApprovalSources): Approval {
  return {
    ...CAPABILITY_APPROVAL,
    unapproved: async (call) => {
      if (call.method !== undefined || sources.policy.now.config.registries.length === 0) {
        return undefined;
      }
      const { offers } = await sources.registries();
      const fqdn = fqdnOf(call.id);
      // What the person may have mistyped is told to nobody.
      const isOffered = fqdn !== undefined && await offers.entryOf(fqdn) !== undefined;
      return isOffered ? await lookedUp(call, sources) : undefined;
    },
  };
}

/** Makes the approval of a server that a file defines. */
export function ownApproval(
  own: ServerDefinition,
  { policy, pins, identity, instructions }: Pick<ApprovalSources, "policy" | "pins"> & {
    readonly identity: () => ServerIdentity;
    /** Returns the instructions of the server as it sent them last. */
    readonly instructions: () => ToolDefinition | undefined;
  },
): Approval {
  return {
    text: () =>
      serverText(own, {
        isOfUser: policy.now.loaded.person.servers.includes(own),
        register: policy.register,
        fileNames: envFileNames(own, policy.folders),
        plain: (name) => policy.plain(name),
      }),
    identity: () => Promise.resolve(identity()),
    approvedDefinitions: (tools) => pins.approvedDefinitions(identity(), tools),
    unapproved: (call) => {
      assertTrusted(own, policy);
      return isCompared(call) ? undefined : looked(call);
    },
  };

  /** Returns whether the server, the tool and the instructions were compared with their pins. */
  function isCompared(call: ResolvedCall): boolean {
    // The policy blocks a server that it asks about.
    if (call.method !== undefined || policy.blocked(own.name) !== undefined) return false;
    // To load the definition may start the server, so the server must be approved before.
    // guard: definition-first
    if (!pins.isPassed(identity())) return false;
    const definition = call.definition();
    if (definition instanceof Promise || !pins.isPassed(definition)) return false;
    const text = instructions();
    return text === undefined || pins.isPassed(text);
  }

  async function looked(call: ResolvedCall): Promise<Unapproved | undefined> {
    return await policy.unapproved(own.name) ?? await unpinned(call, { pins, identity });
  }
}

/** Makes the approval of a server that a registry has. */
export function registryApproval(
  definition: ServerDefinition,
  { identity, ...sources }: ApprovalSources & { readonly identity: () => ServerIdentity },
): Approval {
  const { policy, pins } = sources;
  return {
    text: () => serverText(definition),
    identity: () => Promise.resolve(identity()),
    approvedDefinitions: (tools) => pins.approvedDefinitions(identity(), tools),
    unapproved: async (call) => {
      const unapproved = await lookedUp(call, sources);
      // What was approved by that is another server.
      if (unapproved !== undefined || policy.now.version !== call.version) return unapproved;
      return await unpinned(call, { pins, identity });
    },
  };
}

/** Makes the approval of a name that no file defines: registries are asked about it. */
export function namedApproval(
  sources: ApprovalSources & { readonly isCloud?: boolean },
): Approval {
  return {
    text: () => "a server that no file defines",
    identity: () => Promise.resolve(undefined),
    unapproved: (call) => lookedUp(call, sources),
  };
}

/** Looks a server up at the registries, and returns what nobody approved of what they have. */
async function lookedUp(
  { id, isTyped, verdict, cancellation: { signal }, server, version }: ResolvedCall,
  { policy, pins, registries, isCloud = false }: ApprovalSources & { readonly isCloud?: boolean },
): Promise<Unapproved | undefined> {
  let { name } = server;
  await pins.state();
  try {
    // No registry has what is the cloud's own.
    if (policy.now.config.registries.length > 0 && isFreeName(name)) {
      const found = await registries();
      const isNamed = isTyped === true || policy.names(name) || isCloud;
      // The lists of cloud servers are PML's own and the hub's.
      const { tool } = splitToolId(id);
      const options = { signal, isAllowed: allowsBeforehand(policy, verdict), isNamed, tool };
      name = await found.entryOf(name, tool, isNamed);
      const unapproved = await found.unapproved(name, options) ??
        // Nobody offers a name that the person typed, or no server has it: it may be a capability.
        (isNamed && name === server.name && found.at(name) === undefined && isEntry(id)
          ? await found.unapproved(id, options)
          : undefined);
      if (unapproved !== undefined) return unapproved;
    }
    // One whose registry is not asked any more is here, and blocked.
    const isFound = policy.now.version !== version ||
      server.definition && server.blocked() === undefined;
    if (isFound) return undefined;
  } catch (error) {
    // What runs in the cloud by PML's own list needs no registry.
    if (isCloud && error instanceof PmlError && error.code === "REGISTRY_OFFLINE") return undefined;
    throw error;
  }
  const pinned = pins.pinned(name);
  if (pinned === undefined || isOwnPin(pinned)) return undefined;
  const { source } = pinned;
  throw policy.now.config.narrowing?.company?.forbidsRegistry(source)?.error ??
    notThere(name, source);
}

/** Returns in what a server or tool is not the pinned one. */
async function unpinned(
  call: ResolvedCall,
  { pins, identity }: { readonly pins: Pins; readonly identity: () => ServerIdentity },
): Promise<Unapproved | undefined> {
  const { id, method } = call;
  await pins.state();
  const before = identity();
  const first = await pins.unapproved(before);
  const isKnown = method !== undefined || pins.hasCode(before, splitToolId(id).tool);
  // guard: definition-of-unapproved
  if (first !== undefined || isKnown) return first;
  try {
    const definition = await call.definition();
    // It may have been installed for that, and so be known by its version now.
    const tool = await pins.unapprovedTool(identity(), definition);
    // Modules have no instructions.
    if (kindOf(identity().pinned).isSandboxed) return tool;
    const all = await call.server.list("tools") as readonly ToolDefinition[]; // what lists tools looked at them
    const own = instructionsIn(all);
    const instructions = own && await pins.unapprovedTool(identity(), own);
    return instructions === undefined ? tool : withInstructions(instructions, tool);
  } catch (error) {
    // What was installed turned out to be another one.
    const late = await pins.unapproved(identity());
    if (late === undefined) throw error;
    return late;
  }
}

/** Puts changed instructions of a server into the question about a tool. */
function withInstructions(
  { code, facts, accept }: Unapproved,
  tool: Unapproved | undefined,
): Unapproved {
  if (tool === undefined) return { code, facts, accept };
  return {
    ...tool,
    facts: [...tool.facts, ...facts],
    accept: async () => {
      await tool.accept();
      await accept();
    },
  };
}

/** Tells whether a tool's id may be the name of a registry's entry. */
function isEntry(id: ToolId): boolean {
  const fqdn = fqdnOf(id);
  return fqdn?.action !== undefined && fqdn.version === undefined;
}

function notThere(server: string, source: string): PmlError {
  const message =
    `Cannot use ${quoted(server)}: it is pinned to ${quoted(source, 300)}, which is ` +
    "not asked, or does not have it any more";
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Put it back under `registries`, or run `pml lock update`",
  });
}
