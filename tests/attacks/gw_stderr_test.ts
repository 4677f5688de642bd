/**
 * A client that never reads stderr: calls go on, and it ends as always.
 *
 * @module
 */

import assert from "node:assert/strict";
import { until } from "../kit/wait.ts";
import { flood, floodScene } from "./floods.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";

const LINE = /^\d\d:\d\d:\d\d\.\d{3} (debug|info|warn|error) +/;
const LEVEL = { PML_LOG_LEVEL: "debug" };

Deno.test("Calls go on while the client does not read stderr (GW4)", async () => {
  const never = Promise.withResolvers<void>();
  const hears = () => never.promise;
  await using scene = await floodScene(["a"], { era: "2025-11-25", hears, env: LEVEL });
  const { ws, pml } = scene;
  // Each line of the server is one of the log; a pipe holds some 250 of them.
  for (let round = 0; round < 3; round++) {
    assert.equal(textOf(await flood(pml, "a:log", 1_000)), "done");
    await assertServes(pml);
  }
  await endWell(ws, pml);
  // What was read of it at last is whole lines, and tells how many are missing.
  assert.match(pml.stderr, /info {2}Serving on stdio/);
});

Deno.test("Who reads stderr late is told of the gap, and hears of what comes then (GW4)", async () => {
  const late = Promise.withResolvers<void>();
  let hears: Promise<void> | undefined = late.promise;
  await using scene = await floodScene(["a"], { hears: () => hears, env: LEVEL });
  const { ws, pml } = scene;
  // What a server writes at once is cut to one line of the log, so it is asked for piece by piece.
  for (let round = 0; round < 1_000; round++) await flood(pml, "a:log", 10);
  hears = undefined;
  late.resolve();
  await until(async () => {
    await flood(pml, "a:log", 10);
    return /^\d+ lines were dropped here: nobody read them$/m.test(pml.stderr);
  });
  const lines = pml.stderr.trimEnd().split("\n").filter((line) => !/^\d+ lines were/.test(line));
  for (const line of lines) assert.match(line, LINE);
  await endWell(ws, pml);
});

Deno.test("Who reads stderr loses no line of it, not even of the last ones (GW4)", async () => {
  await using scene = await floodScene(["a"], { env: LEVEL });
  const { ws, pml } = scene;
  for (let round = 0; round < 3; round++) await flood(pml, "a:log", 1_000);
  await endWell(ws, pml);
  for (const line of pml.stderr.trimEnd().split("\n")) assert.match(line, LINE);
  assert.match(pml.stderr, /debug Served [^\n]+\n$/);
});
