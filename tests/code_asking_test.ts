import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import {
  ledgerOf,
  ledgerScene,
  runCode,
  STUCK,
  textsOf,
  valueOf,
  withoutTypeCheck,
} from "./attacks/code_tools.ts";
import { endWell } from "./attacks/oracles.ts";
import type { Message } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const YES = { action: "accept", content: { answer: "Yes" } };
const NO = { action: "accept", content: { answer: "No" } };
const GATED = `await mcp.led.note({ text: "first" });
  const gated = await mcp.led.gated({ text: "second" });
  await mcp.led.note({ text: "third" });
  return gated.line;`;
const UNTYPED_GATED = withoutTypeCheck(GATED);

/**
 * Waits until a client of revision 2025-11-25 received this number of questions. Returns the
 * questions.
 */
async function asked(pml: RawStdio, count: number): Promise<readonly Message[]> {
  const questions = () => pml.messages.filter(({ method }) => method === "elicitation/create");
  await until(() => questions().length >= count);
  return questions();
}

/** Returns the processes of sandbox children below PML. */
async function children(pml: RawStdio): Promise<readonly number[]> {
  return (await pml.watch.living())
    .filter(({ command }) => command.includes("--unstable-worker-options"))
    .map(({ pid }) => pid);
}

for (const era of ["2025-11-25", "2026-07-28"] as const) {
  Deno.test(`a question pauses the run of code, and the answer resumes it (${era})`, async () => {
    const texts: string[] = [];
    await using scene = await ledgerScene({
      era,
      answer: (_, { message }) => {
        texts.push(String(message));
        return YES;
      },
    });
    const { ws, pml } = scene;
    assert.equal(await valueOf(pml, GATED), "gated second");
    assert.deepEqual(await ledgerOf(ws), ["note first", "gated second", "note third"]);
    assert.equal(texts.length, 1);
    assert.match(texts[0] ?? "", /Tool: "gated"/);
    await endWell(ws, pml);
  });

  Deno.test(`simultaneous calls of code are each asked about, once (${era})`, async () => {
    const texts: string[] = [];
    await using scene = await ledgerScene({
      era,
      answer: async (_, { message }) => {
        texts.push(String(message));
        if (!String(message).includes("second")) return YES;
        // PML treats an immediate refusal as the answer of a client without a user.
        await new Promise((resolve) => setTimeout(resolve, 400));
        return NO;
      },
    });
    const { ws, pml } = scene;
    const code = withoutTypeCheck(`
      await mcp.led.note({ text: "once" });
      const all = await Promise.allSettled(["first", "second", "third"].map((text) => mcp.led.gated({ text })));
      return all.map(({ value, reason }) => value?.line ?? [reason.name, reason.code]);`);
    assert.deepEqual(JSON.parse(await valueOf(pml, code)), [
      "gated first",
      ["ToolError", "APPROVAL_DECLINED"],
      "gated third",
    ]);
    assert.equal(texts.length, 3);
    const lines = await ledgerOf(ws);
    assert.equal(lines[0], "note once");
    assert.deepEqual(lines.slice(1).sort(), ["gated first", "gated third"]);
    await endWell(ws, pml);
  });
}

Deno.test("code gets an error that it can catch where no user can be asked", async () => {
  await using scene = await ledgerScene({ era: "2026-07-28", capabilities: {} });
  const { ws, pml } = scene;
  const code = withoutTypeCheck(`
      await mcp.led.note({ text: "before" });
      try { await mcp.led.gated() } catch (error) { return [error.name, error.code, error.hint] }`);
  const [name, why, hint] = JSON.parse(await valueOf(pml, code));
  assert.deepEqual([name, why], ["ToolError", "APPROVAL_REQUIRED"]);
  assert.match(hint, /pml approve/);
  assert.deepEqual(await ledgerOf(ws), ["note before"]);
  // The first call of code can be repeated with the code. A later one must not be.
  assert.match(hint, /^This call was not run\..*Running the code again repeats .* \(1\)$/);
  const first = await valueOf(pml, withoutTypeCheck("await mcp.led.gated()"));
  assert.match(first, /This call was not run\..*, then run the code again$/);
  await endWell(ws, pml);
});

Deno.test("the refusal of a call of code mentions the calls that ran before it", async () => {
  await using scene = await ledgerScene({
    era: "2025-11-25",
    answer: async () => {
      await delay(400);
      return NO;
    },
  });
  const { ws, pml } = scene;
  const text = await valueOf(pml, UNTYPED_GATED);
  assert.match(text, /APPROVAL_DECLINED: .* user answered no/);
  assert.ok(text.endsWith("(1)"), text);
  assert.deepEqual(await ledgerOf(ws), ["note first"]);
  await endWell(ws, pml);
});

Deno.test("the time of a user's answer does not count for code", async () => {
  await using scene = await ledgerScene({
    era: "2025-11-25",
    answer: async () => {
      await new Promise((resolve) => setTimeout(resolve, 4_100));
      return YES;
    },
  });
  const { ws, pml } = scene;
  assert.equal(await valueOf(pml, UNTYPED_GATED, { timeout_ms: 4_000 }), "gated second");
  const late = await valueOf(pml, withoutTypeCheck(`await mcp.led.gated(); ${STUCK}`), {
    timeout_ms: 1_000,
  });
  assert.match(late, /^TIMED_OUT/);
  await endWell(ws, pml);
});

