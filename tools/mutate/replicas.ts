/**
 * Guards of several processes that serve one PML: what a sealed question is bound to, and who may
 * pass on what another process has begun.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const SEALED = "tests/replicas_test.ts";
const PASSED_ON = "tests/replicas_forward_test.ts";
const FOREIGN = "A state of another request, identity or key, or a changed one, lets nothing run";
const KEYS = "A sealing key that is missing, short, open to others or from a workspace is refused";
const NOBODY =
  "Nobody without the key is heard, nothing is readable on the way, and nothing counts twice";
const JUMPS = "A clock that jumps gives a question no more time, and an answer no second use";
const ADDRESS = "An address that others may have written, or that is old, is not used";

/** The guards. */
export const REPLICAS: readonly Mutant[] = [
  {
    name: "sealed-identity",
    guard: "A sealed question is good for the identity that was asked",
    file: "replica.ts",
    find: "[identity, sha256(request)]",
    put: "[null, sha256(request)]",
    test: SEALED,
    filter: FOREIGN,
  },
  {
    name: "sealed-request",
    guard:
      "A sealed question is good for the method, the tool and the arguments that were asked about",
    file: "replica.ts",
    find: "[identity, sha256(request)]",
    put: '[identity, request === "" ? "" : "any"]',
    test: SEALED,
    filter: FOREIGN,
  },
  {
    name: "sealed-bound",
    guard: "What a sealed question is bound to is under the seal",
    file: "_sealer.ts",
    find: "additionalData: UTF_8.encode(JSON.stringify(bound))",
    put: 'additionalData: UTF_8.encode(bound.length === 0 ? "" : "any")',
    test: SEALED,
    filter: FOREIGN,
  },
  {
    name: "sealed-key",
    guard: "The sealing key decides what is sealed",
    file: "_sealer.ts",
    find: 'importKey("raw", secret, "HKDF", false, ["deriveKey"])',
    put: 'importKey("raw", secret.slice(0, 1), "HKDF", false, ["deriveKey"])',
    test: SEALED,
    filter: FOREIGN,
  },
  {
    name: "sealed-subjects",
    guard:
      "The answer to a sealed question counts while definition and rules are as they were asked about",
    file: "approvals.ts",
    find: "if (asked?.digest !== digest || asked.question.terminalOnly) return undefined;",
    put: "if (asked === undefined || asked.question.terminalOnly) return undefined;",
    test: SEALED,
    filter: "A call is judged anew where its answer comes",
  },
  {
    name: "sealed-late",
    guard: "A sealed question is good for some time, which does not change afterwards",
    file: "replica.ts",
    find: "if (left <= 0 ||",
    put: "if (",
    test: "src/serve/replica_test.ts",
    filter: "A sealed question is taken back in its time, whatever time another process gives",
  },
  {
    name: "sealed-back",
    guard: "A clock that goes back gives a sealed question no more time",
    file: "replica.ts",
    find: "|| left > this.#options.ttl() + SKEW_MS) return crypto.randomUUID();",
    put: ") return crypto.randomUUID();",
    test: SEALED,
    filter: JUMPS,
  },
  {
    name: "sealed-seen",
    guard: "An answer counts once although a clock that jumped had its file removed",
    file: "_used_answers.ts",
    find: "if (this.#seen.has(name)) throw new Deno.errors.AlreadyExists();",
    put: "",
    test: "src/serve/_used_answers_test.ts",
    filter: "An answer is used once although a clock that jumped had its file removed",
  },
  {
    name: "sealed-once",
    guard: "An answer counts once in all processes",
    file: "approvals.ts",
    find: "if (settled !== undefined) await claim?.();",
    put: "",
    test: SEALED,
    filter: "An answer goes to another process than the question, and counts once",
  },
  {
    name: "sealed-exclusive",
    guard: "Only one process can use an answer up",
    file: "_used_answers.ts",
    find: 'await writeWhole(path, { bytes, mode: 0o600, over: "nothing" });',
    put: "await writeWhole(path, { bytes, mode: 0o600 });",
    test: SEALED,
    filter: "Of two processes with the same answer at the same instant, one runs the call",
  },
  {
    name: "sealing-key-short",
    guard: "A sealing key has at least 32 bytes",
    file: "_replica.ts",
    find: "if (found.length < LEAST) throw invalid(`it has ${found.length} bytes`);",
    put: "",
    test: SEALED,
    filter: KEYS,
    fails: /Nothing came in|timed out/,
  },
  {
    name: "sealing-key-open",
    guard: "A sealing key that others can read is refused",
    file: "_replica.ts",
    find: 'if (isShared(info)) throw invalid("others can read its file");',
    put: 'if (info.size < 0) throw invalid("others can read its file");',
    test: SEALED,
    filter: KEYS,
    fails: /Nothing came in|timed out/,
  },
  {
    name: "sealing-key-brought",
    guard: "A workspace cannot bring a sealing key along",
    file: "_replica.ts",
    find: 'if (key?.from === "the environment")',
    put: "if (key !== undefined)",
    test: SEALED,
    filter: KEYS,
    fails: /Nothing came in|timed out/,
  },
  {
    name: "passed-on-once",
    guard: "A process answers what another passes on once",
    file: "replica.ts",
    find: "|| this.#seen.has(nonce)) return false;",
    put: ") return false;",
    test: PASSED_ON,
    filter: NOBODY,
  },
  {
    name: "passed-on-kept",
    guard: "Nothing is read of what comes without the seal of another process",
    file: "replica.ts",
    find: "const { json } = this.#isNew(nonce, at)",
    put: "const { json } = this.#isNew(nonce, at) || at === undefined",
    test: PASSED_ON,
    filter: "Nothing is kept of what somebody without the key sends to the address of a process",
  },
  {
    name: "passed-on-private",
    guard: "An address that others may have written is not used",
    file: "replica.ts",
    find: "return info.isFile && !isShared(info) &&",
    put: "return info.isFile &&",
    test: PASSED_ON,
    filter: ADDRESS,
  },
  {
    name: "passed-on-old",
    guard: "The address of a process that was not heard of for some time is not used",
    file: "replica.ts",
    find: "Date.now() - (info.mtime?.getTime() ?? 0) < GONE_MS;",
    put: "(info.mtime?.getTime() ?? 0) < Infinity && GONE_MS > 0;",
    test: PASSED_ON,
    filter: ADDRESS,
  },
  {
    name: "passed-on-gone",
    guard: "What waited in a process that has ended is told with may_have_run",
    file: "_runs.ts",
    find:
      "if (run === undefined && !state.startsWith(`${RUN}${this.#here()}`)) throw goneElsewhere();",
    put: "",
    test: PASSED_ON,
    filter: "What waits in a process that was killed is told as UPSTREAM_DOWN, with may_have_run",
  },
  {
    name: "passed-on-broken",
    guard: "A client is told that the process has ended which worked on its request",
    file: "replica.ts",
    find: "if (unknownEnds(body).length === 0) throw error;",
    put: "if (unknownEnds(body).length >= 0) throw error;",
    test: PASSED_ON,
    filter: "A session goes on through another process, and ends with its own",
    fails: /error reading a body|connection/i,
  },
  {
    name: "passed-on-answered",
    guard: "What another process answered is not answered again when its stream breaks",
    file: "replica.ts",
    find: "removeAnswered(left, text);",
    put: "",
    test: "tests/replicas_broken_test.ts",
    filter: "Each request has one answer where what another process says breaks off before its end",
  },
  {
    name: "passed-on-whole",
    guard: "What breaks off in the middle of an event is not passed on",
    file: "replica.ts",
    find: 'if (!text.endsWith("\\n\\n")) continue;',
    put: "",
    test: "tests/replicas_broken_test.ts",
    filter: "Each request has one answer where what another process says breaks off before its end",
    fails: /SyntaxError/,
  },
  {
    name: "passed-on-token",
    guard: "What another process passes on goes by the token that was sent to it",
    file: "src/cli/_faces.ts",
    find: "(one) => sameHash(one.token, token)",
    put: "(one) => sameHash(one.token, token) || one.name !== token",
    test: "tests/replicas_forward_test.ts",
    filter: "What another process passes on goes by the token that was sent to it",
  },
];
