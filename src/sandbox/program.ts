/**
 * The description of a program to start.
 *
 * @module
 */

import type { Reach } from "./boot/reach.ts";

/** A program and how it is started. */
export interface Program {
  /** The absolute path of the program's file, so that PATH has no influence. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The complete environment of the program. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Whether the program has a keeper, if the system can run one. With a keeper, none of its processes
   * outlives the program or PML.
   */
  readonly hasKeeper?: boolean;
  /** The only paths that the program may read and write. Requires a keeper. */
  readonly reach?: Reach;
}
