/**
 * Tests the trace context in `_meta`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { traceContextIn } from "./trace.ts";

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

function stateOf(tracestate: string): string | undefined {
  const context = traceContextIn({ traceparent, tracestate });
  assert.ok(context !== undefined, "the rest of the context stays valid");
  return context.state;
}

Deno.test("a tracestate by the grammar of W3C is kept, without blanks between its members", () => {
  assert.equal(stateOf('a=1,b@c="2"'), 'a=1,b@c="2"');
  assert.equal(
    stateOf("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE,"),
    [
      "rojo=00f067aa0ba902b7",
      "congo=t61rcWkgMzE",
    ].join(),
  );
  assert.equal(stateOf("0vendor@system=a b"), "0vendor@system=a b");
});

Deno.test("a tracestate that the grammar of W3C does not allow is left out", () => {
  const long = Array.from({ length: 33 }, (_, at) => `k${at}=1`).join();
  const values = [
    "",
    ",",
    "text",
    "A=1",
    "a=",
    "a=1=2",
    "a=é",
    "a=1\n",
    "a\r\nb=1",
    "=1",
    "a=\x7f",
  ];
  for (const state of [...values, long, `a=${"x".repeat(257)}`, "a=1,b"]) {
    assert.equal(stateOf(state), undefined, JSON.stringify(state));
  }
});
