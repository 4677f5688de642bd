/**
 * Sampling by servers and modules, answered by a provider with the user's key: from clients of both
 * revisions, the command line and the library.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { journalOf, textOf } from "./attacks/oracles.ts";
import { READING_MS } from "./attacks/questions.ts";
import { ALL_ABLE, call, KINDS } from "./full_scene.ts";
import { FakeProvider } from "./kit/fake_provider.ts";
import { FullHttp } from "./kit/full_http.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { KEY, keyed, sampledIn, samplingScene, samplingWorkspace, TEXT } from "./sampling_scene.ts";

const ALLOWED = { allow: [...KINDS, "writer"].map((name) => `${name}:@sampling`) };
const YES = { action: "accept", content: { answer: "Yes" } };

Deno.test("a provider answers servers whose client cannot sample, after a yes", async () => {
  const questions: string[] = [];
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  const prices = { input_per_million: 3, output_per_million: 15 };
  await using scene = await samplingScene({
    era: "2025-11-25",
    provider,
    settings: { prices },
    answer: (method, params) => {
      assert.equal(method, "elicitation/create");
      questions.push(String(params.message));
      return YES;
    },
  });
  const { ws, pml } = scene;
  for (const kind of KINDS) {
    const { one } = JSON.parse(textOf(await call(pml, `${kind}:sample`)));
    assert.deepEqual(one, {
      role: "assistant",
      model: "m-1-20260101",
      content: { type: "text", text: "it is" },
      stopReason: "endTurn",
    });
    const question = questions.pop() ?? "";
    assert.match(question, /Tool: "@sampling"/);
    assert.ok(question.includes(
      `m-1 at ${provider.host} (anthropic), with your ANTHROPIC_API_KEY`,
    ));
    assert.match(
      question,
      / \d+ tokens, .* 10 .* 0\.000\d/,
    );
    assert.match(question, /Say it/);
    assert.equal(questions.length, 0);
  }
  assert.deepEqual(provider.received.map(({ headers }) => headers["x-api-key"]), [KEY, KEY]);
  const told = await sampledIn(ws);
  assert.deepEqual(
    told.map((about) => ({ ...Object(about), ms: 0, run: "" })),
    KINDS.map((server) => ({
      ...{ server, run: "", host: provider.host, model: "m-1", turn: 1 },
      ...{ input: 10, output: 5, ms: 0, money: 0.000105 },
    })),
  );
  const journal = JSON.stringify(await journalOf(ws));
  for (const text of [TEXT, "it is", KEY]) assert.ok(!journal.includes(text), text);
  assert.ok(!(pml.stderr + pml.stdout).includes(KEY));
});

Deno.test("nothing is sent to a provider after a no, a deny, or without a user", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  const no = async () => {
    await delay(READING_MS);
    return { action: "accept", content: { answer: "No" } };
  };
  await using refused = await samplingScene({ era: "2026-07-28", provider, answer: no });
  await using unable = await samplingScene({ era: "2026-07-28", provider });
  const deny = KINDS.map((kind) => `${kind}:@sampling`);
  await using denied = await samplingScene({ era: "2026-07-28", provider, rules: { deny } });
  // A bare star allows no sampling.
  await using starred = await samplingScene({
    era: "2026-07-28",
    provider,
    rules: { allow: ["*"] },
  });
  for (const kind of KINDS) {
    assert.match(textOf(await call(refused.pml, `${kind}:sample`)), /the user answered no/);
    assert.match(textOf(await call(denied.pml, `${kind}:sample`)), /a deny rule matches/);
    for (const { pml } of [unable, starred]) {
      assert.match(
        textOf(await call(pml, `${kind}:sample`)),
        /needs an approval|must approve|approv/,
      );
    }
  }
  assert.equal(provider.received.length, 0);
});

for (const era of ERAS) {
  Deno.test(`the client samples where it can, unless the user prefers the provider, on ${era}`, async () => {
    await using provider = new FakeProvider("anthropic", { text: "of the provider" });
    const answer = () => ({
      role: "assistant",
      model: "c",
      content: { type: "text", text: "of c" },
    });
    const options = { era, provider, rules: ALLOWED, capabilities: ALL_ABLE, answer };
    await using plain = await samplingScene(options);
    const settings = { prefer: "provider" };
    await using preferring = await samplingScene({ ...options, settings });
    const tools = [{ name: "add", inputSchema: { type: "object" } }];
    for (const kind of KINDS) {
      const said = async (scene: typeof plain, args = {}) =>
        JSON.parse(textOf(await call(scene.pml, `${kind}:sample`, args))).one.content.text;
      assert.equal(await said(plain), "of c");
      assert.equal(await said(preferring), "of the provider");
      // This client does not declare that its model calls tools.
      assert.equal(await said(plain, { tools }), "of the provider");
    }
    const can = { ...ALL_ABLE, sampling: { tools: {} } };
    await using able = await samplingScene({ ...options, capabilities: can });
    const { one } = JSON.parse(textOf(await call(able.pml, "legacy:sample", { tools })));
    assert.equal(one.content.text, "of c");
  });

  Deno.test(`the client samples also within batches, plans and code, on ${era}`, async () => {
    await using provider = new FakeProvider("anthropic", { text: "of the provider" });
    const answer = (method: string) =>
      method === "sampling/createMessage"
        ? { role: "assistant", model: "c", content: { type: "text", text: "of the client" } }
        : YES;
    await using scene = await samplingScene({
      ...{ era, provider, rules: ALLOWED, capabilities: ALL_ABLE, answer },
    });
    const tasks = [{ id: "one", tool: "writer:ask", arguments: {} }];
    const ways = {
      batch: { calls: [{ tool: "writer:ask", arguments: {} }] },
      execute_workflow: { plan: { tasks } },
      execute_code: { code: withoutTypeCheck("return await mcp.writer.ask({})") },
    };
    for (const [name, args] of Object.entries(ways)) {
      assert.match(textOf(await scene.pml.callTool(name, args)), /of the client/, name);
    }
    assert.equal(provider.received.length, 0);
  });
}

Deno.test("a provider answers servers over HTTP, too", async () => {
  await using provider = new FakeProvider("openai", { text: "it is" });
  await using legacy = new FullHttp("legacy");
  await using modern = new FullHttp("modern");
  const servers = {
    legacy: { type: "http", url: legacy.url },
    modern: { type: "http", url: modern.url },
  };
  await using scene = await samplingScene({ era: "2025-11-25", provider, rules: ALLOWED, servers });
  for (const kind of KINDS) {
    const { one } = JSON.parse(textOf(await call(scene.pml, `${kind}:sample`)));
    assert.deepEqual(one.content, { type: "text", text: "it is" });
  }
  assert.deepEqual(provider.received.map(({ headers }) => headers.authorization), [
    `Bearer ${KEY}`,
    `Bearer ${KEY}`,
  ]);
});

Deno.test("a module asks a model by host.sample", async () => {
  await using provider = new FakeProvider("anthropic", { text: "a poem" });
  const questions: string[] = [];
  const answer = (_: string, params: Record<string, unknown>) => {
    questions.push(String(params.message));
    return YES;
  };
  await using scene = await samplingScene({ era: "2026-07-28", provider, answer });
  const { pml } = scene;
  const { result } = await call(pml, "writer:ask", { systemPrompt: "Rhyme" });
  assert.deepEqual(result?.structuredContent, { said: "a poem", model: "m-1-20260101" });
  assert.match(questions[0] ?? "", /Server: "writer"\n *Tool: "@sampling"[^]*Write it/);
  assert.equal(provider.bodies[0].system, "Rhyme");
  const bad = await call(pml, "writer:ask", { messages: 5 });
  assert.equal(Object(bad.result?.structuredContent).code, "BAD_REQUEST");
  // A module can ask only during a call: the call of the stored host has ended.
  const late = await call(pml, "writer:later");
  assert.ok(Object(late.result?.structuredContent).code !== undefined);
  assert.equal(provider.received.length, 1);
  // The client's model answers a module as well.
  const model = () => ({
    role: "assistant",
    model: "c",
    content: { type: "text", text: "of c" },
  });
  await using client = await samplingScene({
    ...{ era: "2026-07-28", capabilities: ALL_ABLE, rules: ALLOWED, answer: model },
  });
  const response = await call(client.pml, "writer:ask");
  assert.deepEqual(response.result?.structuredContent, { said: "of c", model: "c" });
  await using none = await samplingScene({ era: "2026-07-28", rules: ALLOWED });
  const { code, message } = Object(
    (await call(none.pml, "writer:ask")).result?.structuredContent,
  );
  assert.equal(code, "BAD_REQUEST");
  assert.match(message, /`sampling` of config\.yaml/);
});

Deno.test("the client is notified of the progress of an answer", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  await using scene = await samplingScene({ era: "2025-11-25", provider, rules: ALLOWED });
  const { pml } = scene;
  for (const [at, kind] of KINDS.entries()) {
    await pml.request("tools/call", {
      ...{ name: "call", arguments: { tool: `${kind}:sample`, arguments: {} } },
      _meta: { progressToken: `p${at}` },
    });
    const told = pml.messages.filter(({ method, params }) =>
      method === "notifications/progress" && params?.progressToken === `p${at}`
    ).map(({ params }) => params ?? {});
    const messages = told.map(({ message }) => String(message)).join("\n");
    assert.match(
      messages,
      new RegExp(`${kind} asks a model: ${provider.host}: \\d characters, turn 1`),
    );
    const counts = told.map(({ progress }) => Number(progress));
    assert.deepEqual(counts, [...new Set(counts)].sort((one, other) => one - other));
  }
});

Deno.test("errors name the settings that sampling needs", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  await using keyless = await samplingScene({ provider, rules: ALLOWED, hasKey: false });
  await using none = await samplingScene({ rules: ALLOWED });
  for (const kind of KINDS) {
    const text = textOf(await call(keyless.pml, `${kind}:sample`));
    assert.match(
      text,
      /anthropic requires ANTHROPIC_API_KEY[^]*where you start pml/,
    );
    const { result } = await call(none.pml, `${kind}:sample`);
    assert.equal(result?.isError as unknown, true);
    assert.match(textOf({ result }), /answer with its model[^]*`sampling` of config\.yaml/);
  }
  // A key in a file of the workspace belongs to another account.
  await using planted = await samplingScene({
    ...{ provider, rules: ALLOWED, hasKey: false },
    files: { ".env": `ANTHROPIC_API_KEY=${KEY}` },
  });
  assert.match(textOf(await call(planted.pml, "legacy:sample")), /requires ANTHROPIC_API_KEY/);
  const doctor = await runPml(planted.ws, ["doctor"]);
  assert.match(doctor.stdout, /FAIL sampling: m-1 of anthropic needs ANTHROPIC_API_KEY/);
  assert.equal(provider.received.length, 0);
  // The hint's command works, also for a running PML.
  const output = await runPml(planted.ws, ["key", "set", "ANTHROPIC_API_KEY", "--stdin"], {
    stdin: KEY,
  });
  assert.equal(output.code, 0, output.stderr);
  assert.match(textOf(await call(planted.pml, "legacy:sample")), /it is/);
  assert.match((await runPml(planted.ws, ["doctor"])).stdout, /ok +sampling: m-1 of anthropic/);
});

Deno.test("the command line samples after a question on a terminal, or by a rule", async () => {
  await using provider = new FakeProvider("anthropic", { text: "it is" });
  await using ws = await samplingWorkspace({ provider, rules: { allow: ["legacy:@sampling"] } });
  const env = keyed({});
  const result = await runPml(ws, ["call", "legacy:sample", "--json"], { env });
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /it is/);
  // Without a terminal, the request waits for an approval.
  const output = await runPml(ws, ["call", "modern:sample"], { env });
  assert.notEqual(output.code, 0);
  assert.match(output.stdout + output.stderr, /pml approve/);
  assert.equal(provider.received.length, 1);
  const asked = await runPmlOnTerminal(ws, ["call", "modern:sample"], {
    env,
    typed: [[/with your ANTHROPIC_API_KEY[^]*\[y\] once {2}\[a\] always/, "yes"]],
  });
  assert.match(asked.stdout, /it is/);
  assert.equal(provider.received.length, 2);
  // The answer settled the request that waited. One that waits later is approved once.
  assert.match((await runPml(ws, ["call", "modern:sample"], { env })).stderr, /pml approve/);
  const approved = await runPmlOnTerminal(ws, ["approve"], {
    env,
    typed: [["Approve exactly this call?", "y"]],
  });
  assert.match(approved.stdout, /text to m-1/);
  const [once, again] = [
    await runPml(ws, ["call", "modern:sample"], { env }),
    await runPml(ws, ["call", "modern:sample"], { env }),
  ];
  assert.match(once.stdout, /it is/, once.stderr);
  assert.match(again.stderr, /pml approve/);
  assert.equal(provider.received.length, 3);
  const doctor = await runPml(ws, ["doctor"], { env });
  assert.match(
    doctor.stdout,
    /ok +sampling: m-1 of anthropic, with ANTHROPIC_API_KEY; \d+ of 500000/,
  );
});

Deno.test("a program that opens PML as a library gets answers of a provider by a rule", async () => {
  await using provider = new FakeProvider("openai", { text: "it is" });
  await using ws = await samplingWorkspace({ provider, rules: { allow: ["legacy:@sampling"] } });
  const script = ws.file("program.ts");
  await Deno.writeTextFile(
    script,
    `import { openGateway } from ${JSON.stringify(`file://${repoFile("mod.ts")}`)};
    await using pml = await openGateway();
    const { content } = await pml.callTool("legacy:sample", {});
    console.log(content[0].text);
    const error = await pml.callTool("modern:sample", {}).catch((error) => error);
    console.log(error.code, error.message);`,
  );
  const command = [
    process.execPath,
    "run",
    "-A",
    "--quiet",
    `--config=${repoFile("deno.json")}`,
    script,
  ];
  const { stdout, stderr } = await runPml(ws, [], { env: keyed({}), command: command as never });
  assert.match(stdout, /it is[^]*APPROVAL_REQUIRED .*modern:@sampling/, stderr);
  assert.equal(provider.received.length, 1);
});
