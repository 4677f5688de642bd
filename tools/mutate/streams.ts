/**
 * What holds servers that answer on streams of events: where messages go, and what counts.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const ATTACKS = "tests/attacks/sx_sse_test.ts";
const WIRE = "src/remote/sse_wire_test.ts";
const SESSIONS = "src/remote/http_sessions_test.ts";
const ORIGIN = "No message and no key leaves the origin of a stream, on 2025-11-25 (NI4, SX1)";

/** The guards of streams. */
export const STREAMS: readonly Mutant[] = [
  {
    name: "sse-origin",
    guard: "A stream sends messages and keys to no other origin",
    file: "sse_wire.ts",
    find: "|| to.origin !== new URL(url).origin",
    put: "",
    test: ATTACKS,
    filter: ORIGIN,
  },
  {
    name: "sse-name-in-address",
    guard: "The address that a stream names holds no name and no password",
    file: "sse_wire.ts",
    find: 'to.username + to.password !== "" ||',
    put: "",
    test: ATTACKS,
    filter: ORIGIN,
  },
  {
    name: "sse-address-length",
    guard: "The address that a stream names has a limit",
    file: "sse_wire.ts",
    find: "data.length > ADDRESS_BYTES",
    put: "data.length < 0",
    test: ATTACKS,
    filter: ORIGIN,
  },
  {
    name: "sse-first-address",
    guard: "A stream names its address once",
    file: "sse_wire.ts",
    find: "if (this.#isFound) return;",
    put: "",
    test: WIRE,
    filter: "An endpoint is taken as it is written, the first one alone",
  },
  {
    name: "sse-event-types",
    guard: "Only events of the usual type are messages",
    file: "sse_wire.ts",
    find: "else if (event === MESSAGE)",
    put: "else",
    test: WIRE,
    filter: "Whatever the stream says, only answers count",
  },
  {
    name: "session-codes",
    guard: "Nothing is sent again after a refusal that is not about the session",
    file: "_http_session.ts",
    find: "isOther ? NAMED : SESSION",
    put: "SESSION",
    test: SESSIONS,
    filter: "A status of 400 that names the session is one of a lost session, any other is not",
  },
  {
    name: "session-down",
    guard: "A server that answers 503 may have run the call, whatever else it says",
    file: "_http_session.ts",
    find: "![401, 403, 429, 503].includes(status)",
    put: "![401, 403, 429].includes(status)",
    test: SESSIONS,
    filter: "After a 503 the next call begins a new session, and the call is not sent again",
  },
  {
    name: "stream-place",
    guard: "A place in a stream that no header can hold is not sent back",
    file: "_http_session.ts",
    find: "return PLACE.test(id) ? id : undefined;",
    put: "return id;",
    test: SESSIONS,
    filter:
      "What was followed counts as changed after a stream was away, unless it was taken up again",
  },
  {
    name: "sse-notice",
    guard: "The answer to a notification holds up no call, however long it is",
    file: "sse_wire.ts",
    find: "if (!isRequest) endSoon();",
    put: "",
    test: WIRE,
    filter: "A notification whose answer does not end holds up no call",
  },
  {
    name: "stream-resumes",
    guard: "A stream that brings nothing is taken up a few times only",
    file: "_http_request.ts",
    find: "tries > RESUMES",
    put: "tries < 0 && RESUMES > 0",
    test: SESSIONS,
    filter: "A stream that ends again and again without a word is given up",
  },
  {
    name: "written-memory",
    guard: "The bytes of an answer stay what they are until its client has them",
    file: "_outgoing.ts",
    find: "await output.write(piece).catch(onGone);",
    put: "this.#texts.clear(); await output.write(piece).catch(onGone);",
    test: "src/serve/_outgoing_test.ts",
    filter: "Outgoing leaves what a client has not read as it is, whatever comes meanwhile",
  },
  {
    name: "given-memory",
    guard: "Memory that was given back has no reader any more",
    file: "lines.ts",
    find: "this.#memory = NOTHING;",
    put: "",
    test: "src/io/lines_test.ts",
    filter: "LineReaders that read in turn keep their lines apart",
  },
  {
    name: "batch-size",
    guard: "The results of a batch fill neither the memory nor the answer",
    file: "batch.ts",
    find: "left -= length;",
    put: "",
    test: "tests/attacks/gw_floods_test.ts",
    filter: "All results of a batch have the room of one, and each of its calls is answered (GW3)",
  },
];
