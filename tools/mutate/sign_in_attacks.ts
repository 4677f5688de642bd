/**
 * What holds sign-ins against hostile servers.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const DISCOVERY = "tests/attacks/oauth_discovery_test.ts";
const ANSWERS = "tests/attacks/oauth_answers_test.ts";
const TOKENS = "tests/attacks/oauth_tokens_test.ts";
const WORDS = "tests/attacks/oauth_words_test.ts";
const OTHER = "Metadata of another resource, or at another origin, sign nobody in (SX1)";

/** The guards of sign-ins that the attacks hold. */
export const SIGN_IN_ATTACKS: readonly Mutant[] = [
  {
    name: "token-of-one-sign",
    guard: "A secret of many signs is searched piece by piece, and holds nobody up",
    file: "redact.ts",
    find: "value.match(/(?:[^\\w-]?[\\w-]{0,30}){1,32}/gu)",
    put: "value.match(/[^]{1,1000}/gu)",
    test: WORDS,
    filter: "A token that is one sign over and over holds nobody up (RX8)",
  },
  {
    name: "hint-redacted",
    guard: "No secret stands in the hint of an error",
    file: "redact.ts",
    find: "this.clean(defined({ hint, detail }))",
    put: "defined({ hint, detail: this.clean(detail) })",
    test: "src/audit/redact_test.ts",
    filter: "Redactor.cleaned() takes a value out of all texts of an error, its hint among them",
  },
  {
    name: "token-of-words",
    guard: "A token that is a word of the journal is not taken out of it",
    file: "_authorization.ts",
    find: '.flatMap((each = "") => /^(?=.*[\\dA-Z]).{8,}$/.exec(each) ?? []);',
    put: ".flatMap((each) => each ?? []);",
    test: WORDS,
    filter: "A token that is a word of the journal hides nothing there (SX5, AU1)",
  },
  {
    name: "sign-in-metadata-origin",
    guard: "A server names metadata at its own origin only",
    file: "_discovery.ts",
    find: "if (at !== undefined && at?.origin !== origin) {",
    put: "if (at === null) {",
    test: DISCOVERY,
    filter: OTHER,
  },
  {
    name: "sign-in-resource",
    guard: "A server's metadata are of that server",
    file: "_discovery.ts",
    find: "if (own?.origin !== origin || !`${pathname}/`.startsWith(folder)) {",
    put: "if (own === undefined) {",
    test: DISCOVERY,
    filter: OTHER,
  },
  {
    name: "sign-in-private",
    guard: "What a server in the network names may not lie in a private network",
    file: "_protocol.ts",
    find: "return this.#isHere && isLoopback(hostname) ?",
    put: "return hostname !== '' ?",
    test: "src/oauth/_private_addresses_test.ts",
    filter:
      "A server in the network leads a sign-in to no private address, by name, number or redirect (NI4)",
  },
  {
    name: "sign-in-token",
    guard: "A token that no header can carry is not kept",
    file: "_tokens.ts",
    find: "|| !SENDABLE.test(access_token)) {",
    put: ") {",
    test: ANSWERS,
    filter: "A token of an odd kind signs nobody in and is sent nowhere (SX6)",
  },
  {
    name: "sign-in-echo",
    guard: "Errors of a sign-in show no secret that a server says back",
    file: "_protocol.ts",
    find: "throw this.#way.clean?.(failure) ?? failure;",
    put: "throw failure;",
    test: ANSWERS,
    filter: "What a server says back of secrets shows nowhere (SX5)",
  },
  {
    name: "sign-in-client",
    guard: "A client is used at the authorization server where it was registered",
    file: "token_store.ts",
    find: "sha256(JSON.stringify([issuer, name, url]))",
    put: "sha256(JSON.stringify([name, url]))",
    test: TOKENS,
    filter: "An authorization server that is another than before gets nothing of the one before",
  },
  {
    name: "sign-in-over",
    guard: "A new token that was over already ends no sign-in",
    file: "_authorization.ts",
    find: "const isUseless = second !== undefined &&",
    put: "const isUseless = first !== undefined &&",
    test: TOKENS,
    filter: "A new token that is over before it is used ends one call, and no sign-in",
  },
  {
    name: "sign-in-killed",
    guard: "A refresh token is used once, also when the PML that began the refresh was killed",
    file: "refreshing.ts",
    find: "|| kept.accessToken !== spent) return;",
    put: ") return;",
    test: "tests/sign_in_storm_test.ts",
    filter:
      "Many PMLs refresh once each time the tokens expire, also when some are killed in a refresh",
  },
];
