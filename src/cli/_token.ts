/**
 * `pml token`: lets others use this PML over HTTP, each with a token and separate rules.
 *
 * @module
 */

import type { Identity } from "../config/current_config.ts";
import { counted } from "../core/amounts.ts";
import { quoted } from "../core/json.ts";
import { newToken, tokenHash } from "../transport/http/token.ts";
import { confirmChange, planChange, setForPerson } from "./_config_file.ts";
import { subcommandOf, usage } from "./_failure.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";

const NAME = /^(?!local$)[\w.-]{1,64}$/;

/** Creates, lists or revokes tokens. */
export async function token(
  context: CommandContext,
  { words }: CommandInput,
): Promise<CommandOutput> {
  const run = subcommandOf("token", words, {
    new: [create, 1],
    list: [list, 0],
    revoke: [revoke, 1],
  });
  const [, name] = words;
  if (name !== undefined && !NAME.test(name)) {
    const why = 'a name has 1 to 64 letters, digits, ".", "_" or "-", and is not "local"';
    throw usage(`Cannot use the name ${quoted(name, 100)}: ${why}`, "Give it another one");
  }
  return await run(context, name ?? "");
}

function list({ app }: CommandContext): Promise<CommandOutput> {
  const identities = [...app.loaded().access?.identities.values() ?? []].map(shownIdentity);
  const lines = identities.map(({ name, access, allow, ask, deny, toolset, keys, rates }) =>
    [
      access ? name : `${name}: no token, so no access`,
      `  allow ${allow}, ask ${ask}, deny ${deny} rules`,
      `  tools: ${toolset ?? "all"}; your keys: ${keys ? "yes" : "no"}`,
      ...rates.map((rate) => `  at most ${rate}`),
    ].join("\n")
  );
  return Promise.resolve({
    value: { identities },
    text: lines.join("\n"),
    note: identities.length === 0 ? "Only you may use this PML over HTTP" : "",
  });
}

/** Returns an identity as it is shown, without its token. */
function shownIdentity({ name, token, permissions, toolset, keys, rates }: Identity) {
  const { allow, ask, deny } = permissions;
  return {
    name,
    access: token !== undefined,
    allow: allow.length,
    ask: ask.length,
    deny: deny.length,
    toolset: toolset?.name,
    keys,
    rates: rates.map(({ pattern, text }) => `${text} of ${pattern.text}`),
  };
}

async function create(context: CommandContext, name: string): Promise<CommandOutput> {
  const newValue = newToken();
  const settings = [{ at: ["identities", name, "token"] as const, entry: tokenHash(newValue) }];
  const change = await planChange(context.app, { workspace: false, settings });
  const done = await confirmChange(context, {
    change,
    also: "",
    details: allowText(name, context.app.loaded().access?.identities.get(name)),
    about: { name },
  });
  if (done.code !== undefined) return done;
  return {
    value: { name, token: newValue },
    text: newValue,
    note: `${done.text}. This is the token of ${name}: it is shown once`,
  };
}

/** Returns which calls of an identity run, and which ones wait. */
function allowText(name: string, identity: Identity | undefined): string {
  const allowed = identity?.permissions.allow.length ?? 0;
  const key = `identities.${name}.permissions.allow`;
  if (allowed === 0) {
    return `Your allow rules do not apply to ${name}, so each of its calls waits for \`pml approve\`. ` +
      `To let calls run, add rules to ${key} in config.yaml`;
  }
  return `Calls that ${key} (${
    counted(allowed, "rule")
  }) covers run; your allow rules do not apply to ` +
    `${name}. Other calls wait for \`pml approve\``;
}

/** Removes the token of an identity, and keeps its rules for a later token. */
async function revoke({ app }: CommandContext, name: string): Promise<CommandOutput> {
  const identity = app.loaded().access?.identities.get(name);
  if (identity?.token === undefined) {
    const why = identity === undefined ? "no such identity" : "it has no token";
    throw usage(`Cannot revoke ${quoted(name)}: ${why}`, "See `pml token list`");
  }
  const path = await setForPerson(app, { keys: ["identities", name, "token"], value: undefined });
  return {
    value: { revoked: name, path },
    text: `${name} no longer has access`,
    note: `Its rules stay in ${path}: they apply again after \`pml token new ${name}\``,
  };
}
