/**
 * What holds sign-ins: whom they lead where, and who gets a token.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const CALLS = "tests/oauth_test.ts";
const PAGE = "src/oauth/_redirect_page_test.ts";
const SIGN_INS = "src/oauth/sign_ins_test.ts";
const REFRESH = "src/oauth/refreshing_test.ts";
const KEYRING = "tests/keyring_sign_in_test.ts";
const IN_KEYRING =
  "Tokens of a sign-in are in the keyring alone, also when they are refreshed, until pml logout or pml uninstall";
const LOCKED =
  "Where the keyring is locked, a call says so, and a sign-in or a refresh goes into the file";
const STAYS = "No token goes to another origin: neither after a redirect nor to another server";
const ONE_ANSWER = "RedirectPage takes one answer, with its state, path and host";
const BROWSER = "SignIns signs nobody in without PKCE, and leads no browser into a private network";

/** The guards of sign-ins. */
export const SIGNING_IN: readonly Mutant[] = [
  {
    name: "sign-in-address",
    guard: "A sign-in is that of one address: the same name elsewhere has none",
    file: "token_store.ts",
    find: 'JSON.stringify([name, url, oauth?.client_id ?? ""])',
    put: "JSON.stringify([name])",
    test: CALLS,
    filter: STAYS,
  },
  {
    name: "sign-in-definition",
    guard: "Two definitions of one service are two sign-ins",
    file: "token_store.ts",
    find: 'JSON.stringify([name, url, oauth?.client_id ?? ""])',
    put: "JSON.stringify([url])",
    test: CALLS,
    filter: "Two definitions of one service are two sign-ins",
  },
  {
    name: "sign-in-own-header",
    guard: "A definition with a header Authorization uses no sign-in",
    file: "http_servers.ts",
    find: "const signIn = isOwn ? undefined :",
    put: "const signIn = isOwn ? await authorization?.(server) :",
    test: CALLS,
    filter: "A definition with a header Authorization uses that, and no sign-in",
  },
  {
    name: "sign-in-redactor",
    guard: "The tokens of a sign-in are removed from every text",
    file: "_authorization.ts",
    find: "register(secrets, this.#over",
    put: "register([], this.#over",
    test: "src/oauth/_authorization_test.ts",
    filter: "SignedInServer registers the tokens that it sends, and forgets those that are over",
  },
  {
    name: "sign-in-queue",
    guard: "Only one process at a time has a sign-in refreshed, and those that wait do not",
    file: "refreshing.ts",
    find: "|| kept.accessToken !== spent) return;",
    put: ") return;",
    test: REFRESH,
    filter: "refreshBeside() refreshes over TLS, with the authority of the server",
  },
  {
    name: "sign-in-steps",
    guard: "A server that asks for ever more scopes is refused",
    file: "_authorization.ts",
    find: "recent.length >= STEPS",
    put: "recent.length >= 100",
    test: CALLS,
    filter: "A call that needs more scopes says so, and the next sign-in asks for them",
  },
  {
    name: "sign-in-once",
    guard: "A token that is refused after its refresh is not refreshed for each call",
    file: "_authorization.ts",
    find: "const next = isAgain || isUseless",
    put: "const next = isAgain",
    test: CALLS,
    filter:
      "A token that is refused after its refresh too ends the call, and is not refreshed again",
  },
  {
    name: "sign-in-state",
    guard: "The browser's answer has the state of the sign-in",
    file: "_redirect_page.ts",
    find: "=== sha256(this.#state)",
    put: "!== undefined",
    test: PAGE,
    filter: ONE_ANSWER,
  },
  {
    name: "sign-in-host",
    guard: "The page that the browser is sent back to answers to its own address only",
    file: "_redirect_page.ts",
    find: "headers.host === new URL(this.url).host &&",
    put: "",
    test: PAGE,
    filter: ONE_ANSWER,
  },
  {
    name: "sign-in-one-answer",
    guard: "A sign-in takes one answer of a browser",
    file: "_redirect_page.ts",
    find: "&& !this.#isTaken &&",
    put: "&&",
    test: PAGE,
    filter: ONE_ANSWER,
  },
  {
    name: "sign-in-pkce",
    guard: "Nobody is signed in where codes are not bound to PML",
    file: "_discovery.ts",
    find: 'if (!as.code_challenge_methods_supported?.includes("S256")) {',
    put: "if (false) {",
    test: SIGN_INS,
    filter: BROWSER,
  },
  {
    name: "sign-in-page",
    guard: "A sign-in leads the browser to pages with TLS only",
    file: "_protocol.ts",
    find: "url === null || !isOpen ||",
    put: "url === null ||",
    test: SIGN_INS,
    filter: BROWSER,
  },
  {
    name: "sign-in-private-page",
    guard: "A sign-in leads no browser into a private network",
    file: "_protocol.ts",
    find: "if (!isNamed && (isLoopback(host)",
    put: "if (isNamed && (isLoopback(host)",
    test: SIGN_INS,
    filter: BROWSER,
  },
  {
    name: "sign-in-identity",
    guard: "An identity without the person's keys has no sign-in of theirs",
    file: "machine.ts",
    find: "return isPoor ? undefined : (await this.signIns()).of(server);",
    put: "return isPoor === undefined ? undefined : (await this.signIns()).of(server);",
    test: "tests/sign_in_calls_test.ts",
    filter: "Another identity uses the person's sign-ins only where it may use their keys",
  },
  {
    name: "sign-in-life",
    guard: "No life of a token goes beyond all dates",
    file: "_tokens.ts",
    find: "Math.min(expires_in, LONGEST_S)",
    put: "(LONGEST_S && expires_in)",
    test: "tests/login_test.ts",
    filter: "A token that is said to live longer than any date breaks no command",
  },
  {
    name: "sign-in-keyring",
    guard: "What the keyring has of a sign-in stands in no file",
    file: "token_store.ts",
    find: "isIn ? { ...open,",
    put: "isIn ? { ...kept,",
    test: KEYRING,
    filter: IN_KEYRING,
  },
  {
    name: "sign-in-keyring-out",
    guard: "Signing out takes the tokens out of the keyring",
    file: "token_store.ts",
    find: "await this.#forget(key, this.look(key)?.isRenewed === undefined);",
    put: "",
    test: KEYRING,
    filter: LOCKED,
  },
  {
    name: "sign-in-keyring-fallback",
    guard: "What the keyring does not take is kept in the file",
    file: "keyring.ts",
    find: "return code === 0 && await get(name) === value;",
    put: "return code >= 0;",
    test: KEYRING,
    filter: LOCKED,
  },
  {
    name: "sign-in-keyring-once",
    guard: "No call starts a program to read a sign-in that is known",
    file: "_authorization.ts",
    find: "if (stamp !== this.#stamp || performance.now() > this.#again) {",
    put: "if (stamp) {",
    test: KEYRING,
    filter:
      "A PML that runs reads the keyring once for all its calls, and once more after a refresh",
  },
  {
    name: "sign-in-keyring-killed",
    guard: "What a refresh kept before it was killed is used",
    file: "_authorization.ts",
    find: "this.#stamp = undefined;",
    put: "",
    test: KEYRING,
    filter: "A refresh that is killed when the keyring has its tokens loses nothing",
  },
  {
    name: "sign-in-keyring-uninstall",
    guard: "Nothing of PML stays in the keyring when it is uninstalled",
    file: "_uninstall.ts",
    find: "for (const name of keyring) {",
    put: "for (const name of [] as string[]) {",
    test: KEYRING,
    filter: IN_KEYRING,
  },
  {
    name: "sign-in-config-secret",
    guard: "An error of the configuration repeats no secret of a client, and no key",
    file: "_document.ts",
    find: '["oauth", "env",',
    put: '["env",',
    test: "src/config/person_test.ts",
    filter: "readPerson() repeats no secret that stands where it may not",
  },
];
