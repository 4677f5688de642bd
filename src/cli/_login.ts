/**
 * `pml login` and `pml logout`: sign the user in at a server over HTTP, and out again.
 *
 * @module
 */

import { openInBrowser } from "./browser.ts";
import { receiversText } from "../oauth/logins.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { askWord, isTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

type CallPath = Awaited<ReturnType<CommandContext["app"]["callPath"]>>;
type Login = Awaited<ReturnType<CallPath["logins"]["begin"]>>;
type SignIns = Awaited<ReturnType<CallPath["machine"]["signIns"]>>;
type SignedIn = Awaited<ReturnType<SignIns["all"]>>[number];

const ENDED = {
  revoked: "signed out, token revoked",
  removed: "signed out, token not revoked",
  none: "not signed in",
};

/** Signs in at a server: in the browser, or by an address that the user opens elsewhere. */
export async function login(
  { app, signal }: CommandContext,
  { words: [name = ""], browser = true, scope }: Typed,
): Promise<Shown> {
  if (browser && !isTerminal()) {
    throw usage(
      `Cannot sign in at ${quoted(name)}: there is no terminal`,
      "Use --no-browser, which prints the address to open",
    );
  }
  const { logins, machine } = await app.callPath();
  await using login = await logins.begin(name, { scopes: scope?.split(/[\s,]+/), signal });
  const { server, url, host, done } = login;
  tell(`Sign in at ${host}, for the server ${quoted(name)} at ${server.url}`);
  tell(receiversText(login));
  if (browser) openInBrowser(url, app.loaded());
  tell(`${browser ? "If your browser does not show it, open" : "Open"} this address:\n\n${url}\n`);
  const over = new AbortController();
  void paste(login, AbortSignal.any([signal, over.signal]));
  await done.finally(() => over.abort());
  const all = await (await machine.signIns()).all();
  const signIn = all.find((one) => one.server === name && one.url === server.url);
  if (signIn === undefined) return { value: { server: name }, text: `Signed in at ${name}` };
  const { isRenewed: renewed, isInKeyring, ...value } = signIn;
  return {
    value: { ...value, renewed, in_keyring: isInKeyring },
    text: `Signed in at ${name}: ${signInText(signIn)}`,
  };
}

/** Takes the address that a browser on another machine was sent to. */
async function paste(login: Login, signal: AbortSignal): Promise<void> {
  const what = "If the browser is elsewhere, paste the address that it ends at";
  for (let lines; (lines = await askWord(what, signal)) !== undefined;) {
    // A pipe may bring several at once, and a wrong one must not hide the right one.
    for (const line of lines.split(/\s+/).filter(Boolean)) {
      try {
        login.paste(line);
      } catch (error) {
        const { message, hint } = asPmlError(error);
        tell(`${message}\n${hint}`);
      }
    }
  }
}

/** Signs out at one server or at all. */
export async function logout(
  { app, signal }: CommandContext,
  { words: [name], all }: Typed,
): Promise<Shown> {
  if ((name === undefined) === (all === undefined)) {
    throw usage("Cannot sign out: it takes a server, or --all", "Use `pml logout SERVER`");
  }
  const ended = await (await app.callPath()).logins.end(name, signal);
  const lines = Object.entries(ended).map(([server, how]) => `${server}: ${ENDED[how]}`);
  const servers = Object.entries(ended).map(([name, state]) => ({ name, state }));
  return { value: { servers }, text: lines.join("\n") || ENDED.none };
}

/** Returns where the user is signed in, for what and until when. */
export function signInText({ issuer, scopes, until, isRenewed, isInKeyring }: SignedIn): string {
  const end = until === undefined ? "an unknown time" : new Date(until).toISOString();
  const what = `${issuer}, scopes ${scopes.join(" ") || "unnamed"}, until ${end}`;
  return visible(what, 1_000) + (isRenewed ? ", renewed automatically" : "") +
    (isInKeyring ? ", in the keyring" : ", in a file");
}
