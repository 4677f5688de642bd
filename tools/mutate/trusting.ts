/**
 * What a person trusts at a terminal, and takes back.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const SHOWN = "tests/attacks/ra_shown_test.ts";

/** Trust in files, and answers to calls that wait. */
export const TRUSTING: readonly Mutant[] = [
  {
    name: "worktree-taken-over",
    guard: "A worktree takes no trust over that was taken back meanwhile",
    file: "_worktrees.ts",
    find: "if (store.record(other)?.hashes.includes(hash)) return true;",
    put: "return true;",
    test: "src/permissions/workspace_trust_test.ts",
    filter: "Trust that is taken back comes into no other worktree meanwhile",
  },
  {
    name: "worktree-revoked",
    guard: "Trust is taken back also where a worktree took it over meanwhile",
    file: "_worktrees.ts",
    find: "return [...await revoked(), ...await revoked()].includes(true);",
    put: "return (await revoked()).includes(true);",
    test: "src/permissions/workspace_trust_test.ts",
    filter: "Trust that is taken back comes into no other worktree meanwhile",
  },
  {
    name: "approval-refused",
    guard: "A no takes back the yes of another terminal that was not used yet",
    file: "_pending.ts",
    find: "return await this.#removed(id) || waited;",
    put: "return waited;",
    test: SHOWN,
    filter: "A no at one terminal holds though another one said yes before",
  },
  {
    name: "approval-always",
    guard: "An always to a question that waits no more writes no rule",
    file: "_approve.ts",
    find: "await approvals.grant(id);\n    await always.always(call);",
    put: "await always.always(call);\n    await approvals.grant(id);",
    test: SHOWN,
    filter: "An always to a question that was refused elsewhere writes no rule",
  },
  {
    name: "worktree-claimed",
    guard: "A folder that claims a worktree of a trusted repository gets no trust",
    file: "_worktrees.ts",
    find: "return isKnown ? { root, common } : undefined;",
    put: "return isKnown || common ? { root, common } : undefined;",
    test: "tests/trust_test.ts",
    filter: "The trust in a file holds in the linked worktrees of its repository, and nowhere else",
  },
  {
    name: "worktree-named",
    guard: "A repository that names a trusted folder as its worktree gets no trust",
    file: "_worktrees.ts",
    find: "const isOther = other !== root && (await checkoutAt(other))?.common === common;",
    put: "const isOther = other !== root;",
    test: "tests/trust_test.ts",
    filter: "The trust in a file holds in the linked worktrees of its repository, and nowhere else",
  },
  {
    name: "trust-revoked",
    guard: "What a person does not trust any more stops in a PML that runs",
    file: "policy.ts",
    find: "if (trusted !== this.#now.trust.trusted) await this.settle();",
    put: "if (trusted && !this.#now.trust.trusted) await this.settle();",
    test: "tests/trust_test.ts",
    filter: "pml trust --list and --revoke show and take back, also for a PML that runs",
  },
  {
    name: "always-elsewhere",
    guard:
      "Always is offered at a terminal only in the workspace of the call, under the same rules",
    file: "_approve.ts",
    find: "return isHere ? { id, arguments: args } : undefined;",
    put: "return isHere || id ? { id, arguments: args } : undefined;",
    test: "tests/trust_test.ts",
    filter: "pml approve offers no Always where another workspace or other rules hold",
  },
  {
    name: "grants-own",
    guard: "The person's grants are for no server of that name that a workspace defines",
    file: "_grants.ts",
    find: "one.name === name && servers.includes(one)",
    put: "one.name === name",
    test: "tests/cli_learn_test.ts",
    filter:
      "pml learn writes what a server of config.yaml needs there, and for no other of that name",
  },
  {
    name: "npm-content",
    guard: "A package of npm with other bytes has another hash",
    file: "_npm.ts",
    find: "`${path} ${version} ${integrity}\\n`",
    put: "`${path} ${version}\\n`",
    test: "tests/attacks/sp_install_test.ts",
    filter: "A package of npm has the same hash on every system, and another one with other bytes",
  },
  {
    name: "wrapped-deeper",
    guard: "On a terminal no text of others begins a line where one of PML's own begins",
    file: "out.ts",
    find: "lead.length + 4",
    put: "lead.length",
    test: "tests/looks_test.ts",
    filter:
      "Questions and errors are broken between words to the width of the terminal, commands are not, and no line of others begins where one of PML's does",
  },
  {
    name: "uv-content",
    guard: "A package of uvx with other bytes has another hash",
    file: "_uv.ts",
    find: 'hashes.toSorted().join(" ")]] : []',
    put: '""]] : []',
    test: "tests/attacks/sp_uv_test.ts",
    filter: "A package of uvx has the same hash on every system, and another one with other bytes",
  },
  {
    name: "uv-strong",
    guard: "A package of uvx whose registry names no strong hash is known by its files",
    file: "_uv.ts",
    find: "hashes.every((hash) => /^sha256:[0-9a-f]{64}$/.test(hash))",
    put: "hashes.every((hash) => hash !== null)",
    test: "tests/attacks/sp_uv_test.ts",
    filter:
      "A package of uvx that has no strong hash is known by its files, and another wheel than the listed one is refused",
  },
  {
    name: "uv-verify",
    guard: "uv compares each wheel with the hashes of the list",
    file: "_uv.ts",
    find: ', "--verify-hashes"]',
    put: "]",
    test: "tests/attacks/sp_uv_test.ts",
    filter:
      "A package of uvx that has no strong hash is known by its files, and another wheel than the listed one is refused",
  },
  {
    name: "guest-folder",
    guard: "What a clone brings is no part of the person's own servers",
    file: "_launch.ts",
    find: "given.isGuest && takesFromFolder(given) ? data : given.cwd",
    put: "given.cwd",
    test: "tests/attacks/sp_folder_test.ts",
    filter: "A clone puts nothing into the person's own servers, on 2025-11-25 (P5)",
  },
  {
    name: "server-code",
    guard: "What a server runs from is not for modules to write",
    file: "server_code.ts",
    find: "CODE.test(one) ||",
    put: "",
    test: "tests/attacks/pe_programs_test.ts",
    filter: "No module writes what a server of the workspace runs, on 2025-11-25 (PE11)",
  },
  {
    name: "server-code-confined",
    guard: "What a server runs from is not for confined servers to write",
    file: "_confined.ts",
    find: "...paths, ...own.map(firstMissing)",
    put: "",
    test: "tests/attacks/pe_programs_test.ts",
    filter: "A confined server writes nothing that another one runs",
  },
  {
    name: "key-left-in-keyring",
    guard: "A key that moved to a program or a file is left in no keyring",
    file: "_key.ts",
    find: 'if (before && "keyring" in before && !(source && "keyring" in source)) {',
    put: "if (source === undefined && name === '') {",
    test: "tests/keyring_test.ts",
    filter:
      "A key that moved to a program or a file is left in no keyring, and a file of places that is broken stays",
  },
  {
    name: "key-places-broken",
    guard: "A file that says where keys are, and cannot be read, is not replaced",
    file: "_key.ts",
    find: 'throw new PmlError("CONFIG_INVALID", message, { hint: "Fix or remove that file" });',
    put: "void message;",
    test: "tests/keyring_test.ts",
    filter:
      "A key that moved to a program or a file is left in no keyring, and a file of places that is broken stays",
  },
  {
    name: "journal-goes-back",
    guard: "Records that could not be written leave no gap in the chain",
    file: "journal.ts",
    find: "this.#chain = this.#written; lost = this.#fail(error);",
    put: "lost = this.#fail(error);",
    test: "src/audit/journal_test.ts",
    filter: "write() fails when the folder is gone, and works again when it can be made",
  },
];
