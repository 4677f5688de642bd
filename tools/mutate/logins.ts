/**
 * Signing in, as the person and the client see it.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const UNIT = "src/app/logins_test.ts";
const COMMANDS = "tests/login_test.ts";
const CALLS = "tests/sign_in_calls_test.ts";

/** What the commands and the question of a call hold. */
export const LOGINS: readonly Mutant[] = [
  {
    name: "login-page",
    guard: "Nobody is sent to a page with a user in its address",
    file: "_protocol.ts",
    find: '|| url.username + url.password !== ""',
    put: "",
    test: COMMANDS,
    filter: "pml login shows no page whose address is unsafe",
    fails: /pml login --no-browser far does not end/,
  },
  {
    name: "login-page-length",
    guard: "Nobody is sent to an address that is too long to be looked at",
    file: "_sign_in.ts",
    find: "if (address.href.length <= LONGEST_PAGE) return address.href;",
    put: "if (address.href) return address.href;",
    test: COMMANDS,
    filter: "pml login shows no page whose address is unsafe",
    fails: /pml login --no-browser far does not end/,
  },
  {
    name: "login-declined",
    guard: "A sign-in that the person declined is given up",
    file: "logins.ts",
    find: "void open.login[Symbol.asyncDispose]();",
    put: "",
    test: UNIT,
    filter: "A declined, unanswered, refused or late sign-in is LOGIN_REQUIRED, and what to run",
  },
  {
    name: "login-again",
    guard: "A server cannot have the person asked again and again",
    file: "logins.ts",
    find:
      'if (scopes === undefined && since - last < FRESH_MS) throw failed("it takes no sign-in");',
    put: "",
    test: UNIT,
    filter:
      "A server that refuses what was just given to it is not asked about again, unless for more",
  },
  {
    name: "login-once",
    guard: "Calls that need the same sign-in ask once",
    file: "logins.ts",
    find: "if (known !== undefined) return known;",
    put: "",
    test: UNIT,
    filter: "Two calls that need the same sign-in ask once, and both go on",
  },
  {
    name: "login-channel",
    guard: "Where questions go to the terminal alone, no client is asked to open a page",
    file: "_exchange.ts",
    find: "canOpen(capabilities) && settings().asksClient",
    put: "canOpen(capabilities)",
    test: CALLS,
    filter: "Where questions go to the terminal alone, no client is asked to open a page",
  },
  {
    name: "login-rules",
    guard: "After a sign-in a call is held to the rules that hold then",
    file: "call_path.ts",
    find: "(call) => this.logins.during(call, () => this.#run(call)));",
    put: `async (call) => {
      const isFirst = this.#isCurrent(call);
      return await this.logins.during(call, async () =>
        isFirst ? await call.pass.server.call(call) : await this.#run(call));
    });`,
    test: CALLS,
    filter: "A call is held to the rules that hold when the person has signed in",
  },
  {
    name: "login-untrusted",
    guard: "Nobody signs in at a server of an untrusted file",
    file: "kinds.ts",
    find: 'if (blocked !== undefined) throw cannot("WORKSPACE_UNTRUSTED", blocked);',
    put: "",
    test: COMMANDS,
    filter: "pml login and pml logout say what is wrong, and what to do",
  },
  {
    name: "login-own-key",
    guard: "Nobody signs in at a server whose definition has a key of its own",
    file: "kinds.ts",
    find: 'throw cannot("USAGE", "its definition has an Authorization header");',
    put: "",
    test: COMMANDS,
    filter: "pml login and pml logout say what is wrong, and what to do",
    fails: /pml login --no-browser keyed does not end/,
  },
  {
    name: "login-opener",
    guard: "The program that opens a browser gets no variable that it does not need",
    file: "browser.ts",
    find: "const env = outsideEnvironment(loaded);",
    put: "const env = Deno.env.toObject();",
    test: COMMANDS,
    filter: "pml login opens the browser with a program from outside the workspace, and no shell",
  },
  {
    name: "login-import",
    guard: "An import takes no client secret along",
    file: "_client_secrets.ts",
    find: '...(typeof oauth?.client_secret === "string" && {',
    put: '...(oauth?.client_secret === "" && {',
    test: COMMANDS,
    filter: "pml import keeps servers that want a sign-in, and what clients say of it",
  },
];
