/**
 * The description of PML for a client that opens a connection.
 *
 * @module
 */

import type { MetaTool } from "../config/exposure.ts";
import { SKILLS_EXTENSION, TASKS_EXTENSION } from "../protocol/extension_methods.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Hello } from "../protocol/connection.ts";
import { instructionLines, instructions } from "./instructions.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import type { ModelTools } from "../servers/lists/tool_names.ts";

/** All capabilities of MCP, because PML does not know those of servers before the servers start. */
const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
} as const;

const SKILLS: JsonObject = { [SKILLS_EXTENSION]: { directoryRead: true } };

/**
 * Returns the answer to `initialize` and `server/discover`: the configured name, the capabilities,
 * and the instructions, which contain the state of each server.
 */
export function createHello(
  states: readonly ServerState[],
  {
    name,
    version,
    metaTools,
    tools,
    isStateless = false,
    serverInstructions = new Map(),
    declared = {},
  }: {
    readonly name: string;
    readonly version: string;
    /** The meta-tools that are listed; by default all. */
    readonly metaTools?: readonly MetaTool[];
    /** The names of the tools of each server; undefined if instructions do not name tools. */
    readonly tools?: ModelTools | undefined;
    readonly isStateless?: boolean;
    /** The complete instructions of servers, by the names of the servers. */
    readonly serverInstructions?: ReadonlyMap<string, string>;
    /** The experimental capabilities and the extensions of servers that PML passes on. */
    readonly declared?: JsonObject;
  },
): Hello {
  const serverLines = [...serverInstructions].map(([server, text]) =>
    instructionLines(server, text)
  );
  const extensions = { ...objectOf(declared.extensions), ...SKILLS };
  const own: JsonObject = isStateless
    ? { extensions: { ...extensions, [TASKS_EXTENSION]: {} } }
    : { extensions, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  return {
    capabilities: { ...CAPABILITIES, ...declared, ...own },
    serverInfo: { name, title: name === "pml" ? "PML" : name, version },
    instructions: [instructions(states, { metaTools, tools }), ...serverLines].join("\n"),
  };
}
