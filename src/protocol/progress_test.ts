import assert from "node:assert/strict";
import type { Progress, ProgressReport } from "./call.ts";
import { parseExact } from "../core/exact_json.ts";
import {
  keepOwnReports,
  ownProgress,
  parseProgress,
  showsWork,
  withRisingValues,
} from "./progress.ts";

Deno.test("own reports rise below the first value of a server, then just above its last one", () => {
  const sent: Progress[] = [];
  const report = withRisingValues((progress) => void sent.push(progress as Progress));
  const own = ownProgress("waiting", "still running");
  report(own);
  report(own);
  report({ progress: 0, total: 10, message: "begun" });
  report(own);
  report({ progress: 5, total: 10 });
  report(own);
  report(own);
  report({ progress: 5, total: 10 });
  report({ progress: 1e15 });
  report(own);
  report({ progress: 1e15 + 1 });
  const values = sent.map(({ progress }) => progress);
  assert.deepEqual(values, values.toSorted((one, other) => one - other));
  const rising = [0, 1, 2, 3, 4, 5, 7, 8, 9].map((at) => [values[at], values[at + 1]] as const);
  for (const [before = 0, after = 0] of rising) assert.ok(before < after, `${before}, ${after}`);
  assert.ok((values[1] ?? 0) < -1_000, "far below");
  assert.ok((values[6] ?? 0) < 5.000001, "just above");
  assert.deepEqual(sent[3], { progress: values[3], total: 10, message: "still running" });
  assert.deepEqual(sent[8], { progress: 1e15 });
  assert.ok(sent.every((progress) => !("own" in progress)));
});

Deno.test("falling values of a server are passed on unchanged", () => {
  const values: unknown[] = [];
  const report = withRisingValues(({ progress }) => void values.push(progress));
  for (const progress of [3, 1, 2]) report({ progress });
  assert.deepEqual(values, [3, 1, 2]);
});

Deno.test("only reports of work extend a deadline, and a run passes on only own ones", () => {
  const all: ProgressReport[] = [
    { progress: 1 },
    ...(["working", "waiting", "unresponsive", "responsive"] as const)
      .map((own) => ownProgress(own, own)),
  ];
  assert.deepEqual(all.filter(showsWork).map(({ ownReport }) => ownReport), [undefined, "working"]);
  const passed: unknown[] = [];
  const listener = keepOwnReports(({ ownReport: own }) => void passed.push(own));
  for (const progress of all) listener?.(progress);
  assert.deepEqual(passed, ["working", "waiting", "unresponsive", "responsive"]);
  assert.equal(keepOwnReports(undefined), undefined);
});

Deno.test("values of a server keep their text, and own reports come above them", () => {
  const sent: string[] = [];
  const report = withRisingValues((progress) => void sent.push(JSON.stringify(progress)));
  const big = "9007199254740993";
  for (const text of ['{"progress":1.0,"total":2.0}', `{"progress":${big},"total":3e20}`]) {
    const progress = parseProgress(parseExact(text));
    assert.ok(progress);
    report(progress);
    assert.equal(sent.at(-1), text);
  }
  report(ownProgress("waiting", "still running"));
  const { progress, total } = parseExact(sent.at(-1) ?? "");
  assert.ok(BigInt(progress.rawJSON ?? progress) > BigInt(big), sent.at(-1));
  assert.equal(JSON.stringify(total), "3e20");
});

Deno.test("a report without a finite value is ignored, and a total that is not finite is left out", () => {
  const infinite = parseExact("1e400");
  for (const progress of ["1", null, infinite]) {
    assert.equal(parseProgress({ progress }), undefined);
  }
  for (const total of [null, infinite]) {
    assert.deepEqual(parseProgress({ progress: 1, total }), { progress: 1 });
  }
});
