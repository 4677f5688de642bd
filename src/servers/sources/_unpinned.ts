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

/** Used in place of a hash for a module without approved code. No code has this hash. */
export const NO_CODE = "no code";

/** Returns an approval request if a server, its tool or its instructions differ from their pins. */
export async function comparePins(
  call: ResolvedCall,
  { pins, identity }: { readonly pins: Pins; readonly identity: () => ServerIdentity },
): Promise<Unapproved | undefined> {
  const { id, method } = call;
  await pins.state();
  const before = identity();
  const first = await pins.findUnapproved(before);
  const { tool: name } = splitToolId(id);
  const isSkill = method !== undefined && name === "@skills";
  const isKnown = method !== undefined && !isSkill || pins.hasPinnedTool(before, name);
  // guard: definition-of-unapproved
  if (first !== undefined || isKnown) return first;
  try {
    const definition = await call.definition();
    // An address that belongs to no listed skill has no pin. The rules decide about it.
    if (isSkill && skillIn(definition) === undefined) return await pins.findUnapproved(identity());
    // Loading the definition may have installed the package, so the identity is computed again.
    const tool = await pins.findUnapprovedTool(identity(), definition);
    // Modules have no instructions, and requests for skills need not compare them.
    if (isSkill || kindOf(identity().pinned).isSandboxed) return tool;
    const all = await call.server.list("tools") as readonly ToolDefinition[]; // checked by the server
    const sent = instructionsIn(all);
    const instructions = sent && await pins.findUnapprovedTool(identity(), sent);
    return instructions === undefined ? tool : withInstructions(instructions, tool);
  } catch (error) {
    // The cause of the error may be that the installed package differs from the pinned one.
    const late = await pins.findUnapproved(identity());
    if (late === undefined) throw error;
    return late;
  }
}

/** Returns one approval request for changed instructions, and for a tool if it has one as well. */
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
