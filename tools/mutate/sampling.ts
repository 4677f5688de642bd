/**
 * The guards of sampling, each taken away once.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const ATTACKS = "tests/attacks/sm_test.ts";
const THROUGH = "tests/sampling_test.ts";

/** What keeps a model, a provider and a server that samples in bounds. */
export const SAMPLING: readonly Mutant[] = [
  {
    name: "sampling-gates",
    guard: "A request to a provider passes the gates, and asks where no rule allows it",
    file: "sampler.ts",
    find: "return await this.#judged(own);",
    put:
      'return await own.onAsk!({ server, method: "sampling/createMessage", params, signal }) as never;',
    test: THROUGH,
    filter: "Nothing is sent to a provider after a no, a deny, or without a person, on 2025-11-25",
  },
  {
    name: "sampling-facts",
    guard: "The question says where the text goes and what it may cost",
    file: "sampler.ts",
    find: "facts: this.#sampling.lines(prompt, settings),",
    put: "",
    test: THROUGH,
    filter: "A provider answers servers whose client cannot, after a yes, on 2025-11-25",
  },
  {
    name: "sampling-key",
    guard: "No file of the workspace chooses whose account gets the person's texts",
    file: "sampler.ts",
    find: 'return key?.from === "the environment" ? key.value : undefined;',
    put: "return key?.value;",
    test: THROUGH,
    filter: "What is missing for sampling is said, with what to set",
  },
  {
    name: "sampling-denied",
    guard: "A model is not offered a tool that a rule denies",
    file: "sampler.ts",
    find: '&& policy.now.judge(id).kind !== "deny"',
    put: "",
    test: ATTACKS,
    filter: "A denied tool never runs by a model's call, whatever name it has, on 2025-11-25 (PM8)",
  },
  {
    name: "sampling-bound",
    guard: "A server gets no tools beyond those that the person names",
    file: "_request.ts",
    find: "if (!allowed.some((pattern) => matches(pattern, id))) return false;",
    put: "",
    test: "src/sampling/sampling_test.ts",
    filter: "Tools fit the patterns of a server only within those of the person",
  },
  {
    name: "sampling-offered",
    guard: "A model calls only tools that it was offered, by the names that it was told",
    file: "sampling.ts",
    find: "const tool = tools.find(({ name }) => name === use.name);",
    put: "const tool = tools.find(({ name }) => name === use.name) ?? tools[0];",
    test: "src/sampling/loop_test.ts",
    filter: "Names and arguments that are not valid go back to the model, and to no tool",
  },
  {
    name: "sampling-arguments",
    guard: "A tool gets no arguments that are no JSON object",
    file: "sampling.ts",
    find:
      'if (use[BAD_INPUT] !== undefined) return failed(use, "The arguments are no JSON object");',
    put: "",
    test: "src/sampling/loop_test.ts",
    filter: "Names and arguments that are not valid go back to the model, and to no tool",
  },
  {
    name: "sampling-turns",
    guard: "A loop that never ends is stopped after so many turns",
    file: "sampling.ts",
    find: "if (count === maxTurns) return stopped(messages, said.model, capOf(count));",
    put: "",
    test: "src/sampling/loop_test.ts",
    filter: "A loop that never ends is stopped at each of its caps, which the answer names",
  },
  {
    name: "sampling-tokens",
    guard: "All answers to one request have no more tokens than the person says",
    file: "sampling.ts",
    find: "left -= said.usage?.output ?? estimateOf(said.content);",
    put: "",
    test: "src/sampling/loop_test.ts",
    filter: "A loop that never ends is stopped at each of its caps, which the answer names",
  },
  {
    name: "sampling-depth",
    guard: "A model that has itself asked again, and again, meets a bound",
    file: "sampler.ts",
    find:
      "if ((call.depth ?? 0) >= limits.capabilityDepth) throw tooDeep(server, limits.capabilityDepth);",
    put: "",
    test: ATTACKS,
    filter: "A loop that never ends is stopped, also one that asks itself again",
  },
  {
    name: "sampling-minute",
    guard: "No more requests go to a provider in a minute than the person says",
    file: "_budget.ts",
    find: "if (kept.recent.length >= most) {",
    put: "if (most < 0) {",
    test: ATTACKS,
    filter: "A server that floods meets the limit of a minute, in all processes together",
  },
  {
    name: "sampling-day",
    guard: "No more tokens are used in a day than the person says",
    file: "_budget.ts",
    find: "if (kept.tokens + tokens > tokensPerDay) {",
    put: "if (tokensPerDay < 0) {",
    test: "src/sampling/sampling_test.ts",
    filter: "Requests of a minute and tokens of a day hold across processes and restarts",
  },
  {
    name: "sampling-money",
    guard: "No more money is spent in a day than the person says",
    file: "_budget.ts",
    find: "if (kept.money + money > moneyPerDay) {",
    put: "if (moneyPerDay < 0) {",
    test: "src/sampling/loop_test.ts",
    filter: "A loop that never ends is stopped at each of its caps, which the answer names",
  },
  {
    name: "sampling-reserved",
    guard: "What is under way is counted before it is asked",
    file: "sampling.ts",
    find: "await this.#budget.reserve(most, settings);",
    put: "",
    test: "src/sampling/sampling_test.ts",
    filter: "What is under way is counted, so that requests at once cannot pass a cap together",
  },
  {
    name: "sampling-length",
    guard: "An answer of a provider is cut off where it is far too long",
    file: "_provider.ts",
    find: "if ((bytes += data.length) > most) throw new Error(`it has more than ${most} bytes`);",
    put: "if ((bytes += data.length) > 1e9) throw new Error(`it has more than ${most} bytes`);",
    test: "src/sampling/provider_test.ts",
    filter: "An answer is bounded by the tokens that were asked for",
    fails: /does not end|timed out|leaks|heap/i,
  },
  {
    name: "sampling-echo",
    guard: "An error of a provider that repeats the key tells it to no server",
    file: "_provider.ts",
    find: "(${status}: ${withoutSecrets(said)})",
    put: "(${status}: ${said})",
    test: "src/sampling/provider_test.ts",
    filter: "What a provider refuses is told with what to do",
  },
  {
    name: "sampling-person",
    guard: "A tool that waits for the person ends the loop, and the person is told",
    file: "sampling.ts",
    find: 'if (code === "APPROVAL_REQUIRED") throw error;',
    put: "",
    test: "src/sampling/loop_test.ts",
    filter:
      "What a tool refuses is told to the model, but what only the person can do ends the loop",
  },
  {
    name: "sampling-module",
    guard: "A module asks PML for nothing but a model",
    file: "modules.ts",
    find: 'if (name !== "sample" || !isObject(params)) {',
    put: 'if (name === "") {',
    test: ATTACKS,
    filter: "What a module asks by another name, or too much of, is refused",
  },
];
