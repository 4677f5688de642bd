/**
 * What is served on stdio without the SDK.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const TEST = "src/serve/_direct_test.ts";
const SAME = "What is served without the SDK is answered as the SDK answers it";

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
    file: "_direct.ts",
    find: "if (!signal.aborted) this.#ends.answer(id, said);",
    put: "if (signal !== undefined) this.#ends.answer(id, said);",
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
