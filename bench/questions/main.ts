/**
 * Counts the questions of a session for each way of answering: `deno task bench:questions [--json]`.
 *
 * @module
 */

import { count, type Counts, STRATEGIES } from "./measure.ts";
import { drawSessions } from "./sessions.ts";

/** The strategy of users before PML offered other answers. */
const BASELINE_STRATEGY = "always for the tool";

if (import.meta.main) {
  const results = [false, true].map((areLying) => {
    const sessions = drawSessions({ areLying });
    return { areLying, counts: STRATEGIES.map((strategy) => count(sessions, strategy)) };
  });
  const isJson = Deno.args.includes("--json");
  console.log(isJson ? JSON.stringify(results) : results.map(tableOf).join("\n\n"));
}

function tableOf(
  { areLying, counts }: { readonly areLying: boolean; readonly counts: readonly Counts[] },
): string {
  const { questions: baseline = NaN } = counts.find(({ name }) => name === BASELINE_STRATEGY) ?? {};
  const lines = counts.map(({ name, questions, unseen, asReading, effects, covered }) => {
    const change = `${Math.round((questions / baseline - 1) * 100)}%`;
    const ran = `${unseen} unseen, ${asReading} as reading, ${covered} covered, of ${effects}`;
    return `${name.padEnd(32)} ${questions.toFixed(1).padStart(6)} ${change.padStart(6)}  ${ran}`;
  });
  return [areLying ? "with two servers that lie" : "eight servers", ...lines].join("\n");
}
