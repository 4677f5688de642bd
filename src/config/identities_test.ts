import assert from "node:assert/strict";
import type { Verdict } from "../protocol/verdict.ts";
import { toolId } from "../core/tool_id.ts";
import { Scratch } from "./_scratch_test.ts";
import { settleConfig } from "./config.ts";

const READ = toolId("fs", "read");
const WRITE = toolId("fs", "write");
const ALLOW = (): Verdict => ({ kind: "allow", rule: "*", source: "a test" });

Deno.test("a tool set that .pml.json names applies once the file is trusted, together with the user's", async () => {
  for (const own of ["", "gateway: { toolset: some }\n"]) {
    using scratch = new Scratch();
    const sets = 'toolsets: { reading: ["fs:read", "git:*"], some: ["fs:*"] }\n';
    scratch.write("user/.pml/config.yaml", own + sets);
    scratch.write("ws/.pml.json", '{"gateway": {"toolset": "reading"}}');
    const loaded = await scratch.load();
    assert.equal(loaded.problem, undefined);
    const kinds = (trusted: boolean) => {
      const judge = settleConfig(loaded, trusted).restrictions?.judge(ALLOW) ?? ALLOW;
      return [READ, WRITE, toolId("git", "log")].map((id) => judge(id).kind);
    };
    const other = own === "" ? "allow" : "deny";
    assert.deepEqual(kinds(true), ["allow", "deny", other]);
    assert.deepEqual(kinds(false), ["allow", "allow", other]);
  }
});

Deno.test("The rates of an identity are read as calls in a time of any unit", async () => {
  using scratch = new Scratch();
  const rates = { "fs:read": "2/second", "fs:*": "60/minute", "git:log": "3/hour", "*": "9/day" };
  const identities = { ci: { token: "0".repeat(64), rates } };
  scratch.write("user/.pml/config.yaml", JSON.stringify({ identities }));
  const { problem, access } = await scratch.load();
  assert.equal(problem, undefined);
  const read = access?.identities.get("ci")?.rates.map(({ calls, ms }) => [calls, ms]);
  assert.deepEqual(read, [[2, 1_000], [60, 60_000], [3, 3_600_000], [9, 86_400_000]]);
  for (const rate of ["0/hour", "2/week", "2 / hour", "many"]) {
    scratch.write(
      "user/.pml/config.yaml",
      JSON.stringify({ identities: { ci: { token: "0".repeat(64), rates: { "*": rate } } } }),
    );
    assert.match(
      (await scratch.load()).problem?.message ?? "",
      /a rate such as "60\/minute"/,
      rate,
    );
  }
});
