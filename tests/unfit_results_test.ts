/**
 * Results that break the schema of their own tool, for a client that checks them, too.
 *
 * @module
 */

import assert from "node:assert/strict";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { makeScenery } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { NEWEST } from "./kit/said_server.ts";
import { definitions, filesOf } from "./said_scene.ts";

const SUM = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };

for (const era of ERAS) {
  Deno.test(`A result that breaks its own schema keeps what it said, with a remark, on ${era}`, async () => {
    const results = {
      wrong: { content: [{ type: "text", text: "it is\n7" }], structuredContent: { sum: "7" } },
      none: { content: [{ type: "text", text: "plain" }], "x/kept": 1, _meta: { mine: 2 } },
      bare: { content: [], structuredContent: { sum: null } },
      fine: { content: [{ type: "text", text: "7" }], structuredContent: { sum: 7 } },
    };
    const tables = Object.fromEntries(
      Object.entries(results).flatMap(([name, result]) => {
        const tools = [{ name: "go", inputSchema: { type: "object" }, outputSchema: SUM }];
        const table = { "tools/list": { result: { tools } }, "tools/call": { result } };
        return [[name, table], [`${name}-newest`, { ...NEWEST, ...table }]];
      }),
    );
    const allow = Object.keys(tables).map((name) => `${name}:*`);
    await using ws = await makeScenery({
      files: filesOf(tables),
      pml: {
        version: 1,
        permissions: { allow },
        gateway: { tools_exposure: "full_proxy" },
        mcpServers: definitions(tables),
      },
    });
    await using connection = await connect(ws, { era });
    const { client } = connection;
    for (const suffix of ["", "-newest"]) {
      // The client has read the schemas, and checks by them.
      await client.listTools();
      const go = async (name: string) => {
        return await client.callTool({ name: `${name}${suffix}__go`, arguments: {} });
      };
      assert.deepEqual((await go("fine")).structuredContent, { sum: 7 });
      for (const [name, last] of Object.entries({ wrong: "it is\n7", none: "plain" })) {
        const told = await go(name);
        const texts = told.content as readonly { readonly text: string }[];
        assert.match(
          texts[0]?.text ?? "",
          /^\[PML: OUTPUT_INVALID: Cannot use what ".*:go" returned: .*It did run.*\]$/,
        );
        assert.deepEqual(texts.slice(1), [{ type: "text", text: last }]);
        assert.deepEqual([told.isError, told.structuredContent], [true, undefined]);
        if (name === "none") assert.deepEqual([told["x/kept"], told._meta?.mine], [1, 2]);
      }
      const bare = (await go("bare")).content as readonly { readonly text: string }[];
      assert.equal(bare[1]?.text, '{"sum":null}');
    }
    await client.close();
    const ends = ofKind(await journalOf(ws), "end");
    assert.equal(ends.filter(({ code }) => code === "OUTPUT_INVALID").length, 6);
    assert.equal(ends.length, 8);
  });
}
