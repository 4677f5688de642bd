/**
 * Measures code: a run relative to an empty `deno run`, and calls in code relative to single calls.
 *
 * @module
 */

import { emptyRun } from "./first_answer.ts";
import { median, pathOf, type Row, StdioProcess } from "./measure.ts";

const WARM_RUNS = 15;
const COLD_RUNS = 15;
const MANY_RUNS = 7;
const CALLS = 50;
/** The pause after which PML has started the next warm child. */
const PAUSE_MS = 900;

const EMPTY = "return 1 + 1";
const MANY = `for (let i = 0; i < ${CALLS}; i++) await mcp.filesystem.read_file({ path: "a.txt" })`;
/** Code that measures calls and returns their median time. */
const MEDIAN_CALL = `
  const times = [];
  for (let i = 0; i < 150; i++) {
    const since = performance.now();
    await mcp.filesystem.read_file({ path: "a.txt" });
    times.push(performance.now() - since);
  }
  return times.sort((a, b) => a - b)[75];`;

/** Measures `execute_code` in a `pml stdio`. */
export async function benchCode(): Promise<readonly Row[]> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-bench-" }));
  const [cwd, home] = [`${root}/ws`, `${root}/home`];
  await Deno.mkdir(cwd);
  await Deno.mkdir(home, { mode: 0o700 });
  await Deno.writeTextFile(`${cwd}/a.txt`, "a small file\n");
  const permissions = { allow: ["filesystem:*"] };
  await Deno.writeTextFile(`${cwd}/.pml.json`, JSON.stringify({ version: 1, permissions }));
  try {
    await using pml = new StdioProcess(pathOf("mod.ts"), { args: ["stdio"], cwd, home });
    await pml.initialize();
    return await measureCode(pml, root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function measureCode(pml: StdioProcess, root: string): Promise<readonly Row[]> {
  let id = 1;
  const use = (name: string, args: unknown) =>
    pml.request(id++, "tools/call", { name, arguments: args });
  const run = (code: string) => use("execute_code", { code });
  const read = () => use("call", { tool: "filesystem:read_file", arguments: { path: "a.txt" } });
  await run(MANY);
  await Deno.writeTextFile(`${root}/empty.ts`, "");
  const empty = await medianTime(COLD_RUNS, () => emptyRun(`${root}/empty.ts`));
  // Directly after another run, no warm child is ready yet.
  const cold = await medianTime(COLD_RUNS, () => run(EMPTY));
  const warm = await medianTime(WARM_RUNS, () => run(EMPTY), PAUSE_MS);
  const single = await medianTime(MANY_RUNS, async () => {
    for (let call = 0; call < CALLS; call++) await read();
  });
  const manyMs = await medianTime(MANY_RUNS, () => run(MANY), PAUSE_MS);
  const outsideMs = await medianTime(CALLS * MANY_RUNS, read);
  const innerTimes: number[] = [];
  for (let count = 0; count < MANY_RUNS; count++) {
    const { content } = await run(MEDIAN_CALL) as { readonly content: readonly { text: string }[] };
    innerTimes.push(Number(content[0]?.text));
  }
  const insideMs = median(innerTimes);
  const row = (what: string, values: Omit<Row, "what" | "unit">): Row => ({
    ...{ what, unit: "ms" },
    ...values,
  });
  return [
    row("code: `return 1 + 1`, warm", {
      ...{ value: warm, runs: WARM_RUNS, wanted: { of: "figure", most: 5 } },
    }),
    row("code: `return 1 + 1`, cold, relative to an empty `deno run`", {
      ...{ value: cold, baseline: empty, runs: COLD_RUNS, wanted: { of: "ratio", most: 2.5 } },
    }),
    row(`code: ${CALLS} calls in one run, relative to ${CALLS} calls`, {
      ...{ value: manyMs, baseline: single, runs: MANY_RUNS, wanted: { of: "ratio", most: 1.3 } },
    }),
    row("code: one call in code, relative to the same call of a client", {
      ...{ value: insideMs, baseline: outsideMs, runs: 150 },
      wanted: { of: "difference", most: 0.3 },
    }),
  ];
}

async function medianTime(
  runs: number,
  step: () => Promise<unknown>,
  pauseMs = 0,
): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const since = performance.now();
    await step();
    times.push(performance.now() - since);
  }
  return median(times);
}

if (import.meta.main) console.table(await benchCode());
