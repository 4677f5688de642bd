/**
 * Asks for the keys that a new server needs: of a server at a URL that rejects requests without one,
 * and the variables that a program calls missing.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { objectOf, visible } from "../core/json.ts";
import { CREDENTIALS, toDefinition } from "./_added_definition.ts";
import type { CommandContext } from "./_command_context.ts";
import { planChange } from "./_config_file.ts";
import { type ExistingEntry, findExistingEntry } from "./_definition_edit.ts";
import { usersOf } from "./_other_value.ts";
import { storeValues, valuesToStore } from "./_server_keys.ts";
import { agrees, askSecret, stopError } from "./_terminal.ts";
import { tell } from "./out.ts";

/** A server that did not start. */
interface FailedServer {
  readonly name: string;
  /** Whether the workspace's file defines the server. */
  readonly workspace: boolean;
  /** The error of its start. */
  readonly error: PmlError;
}

/**
 * If a server did not start because it lacks keys, asks for them, stores them, and writes their names
 * into the definition. Returns whether the definition has changed.
 */
export async function askFirstKey(
  context: CommandContext,
  server: FailedServer,
): Promise<boolean> {
  const { missing_variables: variables } = server.error.detail ?? {};
  return Array.isArray(variables)
    ? await askVariables(context, server, variables.map(String))
    : await askHeader(context, server);
}

/** Asks for variables that the output of a server calls missing. */
async function askVariables(
  context: CommandContext,
  { name, workspace }: FailedServer,
  variables: readonly string[],
): Promise<boolean> {
  const { app, signal } = context;
  const { existing } = await findExistingEntry(app, name, { workspace, tried: "change" });
  const env = objectOf(existing?.entry.env);
  const missing = variables.filter((variable) => !Object.hasOwn(env, variable));
  if (existing === undefined || missing.length === 0) return false;
  await app.keys.waitForOutside();
  const values = new Map<string, string>();
  for (const variable of missing) {
    const needs = `\n${name} ended, and its output says that it needs ${variable}.`;
    const from = app.keys.find(variable)?.from;
    // The value may be the key of another server, so the output of a server is not enough.
    // guard: first-key-consent
    if (from !== undefined) {
      const users = usersOf(app, variable).map((user) => visible(user)).join(", ");
      const use = users === "" ? "" : `, used by ${users}`;
      const question = `${needs} PML has ${variable} in ${from}${use}. Does ${name} receive it?`;
      if (!await agrees(question, context)) return false;
      continue;
    }
    const value = await askSecret(`${needs} Its value, which stays hidden (Enter: none)`, signal);
    if (value === undefined) throw stopError();
    if (value === "") return false;
    values.set(variable, value);
  }
  const stored = await storeValues(context, values, [...values.keys()]);
  const added = Object.fromEntries(missing.map((variable) => [variable, `\${${variable}}`]));
  await writeMember(context, existing, {
    member: "env",
    entry: { ...env, ...added },
    lines: stored.values(),
  });
  return true;
}

/** Writes a member of a definition, and shows the change after these lines. */
async function writeMember(
  { app }: CommandContext,
  { workspace, section, title }: ExistingEntry,
  { member, entry, lines }: {
    readonly member: "env" | "headers";
    readonly entry: object | undefined;
    readonly lines: Iterable<string>;
  },
): Promise<void> {
  const settings = [{ at: [section, title, member], entry }] as const;
  const change = await planChange(app, { workspace, settings });
  await change.write();
  await app.policy.reload();
  tell([...lines, change.shown].join("\n"));
}

/** Asks for the key of a server that answered 401 to requests without one. */
async function askHeader(
  context: CommandContext,
  { name, workspace, error }: FailedServer,
): Promise<boolean> {
  const { app, signal } = context;
  if (error.code !== "LOGIN_REQUIRED" || error.detail?.status !== 401) return false;
  const { existing } = await findExistingEntry(app, name, { workspace, tried: "change" });
  const headers = objectOf(existing?.entry.headers);
  const hasKey = Object.entries(headers).some(([header, value]) =>
    /^authorization$/i.test(header) || String(value).includes("${")
  );
  if (existing === undefined || hasKey) return false;
  const question = `\n${name} answered with the status 401: it needs a key. ` +
    "Its key, which stays hidden (Enter: none)";
  const key = await askSecret(question, signal);
  if (key === undefined) throw stopError();
  if (key === "") return false;
  const Authorization = CREDENTIALS.test(key) ? key : `Bearer ${key}`;
  const fields = { ...existing.entry, headers: { ...headers, Authorization } };
  const options = { name, fields, workspace, existing, isAsking: true };
  const { definition, pick } = await toDefinition(context, options);
  const names = [...pick.replaced, ...valuesToStore(context, pick)];
  const stored = await storeValues(context, pick.values, names);
  await writeMember(context, existing, {
    member: "headers",
    entry: definition.headers,
    lines: stored.values(),
  });
  return true;
}
