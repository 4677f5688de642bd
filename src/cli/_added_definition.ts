/**
 * Creates the definition of a server from typed options. The definition contains no keys, and the
 * user sees a line for each variable that it needs.
 *
 * @module
 */

import { shownDefinition, type SkippedServer } from "../config/client_servers.ts";
import { serverText } from "../config/workspace_lines.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import type { ExistingEntry } from "./_definition_edit.ts";
import { usage } from "./_failure.ts";
import { importablePick } from "./_import.ts";
import { findTarget } from "./_undoable_edits.ts";
import { askOtherValues, literalLines, otherValueLines, replacedLine } from "./_server_keys.ts";

/** Matches the value of the header `Authorization`, such as `Bearer KEY`. */
export const CREDENTIALS = /^(?:Bearer|Basic)\s+\S/i;

/** A variable that a definition needs. */
interface NeededKey {
  readonly name: string;
  /** Whether PML has a value of the variable. */
  readonly set: boolean;
  /** Where the value comes from, for example the environment or a keyring. */
  readonly from?: string;
  /** The name that the variable would have if no other value had that name. */
  readonly otherValueOf?: string;
}

/** Returns the definition, the state of its variables, and lines about it for the user. */
export async function toDefinition(
  context: CommandContext,
  { name, fields, workspace, existing, isAsking }: {
    readonly name: string;
    /** The definition as the user typed it. */
    readonly fields: Readonly<Record<string, unknown>>;
    readonly workspace: boolean;
    /** The definition to replace. */
    readonly existing: ExistingEntry | undefined;
    /** Whether to ask about a typed key if PML has another value of its name. */
    readonly isAsking: boolean;
  },
) {
  const { app } = context;
  const path = "the command line";
  const entry = { client: undefined, path, key: [name], name, fields, rank: 0 };
  const target = { ...await findTarget(app, workspace), replaced: existing?.title };
  const picked = await importablePick(app, [{ ...entry, disabled: false }], target);
  const { taken: [valid], skipped: [skipped] } = picked;
  if (valid === undefined || valid.name !== name) {
    throw refusal(name, skipped, valid?.name);
  }
  const pick = isAsking
    ? await askOtherValues(context, "typed", picked)
    : { ...picked, replaced: [] };
  const { taken: [taken = valid], values, replaced } = pick;
  const keys = taken.variables.map(({ name, otherValueOf }): NeededKey => {
    const from = app.keys.find(name)?.from;
    return { name, set: from !== undefined, ...withoutUndefined({ from, otherValueOf }) };
  });
  const { definition } = taken;
  const lines = [
    serverText(shownDefinition(taken), { isOfUser: true }),
    ...keys.map((key) =>
      values.has(key.name)
        ? `The value that you typed is not written: the file names ${key.name} instead`
        : neededLine(key)
    ),
    ...taken.variables.flatMap((variable) => otherValueLines(app, variable)),
    ...replaced.map((name) => replacedLine(app, name)),
    ...literalLines(app, taken),
  ];
  return { definition, pick, keys, lines };
}

function refusal(name: string, skipped: SkippedServer | undefined, valid?: string) {
  const { same, isNameTaken = false, why = "it cannot be used" } = skipped ?? {};
  const reason = valid !== undefined
    ? `it is not a valid name; a valid one is ${valid}`
    : same?.isChanged === true
    ? `there is a server ${
      quoted(name)
    } already: PML imported it with this definition, which was changed later`
    : why;
  return usage(
    `Cannot add ${quoted(name)}: ${reason}`,
    isNameTaken || same !== undefined
      ? "`--replace` replaces it, after it showed the difference; a second server needs another " +
        "name: `pml add NAME …`"
      : "Look at `pml add --help`",
  );
}

function neededLine({ name, from }: NeededKey): string {
  return from === undefined
    ? `It needs ${name}, which is not set: \`pml key set ${name}\`, or set it in the ` +
      "environment that starts PML"
    : `It needs ${name}, which is set, in ${from}`;
}
