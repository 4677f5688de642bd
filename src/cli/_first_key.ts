/**
 * Asks for the key of a new server at a URL that rejects requests without one.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { objectOf } from "../core/json.ts";
import { CREDENTIALS, toDefinition } from "./_added_definition.ts";
import type { CommandContext } from "./_command_context.ts";
import { planChange } from "./_config_file.ts";
import { findExistingEntry } from "./_definition_edit.ts";
import { storeValues, valuesToStore } from "./_server_keys.ts";
import { askSecret, stopError } from "./_terminal.ts";
import { tell } from "./out.ts";

/**
 * If a server answered 401 to requests without a key, asks for one, stores it, and writes a header
 * with its name into the definition. Returns whether the definition has changed.
 */
export async function askFirstKey(
  context: CommandContext,
  { name, workspace, error }: {
    readonly name: string;
    /** Whether the workspace's file defines the server. */
    readonly workspace: boolean;
    /** The error of its start. */
    readonly error: PmlError;
  },
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
  const { section, title } = existing;
  const settings = [{ at: [section, title, "headers"], entry: definition.headers }] as const;
  const change = await planChange(app, { workspace, settings });
  await change.write();
  await app.policy.reload();
  tell([...stored.values(), change.shown].join("\n"));
  return true;
}
