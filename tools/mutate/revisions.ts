/**
 * What each revision of MCP demands of the door over HTTP.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const TABLE = "tests/revisions_test.ts";
const HTTP = "tests/revisions_http_test.ts";

/** The guards of revisions. */
export const REVISIONS: readonly Mutant[] = [
  {
    name: "marked-arguments",
    guard: "A tool does not run when a header says something else than the argument it repeats",
    file: "schemas.ts",
    find: "call.agrees?.(definition);",
    put: "",
    test: HTTP,
    filter: "Headers that repeat arguments must say the same, or the tool does not run",
  },
  {
    name: "marked-arguments-encoded",
    guard: "A header is decoded strictly before it is compared",
    file: "marked_arguments.ts",
    find: `{ lastChunkHandling: "strict" }`,
    put: "{}",
    test: HTTP,
    filter: "Headers that repeat arguments must say the same, or the tool does not run",
  },
  {
    name: "tasks-declared",
    guard: "A client that declares no tasks asks about none",
    file: "_tasks.ts",
    find: "if (request.client.isModern && !takes(request)) {",
    put: "if (request.client.isModern && request === undefined) {",
    test: TABLE,
    filter: "Each request of 2026-07-28 is answered, over stdio and HTTP",
  },
  {
    name: "older-content",
    guard: "A client of an older revision gets no content that its revision lacks",
    file: "_older_results.ts",
    find: `if (revision >= (SINCE[textOf(type)] ?? "")) return block;`,
    put: "if (revision !== type) return block;",
    test: TABLE,
    filter: "Each request of 2024-11-05 is answered, over stdio and HTTP",
  },
];
