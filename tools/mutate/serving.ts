/**
 * Guards of the door over HTTP, and of what others than the person may do there.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const DOOR = "tests/attacks/ht_test.ts";
const CLIENTS = "tests/client_tool_sets_test.ts";
const IDENTITIES = "tests/identities_test.ts";
const SERVE = "tests/serve_test.ts";

/** The guards. */
export const SERVING: readonly Mutant[] = [
  {
    name: "door-host",
    guard: "A request that names another host is refused",
    file: "listener.ts",
    find: "if (!isHost) return 403;",
    put: "",
    test: DOOR,
    filter: "HT1, HT2, HT3: foreign origins, hosts and tokens are refused before anything is read",
  },
  {
    name: "door-origin",
    guard: "A request of a web page is refused",
    file: "listener.ts",
    find: "return page !== undefined && isOfThisMachine(page) ? undefined : 403;",
    put: "return page === undefined ? 403 : undefined;",
    test: DOOR,
    filter: "HT1, HT2, HT3: foreign origins, hosts and tokens are refused before anything is read",
  },
  {
    name: "door-twice",
    guard: "A request with two hosts is refused",
    file: "listener.ts",
    find: "if (named.length !== 1) return 400;",
    put: "",
    test: DOOR,
    filter: "HT1, HT2, HT3: foreign origins, hosts and tokens are refused before anything is read",
  },
  {
    name: "door-token",
    guard: "A request without the token is refused",
    file: "_faces.ts",
    find: "if (sameHash(token, this.#options.token)) return await this.person;",
    put: 'if (token !== "") return await this.person;',
    test: DOOR,
    filter: "HT1, HT2, HT3: foreign origins, hosts and tokens are refused before anything is read",
  },
  {
    name: "door-size",
    guard: "A body that is too large is refused, with or without its length",
    file: "_http_body.ts",
    find: "if (size > inputBytes) return tooLarge;",
    put: "",
    test: DOOR,
    filter: "HT7, HT8: bodies that are too large, or no message, are refused early",
  },
  {
    name: "door-deep",
    guard: "JSON that is nested too deep is refused",
    file: "_http_body.ts",
    find: "if (excess !== undefined) return refused(400, excess, -32600);",
    put: "",
    test: DOOR,
    filter: "HT7, HT8: bodies that are too large, or no message, are refused early",
  },
  {
    name: "door-drain",
    guard: "Calls that run end before PML does",
    file: "_serve.ts",
    find: "await Promise.all([door, link, windows].map((one) => one?.drain(DRAIN_MS)));",
    put: "",
    test: SERVE,
    filter: "A signal ends it after the calls that run; exit code 0",
    fails: /Request timed out|Connection closed/,
  },
  {
    name: "identity-rules",
    guard: "An identity has its own rules, not those of the person",
    file: "identities.ts",
    find: "return { allow, ask: [...rules.ask, ...ask], deny: [...rules.deny, ...deny] };",
    put:
      "return { allow: [...rules.allow, ...allow], ask: rules.ask, deny: [...rules.deny, ...deny] };",
    test: IDENTITIES,
    filter: "Each identity has its own rules, tools and rates, on 2026-07-28",
  },
  {
    name: "identity-toolset",
    guard: "What is not in the tool set of an identity does not exist for it",
    file: "identities.ts",
    find: "judge: (judge) => (id, args) => missingIn(sets, id) ?? judge(id, args),",
    put: "judge: (judge) => (id, args) => judge(id, args),",
    test: IDENTITIES,
    filter: "Each identity has its own rules, tools and rates, on 2026-07-28",
  },
  {
    name: "client-toolset",
    guard: "What is not in the tool set of a client does not run for it, however it is called",
    file: "gate.ts",
    find: "missingIn([toolset?.()], id) ?? judge(",
    put: "judge(",
    test: CLIENTS,
    filter: "A client with a tool set has no other tools, on 2025-11-25",
  },
  {
    name: "client-toolset-plan",
    guard: "The tool set of a client holds in its plans",
    file: "plans.ts",
    find: "const ways = { request: of, sampling, onMessage, toolset, ...within };",
    put: "const ways = { request: of, sampling, onMessage, ...within };",
    test: CLIENTS,
    filter: "A client with a tool set has no other tools, on 2026-07-28",
  },
  {
    name: "client-toolset-code",
    guard: "The tool set of a client holds in its code",
    file: "call.ts",
    find:
      "return { request, onProgress, onMessage, onAsk, onQuestion, onOpen, able, sampling, toolset };",
    put: "return { request, onProgress, onMessage, onAsk, onQuestion, onOpen, able, sampling };",
    test: CLIENTS,
    filter: "A client with a tool set has no other tools, on 2026-07-28",
  },
  {
    name: "toolset-capability",
    guard: "A capability that is not in a tool set does not exist for its client",
    file: "snapshot.ts",
    find: "from.capabilities && narrowed(from.capabilities({ plain, judge }));",
    put: "from.capabilities?.({ plain, judge });",
    test: CLIENTS,
    filter: "A capability is a tool of a set by its own name, and calls only tools of the set",
  },
  {
    name: "identity-hidden",
    guard: "A tool that is denied to an identity answers like an unknown one",
    file: "_identity_limits.ts",
    find: "throw hides ? unknownTool(call.id, servers) : error;",
    put: "throw hides ? error : error;",
    test: IDENTITIES,
    filter: "Each identity has its own rules, tools and rates, on 2026-07-28",
  },
  {
    name: "identity-hidden-ahead",
    guard: "A tool that is denied to an identity answers a plan like an unknown one",
    file: "call_path.ts",
    find: "hidingDenied(async (call) => admitted(await this.#passOf(call)), this.#options)",
    put: "async (call: Call) => admitted(await this.#passOf(call))",
    test: "tests/hidden_tools_test.ts",
    filter: "What is hidden from an identity answers like what there is not, on 2026-07-28",
  },
  {
    name: "identity-rate",
    guard: "An identity makes no more calls than its rates say",
    file: "call_path.ts",
    find: "rateGate(() => policy.now.config.narrowing?.identity),",
    put: "",
    test: IDENTITIES,
    filter: "Each identity has its own rules, tools and rates, on 2026-07-28",
  },
  {
    name: "identity-revoked",
    guard: "A token that is nobody's gets no answer",
    file: "_faces.ts",
    find: "find((one) => sameHash(one.token, token)),",
    put: "find(() => true),",
    test: IDENTITIES,
    filter: "A revoked identity is gone at once, with its sessions",
  },
  {
    name: "approved-token",
    guard: "What a person approved for a token runs for no other one",
    file: "src/app/call_path.ts",
    find: '+ (config.narrowing?.identity?.token ?? "")',
    put: "",
    test: "tests/attacks/revoked_test.ts",
    filter: "What a person approved for a token that is revoked runs for no other token",
  },
];
