/**
 * Several tools of a server that one answer covers.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import type { ShownEffect } from "./multi_tool_rules.ts";
import type { ToolId } from "../core/tool_id.ts";

/** A tool of a set, as a question shows it. */
export interface ShownTool {
  readonly id: ToolId;
  /** The hash of its definition. */
  readonly definition: string;
  /** The effect that its definition shows. */
  readonly effect: ShownEffect;
  /** A remark of PML, such as "reads the files it is given". */
  readonly note?: string | undefined;
  /** The texts of its definition, if the user has not read them yet. */
  readonly lines?: readonly string[] | undefined;
}

/** The tools that one answer covers: each of them was shown with its whole definition. */
export interface ToolSet {
  readonly reply: "Reads" | "All";
  readonly tools: readonly ShownTool[];
}

/** Returns a text that is equal for two sets exactly if they contain the same definitions. */
export function keyOfSet({ tools }: ToolSet): string {
  return sha256(JSON.stringify(tools.map(({ id, definition }) => [id, definition])));
}

/** Returns the hashes of the definitions whose texts a question with the set shows. */
export function unreadIn({ tools }: ToolSet): readonly string[] {
  return tools.filter(({ lines }) => lines !== undefined).map(({ definition }) => definition);
}
