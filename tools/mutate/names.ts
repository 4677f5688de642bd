/**
 * Whose a name is, and for how long what is known of a server holds.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

/** What looks a server up by its name, or remembers something of it. */
export const NAMES: readonly Mutant[] = [
  {
    name: "disabled",
    guard: "A disabled name is looked up nowhere",
    file: "door.ts",
    find: "if (policy.disabledIn(server) !== undefined) throw servers.unknown(id);",
    put: "",
    test: "tests/attacks/gw_names_test.ts",
    filter: "A server that is switched off is not called in the cloud either (GW9)",
  },
  {
    name: "disabled-is-private",
    guard: "No registry is told the name of what a file defines or switches off",
    file: "adopted.ts",
    find: "return builtins.has(name) || policy.disabledIn(name) !== undefined || own.some(",
    put: "return builtins.has(name) || own.some(",
    test: "tests/attacks/gw_names_test.ts",
    filter: "A server of a registry that is switched off here is used no more, and is there again",
  },
  {
    name: "own-is-private",
    guard: "What a file defines has nothing of a server of a registry that has its name",
    file: "adopted.ts",
    find: "own.some((server) => server.name === name);",
    put: "own.some(() => false);",
    test: "tests/attacks/passing_gates_test.ts",
    filter: "An own module gets nothing that a server of a registry was granted by its name",
  },
  {
    name: "another-definition",
    guard: "What is known of a server is known of its definition",
    file: "servers.ts",
    find:
      "const isSame = source.identity !== undefined && known?.source.identity === source.identity;",
    put: "const isSame = known !== undefined;",
    test: "src/gateway/servers_test.ts",
    filter: "replace() keeps what is known of a server that is the same, and forgets another",
  },
  {
    name: "grants-anew",
    guard: "Grants are asked for at each call: no server holds those of before",
    file: "machine.ts",
    find: `grants: (server) => {
        const manifest = this.#options.manifest(server);
        const own = this.#config().grants[server];
        return manifest === undefined ? own : grantsOf(manifest, own);
      },`,
    put: `grants: ((all) => (server: string) => {
        const manifest = this.#options.manifest(server);
        return manifest === undefined ? all[server] : grantsOf(manifest, all[server]);
      })(this.#config().grants),`,
    test: "tests/attacks/passing_gates_test.ts",
    filter: "A yes covers the grants that were shown, and no others",
  },
  {
    name: "keys-anew",
    guard: "Values are filled in anew when `.env` changes",
    file: "keys.ts",
    find: "const isSame = known.file === undefined || known.file === this.#dotenv();",
    put: "const isSame = known !== undefined;",
    test: "src/config/keys_test.ts",
    filter:
      "Keys fills in a definition anew when .env changes, and gives the same object otherwise",
  },
  {
    name: "found-anew",
    guard: "What a registry's question shows is made anew when the configuration changes",
    file: "adopted.ts",
    find: "this.#found.clear();",
    put: "",
    test: "tests/attacks/passing_gates_test.ts",
    filter: "The first question about a registry's server shows the grants of now",
  },
  {
    name: "keys-first",
    guard: "Missing keys are told before the person is asked",
    file: "adopted.ts",
    find: "assertKeys(found.manifest, this.#options.keys);",
    put: "",
    test: "src/app/registry_servers_test.ts",
    filter: "Adopted asks nobody about a server before a key that only a header names is there",
  },
  {
    name: "token",
    guard: "A server that names the token of a registry is not used",
    file: "adopted.ts",
    find: "if (wrong !== undefined) throw wrong;",
    put: "",
    test: "src/app/registry_servers_test.ts",
    filter: "Adopted takes no server that names the token of a registry, by whatever way",
  },
  {
    name: "token-later",
    guard: "Nor is one that was approved before its key became that token",
    file: "adopted.ts",
    find: "if (found === undefined || misusedToken(found, this.#places) !== undefined) continue;",
    put: "if (found === undefined) continue;",
    test: "src/app/registry_servers_test.ts",
    filter:
      "Adopted uses no server that was approved before its key became the token of a registry",
  },
  {
    name: "pinned-here",
    guard: "What was pinned to this machine never goes to the cloud",
    file: "door.ts",
    find: 'if (pinned !== undefined && pinned.kind !== "cloud") return "local";',
    put: "",
    test: "tests/attacks/rg_seams_test.ts",
    filter: "What was pinned to run here never goes to the cloud, and a registry that is not asked",
  },
  {
    name: "registry-missing",
    guard: "A registry that is not asked any more is an error, and no reason to look elsewhere",
    file: "door.ts",
    find: 'if (source !== "private") throw notThere(server, source);',
    put: "",
    test: "tests/attacks/rg_seams_test.ts",
    filter: "What was pinned to run here never goes to the cloud, and a registry that is not asked",
  },
  {
    name: "own-is-local",
    guard: "What ships with PML or a file defines runs here, whatever the lists of the cloud say",
    file: "door.ts",
    find: 'if (builtins.has(server) || policy.definitionOf(server) !== undefined) return "local";',
    put: "",
    test: "tests/attacks/ni_cloud_test.ts",
    filter:
      "What runs on this machine opens no socket and reaches no cloud, whatever the cloud says (NI3)",
  },
  {
    name: "hub-takes-nothing",
    guard: "The list of the hub takes no name from this machine",
    file: "door.ts",
    find: "const added = !isListedLocal(server) && this.#hub.has(server);",
    put: "const added = this.#hub.has(server);",
    test: "tests/attacks/ni_cloud_test.ts",
    filter:
      "What runs on this machine opens no socket and reaches no cloud, whatever the cloud says (NI3)",
  },
  {
    name: "following",
    guard: "What is followed ends with the rules that let it be followed",
    file: "upstreams.ts",
    find: "if (!following.isTask && !this.#options.mayFollow(server)) {",
    put: "if (server === undefined) {",
    test: "tests/attacks/sp_relay_test.ts",
    filter: "What follows a resource ends with what it rests on, and can always be given up",
  },
  {
    name: "following-anew",
    guard: "What is followed is looked at again when the configuration changes",
    file: "machine.ts",
    find: "options.policy.onChange(() => this.#each((upstreams) => upstreams.refollow()));",
    put: "",
    test: "tests/attacks/sp_relay_test.ts",
    filter: "What follows a resource ends with what it rests on, and can always be given up",
  },
  {
    name: "untrusted-name",
    guard: "The name of a built-in stands for the built-in until the file that takes it is trusted",
    file: "policy.ts",
    find: "if (!trust.trusted) return this.#now.known(server);",
    put: "if (!trust.trusted) return false;",
    test: "tests/attacks/modules_test.ts",
    filter: "a private module takes a built-in's name only where the file is trusted",
  },
  {
    name: "untrusted-file",
    guard: "Nothing of a file that nobody trusts counts but its deny and ask",
    file: "policy.ts",
    find: "const config = settle(loaded, trust.trusted);",
    put: "const config = settle(loaded, trust !== undefined);",
    test: "tests/attacks/modules_test.ts",
    filter: "an untrusted workspace's module runs nothing, whatever is asked of it",
  },
];
