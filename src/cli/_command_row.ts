/**
 * The row of a command in the table of commands.
 *
 * @module
 */

/** A command and its help. */
export interface CommandRow {
  /** The name of the command and its arguments. */
  readonly usage: string;
  /** The parent command, if this is a subcommand. */
  readonly under?: string;
  readonly does: string;
  readonly options?: Readonly<Record<string, string>>;
  /** Whether the options are for another program. */
  readonly passesOn?: true;
  /** Only the name if there are none. */
  readonly examples?: readonly string[];
  /** The first words that it takes, if these are fixed. */
  readonly words?: readonly string[];
  /** The page of `docs/` about it. */
  readonly page?: string;
}
