/**
 * What PML says of itself when a client opens a connection.
 *
 * @module
 */

import type { MetaTool } from "../config/exposure.ts";
import { TASKS_EXTENSION } from "../protocol/extension_methods.ts";
import type { JsonObject } from "../core/json.ts";
import type { Hello } from "../protocol/connection.ts";
import { instructionLines, instructions } from "./instructions.ts";
import type { ServerState } from "../servers/lists/servers.ts";

/** All that MCP has: which servers have what is not known before they are started. */
const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
} as const;

/** Says hello by the name that the configuration gives this server, with how each server stands. */
export function helloOf(
  states: readonly ServerState[],
  { name, version, metaTools, isModern = false, ofServers = new Map() }: {
    readonly name: string;
    readonly version: string;
    /** The meta-tools that are listed; by default all. */
    readonly metaTools?: readonly MetaTool[];
    readonly isModern?: boolean;
    /** The instructions of servers, whole, by name. */
    readonly ofServers?: ReadonlyMap<string, string>;
  },
): Hello {
  const said = [...ofServers].map(([server, text]) => instructionLines(server, text));
  const tasks: JsonObject = isModern
    ? { extensions: { [TASKS_EXTENSION]: {} } }
    : { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  return {
    capabilities: { ...CAPABILITIES, ...tasks },
    serverInfo: { name, title: name === "pml" ? "PML" : name, version },
    instructions: [instructions(states, metaTools), ...said].join("\n"),
  };
}
