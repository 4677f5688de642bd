/**
 * Makes the definition of a server from typed options: without keys, and with a line for each
 * variable that it needs.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { shownDefinition } from "../config/client_servers.ts";
import { serverText } from "../config/shown.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { variablesIn } from "../core/folder_variables.ts";
import { quoted, visible } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import type { PresentEntry } from "./_definition_edit.ts";
import { usage } from "./_failure.ts";
import { importablePick } from "./_import.ts";
import { findTarget } from "./_import_file.ts";

/** A variable that a definition needs. */
interface NeededKey {
  readonly name: string;
  readonly set: boolean;
  /** The source of its value. */
  readonly from?: string;
}

/** Returns the definition, the state of its variables, and lines about it for the user. */
export async function definitionOf(
  { app }: CommandContext,
  { name, fields, workspace, present }: {
    readonly name: string;
    /** The definition as the user typed it. */
    readonly fields: Readonly<Record<string, unknown>>;
    readonly workspace: boolean;
    /** The definition that is replaced. */
    readonly present: PresentEntry | undefined;
  },
) {
  const path = "the command line";
  const entry = { client: undefined, path, key: [name], name, said: fields, near: 0 };
  const target = { ...await findTarget(app, workspace), replaced: present?.title };
  const pick = await importablePick(app, [{ ...entry, disabled: false }], target);
  const { taken: [taken], skipped: [skipped], values } = pick;
  if (taken === undefined || taken.name !== name) {
    throw refusal(name, skipped?.why, taken?.name);
  }
  // Keys of a keyring or a program count as not set until they are looked up.
  if (taken.variables.length > 0) await app.keys.looked();
  const keys = taken.variables.map(({ name }): NeededKey => {
    const from = app.keys.find(name)?.from;
    return from === undefined ? { name, set: false } : { name, set: true, from };
  });
  const { definition } = taken;
  const lines = [
    serverText(shownDefinition(taken), { isOfUser: true }),
    ...keys.map((key) =>
      values.has(key.name)
        ? typedLine(app, { ...key, value: values.get(key.name), server: name })
        : neededLine(key)
    ),
    ...textLines(app, JSON.stringify(definition), keys),
  ];
  return { definition, pick, keys, lines };
}

function refusal(name: string, why = "it cannot be used", valid?: string) {
  const reason = valid === undefined ? why : `it is not a valid name; a valid one is ${valid}`;
  return usage(
    `Cannot add ${quoted(name)}: ${reason}`,
    /^there is a server /.test(reason)
      ? "`--replace` replaces it, after it showed the difference"
      : "Look at `pml add --help`",
  );
}

function neededLine({ name, from }: NeededKey): string {
  return from === undefined
    ? `It needs ${name}, which is not set: \`pml key set ${name}\`, or set it in the ` +
      "environment that starts PML"
    : `It needs ${name}, which is set, in ${from}`;
}

/** Returns the line about a key that the user typed. */
function typedLine(
  app: App,
  { name, from, value, server }: NeededKey & {
    readonly value: string | undefined;
    readonly server: string;
  },
): string {
  const line = `The value that you typed is not written: the file names ${name} instead`;
  if (from === undefined || app.keys.find(name)?.value === value) return line;
  const users = wantedKeys(app.config(), app.registryKeys()).find((one) => one.name === name)?.by;
  const others = (users ?? []).filter((by) => by !== server).map((by) => visible(by)).join(", ");
  const shared = others === "" ? "" : `; ${others} uses it, too`;
  return `${line}. ${name} has another value now, in ${from}${shared}`;
}

/** Returns lines about names with a lower-case letter that are not set: they are text. */
function textLines(app: App, text: string, keys: readonly NeededKey[]): readonly string[] {
  const names = variablesIn(text.replace(/\$\{\w+:-/g, "")).filter((one) =>
    keys.every(({ name }) => name !== one) && app.keys.find(one) === undefined
  );
  return [...new Set(names)].map((one) =>
    `\${${visible(one)}} is sent as it is, because ${visible(one)} is not set`
  );
}
