import assert from "node:assert/strict";
import { LimitedLog } from "./limited_log.ts";

Deno.test("a line is written once in ten minutes, and 50 lines at most", () => {
  let now = 0;
  const log = new LimitedLog(() => now);
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  for (let count = 0; count < 1_000; count++) log.write("same", "a line", write);
  assert.deepEqual(lines, ["a line"]);
  for (let count = 0; count < 1_000; count++) log.write(`${count}`, "another", write);
  assert.equal(lines.length, 50);
  assert.match(lines.at(-1) ?? "", /^another\. .*left out/);
  now += 600_000;
  log.write("same", "a line", write);
  assert.deepEqual([lines.length, lines.at(-1)], [51, "a line"]);
});
