/**
 * A program to start.
 *
 * @module
 */

import type { Reach } from "./boot/reach.ts";

/** A program and how it is started. */
export interface Program {
  /** The absolute path of its file, so that PATH has no influence. */
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Whether it has a keeper, if the system can run one. Then none of its processes outlives the
   * program or PML.
   */
  readonly kept?: boolean;
  /** The only paths that it may read and write. Only for a program with a keeper. */
  readonly reach?: Reach;
}
