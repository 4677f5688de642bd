/**
 * Modules whose schemas are code: zod provides the types, the JSON Schema and the messages.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { call } from "./attacks/evil_servers.ts";
import { endWell, textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { picked, questionOf, read } from "./attacks/questions.ts";
import { HUB, repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { serveHub } from "./kit/registry_contract.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const SOURCE = `
  import { z } from "npm:zod@4.6.7";
  const Input = z.object({
    city: z.string().min(2),
    days: z.int().default(3),
    at: z.string().refine((at) => at !== "never", "Name a day that comes").optional(),
  });
  const Output = z.object({ text: z.string().refine((text) => text !== "Nowhere 3") });
  export const __meta__ = {
    name: "weather",
    description: "Tells the weather",
    tools: { forecast: { description: "Tells it", inputSchema: Input, outputSchema: Output } },
  };
  export function forecast({ city, days }: z.output<typeof Input>): z.input<typeof Output> {
    return { text: \`\${city} \${days}\` };
  }`;

/** Bundles the module as its author does. */
async function bundled(): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    const [source, out] = [`${folder}/weather.ts`, `${folder}/weather.js`];
    await writeFile(source, SOURCE);
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["bundle", "--quiet", "--minify", "--config", repoFile("deno.json"), "-o", out, source],
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    return await readFile(out, "utf8");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a module with zod schemas is checked, listed and run with them", async () => {
  await using at = await makeScene({
    files: { "weather.js": await bundled() },
    pml: {
      version: 1,
      permissions: { allow: ["weather:*", "filesystem:*"] },
      private_mcps: { weather: { type: "deno", path: "./weather.js" } },
    },
  });
  const { ws, pml } = at;
  const checked = await runPml(ws, ["check", "weather.js"]);
  assert.equal(checked.code, 0, checked.stdout + checked.stderr);
  const forecast = (args: Record<string, unknown>) => call(pml, "weather:forecast", args);
  // The default comes from the schema.
  const { result } = await forecast({ city: "Oslo" });
  assert.deepEqual(result?.structuredContent, { text: "Oslo 3" });
  const wrong = textOf(await forecast({ city: "O", days: 1.5 }));
  assert.match(wrong, /BAD_ARGUMENTS/);
  assert.match(wrong, /forecast\(city, days\?: number, at\?\)/);
  // A rule that JSON Schema cannot express, with the schema's message.
  assert.match(textOf(await forecast({ city: "Oslo", at: "never" })), /at: Name a day/);
  assert.match(textOf(await forecast({ city: "Nowhere" })), /OUTPUT_INVALID/);
  await endWell(ws, pml);
});

Deno.test("a module with zod schemas is published to a hub, found there and run", async () => {
  await using team = await makeWorkspace({ files: { "served/weather.js": await bundled() } });
  const imported = await runPml(team, ["import", "served"], { command: HUB });
  assert.equal(imported.code, 0, imported.stdout + imported.stderr);
  await using hub = await serveHub(team);
  const { url } = JSON.parse(hub.said);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: url },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  await using pml = new RawStdio(ws, { answer: undefined, capabilities: { elicitation: {} } });
  await pml.open();
  const found = textOf(await pml.callTool("search", { query: "tells the weather" }));
  assert.match(found, /weather:forecast\(city, days\?: number, at\?\)/);
  const question = await questionOf(pml, {
    name: "call",
    arguments: { tool: "weather:forecast", arguments: { city: "Oslo" } },
  });
  await read();
  const answer = await question.answer(picked("Yes"));
  assert.deepEqual(answer.result?.structuredContent, { text: "Oslo 3" });
  assert.equal((await pml.close()).code, 0);
});
