/**
 * `pml token`: lets others use this PML over HTTP, each with a token and separate rules.
 *
 * @module
 */

import type { Identity } from "../config/current_config.ts";
import { quoted } from "../core/json.ts";
import { newToken, tokenHash } from "../transport/http/token.ts";
import { agreed, changeOf, setForPerson } from "./_config_file.ts";
import { subcommandOf, usage } from "./_failure.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";

const NAME = /^(?!local$)[\w.-]{1,64}$/;

/** Makes, lists or revokes tokens. */
export async function token(at: CommandContext, { words }: Typed): Promise<Shown> {
  const does = subcommandOf("token", words, {
    new: [make, 1],
    list: [list, 0],
    revoke: [revoke, 1],
  });
  const [, name] = words;
  if (name !== undefined && !NAME.test(name)) {
    const why = 'it is not 1 to 64 of letters, digits, ".", "_" and "-", or it is "local"';
    throw usage(`Cannot use the name ${quoted(name, 100)}: ${why}`, "Give it another one");
  }
  return await does(at, name ?? "");
}

function list({ app }: CommandContext): Promise<Shown> {
  const all = [...app.loaded().others?.identities.values() ?? []].map(shownIdentity);
  const lines = all.map(({ name, allow, ask, deny, toolset, keys, rates }) =>
    [
      name,
      `  allow ${allow}, ask ${ask}, deny ${deny} rules`,
      `  tools: ${toolset ?? "all"}; your keys: ${keys ? "yes" : "no"}`,
      ...rates.map((rate) => `  at most ${rate}`),
    ].join("\n")
  );
  return Promise.resolve({
    value: { identities: all },
    text: lines.join("\n"),
    note: all.length === 0 ? "Only you may use this PML over HTTP" : "",
  });
}

/** Shows everything of an identity but its token. */
function shownIdentity({ name, permissions, toolset, keys, rates }: Identity) {
  const { allow, ask, deny } = permissions;
  return {
    name,
    allow: allow.length,
    ask: ask.length,
    deny: deny.length,
    toolset: toolset?.name,
    keys,
    rates: rates.map(({ pattern, text }) => `${text} of ${pattern.text}`),
  };
}

async function make(at: CommandContext, name: string): Promise<Shown> {
  const made = newToken();
  const settings = [{ at: ["identities", name, "token"] as const, entry: tokenHash(made) }];
  const change = await changeOf(at.app, { workspace: false, settings });
  const done = await agreed(at, {
    change,
    also: "",
    said:
      `The allow rules of identities.${name} apply to a client with the token, or yours if it has ` +
      "none. Other calls wait for `pml approve`",
    about: { name },
  });
  if (done.code !== undefined) return done;
  return {
    value: { name, token: made },
    text: made,
    note: `${done.text}. This is the token of ${name}: it is shown once`,
  };
}

async function revoke({ app }: CommandContext, name: string): Promise<Shown> {
  if (app.loaded().others?.identities.has(name) !== true) {
    throw usage(`Cannot revoke ${quoted(name)}: no such identity`, "See `pml token list`");
  }
  const path = await setForPerson(app, { keys: ["identities", name], value: undefined });
  return { value: { revoked: name, path }, text: `${name} no longer has access` };
}
