/**
 * Resources, prompts and completion of a server under the rules: the questions about them (once for
 * a server, and each time for an unlisted address), and the requests that reach the server.
 *
 * @module
 */

import assert from "node:assert/strict";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import type { Era } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import type { Table } from "../kit/said_server.ts";
import { until } from "../kit/wait.ts";
import { definitions, filesOf } from "../said_scene.ts";
import { codeOf, endWell, journalOf, textOf } from "./oracles.ts";
import { outcomeOfRequest, picked, read } from "./questions.ts";
import { makeScene, type Scene } from "./stage.ts";

const OBJECT = { type: "object" };
const ui = { resourceUri: "ui://page" };
/** Each answer to `resources/read` is the number of the reads that reached the server. */
const READS = Array.from({ length: 20 }, (_, at) => ({
  result: { contents: [{ uri: "s://read", text: `${at + 1}` }] },
}));
const TABLE: Table = {
  "tools/list": {
    result: {
      tools: [{ name: "show", inputSchema: OBJECT, _meta: { ui } }, {
        name: "link",
        inputSchema: OBJECT,
        // No page: only `ui://` addresses are shown with results.
        _meta: { ui: { resourceUri: "s://named" } },
      }],
    },
  },
  "tools/call": {
    result: { content: [{ type: "resource_link", uri: "s://linked", name: "linked" }] },
  },
  "resources/list": {
    result: { resources: [{ uri: "s://a", name: "a" }, { uri: "s://b", name: "b" }] },
  },
  "resources/templates/list": {
    result: { resourceTemplates: [{ uriTemplate: "s://item/{id}", name: "item" }] },
  },
  "resources/read": READS,
  "prompts/list": { result: { prompts: [{ name: "greet" }] } },
  "prompts/get": { result: { messages: [] } },
  "completion/complete": { result: { completion: { values: ["secret"], hasMore: false } } },
};
const TABLES = { s: TABLE };
const MADE_UP = "pml://s/s://made-up?token=1";

type Rules = Readonly<Record<string, readonly string[]>>;

async function sceneOf(era: Era, rules: Rules, trusted = true): Promise<Scene> {
  return await makeScene({
    era,
    files: filesOf(TABLES),
    pml: { version: 1, permissions: rules, mcpServers: definitions(TABLES) },
    trusted,
    capabilities: { elicitation: { form: {} } },
  });
}

const reading = (pml: RawStdio, uri: string) => outcomeOfRequest(pml, "resources/read", { uri });

/** Reads an address that PML asks about, and returns the question. */
async function asked(pml: RawStdio, uri: string) {
  const outcome = await reading(pml, uri);
  assert.equal(outcome.kind, "asked", JSON.stringify(outcome));
  return (outcome as Extract<typeof outcome, { kind: "asked" }>).asked;
}

/** Reads an address without a question; returns its text, or the error. */
async function readNow(pml: RawStdio, uri: string): Promise<string> {
  const outcome = await reading(pml, uri);
  assert.equal(outcome.kind, "answered", JSON.stringify(outcome));
  return textIn((outcome as Extract<typeof outcome, { kind: "answered" }>).message);
}

function textIn({ result, error }: Message): string {
  const [first] = (result?.contents ?? []) as unknown as readonly [{ readonly text: string }];
  return error?.message ?? first.text;
}

async function completed(pml: RawStdio): Promise<readonly unknown[]> {
  const refs = [{ type: "ref/prompt", name: "s__greet" }, {
    type: "ref/resource",
    uri: "pml://s/s://item/{id}",
  }];
  const argument = { name: "id", value: "typed" };
  const all = refs.map((ref) => outcomeOfRequest(pml, "completion/complete", { ref, argument }));
  return (await Promise.all(all)).map((outcome) =>
    outcome.kind === "answered" ? outcome.message.result?.completion?.values : outcome
  );
}

