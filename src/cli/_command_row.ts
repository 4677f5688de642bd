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
  /** The effect of the command, as a sentence without a subject. */
  readonly does: string;
  readonly options?: Readonly<Record<string, string>>;
  /** Whether the options are for another program. */
  readonly passesOn?: true;
  /** Examples of command lines; by default only the name. */
  readonly examples?: readonly string[];
  /** The valid first words after the name, if the command has a fixed set. */
  readonly words?: readonly string[];
  /** The page of `docs/` about the command. */
  readonly page?: string;
}
