/**
 * What a person says of the tools of a server, in the definition of that server.
 *
 * @module
 */

import type { JsonObject } from "./json.ts";

/** What is said of one tool. */
export interface ToolSetting {
  /** Whether the tool is left out everywhere. */
  readonly disabled?: boolean | undefined;
  /** The name that clients know it by. */
  readonly rename?: string | undefined;
  /** What clients are told that it does. */
  readonly description?: string | undefined;
  /** The arguments that it always gets, as written: `${NAME}` is filled in by each call. */
  readonly arguments?: JsonObject | undefined;
}

/** What a file says of the tools of a server. */
export interface ToolSettings {
  /** The path of that file. */
  readonly file: string;
  /** By the name that rules know a tool by; `*` stands for every tool that is not named. */
  readonly of: ReadonlyMap<string, ToolSetting>;
}

/** Gives what is said of a tool. */
export function settingOf(
  settings: ToolSettings | undefined,
  tool: string,
): ToolSetting | undefined {
  return settings?.of.get(tool) ?? settings?.of.get("*");
}
