/**
 * The workspace whose servers are pinned.
 *
 * @module
 */

import type { Folders } from "../core/folder_variables.ts";
import type { ServerDefinition } from "../servers/kind.ts";

/** The workspace whose servers are pinned. `Policy` implements it. */
export interface PinnedWorkspace {
  /** The PML home. */
  readonly home: string;
  /** The current folder of `pml.lock`. */
  readonly root: string;
  /** The values of the folder variables of definitions. */
  readonly folders: Folders;
  /** Returns whether the workspace file defines a server, not the user's own file. */
  isShared(definition: ServerDefinition): boolean;
  /** Registers a value of a workspace definition if it looks like a secret, before it is shown. */
  register(value: string): void;
  /** Returns the value of a variable in the host of an address. */
  plain(name: string): string | undefined;
}
