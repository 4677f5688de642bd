/**
 * The user's settings for the tools of a server, from the definition of that server.
 *
 * @module
 */

import type { JsonObject } from "./json.ts";

/** The settings of one tool. */
export interface ToolSetting {
  /** Whether clients, lists and search leave the tool out. */
  readonly disabled?: boolean | undefined;
  /** The name that clients see. */
  readonly rename?: string | undefined;
  /** The description that clients see. */
  readonly description?: string | undefined;
  /** Arguments that PML adds to each call, with `${NAME}` unreplaced: each call replaces it. */
  readonly arguments?: JsonObject | undefined;
}

/** The settings for the tools of a server, from one file. */
export interface ToolSettings {
  /** The path of the file. */
  readonly file: string;
  /** The settings by the tool's name in rules. The key `*` applies to all other tools. */
  readonly of: ReadonlyMap<string, ToolSetting>;
}

/** Returns the settings of a tool. */
export function settingOf(
  settings: ToolSettings | undefined,
  tool: string,
): ToolSetting | undefined {
  return settings?.of.get(tool) ?? settings?.of.get("*");
}
