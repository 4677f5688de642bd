/**
 * What is served on stdio without the SDK.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const TEST = "src/serve/_direct_test.ts";
const SAME = "What is served without the SDK is answered as the SDK answers it";

const HTTP = "src/serve/_http_direct_test.ts";
const SAME_HTTP = "What is served over HTTP without the SDK is answered as the SDK answers it";

/** Requests that the SDK does not see. */
export const DIRECT: readonly Mutant[] = [
  {
    name: "direct-era",
    guard: "A connection that is bound to a revision serves no request of another one",
    file: "_direct.ts",
    find: "era !== (this.#bound?.era ?? era)",
    put: "this.#bound === undefined && era !== (this.#bound ?? era)",
    test: TEST,
    filter: SAME,
  },
  {
    name: "direct-envelope",
    guard: "A request whose envelope is not plainly valid goes to the SDK, which refuses it",
    file: "_envelope.ts",
    find: 'return isPlain(meta) ? "modern" : undefined;',
    put: 'return isPlain(meta) || true ? "modern" : undefined;',
    test: TEST,
    filter: SAME,
  },
  {
    name: "direct-told",
    guard: "The SDK is told what a connection is bound to before it serves one of its requests",
    file: "_direct.ts",
    find: "for (const one of by) sdk.onmessage",
    put: "for (const one of by.slice(9)) sdk.onmessage",
    test: TEST,
    filter: SAME,
  },
  {
    name: "direct-cancelled",
    guard: "A request that its client cancelled gets no answer",
    file: "_usual_requests.ts",
    find: "if (!signal.aborted) answer(id, said);",
    put: "if (signal !== undefined) answer(id, said);",
    test: TEST,
    filter: "A cancelled request is given up, and gets no answer",
  },
  {
    name: "direct-plain",
    guard: "A result of a tool that is not plainly text is looked at by the SDK",
    file: "schemas.ts",
    find: 'return type === "text" && typeof text === "string" && isObject(_meta);',
    put: 'return type === "text" || typeof text === "string" && isObject(_meta);',
    test: "src/gateway/schemas_test.ts",
    filter: "A result that is taken without the SDK is one that the SDK takes, too",
  },
  {
    name: "direct-http-version",
    guard:
      "A request over HTTP whose header names another revision goes to the SDK, which refuses it",
    file: "_http_direct.ts",
    find: 'headers["mcp-protocol-version"] === revisionOf(params) &&',
    put: "",
    test: HTTP,
    filter: SAME_HTTP,
  },
  {
    name: "direct-http-method",
    guard:
      "A request over HTTP whose header names another method goes to the SDK, which refuses it",
    file: "_http_direct.ts",
    find: '&& headers["mcp-method"] === method &&',
    put: "&&",
    test: HTTP,
    filter: SAME_HTTP,
  },
  {
    name: "direct-http-name",
    guard: "A request over HTTP whose header names another tool goes to the SDK, which refuses it",
    file: "_http_direct.ts",
    find: 'return said === (method === "resources/read" ? uri : name);',
    put: 'return said !== (method === "resources/read" ? uri : name) || true;',
    test: HTTP,
    filter: SAME_HTTP,
  },
  {
    name: "direct-http-encoded",
    guard: "A request over HTTP whose header is encoded goes to the SDK, which decodes it",
    file: "_http_direct.ts",
    find: 'if (String(said).startsWith("=?")) return false;',
    put: "",
    test: HTTP,
    filter: SAME_HTTP,
  },
  {
    name: "direct-http-members",
    guard: "A request over HTTP that is an answer, too, goes to the SDK, which refuses it",
    file: "_http_direct.ts",
    find: "Object.keys(message).every((key) => MEMBERS.includes(key)) &&",
    put: "",
    test: HTTP,
    filter: SAME_HTTP,
  },
  {
    name: "direct-http-unread",
    guard: "Nothing is written to a stream that nobody reads any more",
    file: "_http_direct.ts",
    find: "cancel: () => this.#over(),",
    put: "",
    test: HTTP,
    filter:
      "A request whose events nobody reads any more tells nothing, and ends with its connection",
  },
  {
    name: "direct-http-broken",
    guard: "A call whose events nobody reads is cancelled",
    file: "_http_answer.ts",
    find: "return wasSent(answer);",
    put: "wasSent(answer);",
    test: "tests/attacks/ht_direct_test.ts",
    filter:
      "HT15: who does not read the events of a call loses it, and its server goes on for others",
  },
  {
    name: "direct-http-waits",
    guard: "An answer that nobody reads is counted, and its connection closed",
    file: "_http_answer.ts",
    find: "isLarge ? UTF_8.encode(text) : text",
    put: "text",
    test: "tests/attacks/ht_load_test.ts",
    filter: "HT15: who does not read an answer loses the connection when too much waits",
  },
  {
    name: "direct-http-revoked",
    guard: "A token that counts no more when the body of its request is there has nothing answered",
    file: "http.ts",
    find: 'if (face.isOver) return this.#refuse(401, "its token counts no more");',
    put: "",
    test: "tests/attacks/ht_direct_test.ts",
    filter: "A token that is revoked while the body of its request comes lets nothing be answered",
  },
  {
    name: "direct-http-left",
    guard: "The journal tells of no refusal where a client left",
    file: "http.ts",
    find: "&& !signal.aborted",
    put: "",
    test: "tests/attacks/ht_direct_test.ts",
    filter: "HT12: clients that leave at any moment leave no call behind, and were refused nothing",
  },
  {
    name: "direct-http-gone",
    guard: "A request over HTTP whose client has gone is cancelled",
    file: "_http_direct.ts",
    find: 'signal.addEventListener("abort", gone, { once: true });',
    put: "",
    test: "tests/serve_direct_test.ts",
    filter: "A client over HTTP that leaves cancels its call",
  },
  {
    name: "direct-http-elsewhere",
    guard: "What another process has begun is passed on to it",
    file: "_http_direct.ts",
    find: "ELSEWHERE.every((key) => !(key in params)) &&",
    put: "",
    test: "tests/replicas_forward_test.ts",
    filter: "A question of a server is answered through another process, and its call runs once",
  },
  {
    name: "direct-http-marked",
    guard: "A call over HTTP runs at once only if its headers say what its arguments say",
    file: "quick_calls.ts",
    find: "if (!agrees(request, ready)) return undefined;",
    put: "",
    test: "tests/revisions_http_test.ts",
    filter: "Headers that repeat arguments must say the same, or the tool does not run",
  },
  {
    name: "page-same",
    guard: "A page of a list is given again only as long as nothing in it is another",
    file: "_pages.ts",
    find: "items.every((item, at) => item === known.items[at]);",
    put: "items.every((item) => item !== undefined);",
    test: "src/gateway/_pages_test.ts",
    filter: "Pages gives the same page as long as nothing in it is another",
  },
  {
    name: "ending-opens",
    guard: "What would begin while PML ends does not keep it alive",
    file: "app.ts",
    find: 'if (this.closing.aborted) return Promise.reject(ending("begin"));\n    this.#path',
    put: "this.#path",
    test: "tests/first_steps_test.ts",
    filter:
      "A client that says it has roots and never tells them delays its calls for two seconds, not more",
  },
];
