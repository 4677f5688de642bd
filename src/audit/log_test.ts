import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { Log } from "./log.ts";
import { Redactor } from "./redact.ts";

function logTo(lines: string[], level?: "debug" | "warn"): Log {
  const redactor = new Redactor();
  redactor.register("hunter2hunter2");
  return new Log(redactor, level, (line) => lines.push(line));
}

Deno.test("Log writes time, level, text and fields", () => {
  const lines: string[] = [];
  logTo(lines).info("Started", {
    mode: "meta_only",
    tools: 12,
    note: "two words",
    none: undefined,
    list: ["a"],
    error: new PmlError("TIMED_OUT", "Cannot wait"),
  });
  assert.match(lines[0] ?? "", /^\d\d:\d\d:\d\d\.\d{3} /);
  assert.equal(
    lines[0]?.slice(13),
    'info  Started mode=meta_only tools=12 note="two words" list=["a"] ' +
      'error="PmlError: Cannot wait"',
  );
});

Deno.test("Log leaves out lines below its level", () => {
  const lines: string[] = [];
  const log = logTo(lines, "warn");
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  assert.deepEqual(lines.map((line) => line.slice(13)), ["warn  c", "error d"]);
});

Deno.test("Log writes each message as one bounded line without secrets", () => {
  const lines: string[] = [];
  const log = logTo(lines);
  log.warn("a\nb\u001b[31m\u202e hunter2hunter2", { token: "hunter2hunter2" });
  log.warn(`${"x".repeat(3_990)} hunter2hunter2 ${"y".repeat(1e6)}`);
  assert.equal(lines.length, 2);
  for (const line of lines) {
    assert.doesNotMatch(line, /[\p{Cc}\p{Cf}]|hunter2/u);
    assert.ok(line.length < 4_100);
  }
  assert.match(lines[0] ?? "", /a\\u\{a\}b\\u\{1b\}\[31m/);
});

Deno.test("Log writes to stderr and never to stdout", async () => {
  const code = `import { Log } from ${JSON.stringify(import.meta.resolve("./log.ts"))};
    import { Redactor } from ${JSON.stringify(import.meta.resolve("./redact.ts"))};
    const log = new Log(new Redactor(), "debug");
    log.debug("one"); log.info("two"); log.warn("three"); log.error("four");`;
  const child = new Deno.Command(Deno.execPath(), { args: ["eval", "--no-config", code] });
  const { stdout, stderr } = await child.output();
  assert.equal(new TextDecoder().decode(stdout), "");
  assert.equal(new TextDecoder().decode(stderr).trim().split("\n").length, 4);
});
