/**
 * `pml login` and `pml logout`: sign the user in and out at a server over HTTP.
 *
 * @module
 */

import { openInBrowser } from "./browser.ts";
import { receiversText } from "../oauth/logins.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { askWord, isTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

type CallPath = Awaited<ReturnType<CommandContext["app"]["callPath"]>>;
type Login = Awaited<ReturnType<CallPath["logins"]["begin"]>>;
type SignIns = Awaited<ReturnType<CallPath["machine"]["signIns"]>>;
type SignInSummary = Awaited<ReturnType<SignIns["all"]>>[number];

/** The results of a sign-out as text. */
const SIGN_OUT_TEXTS = {
  revoked: "signed out, token revoked",
  removed: "signed out, token not revoked",
  none: "not signed in",
};

/** Signs in at a server: opens a browser, or prints the address for a browser on another machine. */
export async function login(
  { app, signal }: CommandContext,
  { words: [name = ""], browser = true, scope }: CommandInput,
): Promise<CommandOutput> {
  const { logins, machine } = await app.callPath();
  await logins.findServer(name);
  if (browser && !isTerminal()) {
    throw usage(
      `Cannot sign in at ${quoted(name)}: there is no terminal`,
      "Use --no-browser, which prints the address to open",
    );
  }
  await using login = await logins.begin(name, { scopes: scope?.split(/[\s,]+/), signal });
  const { server, url, host, done } = login;
  tell(`Sign in at ${host}, for the server ${quoted(name)} at ${server.url}`);
  tell(receiversText(login));
  if (browser) openInBrowser(url, app.loaded());
  tell(`${browser ? "If your browser does not show it, open" : "Open"} this address:\n\n${url}\n`);
  const finished = new AbortController();
  void readPastedAddress(login, AbortSignal.any([signal, finished.signal]));
  await done.finally(() => finished.abort());
  const signIns = await (await machine.signIns()).all();
  const signIn = signIns.find((each) => each.server === name && each.url === server.url);
  if (signIn === undefined) return { value: { server: name }, text: `Signed in at ${name}` };
  const { isRenewable: renewed, isInKeyring, ...value } = signIn;
  return {
    value: { ...value, renewed, in_keyring: isInKeyring },
    text: `Signed in at ${name}: ${signInText(signIn)}`,
  };
}

/** Reads the address to which a browser on another machine was redirected. */
async function readPastedAddress(login: Login, signal: AbortSignal): Promise<void> {
  const question = "If the browser is on another machine, paste the last address that it shows";
  for (let lines; (lines = await askWord(question, signal)) !== undefined;) {
    // A pipe may contain several addresses at once. Each is tried, because only one may be right.
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
  { words: [name], all }: CommandInput,
): Promise<CommandOutput> {
  if ((name === undefined) === (all === undefined)) {
    throw usage("Cannot sign out: name a server, or use --all", "Use `pml logout SERVER`");
  }
  const ended = await (await app.callPath()).logins.end(name, signal);
  const lines = Object.entries(ended).map(([name, state]) => `${name}: ${SIGN_OUT_TEXTS[state]}`);
  const servers = Object.entries(ended).map(([name, state]) => ({ name, state }));
  return { value: { servers }, text: lines.join("\n") || SIGN_OUT_TEXTS.none };
}

/** Returns a text about a sign-in: its issuer, its scopes, its end and its storage. */
export function signInText(
  { issuer, scopes, until, isRenewable, isInKeyring }: SignInSummary,
): string {
  const end = until === undefined ? "an unknown time" : new Date(until).toISOString();
  const text = `${issuer}, scopes ${scopes.join(" ") || "unnamed"}, until ${end}`;
  return visible(text, 1_000) + (isRenewable ? ", renewed automatically" : "") +
    (isInKeyring ? ", in the keyring" : ", in a file");
}