Deno.test("a run that waits for a client of 2026-07-28 continues meanwhile, and runs once", async () => {
  await using scene = await ledgerScene({
    era: "2026-07-28",
    capabilities: { elicitation: { form: {} } },
  });
  const { ws, pml } = scene;
  const args = {
    code: withoutTypeCheck(`const other = mcp.led.gated({ text: "asked" });
      await mcp.led.note({ text: "meanwhile" });
      return [(await other).line];`),
  };
  const first = await runCode(pml, args.code);
  const { resultType, requestState, inputRequests } = first.result as unknown as {
    resultType: string;
    requestState: string;
    inputRequests: Record<string, unknown>;
  };
  assert.equal(resultType, "input_required");
  await until(async () => (await ledgerOf(ws)).includes("note meanwhile"));
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, YES]));
  const again = { name: "execute_code", arguments: args, requestState, inputResponses };
  // Other code cannot use its answer.
  const other = { ...again, arguments: { code: "return 1" } };
  assert.deepEqual(textsOf(await pml.request("tools/call", again)).slice(0, 1), [
    '["gated asked"]',
  ]);
  assert.equal((await pml.request("tools/call", other)).error?.code, -32602);
  assert.equal((await pml.request("tools/call", again)).error?.code, -32602);
  assert.deepEqual(await ledgerOf(ws), ["note meanwhile", "gated asked"]);
  await endWell(ws, pml);
});

Deno.test("the number of runs that wait for the user is limited; one more is refused before its question", async () => {
  const waiting: ((answer: unknown) => void)[] = [];
  await using scene = await ledgerScene({
    limits: { waiting_runs: 2 },
    answer: () => new Promise((resolve) => waiting.push(resolve)),
  });
  const { ws, pml } = scene;
  // A run with several questions counts as one.
  const two = withoutTypeCheck(
    "return (await Promise.all([mcp.led.gated(), mcp.led.gated()])).length",
  );
  const one = withoutTypeCheck("return (await mcp.led.gated()).line");
  const first = runCode(pml, two);
  first.catch(() => {}); // asserted below
  await asked(pml, 2);
  const second = runCode(pml, one);
  second.catch(() => {});
  await asked(pml, 3);
  const third = withoutTypeCheck(
    "try { await mcp.led.gated() } catch (error) { return [error.name, error.code] }",
  );
  const refused = valueOf(pml, third);
  refused.catch(() => {});
  const isAsked = asked(pml, 4).then(() => "it was asked");
  isAsked.catch(() => {}); // it never is
  assert.equal(await Promise.race([refused, isAsked]), '["ToolError","OVERLOADED"]');
  // Runs without a question continue.
  assert.equal(await valueOf(pml, withoutTypeCheck("return (await mcp.led.note()).line")), "note ");
  assert.equal(waiting.length, 3);
  for (const answer of waiting) answer(YES);
  assert.deepEqual([textsOf(await first)[0], textsOf(await second)[0]], ["2", "gated "]);
  const last = runCode(pml, one);
  await asked(pml, 4);
  waiting.at(-1)?.(YES);
  assert.equal(textsOf(await last)[0], "gated ");
  await endWell(ws, pml);
});

Deno.test("a plan that waits for the user counts like code; one more is refused as a whole", async () => {
  const waiting: ((answer: unknown) => void)[] = [];
  await using scene = await ledgerScene({
    limits: { waiting_runs: 1 },
    answer: () => new Promise((resolve) => waiting.push(resolve)),
  });
  const { ws, pml } = scene;
  const plan = (text: string) => {
    const tasks = [{ id: "a", tool: "led:gated", arguments: { text } }];
    return pml.callTool("execute_workflow", { plan: { tasks } });
  };
  const first = plan("first");
  first.catch(() => {}); // asserted below
  await asked(pml, 1);
  const isAsked = asked(pml, 2).then(() => "it was asked");
  isAsked.catch(() => {}); // it never is
  const refused = Promise.all([
    plan("second"),
    runCode(pml, withoutTypeCheck("await mcp.led.gated({ text: 'third' })")),
  ]).then((answers) => answers.map((answer) => /OVERLOADED|1 runs/.test(JSON.stringify(answer))));
  refused.catch(() => {});
  assert.deepEqual(await Promise.race([refused, isAsked]), [true, true]);
  waiting[0]?.(YES);
  await first;
  assert.deepEqual(await ledgerOf(ws), ["gated first"]);
  await endWell(ws, pml);
});

Deno.test("a run whose client never returns ends with its child (2026-07-28)", async () => {
  await using scene = await ledgerScene({
    era: "2026-07-28",
    capabilities: { elicitation: { form: {} } },
    limits: { approval_ms: 1_000, idle_ms: 1_000 },
  });
  const { ws, pml } = scene;
  const paused = await runCode(pml, UNTYPED_GATED);
  assert.equal((paused.result as unknown as { resultType: string }).resultType, "input_required");
  assert.notEqual((await children(pml)).length, 0);
  await until(async () => (await children(pml)).length === 0);
  assert.deepEqual(await ledgerOf(ws), ["note first"]);
  await endWell(ws, pml);
});

Deno.test("a run that waits for an answer ends with its child when it is cancelled", async () => {
  await using scene = await ledgerScene({
    limits: { idle_ms: 1_000 },
    answer: () => new Promise(() => {}),
  });
  const { ws, pml } = scene;
  const { id, answer } = pml.begin("tools/call", {
    name: "execute_code",
    arguments: { code: UNTYPED_GATED },
  });
  answer.catch(() => {}); // a cancelled request has no answer
  await asked(pml, 1);
  await pml.notify("notifications/cancelled", { requestId: id });
  await until(async () => (await children(pml)).length === 0);
  assert.deepEqual(await ledgerOf(ws), ["note first"]);
});