Deno.test("ask * asks before a resource or a prompt is read (GX16)", async () => {
  await using scene = await sceneOf("2026-07-28", { allow: ["filesystem:*"], ask: ["*"] });
  const { ws, pml } = scene;
  // Lists never ask, and PML's own resources do not.
  await until(async () =>
    JSON.stringify(await pml.request("resources/list", {})).includes("pml://s/s://a")
  );
  assert.match(await readNow(pml, "pml://servers"), /"name": "s"/);
  const listed = await asked(pml, "pml://s/s://a");
  assert.match(listed.text, /Server: "s"\n.*Tool: "@resources"/);
  assert.match(listed.text, /all listed resources/);
  assert.deepEqual(listed.replies, ["Yes", "Always", "No"]);
  await read();
  assert.match(textIn(await listed.answer(picked("No"))), /the user answered no/);
  const again = await asked(pml, "s://b");
  assert.equal(textIn(await again.answer(picked("Yes"))), "1", "no read came before");
  const prompt = await outcomeOfRequest(pml, "prompts/get", { name: "s__greet" });
  assert.match(prompt.kind === "asked" ? prompt.asked.text : "", /Tool: "@prompts"/);
  const item = await asked(pml, "pml://s/s://item/7");
  await read();
  assert.equal(textIn(await item.answer(picked("Always"))), "2");
  assert.equal(await readNow(pml, "pml://s/s://item/8"), "3");
  // "Always" does not cover unlisted addresses.
  const madeUp = await asked(pml, MADE_UP);
  assert.match(madeUp.text, /"uri": "s:\/\/made-up\?token=1"/);
  assert.deepEqual(madeUp.replies, ["Yes", "No"]);
  assert.equal(textIn(await madeUp.answer(picked("Yes"))), "4");
  await asked(pml, MADE_UP);
  const starts = (await journalOf(ws)).filter(({ tool }) =>
    tool === "s:@resources"
  ) as unknown as readonly { readonly rule?: string; readonly source?: string }[];
  assert.deepEqual(
    new Set(starts.flatMap(({ rule }) => rule ?? [])),
    new Set([
      "*",
      "s:@resources",
      "an address that its server did not list",
    ]),
  );
});

for (const era of ERAS) {
  Deno.test(`requests for resources at the same time share one question, on ${era} (GX16)`, async () => {
    for (const reply of ["Yes", "No"]) {
      await using scene = await sceneOf(era, { allow: ["filesystem:*"], ask: ["*"] });
      const { ws, pml } = scene;
      await pml.request("resources/list", {});
      const first = await asked(pml, "pml://s/s://a");
      const others = ["pml://s/s://b", "pml://s/s://item/1"].map((uri) =>
        pml.request("resources/read", { uri })
      );
      // This question does not cover another address.
      const madeUp = await asked(pml, MADE_UP);
      await read();
      const said = await Promise.all([first.answer(picked(reply)), ...others]);
      const texts = said.map(textIn).toSorted();
      if (reply === "Yes") assert.deepEqual(texts, ["1", "2", "3"]);
      else for (const text of texts) assert.match(text, /the user answered no/);
      assert.match(textIn(await madeUp.answer(picked("No"))), /the user answered no/);
      const events = (await journalOf(ws)).filter(({ event }) => event === "approved");
      assert.equal(events.length, reply === "Yes" ? 3 : 0);
      // The next request asks again.
      await asked(pml, "pml://s/s://a");
    }
  });

  Deno.test(`an address that the server did not list asks each time, on ${era} (GX16)`, async () => {
    for (const allow of [["filesystem:*", "s:link"], ["filesystem:*", "s:*", "s:@resources"]]) {
      await using scene = await sceneOf(era, { allow });
      const { ws, pml } = scene;
      assert.equal(await readNow(pml, "pml://s/s://a"), "1");
      assert.equal(await readNow(pml, "pml://s/s://item/7"), "2");
      assert.equal(await readNow(pml, "pml://s/ui://page"), "3", "a tool names it");
      const madeUp = ["s://item/7/8", "file:///etc/passwd", "ui://other", "s://named"];
      for (const uri of [MADE_UP, ...madeUp.map((each) => `pml://s/${each}`)]) {
        const { text } = await asked(pml, uri);
        assert.ok(text.includes(JSON.stringify(uri.slice("pml://s/".length))), text);
      }
      const linked = await asked(pml, "pml://s/s://linked");
      await read();
      assert.match(textIn(await linked.answer(picked("No"))), /the user answered no/);
      await pml.callTool("call", { tool: "s:link", arguments: {} });
      assert.equal(await readNow(pml, "pml://s/s://linked"), "4");
      if (era === "2025-11-25") {
        const followed = await outcomeOfRequest(pml, "resources/subscribe", { uri: MADE_UP });
        assert.equal(followed.kind, "asked");
        return;
      }
      await endWell(ws, pml);
    }
  });
}

