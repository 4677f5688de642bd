/**
 * The keys that `pml add` and `pml import` take out of definitions: asks whether to store each, and
 * whether a value replaces another one of the same name or gets another name.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { ImportableServer, NeededVariable } from "../config/client_servers.ts";
import { variablesIn } from "../core/folder_variables.ts";
import { visible } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import { saveKey } from "./_key.ts";
import { otherValueText, usersOf } from "./_other_value.ts";
import { agrees, askKey, stopError } from "./_terminal.ts";

/** A server with the variables that it needs. */
export type KeyedServer = Pick<ImportableServer, "variables">;

/** Servers, and the values of their variables. */
interface ServerValues<Server> {
  readonly taken: readonly Server[];
  readonly values: ReadonlyMap<string, string>;
}

/** Where values come from: a client's file, or the command line. */
type ValueSource = "file" | "typed";

/** The parts of questions about a value, by its source. */
const SOURCES: Readonly<Record<ValueSource, { readonly value: string; readonly as: string }>> = {
  file: { value: "the value of the client's file", as: "as the client's file has it" },
  typed: { value: "the value that you typed", as: "as you typed it" },
};

/** Returns a line if PML, or another server of the import, has another value of a variable's name. */
export function otherValueLines(
  app: App,
  { name, otherValueOf: other }: NeededVariable,
): readonly string[] {
  if (other === undefined) return [];
  const reason = app.keys.find(other) === undefined
    ? `another server uses ${other} with its own value`
    : `PML has ${otherValueText(app, other)}`;
  return [`${reason}, so this one is named ${name}`];
}

/**
 * Returns lines about references in a definition that PML does not replace: names with a lower-case
 * letter that are not set, and names without braces.
 */
export function literalLines(
  app: App,
  { definition, variables }: Pick<ImportableServer, "definition" | "variables">,
): readonly string[] {
  const text = JSON.stringify(definition).replace(/\$\{\w+:-/g, "");
  const names = variablesIn(text).filter((variable) =>
    variables.every(({ name }) => name !== variable) && app.keys.find(variable) === undefined &&
    // A program replaces the names of its `env` itself.
    !Object.hasOwn(definition.env ?? {}, variable)
  );
  const bare = [...text.matchAll(/(?<![\w$\\])\$([A-Z][A-Z0-9_]+)\b/g)].map(([, name = ""]) =>
    name
  );
  return [
    ...[...new Set(names)].map((name) =>
      `\${${visible(name)}} is sent as it is, because ${visible(name)} is not set`
    ),
    ...[...new Set(bare)].map((name) =>
      `$${name} is sent as it is; PML replaces it if you write \${${name}}`
    ),
  ];
}

/** Returns the line about a typed value that replaces the value that PML has. */
export function replacedLine(app: App, name: string): string {
  return `It replaces ${otherValueText(app, name)}`;
}

/**
 * Asks for each value whose name has another value in PML: whether it gets another name, or replaces
 * that value. Returns the servers with the chosen names, and the names whose values are replaced.
 * Throws `CANCELLED` if the user stops.
 */
export async function askOtherValues(
  context: CommandContext,
  source: ValueSource,
  { taken, values }: ServerValues<ImportableServer>,
): Promise<ServerValues<ImportableServer> & { readonly replaced: readonly string[] }> {
  const { app, signal } = context;
  const names = new Map<string, string>();
  const replacing = new Map<string, string>();
  const variables = taken.flatMap(({ name: server, variables }) =>
    variables.map((variable) => ({ server, ...variable }))
  );
  for (const { server, name, otherValueOf: other = "" } of variables) {
    const value = values.get(name);
    // A variable of the environment wins over every key that PML stores.
    const from = other === "" ? undefined : app.keys.find(other)?.from;
    const isUndecided = !names.has(name) && value !== undefined;
    if (!isUndecided || from !== "the key file" && from !== "the keyring") continue;
    const chosen = replacing.get(other);
    if (chosen !== undefined && chosen !== value) continue;
    const users = usersOf(app, other);
    // `pml add --replace` usually changes the key of the server itself.
    const isOnlyUser = users.length > 0 && users.every((user) => user === server);
    const question = `\nPML has ${otherValueText(app, other)}. ` +
      `What happens to ${SOURCES[source].value}?`;
    const reply = chosen === value ? "replace" : await askKey(question, {
      answers: [
        { reply: "other", key: "o", name: `${visible(server)} uses it as ${name}` },
        { reply: "replace", key: "r", name: "it replaces the stored value" },
      ],
      enterReply: isOnlyUser ? "replace" : "other",
      signal,
    });
    if (reply === "cancelled") throw stopError();
    if (reply !== "replace") continue;
    names.set(name, other);
    replacing.set(other, value);
  }
  return {
    taken: taken.map((server) => withNames(server, names)),
    values: new Map([...values, ...replacing]),
    replaced: [...replacing.keys()],
  };
}

/** Returns a server that uses other variables: `names` has the new name of each. */
function withNames(
  server: ImportableServer,
  names: ReadonlyMap<string, string>,
): ImportableServer {
  const text = JSON.stringify(server.definition).replace(
    /\$\{(\w+)\}/g,
    (reference, name: string) => names.has(name) ? `\${${names.get(name)}}` : reference,
  );
  const variables = server.variables.map((variable) => {
    const name = names.get(variable.name);
    return name === undefined ? variable : { name, where: variable.where, isSet: true };
  });
  return { ...server, definition: JSON.parse(text), variables };
}

/** Returns the names of the keys that servers need and that are not set. */
export function unsetKeys(servers: readonly KeyedServer[]): readonly string[] {
  const unset = servers.flatMap(({ variables }) => variables).filter(({ isSet }) => !isSet);
  return [...new Set(unset.map(({ name }) => name))];
}

/** Returns the names of the keys that are not set and whose values are known. */
export function valuesToStore(
  { app }: CommandContext,
  { taken, values }: ServerValues<KeyedServer>,
): readonly string[] {
  return unsetKeys(taken).filter((name) => values.has(name) && app.keys.find(name) === undefined);
}

/**
 * Offers to store the keys that were taken out of definitions and are not set. Returns the names of
 * the keys to store.
 */
export async function askValues(
  context: CommandContext,
  source: ValueSource,
  servers: ServerValues<KeyedServer>,
): Promise<readonly string[]> {
  const names = valuesToStore(context, servers);
  if (names.length === 0) return [];
  const question = `Store ${names.join(", ")} in PML, ${SOURCES[source].as}?`;
  return await agrees(question, context) ? names : [];
}

/** Stores the values of these keys. Returns a line for each, by its name. */
export async function storeValues(
  context: CommandContext,
  values: ReadonlyMap<string, string>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const lines = new Map<string, string>();
  if (names.length === 0) return lines;
  for (const name of names) {
    const { text = "" } = await saveKey(context, name, values.get(name) ?? "");
    lines.set(name, text);
    context.app.keys.find(name);
  }
  // A key in the keyring counts as not set until it is looked up.
  await context.app.keys.waitForOutside();
  return lines;
}
