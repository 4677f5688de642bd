/**
 * What is remembered of tools, and plans that are made of intents.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const MEMORY = "src/workflow/use_memory_test.ts";
const INTENTS = "tests/intents_test.ts";

/** What keeps data out of the memory, and what keeps a plan from running unseen. */
export const LEARNING: readonly Mutant[] = [
  {
    name: "memory-keys",
    guard: "A key of a result that looks like data is not kept",
    file: "_result_shape.ts",
    find: "entries.some(([name]) => !isName(name) || texts.has(name)) ||",
    put: "",
    test: MEMORY,
    filter: "no value of a result, and no key that is data, gets into the file",
  },
  {
    name: "memory-arguments",
    guard: "A key of a result that the arguments name is not kept",
    file: "_result_shape.ts",
    find: "|| texts.has(name)",
    put: "",
    test: MEMORY,
    filter: "shapeOf() folds maps, and keys that the arguments name, into one shape",
  },
  {
    name: "memory-words",
    guard: "Words of queries are kept as hashes only",
    file: "use_memory.ts",
    find: "return (hash >>> 0).toString(36);",
    put: "return hash ? term : term;",
    test: MEMORY,
    filter: "UseMemory knows tools again that were called after a search for like words",
  },
  {
    name: "memory-definition",
    guard: "What was learnt of a definition is not told of another one",
    file: "use_memory.ts",
    find: "return use?.hash === hash ?",
    put: "return hash && use ?",
    test: MEMORY,
    filter: "UseMemory begins anew for a tool whose definition changed",
  },
  {
    name: "memory-read",
    guard: "A memory that somebody wrote into is read strictly",
    file: "_memory_file.ts",
    find: "return [id, parseUse(use)];",
    put: "return [id, use as ReturnType<typeof parseUse>];",
    test: MEMORY,
    filter: "UseMemory begins anew, and says so, where its file is broken, huge or forged",
  },
  {
    name: "memory-size",
    guard: "A huge memory is not read",
    file: "_memory_file.ts",
    find: "readRegularText(path, { most: MOST_BYTES })",
    put: "readRegularText(path)",
    test: MEMORY,
    filter: "UseMemory begins anew, and says so, where its file is broken, huge or forged",
  },
  {
    name: "search-use",
    guard: "A tool that is used much does not come before all others",
    file: "search.ts",
    find: "USE_GAIN * (fit.get(one.entry.id) ?? 0)",
    put: "9 * (fit.get(one.entry.id) ?? 0)",
    test: "src/search/search_test.ts",
    filter: "search() raises what was used for like queries, within bounds",
  },
  {
    name: "intent-allowed",
    guard: "A plan that was made of an intent runs only if no call of it needs a question",
    file: "intents.ts",
    find: "return each.every(Boolean);",
    put: "return each.length > 0;",
    test: INTENTS,
    filter: "an intent never runs what is denied, asks, or is in doubt",
  },
  {
    name: "intent-confident",
    guard: "A plan that was made of an intent runs only above the person's confidence",
    file: "intents.ts",
    find: "confidence > least()",
    put: "least() > 0",
    test: INTENTS,
    filter: "nothing runs at once where the person wants to see every plan",
  },
  {
    name: "intent-denied",
    guard: "No plan that is made of an intent shows a tool that is denied",
    file: "app_intents.ts",
    find: '(missingIn([toolset?.()], id) ?? policy.now.judge(id)).kind !== "deny";',
    put: "missingIn([toolset?.()], id) === undefined;",
    test: INTENTS,
    filter: "an intent never runs what is denied, asks, or is in doubt",
  },
  {
    name: "intent-rival",
    guard: "A plan is not sure of a tool that another server's fits as well as",
    file: "intent.ts",
    find: "return 1 - Math.min(0.5, Math.max(0, (rival - 0.8) * 2.5));",
    put: "return rival > -1 ? 1 : 0;",
    test: "src/workflow/intent_test.ts",
    filter: "planOf() is not sure where a server that is no better says the same",
  },
  {
    name: "intent-offer",
    guard: "No tool of a server that nobody approved becomes a task",
    file: "intent.ts",
    find: "ranked.find(({ hit }) => hit.server.isOffer !== true)",
    put: "ranked[0]",
    test: "src/workflow/intent_test.ts",
    filter: "planOf() makes no task of a tool whose server nobody approved",
  },
  {
    name: "intent-size",
    guard: "An intent that is too long is refused before it is read",
    file: "intent.ts",
    find: "if (intent.length > LONGEST) {",
    put: "if (intent.length > Infinity) {",
    test: "src/workflow/intent_test.ts",
    filter: "planOf() is bounded in words, steps and time",
  },
];