Deno.test("a deny refuses resources, and completion never asks (GX16)", async () => {
  await using open = await sceneOf("2025-11-25", { allow: ["filesystem:*"] });
  assert.deepEqual(await completed(open.pml), [["secret"], ["secret"]]);
  for (const ask of [["*"], ["s:*"], ["s:@resources", "s:@prompts"]]) {
    await using scene = await sceneOf("2025-11-25", { allow: ["filesystem:*"], ask });
    assert.deepEqual(await completed(scene.pml), [[], []]);
  }
  await using untrusted = await sceneOf("2025-11-25", { allow: ["*"] }, false);
  const ref = { type: "ref/resource", uri: "pml://s/s://item/{id}" };
  const argument = { name: "id", value: "typed" };
  const { result } = await untrusted.pml.request("completion/complete", { ref, argument });
  assert.deepEqual(result?.completion?.values, []);
  await using closed = await sceneOf("2025-11-25", {
    allow: ["filesystem:*"],
    deny: ["s:@resources"],
  });
  for (const uri of ["pml://s/s://a", MADE_UP]) {
    assert.match(await readNow(closed.pml, uri), /a deny rule matches/);
  }
  const { error } = await closed.pml.request("completion/complete", { ref, argument });
  assert.match(error?.message ?? "", /a deny rule matches/);
});

Deno.test("the page of a pinned tool follows that tool (GX16)", async () => {
  await using scene = await sceneOf("2026-07-28", {
    allow: ["filesystem:*", "s:show"],
    ask: ["*"],
  });
  const { pml } = scene;
  await pml.request("tools/list", {});
  const before = await asked(pml, "pml://s/ui://page");
  assert.match(before.text, /@resources/);
  await read();
  await before.answer(picked("No"));
  const message = await pml.callTool("call", { tool: "s:show", arguments: {} });
  assert.equal(codeOf(message), undefined, textOf(message));
  assert.equal(await readNow(pml, "pml://s/ui://page"), "1");
  for (const uri of ["s://a", "ui://other"]) await asked(pml, `pml://s/${uri}`);
  await using asking = await sceneOf("2026-07-28", { allow: ["filesystem:*"], ask: ["s:show"] });
  const call = await outcomeOfRequest(asking.pml, "tools/call", {
    name: "call",
    arguments: { tool: "s:show", arguments: {} },
  });
  assert.equal(call.kind, "asked");
  if (call.kind === "asked") await call.asked.answer(picked("Yes"));
  const { text } = await asked(asking.pml, "pml://s/ui://page");
  assert.match(text, /@resources/);
  assert.equal(await readNow(asking.pml, "pml://s/s://a"), "1");
});

Deno.test("a tool's address other than a page follows no tool (GX16)", async () => {
  const rules = { allow: ["filesystem:*", "s:link"], ask: ["*"] };
  await using scene = await sceneOf("2025-11-25", rules);
  const { pml } = scene;
  const linked = await pml.callTool("call", { tool: "s:link", arguments: {} });
  assert.equal(codeOf(linked), undefined, textOf(linked));
  await asked(pml, "pml://s/s://named");
});

Deno.test("a link of one server offers no address of another (GX16)", async () => {
  const tables = { s: TABLE, t: TABLE };
  await using scene = await makeScene({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "s:link", "t:show"] },
      mcpServers: definitions(tables),
    },
    trusted: true,
    capabilities: { elicitation: { form: {} } },
  });
  const { pml } = scene;
  const called = await pml.callTool("call", { tool: "s:link", arguments: {} });
  assert.equal(codeOf(called), undefined, textOf(called));
  const { text } = await asked(pml, "pml://t/s://linked");
  assert.match(text, /names the address/);
  assert.equal(await readNow(pml, "pml://s/s://linked"), "1");
});

const FOREIGN = [{ _meta: { force: true } }, { priority: "high" }];

Deno.test("a prompt with members that no list knows asks unless a rule allows prompts (GX7)", async () => {
  const allow = ["filesystem:*", "s:link"];
  const getting = (pml: RawStdio, more: object) =>
    outcomeOfRequest(pml, "prompts/get", { name: "s__greet", ...more });
  await using scene = await sceneOf("2025-11-25", { allow });
  assert.equal((await getting(scene.pml, {})).kind, "answered");
  for (const more of FOREIGN) {
    const outcome = await getting(scene.pml, more);
    assert.match(outcome.kind === "asked" ? outcome.asked.text : "", /force|priority/);
  }
  const known = { _meta: { "claudecode/toolUseId": "toolu_1" } };
  assert.equal((await getting(scene.pml, known)).kind, "answered");
  await using ruled = await sceneOf("2025-11-25", { allow: [...allow, "s:@prompts"] });
  for (const more of FOREIGN) assert.equal((await getting(ruled.pml, more)).kind, "answered");
});

Deno.test("pml why names the rule that decides about resources (GX16)", async () => {
  await using scene = await sceneOf("2025-11-25", { allow: ["filesystem:*"], ask: ["*"] });
  const { stdout } = await runPml(scene.ws, ["why", "s:@resources"]);
  assert.match(stdout, /s:@resources: asks\n\s+by "\*" in .*\.pml\.json/);
  assert.match(stdout, /an address .*"s" .*asks/);
});
