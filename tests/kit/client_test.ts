import assert from "node:assert/strict";
import { connect } from "./client.ts";
import { ERAS } from "./json_rpc.ts";
import { denoCommand } from "./pml_command.ts";
import { makeWorkspace } from "./workspace.ts";

const ECHO = denoCommand("tests/kit/echo_server.ts");

for (const era of ERAS) {
  Deno.test(`connect() uses ${era} and answers questions`, async () => {
    await using ws = await makeWorkspace();
    const requests: string[] = [];
    await using connection = await connect(ws, {
      era,
      command: ECHO,
      elicit: ({ message }) => {
        requests.push(message);
        return { action: "accept", content: { answer: "No" } };
      },
    });
    const { client, raw } = connection;
    assert.equal((await client.listTools()).tools[0]?.name, "echo");
    const called = await client.callTool({ name: "ask", arguments: {} });
    assert.match(JSON.stringify(called.content), /No/);
    assert.deepEqual(requests, ["Sure?"]);
    raw.assertAnswered();
  });
}

Deno.test("connect() reports stderr when the server cannot start", async () => {
  await using ws = await makeWorkspace();
  const command = ["sh", "-c", "read a; echo no way >&2; exit 1"] as const;
  await assert.rejects(connect(ws, { command }), /stderr: no way/);
});
