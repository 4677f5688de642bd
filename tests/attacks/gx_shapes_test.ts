/**
 * Requests of odd shapes: each is answered, and its id can be used again.
 *
 * @module
 */

import assert from "node:assert/strict";
import { ERAS } from "../kit/json_rpc.ts";
import { RawStdio, WAYS } from "../kit/raw_stdio.ts";
import { makeAttackWorkspace, makeScene } from "./stage.ts";

const METHODS = ["ping", "tools/list", "tools/call", "server/discover", "nope/x", "initialize"];
const META = ["null", '"text"', "5", "true", "[]", "[{}]"];
/** Members of requests, by their defect. */
const SHAPES: readonly string[] = [
  ...METHODS.flatMap((method) =>
    META.map((meta) => `"method":"${method}","params":{"_meta":${meta}}`)
  ),
  ...METHODS.flatMap((method) =>
    ["null", "[]", "5", '"text"'].map((params) => `"method":"${method}","params":${params}`)
  ),
  `"method":"nope/x","odd":1`,
  `"method":"nope/x","result":{}`,
  `"method":"nope/x","params":{"_meta":{"io.modelcontextprotocol/related-task":5}}`,
  `"method":null`,
  `"method":5`,
  `"method":"ping","jsonrpc":"1.0"`,
];

/** Sends each request twice with the same id: the second one is not refused because of the first. */
async function assertAnswered(pml: RawStdio, shapes: readonly string[]): Promise<void> {
  for (const [at, members] of shapes.entries()) {
    for (let time = 0; time < 2; time++) {
      const id = `odd-${at}`;
      const answer = pml.expect(id, { what: members });
      await pml.sendText(`{"jsonrpc":"2.0","id":"${id}",${members}}\n`);
      const { error } = await answer;
      assert.ok(error !== undefined, members);
      assert.doesNotMatch(error.message, /in use/, members);
    }
  }
}

for (const { on, ...way } of WAYS) {
  Deno.test(`a request whose _meta or params is not an object is answered, on ${on} (GX20)`, async () => {
    await using scene = await makeScene(way);
    await assertAnswered(scene.pml, SHAPES);
    assert.ok("result" in await scene.pml.callTool("search", { query: "files" }));
  });
}

for (const era of ERAS) {
  Deno.test(`a first request of an odd shape is answered, and the next one is served, on ${era} (GX20)`, async () => {
    for (const members of [`"method":"initialize","params":{"_meta":null}`, SHAPES.at(-3) ?? ""]) {
      await using ws = await makeAttackWorkspace();
      await using pml = new RawStdio(ws, { era });
      await assertAnswered(pml, [members]);
      assert.ok("result" in await pml.open());
    }
  });
}
