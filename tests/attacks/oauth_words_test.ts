/**
 * Services that choose their tokens to exploit that PML removes secrets from texts.
 *
 * @module
 */

import assert from "node:assert/strict";
import { RawStdio } from "../kit/raw_stdio.ts";
import { call, toldCode } from "./evil_servers.ts";
import { assertPaired, journalOf, ofKind, textOf } from "./oracles.ts";
import { Signing } from "./signing_in.ts";

Deno.test("a token that is a word of the journal hides nothing there (SX5, AU1)", async () => {
  for (const word of ["filesystem:read_file", "outcome", "callId", "list_allowed_directories"]) {
    await using scene = await Signing.make();
    const { server, ws } = scene;
    server.options.after = async ({ path }, answer) =>
      path === "/token" ? Response.json({ ...await answer.json(), refresh_token: word }) : answer;
    await scene.signIn();
    await using pml = new RawStdio(ws);
    await pml.open();
    assert.equal(toldCode(await call(pml, "far:meta")), undefined);
    const tools = ["filesystem:read_file", "filesystem:list_allowed_directories"];
    await call(pml, tools[0] ?? "", { path: "good.txt" });
    await call(pml, tools[1] ?? "");
    await pml.close();
    const starts = ofKind(await journalOf(ws), "start").map(({ tool }) => tool);
    assert.deepEqual(starts.slice(-2), tools, word);
    assertPaired(await journalOf(ws));
  }
});

Deno.test("a token of one repeated character delays nothing (RX8)", async () => {
  await using scene = await Signing.make();
  const { mcp, server, ws } = scene;
  server.options.after = async ({ path }, answer) =>
    path === "/token"
      ? Response.json({ ...await answer.json(), refresh_token: `${".".repeat(8_190)}A1` })
      : answer;
  await scene.signIn();
  await using pml = new RawStdio(ws);
  await pml.open();
  assert.equal(toldCode(await call(pml, "far:meta")), undefined);
  await call(pml, "filesystem:read_file", { path: "good.txt" });
  const asked = Promise.withResolvers<void>();
  // It nearly contains the token, many times.
  const message = `${".".repeat(900)}x`.repeat(500);
  mcp.options.script = async (request) => {
    const { id } = await request.clone().json().catch(() => ({}));
    asked.resolve();
    return Response.json({ jsonrpc: "2.0", id, error: { code: -32_000, message } });
  };
  const refused = call(pml, "far:meta");
  await asked.promise;
  for (let begun = performance.now(), count = 0; count < 20; count++, begun = performance.now()) {
    await call(pml, "filesystem:read_file", { path: "good.txt" });
    const ms = performance.now() - begun;
    assert.ok(ms < 10_000, `another call took ${ms} ms`);
  }
  assert.match(textOf(await refused), /answered with the error/);
  await pml.close();
});
