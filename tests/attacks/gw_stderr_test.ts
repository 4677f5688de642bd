/**
 * A client that never reads stderr: calls continue, and PML ends as usual.
 *
 * @module
 */

import assert from "node:assert/strict";
import { until } from "../kit/wait.ts";
import { flood, floodScene } from "./floods.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";

const LINE = /^\d\d:\d\d:\d\d\.\d{3} (debug|info|warn|error) +/;
const LEVEL = { PML_LOG_LEVEL: "debug" };

Deno.test("calls continue while the client does not read stderr (GW4)", async () => {
  const never = Promise.withResolvers<void>();
  const hears = () => never.promise;
  await using scene = await floodScene(["a"], { era: "2025-11-25", hears, env: LEVEL });
  const { ws, pml } = scene;
  // Each line of the server is one line of the log; a pipe has space for some 250 of them.
  for (let round = 0; round < 3; round++) {
    assert.equal(textOf(await flood(pml, "a:log", 1_000)), "done");
    await assertServes(pml);
  }
  await endWell(ws, pml);
  // The client finally reads complete lines, and the number of missing ones.
  assert.match(pml.stderr, /info {2}Serving on stdio/);
});

Deno.test("a client that reads stderr late gets the number of missing lines, and all later ones (GW4)", async () => {
  const late = Promise.withResolvers<void>();
  let hears: Promise<void> | undefined = late.promise;
  await using scene = await floodScene(["a"], { hears: () => hears, env: LEVEL });
  const { ws, pml } = scene;
  // A single write of a server is cut to one line of the log, so the test requests the text in
  // parts.
  for (let round = 0; round < 1_000; round++) await flood(pml, "a:log", 10);
  hears = undefined;
  late.resolve();
  await until(async () => {
    await flood(pml, "a:log", 10);
    return /^\d+ lines were dropped here/m.test(pml.stderr);
  });
  const lines = pml.stderr.trimEnd().split("\n").filter((line) => !/^\d+ lines were/.test(line));
  for (const line of lines) assert.match(line, LINE);
  await endWell(ws, pml);
});

Deno.test("a client that reads stderr gets every line, including the last ones (GW4)", async () => {
  await using scene = await floodScene(["a"], { env: LEVEL });
  const { ws, pml } = scene;
  for (let round = 0; round < 3; round++) await flood(pml, "a:log", 1_000);
  await endWell(ws, pml);
  for (const line of pml.stderr.trimEnd().split("\n")) assert.match(line, LINE);
  assert.match(pml.stderr, /debug Served [^\n]+\n$/);
});
