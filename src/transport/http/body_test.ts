import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { readBody } from "./body.ts";

const JSON_TYPE = { "content-type": "application/json" };

/** Creates a request whose body arrives in two parts, the second one later. */
function requestOf(first: string, rest: Promise<string>): IncomingMessage {
  const parts = (async function* () {
    yield new TextEncoder().encode(first);
    yield new TextEncoder().encode(await rest);
  })();
  return Object.assign(parts, {
    headers: JSON_TYPE,
    complete: false,
  }) as unknown as IncomingMessage;
}

Deno.test("incomplete bodies of an endpoint use at most the bytes of sixteen largest bodies", async () => {
  const coming = { bodies: 0, bytes: 0 };
  const rest = Promise.withResolvers<string>();
  const half = `"${"x".repeat(899)}`;
  const bodies = Array.from(
    { length: 20 },
    () => readBody(requestOf(half, rest.promise), { inputBytes: 1_000, incomplete: coming }),
  );
  const [refused] = (await Promise.race(bodies)).refused ?? [];
  assert.equal(refused, 503);
  assert.ok(coming.bytes <= 16_000);
  rest.resolve('"');
  const statuses = (await Promise.all(bodies)).map(({ refused }) => refused?.[0]);
  assert.deepEqual(statuses, [...Array(17).fill(undefined), 503, 503, 503]);
  assert.deepEqual(coming, { bodies: 0, bytes: 0 });
});

Deno.test("incomplete bodies of an endpoint use a quarter of the connections, and complete ones pass", async () => {
  const coming = { bodies: 0, bytes: 0 };
  const rest = Promise.withResolvers<string>();
  const limits = { inputBytes: 1_000, connections: 10, incomplete: coming };
  const bodies = Array.from({ length: 4 }, () => readBody(requestOf("{", rest.promise), limits));
  assert.equal((await Promise.race(bodies)).refused?.[0], 503);
  assert.equal(coming.bodies, 3);
  // A body that is complete in the next turn does not count as incomplete.
  const request = requestOf("{", Promise.resolve("}"));
  const read = readBody(request, limits);
  Object.assign(request, { complete: true });
  assert.deepEqual((await read).json, {});
  rest.resolve("}");
  await Promise.all(bodies);
});
