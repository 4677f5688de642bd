/**
 * What PML says of itself when a client opens a connection.
 *
 * @module
 */

import { VERSION } from "../core/version.ts";
import { instructions } from "./instructions.ts";
import type { ServerState } from "./servers.ts";

/** What an `initialize` result holds beside the revision. */
export interface Hello {
  readonly capabilities: { readonly tools: { readonly listChanged: true } };
  readonly serverInfo: {
    readonly name: string;
    readonly title: string;
    readonly version: string;
  };
  readonly instructions: string;
}

/** Says hello, with how each server stands. */
export function helloOf(states: readonly ServerState[]): Hello {
  return {
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: "pml", title: "PML", version: VERSION },
    instructions: instructions(states),
  };
}
