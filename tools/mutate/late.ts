/**
 * What holds that nothing runs by what held before a wait.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const TEST = "tests/attacks/late_rules_test.ts";

/** The guards of what changes while something waits. */
export const LATE: readonly Mutant[] = [
  {
    name: "late-start",
    guard: "What is denied while its server starts is not sent to it",
    file: "upstreams.ts",
    find: "call.assertCurrent?.();",
    put: "",
    test: TEST,
    filter: "What is denied while its server starts is not sent to it, on 2025-11-25",
  },
  {
    name: "late-child",
    guard: "What is denied while it waits for a sandbox child does not run",
    file: "modules.ts",
    find: "call.assertCurrent?.();",
    put: "",
    test: TEST,
    filter: "What is denied while it waits for a child does not run, on 2025-11-25",
  },
  {
    name: "late-capability",
    guard: "A capability that is denied while it waits for a child does not run",
    file: "code.ts",
    find: "asked.assertCurrent?.();",
    put: "",
    test: TEST,
    filter: "A capability that is denied while it waits for a child does not run, on 2025-11-25",
  },
  {
    name: "late-toolset",
    guard: "A run that waits has the tool set that its client has now",
    file: "gate.ts",
    find: "missingIn([toolset?.()], id)",
    put: "missingIn([], id)",
    test: TEST,
    filter: "A tool that leaves the set of a client is denied to its run that waits, on 2025-11-25",
  },
  {
    name: "late-channel-waits",
    guard: "A client that may not be asked any more answers no question that waits",
    file: "_exchange.ts",
    find: "if (said && asks()) return said;",
    put: "if (said) return said;",
    test: TEST,
    filter: "A client that is to ask nobody any more answers no question, on 2025-11-25",
  },
  {
    name: "late-channel",
    guard: "A client that may not be asked any more brings no answer to a question",
    file: "_exchange.ts",
    find: "if (!this.#options.settings().asksClient) answer = undefined;",
    put: "",
    test: TEST,
    filter: "A client that is to ask nobody any more answers no question, on 2026-07-28",
  },
  {
    name: "late-provider",
    guard: "A text goes only to the provider that the person was shown",
    file: "sampler.ts",
    find: "if (`${now}` !== `${facts}`) throw restless(own);",
    put: "",
    test: TEST,
    filter: "Another provider than the person was shown is sent nothing",
  },
  {
    name: "late-turn",
    guard: "A model that calls tools is sent nothing more once its provider was taken back",
    file: "sampling.ts",
    find: "asking.assertCurrent();",
    put: "",
    test: TEST,
    filter: "A provider that is taken back while its model waits for a tool is sent nothing more",
  },
  {
    name: "late-install",
    guard: "A server that is removed while it is installed does not start",
    file: "upstreams.ts",
    find: "if (now(name).version() === server.version()) return open;",
    put: "if (now !== undefined) return open;",
    test: TEST,
    filter: "A server that is removed while it is installed does not start",
  },
  {
    name: "kept-ahead",
    guard: "What was kept while the clock was ahead is looked at again: it may be withdrawn",
    file: "cache.ts",
    find: "return Math.abs(Date.now() - at);",
    put: "return Date.now() - at;",
    test: "src/registry/registries_test.ts",
    filter: "Registries looks again at what was kept while the clock was ahead",
  },
];
