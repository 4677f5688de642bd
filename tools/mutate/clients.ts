/**
 * What the person says of tools and scripts, what a client can do, and whose a task is.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

/** What differs from person to person, and from client to client. */
export const CLIENTS: readonly Mutant[] = [
  {
    name: "fixed-untrusted",
    guard: "What an untrusted file says of tools counts for nothing",
    file: "servers.ts",
    find: "if (!isSaid || isBlocked) return given;",
    put: "if (!isSaid) return given;",
    test: "tests/tool_settings_test.ts",
    filter: "What an untrusted file says of tools counts after the yes, not before",
  },
  {
    name: "fixed-own",
    guard: "A client sets no argument that the person fixed",
    file: "_tool_settings.ts",
    find: "if (twice.length > 0) {",
    put: "if (twice.length > 99) {",
    test: "tests/tool_settings_test.ts",
    filter:
      "A tool that is left out, and an argument that is fixed, are told before a server starts",
  },
  {
    name: "tool-disabled",
    guard: "A tool that the person left out is not called",
    file: "servers.ts",
    find: "if (setting.disabled === true) throw await unknown(call.id, this);",
    put: "",
    test: "tests/tool_settings_test.ts",
    filter:
      "A tool that is left out, and an argument that is fixed, are told before a server starts",
  },
  {
    name: "scripts-confined",
    guard: "Install scripts that a person lets run are confined",
    file: "_scripts.ts",
    find: "return confinedProgram(confined, { layer, reach });",
    put: "return confined;",
    test: "tests/attacks/gw_scripts_test.ts",
    filter: "Install scripts run confined",
  },
  {
    name: "scripts-token",
    guard: "Install scripts find no token of a registry",
    file: "_scripts.ts",
    find: "const { NPM_TOKEN: _, NODE_AUTH_TOKEN: __, ...env } = all;",
    put: "const env = all;",
    test: "tests/attacks/gw_scripts_test.ts",
    filter: "Install scripts run on a person's word alone, once, and are pinned",
  },
  {
    name: "able-lists",
    guard: "A client is shown no list that was made for another's capabilities",
    file: "upstreams.ts",
    find: "const able = this.#declared.capabilitiesFor(server.name);",
    put: "const able = {};",
    test: "tests/able_test.ts",
    filter: "A server shows a client what it would show it directly, whoever listed first",
  },
  {
    name: "able-sets",
    guard: "A client that makes up capabilities fills neither memory nor disk",
    file: "_server_lists.ts",
    find: "owners.size > SETS_MAX &&",
    put: "owners.size > 1e9 &&",
    test: "src/mcp_client/_server_lists_test.ts",
    filter:
      "ServerLists keeps the files of a server that were written last, and none of a set that went",
  },
  {
    name: "able-starts",
    guard: "Clients that take turns start a server anew a few times only",
    file: "_declared.ts",
    find: "if (entry.restarts === 0) return;",
    put: "",
    test: "tests/able_test.ts",
    filter: "Two clients that take turns start a server a few times, and are both served",
  },
  {
    name: "task-client",
    guard: "What a server tells of a task comes to the client that began it, and to no other",
    file: "_clients.ts",
    find: 'client.tell("notifications/tasks/status", params);',
    put: 'for (const { tell } of this.#all) tell("notifications/tasks/status", params);',
    test: "src/gateway/tasks_told_test.ts",
    filter: "What is told of a task comes to the client that began it alone",
  },
  {
    name: "task-owner",
    guard: "A task is known with the client whose call began it",
    file: "_tasks.ts",
    find: "const client = call.task && this.#clients.get(call.task);",
    put:
      "const client = call.task && ([...this.#all.values()].at(-1)?.client ?? this.#clients.get(call.task));",
    test: "src/gateway/tasks_told_test.ts",
    filter: "What is told of a task comes to the client that began it alone",
  },
  {
    name: "task-denied",
    guard: "Of a task whose tool is denied by now nothing is told",
    file: "_tasks.ts",
    find: '|| this.#options.judge(tool).kind === "deny"',
    put: "",
    test: "tests/tasks_http_test.ts",
    filter:
      "A client that listens no more, and one whose rules forbid the tool by now, is told nothing",
  },
  {
    name: "own-answers",
    guard: "What a client did not answer is no answer, whatever the question is called",
    file: "_runs.ts",
    find: "const said = memberOf(responses, key);",
    put: "const said = responses[key];",
    test: "tests/attacks/odd_values_test.ts",
    filter:
      "No answer goes to a server that the client did not give, whatever the question is called",
  },
];
