/**
 * What a hub takes from publishers, and what it passes on.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const WRITE = "tests/hub_write_test.ts";
const DESK = "hub/src/store/desk_test.ts";
const PUBLISH = "tests/hub_publish_test.ts";
const PROXY = "tests/hub_proxy_test.ts";
const CAPABILITIES = "tests/hub_capabilities_test.ts";
const CALLS = "What a capability of a hub calls passes the gates, and other content never runs";
const PAGE = "tests/hub_page_test.ts";
const FIT = "What clients could not use is refused with the reason, and nothing of it is kept";
const NAMES = "Organisations own their namespaces, and names that look like others are refused";
const GRAPH =
  "What leads out of the folder, or is none of a module, is refused before anything is sent";
const OTHER = "A file of another host is bundled if it has the hash that deno.lock has recorded";
const ANSWERS =
  "What a server behind a hub answers comes through, but for refused keys and redirects";
const HIDDEN =
  "Nobody but the hub learns where a server is, and no entry leads to a private address";

/** Guards of a hub and of those who publish to it. */
export const HUB: readonly Mutant[] = [
  {
    name: "hub-revoked-key",
    guard: "A revoked key changes nothing at a hub",
    file: "_desk.ts",
    find: "WHERE hash = ? AND kind = 'publisher' AND revoked IS NULL",
    put: "WHERE hash = ? AND kind = 'publisher'",
    test: DESK,
    filter: "embedded: who has a key publishes once, and nobody whose key was revoked",
  },
  {
    name: "hub-foreign-name",
    guard: "Nobody publishes in the namespace of another organisation",
    file: "_desk.ts",
    find:
      'return holder.owner === owner ? undefined : { why: "foreign", namespace: holder.namespace };',
    put: "return undefined;",
    test: WRITE,
    filter: NAMES,
  },
  {
    name: "hub-wide-name",
    guard: "Nobody takes all names under a domain such as com",
    file: "_desk.ts",
    find: 'if (isTooWide(fqdn)) return { why: "too_wide" };',
    put: "",
    test: WRITE,
    filter: NAMES,
  },
  {
    name: "hub-name-of-a-domain",
    guard: "Who publishes a name such as com has no other name under it",
    file: "_desk.ts",
    find: "AND (given = 1 OR namespace <> ?)",
    put: "AND namespace || ? <> ''",
    test: "hub/src/store/desk_test.ts",
    filter: "embedded: who has a name such as com has no other name under it",
  },
  {
    name: "hub-alike-above",
    guard: "A name looks like another's in whichever of its parts",
    file: "namespace.ts",
    find: "return [...new Set(all.flatMap(shapesNear))];",
    put: 'return shapesNear(all[0] ?? "");',
    test: "hub/src/store/desk_test.ts",
    filter: "embedded: a name looks like another's in whichever of its parts",
  },
  {
    name: "hub-proxy-page",
    guard: "No server behind a hub shows a page at the hub's address",
    file: "proxy.ts",
    find:
      'if (!SPOKEN.test(headers.get("content-type") ?? "")) headers.set("content-type", "text/plain");',
    put: 'void [SPOKEN, "text/plain"];',
    test: PROXY,
    filter: "No server behind a hub shows a page at the hub's address",
  },
  {
    name: "hub-proxy-share",
    guard: "The servers of one organisation behind a hub have their share of what it passes on",
    file: "proxy.ts",
    find: "if (state.left === 0 || own === AT_ONCE.one) {",
    put: "if (state.left === 0) {",
    test: PROXY,
    filter: "A server behind a hub that never answers keeps no caller from another",
  },
  {
    name: "hub-builtin-name",
    guard: "No published name looks like a server of PML's own",
    file: "write.ts",
    find: "return [...BUILTIN_NAMES].find((name) => shapes.has(shapeOf(name)));",
    put: "return [...BUILTIN_NAMES].find((name) => !shapes.has(shapeOf(name)) && fqdn === name);",
    test: WRITE,
    filter: NAMES,
  },
  {
    name: "hub-code-hash",
    guard: "Published code has the hash that its manifest says",
    file: "_offer.ts",
    find: "if (manifest.integrity === integrity) return bytes;",
    put: "if (manifest.integrity === integrity || bytes) return bytes;",
    test: WRITE,
    filter: FIT,
  },
  {
    name: "hub-unseen",
    guard: "No published text has characters that cannot be seen",
    file: "_offer.ts",
    find: "if (unseen !== undefined) {",
    put: "if (unseen === '') {",
    test: WRITE,
    filter: FIT,
  },
  {
    name: "hub-capability-calls",
    guard: "A published capability names the tools that its code or plan calls",
    file: "_offer.ts",
    find: "if (JSON.stringify(manifest.tools_used ?? []) !== JSON.stringify(calls)) {",
    put: "if (calls.length > 1_000) {",
    test: CAPABILITIES,
    filter: CALLS,
  },
  {
    name: "hub-capability-form",
    guard: "A published capability has the form whose hash clients compare",
    file: "registry_face.ts",
    find: "if (integrityOf(saved.code) === integrityOf(code)) return saved;",
    put: "if (saved.code.length > 0) return saved;",
    test: CAPABILITIES,
    filter: CALLS,
  },
  {
    name: "hub-capability-internal",
    guard: "A capability of a registry reaches no internal tool",
    file: "capability_run.ts",
    find: 'const via = isForeign ? kind : "capability";',
    put: 'const via = isForeign ? "capability" : "capability";',
    test: CAPABILITIES,
    filter: "A capability of a hub reaches no internal tool, which what a person saved reaches",
  },
  {
    name: "hub-accepted-hash",
    guard: "What the operator accepts has the hash that was looked at",
    file: "_desk.ts",
    find: 'if (entry.hash !== hash) return "other";',
    put: "",
    test: WRITE,
    filter: "With --moderated nothing is read before the operator has seen this very content",
  },
  {
    name: "publish-folder",
    guard: "A bundle takes in no file outside the folder of the module",
    file: "_graph.ts",
    find: "if (url !== entry && !real.startsWith(folder + sep)) {",
    put: "if (url !== entry && !real) {",
    test: PUBLISH,
    filter: GRAPH,
  },
  {
    name: "publish-remote-hash",
    guard: "A file of another host has the hash that deno.lock has recorded",
    file: "_graph.ts",
    find: "if (found === recorded) return bytes;",
    put: "if (found) return bytes;",
    test: PUBLISH,
    filter: OTHER,
  },
  {
    name: "hub-nested",
    guard: "What is nested deeper than clients take is refused before anything walks it",
    file: "_offer.ts",
    find: 'if (depth > DEEPEST) throw new Unfit("it is nested too deep");',
    put: "",
    test: "tests/hub_fuzz_test.ts",
    filter: "Bombs of publishers are refused, and others are answered meanwhile",
  },
  {
    name: "hub-kept-answer",
    guard: "An answer that is kept is the one that the store gives now",
    file: "_kept_answers.ts",
    find: "if (stamp !== this.#of) this.#begin(stamp);",
    put: "if (this.#of === undefined) this.#begin(stamp);",
    test: "hub/src/serve/kept_answers_test.ts",
    filter: "KeptAnswers makes an answer anew after each change, whichever process makes it",
  },
  {
    name: "hub-plain-host",
    guard: "A hub listens at no other address without a proxy that does TLS",
    file: "_serve.ts",
    find: "if (!isLoopback(host) && !typed.isBehindProxy) {",
    put: 'if (!isLoopback(host) && host === "") {',
    test: "tests/hub_test.ts",
    filter: "Another address is not listened at unless a proxy with TLS stands before it",
  },
  {
    name: "proxy-refused-key",
    guard: "A refused key of a server behind a hub is not told as the hub's own word",
    file: "proxy.ts",
    find:
      "if (isRedirect || status === 401 || status === 403 || status === 407 || status >= 500) {",
    put: "if (isRedirect || status >= 500) {",
    test: PROXY,
    filter: ANSWERS,
  },
  {
    name: "proxy-headers",
    guard: "A hub passes on only what MCP and the entry want: no cookie, no key of the account",
    file: "proxy.ts",
    find: 'ASKED.test(name) && typeof value === "string"',
    put: 'typeof value === "string"',
    test: PROXY,
    filter: ANSWERS,
  },
  {
    name: "proxy-place",
    guard: "Clients do not learn where a server behind a hub is",
    file: "upstream.ts",
    find: 'if (manifest.type !== "cloud") return manifest;',
    put: 'if (manifest.type !== "cloud" || "url" in manifest) return manifest;',
    test: PROXY,
    filter: HIDDEN,
  },
  {
    name: "proxy-private",
    guard: "No published entry makes a hub ask a private address",
    file: "registry_face.ts",
    find: "fetch: (url, options) => guarded.fetch(url, { ...options, named }),",
    put:
      "fetch: (url, options) => guarded.fetch(url, { ...options, named: new Set([...named, new URL(url).host]) }),",
    test: PROXY,
    filter: HIDDEN,
  },
  {
    name: "page-escaped",
    guard: "No text of a publisher is live on a page of a hub",
    file: "_html.ts",
    find: "pieces.map((piece, at) => at % 2 === 0 ? escaped(piece) : marked(piece))",
    put: "pieces.map((piece, at) => at % 2 === 0 ? piece : marked(piece))",
    test: PAGE,
    filter: "Nothing that a publisher wrote is live on a page, or leads anywhere else",
  },
  {
    name: "hub-lanes",
    guard: "One key holds no more than half of the uploads that a hub reads at once",
    file: "_lanes.ts",
    find: " || own === MOST.one",
    put: "",
    test: "tests/attacks/rg_hub_sent_test.ts",
    filter: "RG5: bodies that are too long, never end or come drop by drop cost a hub nothing",
  },
  {
    name: "hub-utf8",
    guard: "A hub reads JSON in UTF-8, and nothing that is called otherwise",
    file: "write.ts",
    find: 'if (!JSON_TYPE.test(asked.headers["content-type"] ?? "")) {',
    put: 'if (!(asked.headers["content-type"] ?? "").startsWith("application/json")) {',
    test: "tests/attacks/rg_hub_sent_test.ts",
    filter: "RG4: a hub takes JSON in UTF-8 under that name alone, and never sends code as a page",
  },
  {
    name: "hub-settled",
    guard: "A change is told only when each hub on a store answers with it",
    file: "_stamp.ts",
    find: "await delay(this.#heldMs + MARGIN_MS);",
    put: "await delay(this.#heldMs * 0);",
    test: "tests/hub_alike_test.ts",
    filter:
      "What one hub tells as published, tagged or yanked, the other one answers with on PostgreSQL",
  },
  {
    name: "hub-turns",
    guard: "A key has no more changes at several hubs than at one",
    file: "_turns.ts",
    find: "WHERE ${grown} >= 1 RETURNING hash",
    put: "WHERE ${grown} >= -99 RETURNING hash",
    test: DESK,
    filter: "embedded: all hubs on a store count the changes of a key together",
  },
  {
    name: "not-older",
    guard: "A registry that calls an older version the newest takes nobody back",
    file: "_place.ts",
    find: "if (!isPast) return found;",
    put: "if (!isPast || version) return found;",
    test: "src/registry/registries_test.ts",
    filter:
      "Registries uses what is pinned where a registry names an older one, and no newer one unseen",
  },
  {
    name: "capability-shown",
    guard: "A person sees what a capability of a registry does before it runs",
    file: "registry_servers.ts",
    find: "facts: [...facts, ...await this.lookup.textOf(found, signal)]",
    put: "facts",
    test: CAPABILITIES,
    filter:
      "The person sees what a capability of a hub does, escaped, and all of a long one on a terminal",
  },
  {
    name: "sound-backup",
    guard: "A backup that holds what no hub writes is not restored",
    file: "hub/src/store/backup.ts",
    find: "&& isSound(db, version)",
    put: "",
    test: "hub/src/store/store_test.ts",
    filter: "A backup that holds what no hub writes is restored to no store",
  },
];
