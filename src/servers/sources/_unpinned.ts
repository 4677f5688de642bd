/**
 * Compares a server and the tool of a call with their pins.
 *
 * @module
 */

import { instructionsIn } from "../../protocol/lists.ts";
import type { ResolvedCall } from "../server.ts";
import type { ServerIdentity, Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { splitToolId } from "../../core/tool_id.ts";
import type { Pins } from "../../policy/pins.ts";
import { skillIn } from "../../protocol/skills.ts";
import { kindOf } from "../kinds.ts";

/** Replaces the hash of a module that is not approved: no code has it. */
export const NO_CODE = "no code";

/** Returns the differences of a server or a tool from the pinned one. */
export async function unpinned(
  call: ResolvedCall,
  { pins, identity }: { readonly pins: Pins; readonly identity: () => ServerIdentity },
): Promise<Unapproved | undefined> {
  const { id, method } = call;
  await pins.state();
  const before = identity();
  const first = await pins.unapproved(before);
  const { tool: name } = splitToolId(id);
  const isSkill = method !== undefined && name === "@skills";
  const isKnown = method !== undefined && !isSkill || pins.hasCode(before, name);
  // guard: definition-of-unapproved
  if (first !== undefined || isKnown) return first;
  try {
    const definition = await call.definition();
    // An address that belongs to no skill of the list is not pinned: the rules ask about it.
    if (isSkill && skillIn(definition) === undefined) return await pins.unapproved(identity());
    // Loading the definition may have installed the package, whose version is known now.
    const tool = await pins.unapprovedTool(identity(), definition);
    // Modules have no instructions, and no skill depends on them.
    if (isSkill || kindOf(identity().pinned).isSandboxed) return tool;
    const all = await call.server.list("tools") as readonly ToolDefinition[]; // each server checks its tools
    const own = instructionsIn(all);
    const instructions = own && await pins.unapprovedTool(identity(), own);
    return instructions === undefined ? tool : withInstructions(instructions, tool);
  } catch (error) {
    // The installed package may be another one.
    const late = await pins.unapproved(identity());
    if (late === undefined) throw error;
    return late;
  }
}

/** Adds changed instructions of a server to the approval request of a tool. */
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
