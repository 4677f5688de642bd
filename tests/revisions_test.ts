/**
 * The answer to each request of MCP in each revision, over stdio and HTTP.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Message } from "./kit/json_rpc.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import {
  ALL_REVISIONS,
  answerIn,
  HELLO,
  type Revision,
  type Speaker,
  speakHttp,
  speakStdio,
} from "./kit/speaker.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const NEWEST = "2026-07-28";

async function makeFixture(): Promise<Workspace> {
  const [command, ...args] = [...denoCommand("tests/conformance/fixture.ts"), "modern"];
  const ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["fixture:*"] },
      gateway: { tools_exposure: "full_proxy", prefix: false, meta_tools: [] },
      mcpServers: {
        fixture: { type: "stdio", command, args, env: { DENO_DIR: "${DENO_DIR}" } },
      },
    },
  });
  await writeFile(join(ws.home, "config.yaml"), "limits:\n  first_list_ms: 60000\n");
  return ws;
}

type Params = Record<string, unknown>;
/** The member of a result, or the code of an error. */
type Answer = string | number;

const CALL = { name: "test_simple_text", arguments: {} };
const REF = { type: "ref/prompt", name: "test_prompt_with_arguments" };
const COMPLETE = { ref: REF, argument: { name: "arg1", value: "pa" } };
const URI = { uri: "test://static-text" };
const OWN_WORDS = { level: "info" };
const TASK = { taskId: "none" };

/** The answers in the older revisions, and in the newest. */
const TABLE: readonly (readonly [string, Params, older: Answer, newest: Answer])[] = [
  ["server/discover", {}, -32601, "supportedVersions"],
  ["ping", {}, "", -32601],
  ["tools/list", {}, "tools", "tools"],
  ["tools/call", CALL, "content", "content"],
  ["tools/call", { name: "none" }, -32602, -32602],
  ["tools/call", {}, -32602, -32602],
  ["resources/list", {}, "resources", "resources"],
  ["resources/templates/list", {}, "resourceTemplates", "resourceTemplates"],
  ["resources/read", URI, "contents", "contents"],
  ["resources/read", { uri: "test://none" }, -32602, -32602],
  ["resources/subscribe", URI, "", -32601],
  ["resources/unsubscribe", URI, "", -32601],
  ["prompts/list", {}, "prompts", "prompts"],
  ["prompts/get", { name: "test_simple_prompt" }, "messages", "messages"],
  ["prompts/get", { name: "none" }, -32602, -32602],
  ["completion/complete", COMPLETE, "completion", "completion"],
  ["logging/setLevel", OWN_WORDS, "", -32601],
  ["logging/setLevel", { level: "loud" }, -32602, -32601],
  ["tasks/list", {}, "tasks", -32601],
  ["tasks/get", TASK, -32602, -32021],
  ["tasks/result", TASK, -32602, -32601],
  ["tasks/cancel", TASK, -32602, -32021],
  ["tasks/update", { ...TASK, inputResponses: {} }, -32602, -32021],
  // Requests that only servers send.
  ["roots/list", {}, -32601, -32601],
  ["sampling/createMessage", { messages: [] }, -32601, -32601],
  ["elicitation/create", { message: "?" }, -32601, -32601],
  ["no/such", {}, -32601, -32601],
  ["__proto__", {}, -32601, -32601],
];

/** Members that only results of the newest revision have. */
const NEW_MEMBERS = ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"];

function saidBy({ result, error }: Message): Answer {
  if (error !== undefined) return error.code;
  return Object.keys(result ?? {}).filter((key) => !["_meta", ...NEW_MEMBERS].includes(key))[0] ??
    "";
}

async function assertTable(speaker: Speaker, revision: Revision): Promise<void> {
  const isNewest = revision === NEWEST;
  for (const [method, params, older, newest] of TABLE) {
    const answer = await speaker.request(method, params);
    const expected = isNewest ? newest : older;
    const what = `${method} ${JSON.stringify(params)} -> ${JSON.stringify(answer).slice(0, 300)}`;
    const said = saidBy(answer);
    if (typeof expected === "string" && expected !== "") {
      assert.ok(expected in (answer.result ?? {}), what);
    } else assert.equal(said, expected, what);
    if (isNewest) continue;
    const members = Object.keys(answer.result ?? {});
    assert.deepEqual(members.filter((one) => NEW_MEMBERS.includes(one)), [], what);
  }
}

async function assertContent(speaker: Speaker, revision: Revision): Promise<void> {
  const { result } = await speaker.request("tools/call", { name: "test_audio_content" });
  const [block] = result?.content as unknown as readonly { readonly type: string }[];
  assert.equal(block?.type, revision === "2024-11-05" ? "resource" : "audio");
}

for (const revision of ALL_REVISIONS) {
  Deno.test(`each request of ${revision} is answered, over stdio and HTTP`, async (t) => {
    await using ws = await makeFixture();
    await using served = await servePml(ws);
    const ways = {
      stdio: () => speakStdio(ws, revision),
      http: () => speakHttp(served, revision),
    };
    for (const [way, speak] of Object.entries(ways)) {
      await t.step(way, async () => {
        await using speaker = await speak();
        if (revision !== NEWEST) {
          assert.equal(speaker.opened?.result?.protocolVersion as unknown, revision);
          const { capabilities = {} } = speaker.opened?.result ?? {};
          const extensions = Object.keys(capabilities.extensions ?? {});
          assert.deepEqual(
            extensions,
            ["io.modelcontextprotocol/skills"],
            "that for tasks is newer",
          );
        }
        await assertTable(speaker, revision);
        await assertContent(speaker, revision);
      });
    }
  });
}

Deno.test("an unknown revision gets the newest of the same kind, or the list of revisions", async () => {
  await using ws = await makeFixture();
  await using served = await servePml(ws);
  const body = JSON.stringify({
    ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
    params: { protocolVersion: "1999-01-01", ...HELLO },
  });
  const { result } = await answerIn(await served.fetch({ method: "POST", body }), 1);
  assert.equal(result?.protocolVersion as unknown, "2025-11-25");
  const unknown = JSON.stringify({
    ...{ jsonrpc: "2.0", id: 2, method: "tools/list" },
    params: {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientInfo": HELLO.clientInfo,
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  });
  const headers = { "mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list" };
  const response = await served.fetch({ method: "POST", body: unknown, headers });
  assert.equal(response.status, 400);
  const { error } = await answerIn(response, 2);
  assert.equal(error?.code, -32022);
  assert.deepEqual((error?.data as Params).supported, [NEWEST]);
});
