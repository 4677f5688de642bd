import assert from "node:assert/strict";
import { makeScene } from "./attacks/stage.ts";
import { picked, questionOf } from "./attacks/questions.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import type { Message } from "./kit/json_rpc.ts";

const PAGE = await Deno.readTextFile(new URL("../docs/workflows.md", import.meta.url));
const BLOCKS = [...PAGE.matchAll(/^```(\w+) (\S+)\n([\s\S]*?)\n?^```$/gm)]
  .map(([, language = "", name = "", text = ""]) => ({ language, name, text }));

/** Each request of the page, and the answer that it shows. */
const EXAMPLES = BLOCKS.flatMap(({ language, name, text }, at) => {
  if (!["json", "ts"].includes(language)) return [];
  const next = BLOCKS[at + 1];
  assert.ok(next?.name === "answer", `no answer is shown for ${text}`);
  const args = language === "ts" ? { code: text } : JSON.parse(text);
  return [{ name, args, answer: next.text }];
});

const FILES = Object.fromEntries(
  BLOCKS.filter(({ name }) => /\.\w+$/.test(name)).map(({ name, text }) => [name, `${text}\n`]),
);

Deno.test("docs/workflows.md: every example returns the answer on the page", async () => {
  await using scene = await makeScene({
    era: "2026-07-28",
    files: FILES,
    capabilities: { elicitation: { form: {} } },
  });
  assert.ok(EXAMPLES.length >= 10, `${EXAMPLES.length} examples`);
  for (const { name, args, answer } of EXAMPLES) {
    assert.match(
      textsOf(await answered(scene.pml, { name, arguments: args })),
      patternOf(answer),
    );
  }
});

/** Sends a request, and answers yes where the user is asked to save something. */
async function answered(
  pml: RawStdio,
  params: { readonly name: string; readonly arguments: { readonly save_as?: unknown } },
): Promise<Message> {
  if (params.arguments.save_as === undefined) return await pml.request("tools/call", params);
  const { answer } = await questionOf(pml, params);
  return await answer(picked("Yes"));
}

function textsOf({ result }: Message): string {
  const blocks = result?.content as unknown as readonly { readonly text: string }[];
  return blocks.map(({ text }) => text).join("\n");
}

/** Returns a pattern of an answer on the page, in which `…` matches any text. */
function patternOf(answer: string): RegExp {
  const parts = answer.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^]*?")}$`);
}
