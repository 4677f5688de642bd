/**
 * Guards between the clients of the door over HTTP, and against those that send or read nothing.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const HANDLES = "tests/attacks/ht_handles_test.ts";
const LOAD = "tests/attacks/ht_load_test.ts";
const STARTS = "tests/attacks/ht_starts_test.ts";
const DOOR = "tests/attacks/ht_test.ts";
const DIRECT = "tests/attacks/ht_direct_test.ts";
const IN_TURN =
  "HT13: requests that do not wait for answers are answered in turn, and end with their connection";
const TASKS = "A task is told, shown and cancelled to the party that began it alone (HT17)";

/** The guards. */
export const DOOR_CLIENTS: readonly Mutant[] = [
  {
    name: "door-session",
    guard: "A session is found by its own id alone",
    file: "_http_sessions.ts",
    find: "const session = this.#all.get(id);",
    put: "const session = this.#all.get(id) ?? [...this.#all.values()][0];",
    test: HANDLES,
    filter: "Nobody speaks in, reads, or ends the session of another (HT17)",
    isTwice: true,
  },
  {
    name: "door-party",
    guard: "Each session is a party of its own",
    file: "_http_sessions.ts",
    find: "connect(server, false, server)",
    put: "connect(server, false)",
    test: HANDLES,
    filter: TASKS,
  },
  {
    name: "door-own-tasks",
    guard: "A stream listens for the tasks of its own party alone",
    file: "_tasks.ts",
    find: "return this.#all.get(own)?.client?.isModern === true;",
    put: "return this.#all.has(own);",
    test: HANDLES,
    filter: TASKS,
  },
  {
    name: "door-listens",
    guard: "A stream that listens for tasks alone stays open",
    file: "http_face.ts",
    find: "parsedBody: withNothing(body)",
    put: "parsedBody: withNothing(body) && body",
    test: HANDLES,
    filter: TASKS,
  },
  {
    name: "door-events",
    guard: "What a session was sent is kept for it alone",
    file: "_http_sessions.ts",
    find: "const sent = new SentEvents(this.#kept);",
    put: "const sent = (this.#kept as { one?: SentEvents }).one ??= new SentEvents(this.#kept);",
    test: HANDLES,
    filter: "The events of a session come to it alone, whoever names them (HT17)",
  },
  {
    name: "door-run",
    guard: "What waits in the middle of a call goes on for its own party alone",
    file: "_runs.ts",
    find: "run === undefined || run.party !== party",
    put: "run === undefined || run.party === undefined",
    test: HANDLES,
    filter: "The handle of a question does nothing for another party, and its own can still use it",
    isTwice: true,
  },
  {
    name: "door-connections",
    guard: "No more connections are taken than the limit says",
    file: "listener.ts",
    find: "server.maxConnections = connections;",
    put: "",
    test: LOAD,
    filter: "Of more connections than limits.connections the last are closed",
  },
  {
    name: "door-turns",
    guard: "The requests of a connection are answered in turn",
    file: "listener.ts",
    find: "if (waiting === undefined) {",
    put: "if (waiting === undefined || waiting.length === 0) {",
    test: DIRECT,
    filter: IN_TURN,
  },
  {
    name: "door-turns-end",
    guard: "What waits for the answers before its own ends with its connection",
    file: "listener.ts",
    find: "else if (!socket.destroyed) next();",
    put: "else next();",
    test: DIRECT,
    filter: IN_TURN,
    isTwice: true,
  },
  {
    name: "door-turns-most",
    guard: "Few requests wait for the answers before theirs",
    file: "listener.ts",
    find: "else if (waiting.push(begin) > WAITING) socket.destroy();",
    put: "else waiting.push(begin);",
    test: DIRECT,
    filter: IN_TURN,
  },
  {
    name: "door-slow",
    guard: "A request that does not come to its end is given up",
    file: "listener.ts",
    find: "requestTimeout: 20 * SECOND,",
    put: "requestTimeout: 0,",
    test: LOAD,
    filter: "HT11: connections that send nothing, half a head or half a body are closed",
  },
  {
    name: "door-unread",
    guard: "A client that reads nothing loses its connection",
    file: "_http_answer.ts",
    find: "if (now === before) to.destroy();",
    put: "",
    test: LOAD,
    filter: "HT15: who does not read an answer loses the connection after a time",
  },
  {
    name: "door-waits",
    guard: "Of clients that read too little the slowest lose their connections",
    file: "_http_answer.ts",
    find: "slowest?.[0].destroy();",
    put: "slowest?.[0].writableLength;",
    test: LOAD,
    filter: "HT15: who does not read an answer loses the connection when too much waits",
  },
  {
    name: "door-gone",
    guard: "A client that goes away takes its call back",
    file: "http.ts",
    find: "response.writableFinished || gone.abort()",
    put: "response.writableFinished",
    test: DOOR,
    filter: "HT12: a client that goes away cancels its call",
  },
  {
    name: "door-type",
    guard: "A body of another type is not read",
    file: "_http_body.ts",
    find: "!JSON_TYPE.test(type.trim())",
    put: '!JSON_TYPE.test("application/json")',
    test: DOOR,
    filter: "HT7, HT8: bodies that are too large, or no message, are refused early",
  },
  {
    name: "door-coding",
    guard: "A compressed body is not read",
    file: "_http_body.ts",
    find: 'encoding !== undefined && encoding !== "identity"',
    put: "encoding !== encoding",
    test: DOOR,
    filter: "HT7, HT8: bodies that are too large, or no message, are refused early",
  },
  {
    name: "door-ready",
    guard: "Who has no token is told nothing of the configuration",
    file: "http.ts",
    find: 'Response.json({ status: "not ready" }, { status: 503 })',
    put: "Response.json({ status: problem }, { status: 503 })",
    test: "tests/serve_test.ts",
    filter: "Requests that are not for PML, or not from its clients, are refused",
  },
  {
    name: "door-remote",
    guard: "Another address is not listened at without TLS or a proxy",
    file: "_serve.ts",
    find: "!isLocal && tls === undefined && !behindProxy",
    put: "!isLocal && tls === undefined && behindProxy",
    test: STARTS,
    filter: "HT5: another address needs TLS or a proxy, its names, and the token as ever",
  },
];
