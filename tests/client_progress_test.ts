/**
 * Progress that clients report on requests of servers.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { type Json, paramsFor } from "./kit/json_rpc.ts";
import { PROGRESS_TOKEN, serveMembers } from "./kit/members_server.ts";
import { denoServer } from "./kit/pml_command.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";

const REPORTS = [
  { progress: 1, total: 10 },
  { progress: 2.5, total: 10, message: "half of it", "x/later": [1] },
];
const NEXT = { "x/next": { a: [1, null] } };
const ANSWERS: Readonly<Record<string, object>> = {
  elicit: { action: "accept", content: {} },
  sample: { role: "assistant", model: "m", content: { type: "text", text: "Hi" } },
};

for (const { on, ...way } of WAYS) {
  for (const over of ["stdio", "http"] as const) {
    Deno.test(`progress of a client, ${on}, reaches the server, over ${over}, with the token of the server`, async () => {
      const http = over === "http" ? serveMembers(false) : undefined;
      const m = http === undefined
        ? denoServer("tests/kit/members_server.ts")
        : { type: "http", url: http.url };
      const permissions = { allow: ["m:*"] };
      await using ws = await makeAttackWorkspace({
        pml: { version: 1, permissions, mcpServers: { m } },
      });
      const tokens: unknown[] = [];
      const answers = Object.values(ANSWERS);
      await using pml: RawStdio = new RawStdio(ws, {
        ...way,
        capabilities: { elicitation: { form: {} }, sampling: {} },
        answer: async (_, { _meta }) => {
          const { progressToken } = _meta as Json;
          tokens.push(progressToken);
          const answer = answers[tokens.length - 1];
          if (progressToken === undefined) return answer;
          for (const report of REPORTS) {
            await pml.notify("notifications/progress", { progressToken, ...report });
            await pml.notify("notifications/progress", { progressToken: "another", ...report });
            const params = paramsFor(way.era, { progressToken, ...report }, {});
            await pml.sendJson({
              ...NEXT,
              jsonrpc: "2.0",
              method: "notifications/progress",
              params,
            });
          }
          return answer;
        },
      });
      await pml.open();
      for (const name of Object.keys(ANSWERS)) {
        const { result } = await pml.callTool(`m__${name}`);
        // In 2026-07-28, requests of servers come in results, so the client reports no progress.
        const reports = way.era === "2025-11-25" ? REPORTS : [];
        const expected = reports.flatMap((report) => {
          const own = { ...report, progressToken: PROGRESS_TOKEN };
          return [own, { ...own, next: NEXT }];
        });
        assert.deepEqual(result?.progress, expected, name);
      }
      assert.ok(!tokens.includes(PROGRESS_TOKEN), "the client gets another token");
      assert.equal(new Set(tokens).size, way.era === "2025-11-25" ? tokens.length : 1);
      await http?.[Symbol.asyncDispose]();
    });
  }
}
