/**
 * `pml login` and `pml logout`: sign the person in at a server over HTTP, and out again.
 *
 * @module
 */

import { openInBrowser } from "../app/browser.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { askWord, isTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

type Logins = Awaited<ReturnType<CommandContext["app"]["callPath"]>>["logins"];
type Login = Awaited<ReturnType<Logins["begin"]>>;
type SignedIn = Awaited<ReturnType<Logins["all"]>>[number];

const ENDED = {
  revoked: "signed out, and its token is revoked",
  removed: "signed out, but its token could not be revoked",
  none: "nobody was signed in",
};

/** Signs in at a server: in the browser, or by an address that the person opens elsewhere. */
export async function login(
  { app, signal }: CommandContext,
  { words: [name = ""], browser = true, scope }: Typed,
): Promise<Shown> {
  if (browser && !isTerminal()) {
    throw usage(
      `Cannot sign in at ${quoted(name)}: there is no terminal`,
      "Run it on a terminal, or with --no-browser, which prints the address to open",
    );
  }
  const { logins } = await app.callPath();
  const scopes = scope?.split(/[\s,]+/).filter(Boolean);
  using login = await logins.begin(name, { scopes, signal });
  const { server, url, host, done } = login;
  tell(`Sign in at ${host}, for the server ${quoted(name)} at ${visible(server.url, Infinity)}`);
  const isShown = browser && openInBrowser(url, app.loaded());
  tell(`${isShown ? "If your browser does not show it, open" : "Open"} this address:\n\n${url}\n`);
  const over = new AbortController();
  try {
    void paste(login, AbortSignal.any([signal, over.signal]));
    await unlessAborted(done, signal);
  } catch (error) {
    if (signal.aborted) tell("\nGiven up: nobody was signed in");
    throw error;
  } finally {
    over.abort();
  }
  const value = (await logins.all()).find((one) => one.server === name && one.url === server.url);
  return { value, text: value ? `Signed in at ${name}: ${signInText(value)}` : "Signed in" };
}

/** Takes the address that a browser on another machine was sent to. */
async function paste(login: Login, signal: AbortSignal): Promise<void> {
  const what = "If that browser is on another machine, paste here the address that it ends at";
  for (let lines; (lines = await askWord(what, signal)) !== undefined;) {
    // A pipe may bring several at once.
    for (const address of lines.split(/\s+/).filter(Boolean)) pasteOne(login, address);
  }
}

function pasteOne(login: Login, address: string): void {
  try {
    login.paste(address);
  } catch (error) {
    tell(asPmlError(error).message);
  }
}

/** Signs out at one server or at all. */
export async function logout(
  { app, signal }: CommandContext,
  { words: [name], all = false }: Typed,
): Promise<Shown> {
  if (all === (name !== undefined)) {
    throw usage("Cannot sign out: it takes a server, or --all", "Use `pml logout SERVER`");
  }
  const ended = await (await app.callPath()).logins.end(name, signal);
  const lines = Object.entries(ended).map(([server, how]) => `${server}: ${ENDED[how]}`);
  return { value: ended, text: lines.join("\n") || ENDED.none };
}

/** Returns where the person is signed in, for what and until when. */
export function signInText({ issuer, scopes, until, isRenewed }: SignedIn): string {
  const what = scopes.length === 0 ? "no scopes" : `scopes ${visible(scopes.join(" "), 1_000)}`;
  const end = until === undefined ? "no known end" : `until ${new Date(until).toISOString()}`;
  return `${visible(issuer, 300)}, ${what}, ${end}${isRenewed ? ", renewed by itself" : ""}`;
}
