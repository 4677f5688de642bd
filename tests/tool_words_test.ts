/**
 * What `schema` and `search` say of tools beside their schemas: errors, and whether a tool reads,
 * writes or destroys, and who says so.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { runPml } from "./kit/run.ts";
import type { Table } from "./kit/said_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { definitions, filesOf } from "./said_scene.ts";

const ERRORS = {
  NO_SUCH_CITY: "Nobody knows the city",
  TOO_FAR: { type: "object", properties: { days: { type: "integer" } } },
};
const inputSchema = { type: "object" };

for (const era of ERAS) {
  Deno.test(`schema gives the errors of a tool, of a module and of a server, on ${era}`, async () => {
    const table: Table = {
      "tools/list": { result: { tools: [{ name: "tell", inputSchema, errors: ERRORS }] } },
    };
    const meta = { name: "oracle", tools: { tell: { errors: ERRORS }, plain: {} } };
    await using scene = await makeScene({
      era,
      files: {
        ...filesOf({ said: table }),
        "oracle.js": `export const __meta__ = ${JSON.stringify(meta)};
          export function tell() {}
          export function plain() {}`,
      },
      pml: {
        mcpServers: definitions({ said: table }),
        private_mcps: { oracle: { type: "deno", path: "oracle.js" } },
      },
    });
    const tools = ["oracle:tell", "said:tell", "oracle:plain"];
    const shown = JSON.parse(textOf(await scene.pml.callTool("schema", { tools })));
    const errors = shown.map((one: { readonly errors?: unknown }) => one.errors);
    assert.deepEqual(errors, [ERRORS, ERRORS, undefined]);
    assert.equal((await scene.pml.close()).code, 0);
  });
}

Deno.test("Errors that are none are told with file, key, found and wanted, and pml check knows the key", async () => {
  const module = (errors: unknown) =>
    `export const __meta__ = ${
      JSON.stringify({ name: "m", description: "M", tools: { a: { description: "A", errors } } })
    };\nexport function a() {}`;
  await using ws = await makeWorkspace({
    files: { "m.js": module({ NO: 7 }), "good.js": module(ERRORS) },
    pml: { private_mcps: { m: { type: "deno", path: "m.js" } } },
  });
  const refused = await runPml(ws, ["call", "m:a"]);
  assert.match(refused.stderr, /m\.js.*__meta__\.tools\.a\.errors is .*NO.*7.*wanted an object of/);
  const checked = await runPml(ws, ["check", "good.js"]);
  assert.match(checked.stdout, /0 failed, 0 to look at/, checked.stdout);
});
