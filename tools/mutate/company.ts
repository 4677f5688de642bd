/**
 * Guards of a company's policy: what it forbids holds for every way in, and it can only narrow.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const HOUSE = "tests/policy_test.ts";
const COMPANY = "src/config/company_test.ts";

/** The guards. */
export const COMPANY_POLICY: readonly Mutant[] = [
  {
    name: "company-deny",
    guard: "A deny rule of a company joins the rules",
    file: "company.ts",
    find: "return { deny: [...deny, ...own], ask: [...ask, ...this.#ask], allow };",
    put: "return { deny, ask: [...ask, ...this.#ask], allow };",
    test: HOUSE,
    filter: "What a policy says holds at each way in, on 2025-11-25",
  },
  {
    name: "company-ask",
    guard: "An ask rule of a company holds whatever is allowed",
    file: "company.ts",
    find: 'return said.kind === "allow" && own.source !== "defaults" ? own : said;',
    put: "return said.kind === own.kind ? own : said;",
    test: HOUSE,
    filter: "What a policy says holds at each way in, on 2025-11-25",
  },
  {
    name: "company-always",
    guard: "No Always is offered for what a company wants asked",
    file: "always_rule.ts",
    find: 'if (company?.(id, args).kind === "ask") return undefined;',
    put: "",
    test: "src/policy/policy_test.ts",
    filter: "alwaysOffered() offers nothing that a company wants asked, and no rule overrides it",
  },
  {
    name: "company-servers",
    guard: "A forbidden server is no part of the configuration",
    file: "company.ts",
    find: "servers: servers.filter((server) => this.forbids(server) === undefined),",
    put: "servers,",
    test: HOUSE,
    filter: "What a policy says holds at each way in, on 2025-11-25",
  },
  {
    name: "company-untrusted",
    guard: "A forbidden server of an untrusted file is refused before anybody is asked",
    file: "directory.ts",
    find: "!taken.has(name) && policy.forbidden(name) === undefined",
    put: "!taken.has(name)",
    test: HOUSE,
    filter: "A server that a policy forbids fails each call and says so, trusted or not",
  },
  {
    name: "company-registries",
    guard: "A registry that a company does not name is not asked",
    file: "company.ts",
    find: "registries: this.#registries(config.registries),",
    put: "",
    test: HOUSE,
    filter: "A policy forbids registries, and kinds of what they have",
  },
  {
    name: "company-entries",
    guard: "A server of a registry is forbidden by its kind",
    file: "registry_lookup.ts",
    find: "misusedToken(found, this.#places) ?? this.forbidden(found.manifest);",
    put: "misusedToken(found, this.#places);",
    test: HOUSE,
    filter: "A policy forbids registries, and kinds of what they have",
  },
  {
    name: "company-hosts",
    guard: "Modules get no host that a company does not name",
    file: "company.ts",
    find: "grants: this.#grants(config.grants),",
    put: "",
    test: COMPANY,
    filter: "What a policy forbids is no part of the configuration, and the rest is as it was",
  },
  {
    name: "company-fetch",
    guard: "PML itself reaches no host that a company does not name",
    file: "guarded_fetch.ts",
    find: "if (refusal !== undefined) throw refusal;",
    put: "",
    test: HOUSE,
    filter: "PML itself reaches no host that a policy does not name",
  },
  {
    name: "company-cloud",
    guard: "A company forbids the cloud, also by a bare name",
    file: "kinds.ts",
    find: "const refusal = isCloud &&",
    put: "const refusal = !isCloud &&",
    test: HOUSE,
    filter: "A policy forbids the cloud, also by a bare name",
  },
  {
    name: "company-owner",
    guard: "A policy that others can change stops everything",
    file: "_company_file.ts",
    find: "return !owners.includes(uid) || ((mode ?? 0) & 0o022) !== 0 && !isKept;",
    put: "return !owners.includes(uid);",
    test: HOUSE,
    filter: "A policy that cannot be used stops everything, and says who mends it",
  },
  {
    name: "company-named",
    guard: "A policy that the variable names must exist",
    file: "_company_file.ts",
    find: "if (!exists(path) && !isSaid) continue;",
    put: "if (!exists(path)) continue;",
    test: HOUSE,
    filter: "A policy that cannot be used stops everything, and says who mends it",
  },
  {
    name: "company-broken",
    guard: "A policy that cannot be used leaves no server",
    file: "_company_file.ts",
    find: "said: { forbid: FORBIDDEN, hosts: [] },",
    put: "said: {},",
    test: COMPANY,
    filter: "the parser and policy.schema.json accept and refuse the same policies",
  },
  {
    name: "company-followed",
    guard: "A policy that changes is judged again",
    file: "watch.ts",
    find: "...policyPaths(environment)",
    put: "",
    test: HOUSE,
    filter: "A policy that changes is judged again at once",
  },
];
