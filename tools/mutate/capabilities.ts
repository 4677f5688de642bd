/**
 * What holds capabilities: their content, their names, what they call and how often.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const COMMANDS = "tests/capability_commands_test.ts";
const CLIENTS = "tests/capabilities_test.ts";
const ATTACKS = "tests/attacks/capabilities_test.ts";
const REGISTRY = "tests/registry_capabilities_test.ts";
const LOOPS =
  "A capability that calls itself ends at the depth, and its calls are counted together";

/** The guards of capabilities. */
export const CAPABILITIES: readonly Mutant[] = [
  {
    name: "capability-hash",
    guard: "A capability runs only as the person approved it",
    file: "capability_store.ts",
    find: "if (hash === approved) return capability;",
    put: "if (hash !== undefined) return capability;",
    test: COMMANDS,
    filter: "A capability that others changed does not run, and says what to do",
  },
  {
    name: "capability-depth",
    guard: "Only so many capabilities wait for each other",
    file: "capabilities.ts",
    find: "if (depth > capabilityDepth) {",
    put: "if (depth > 1_000) {",
    test: ATTACKS,
    filter: LOOPS,
  },
  {
    name: "capability-calls",
    guard: "A capability and those that it calls make only so many calls together",
    file: "capabilities.ts",
    find: "if (left.calls-- <= 0) {",
    put: "if (left.calls-- <= -1_000) {",
    test: ATTACKS,
    filter: LOOPS,
  },
  {
    name: "capability-deny",
    guard: "A capability that calls what is denied is refused before it begins",
    file: "capability_rules.ts",
    find: 'inner.find(({ kind }) => kind === "deny") ??',
    put: "",
    test: ATTACKS,
    filter: "A capability that calls what is denied is refused before it begins, on 2025-11-25",
  },
  {
    name: "internal-tools",
    guard: "Only a saved capability calls a tool that is internal",
    file: "known_server.ts",
    find: "via === OF_CAPABILITY && await",
    put: 'via !== "" && await',
    test: ATTACKS,
    filter: "Only a saved capability reaches an internal tool, on 2025-11-25",
  },
  {
    name: "capability-name",
    guard: "A capability takes no server's name",
    file: "capability_saving.ts",
    find: "if (owner === undefined) return id;",
    put: 'if (owner !== "") return id;',
    test: CLIENTS,
    filter: "What cannot be saved does not run, on 2025-11-25",
  },
  {
    name: "capability-ask",
    guard: "Nothing is saved without the person's yes",
    file: "capability_saving.ts",
    find: "await this.#options.ask(review, asking);",
    put: "void asking;",
    test: CLIENTS,
    filter: "Nothing is saved after a no, and the result of the run stays, on 2025-11-25",
  },
  {
    name: "capability-stale",
    guard: "A capability whose tools changed asks before it runs",
    file: "capabilities.ts",
    find: "if (lines.length === 0) return undefined;",
    put: "if (lines.length >= 0) return undefined;",
    test: COMMANDS,
    filter: "A changed tool makes a capability stale: it is told, and asks before it runs",
  },
  {
    name: "capability-person",
    guard: "Saving by a command needs a person at a terminal",
    file: "_capability.ts",
    find: 'needPerson(`Cannot ${word} ${quoted(first, 400)}`, "");',
    put: "",
    test: COMMANDS,
    filter: "pml capability saves, shows, lists, renames and deletes",
  },
  {
    name: "capability-import",
    guard: "What is imported is what was exported",
    file: "capability.ts",
    find: "if (hash === capabilityHash(capability)) return capability;",
    put: "if (capabilityHash(capability)) return capability;",
    test: COMMANDS,
    filter: "pml capability moves to another machine by export and import",
  },
  {
    name: "capability-renamed",
    guard: "A capability is renamed and deleted as it was when the person was asked",
    file: "capability_store.ts",
    find: 'if (hash !== over) throw refused("APPROVAL_STALE", from);',
    put: "",
    test: "tests/attacks/ra_shown_test.ts",
    filter: "pml capability rename gives its new name to what was shown, and to nothing else",
  },
  {
    name: "capability-cycle",
    guard: "A capability that would call itself over others is not saved",
    file: "capability_saving.ts",
    find: "if (around !== undefined) {",
    put: "if (around?.length === 0) {",
    test: ATTACKS,
    filter: "A capability that would call itself over others is not saved",
    fails: /Nothing came in/,
  },
  {
    name: "registry-action",
    guard: "A capability of a registry is its action alone, whatever its module has beside it",
    file: "namespace_server.ts",
    find: "return all.filter(({ name }) => name === action);",
    put: "return all;",
    test: REGISTRY,
    filter: "A registry's capability is found, asked about once and called, on 2025-11-25",
  },
  {
    name: "namespace-first-use",
    guard: "A bare * covers no other name in the namespace of a capability",
    file: "snapshot.ts",
    find: "known: (server, id) => all.has(server) || all.has(id),",
    put: "known: (server) => known(server),",
    test: REGISTRY,
    filter: "A registry's capability is found, asked about once and called, on 2025-11-25",
  },
  {
    name: "capability-parameter",
    guard: "A parameter is put into code by its name alone, never as code",
    file: "capability_parameters.ts",
    find: 'if (!NAME.test(name) || name === "__proto__") throw',
    put: 'if (name === "__proto__") throw',
    test: "src/workflow/capability_parameters_test.ts",
    filter: "parametrized() puts no value into code, and takes none out of a longer text",
  },
  {
    name: "capability-left-out",
    guard: "An import says which tools it names and does not list",
    file: "capability_saving.ts",
    find: "if (toolsUsed !== undefined) {",
    put: "if (toolsUsed !== undefined && !toolsUsed) {",
    test: ATTACKS,
    filter: "An import whose list of tools leaves some out says so before it is saved (PM9)",
  },
  {
    name: "capability-text-time",
    guard: "No text of a capability holds PML up",
    file: "capability_parameters.ts",
    find: String.raw`(?:\?\.\s*)?\[\s*`,
    put: String.raw`(?:\?\.)?\s*\[\s*`,
    test: "src/workflow/capability_parameters_test.ts",
    filter: "The literals and tools of any text are found in a time that grows with its length",
  },
  {
    name: "cloud-internal",
    guard: "Only a saved capability reaches internal tools of a server in the cloud",
    file: "rpc.ts",
    find: "const tools = via === OF_CAPABILITY ? all : externalTools(all);",
    put: "const tools = via !== undefined ? all : externalTools(all);",
    test: "tests/visibility_test.ts",
    filter: "An internal tool of a registry's server is neither offered nor called, on 2025-11-25",
  },
  {
    name: "door-capability",
    guard: "The calls of a capability are judged as every call",
    file: "gate.ts",
    find: "const verdict = missingIn([toolset?.()], id) ??",
    put: 'if (arguments[1].via === "capability") return BEGUN; ' +
      "const verdict = missingIn([toolset?.()], id) ??",
    test: "tests/attacks/pm_doors_test.ts",
    filter: "Each judgement holds at each way in, on 2026-07-28 (PM8)",
  },
  {
    name: "door-sampling",
    guard: "The calls of a model that a server asks are judged as every call",
    file: "gate.ts",
    find: "const verdict = missingIn([toolset?.()], id) ??",
    put: 'if (arguments[1].via === "sampling") return BEGUN; ' +
      "const verdict = missingIn([toolset?.()], id) ??",
    test: "tests/attacks/pm_doors_test.ts",
    filter: "Each judgement holds at each way in, on 2026-07-28 (PM8)",
  },
];
