import assert from "node:assert/strict";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { instructions, serverLine } from "./instructions.ts";
import { META_TOOLS } from "../config/exposure.ts";
import { metaTools } from "./meta_tools.ts";
import type { ServerState } from "../servers/lists/servers.ts";

const MOST_TOKENS = 700;

function states(count: number, name: (n: number) => string): readonly ServerState[] {
  return Array.from({ length: count }, (_, n) => ({
    name: name(n),
    kind: "stdio",
    origin: "private",
    state: "ready",
    why: undefined,
    tools: 1,
  }));
}

Deno.test("the list of meta-tools costs at most 700 tokens, for any number of servers", () => {
  const random = (n: number) => `${n}x9k.zq-${(n * 7919) % 1000}_vj`.padEnd(64, "q7-z.");
  for (const name of [(n: number) => `server-${n}`, random]) {
    for (const count of [0, 1, 30, 5_000]) {
      const all = metaTools(serverLine(states(count, name)), 1_000);
      // Clients do not pass `_meta` to models.
      const tools = META_TOOLS.map((one) => ({ ...all[one], _meta: undefined }));
      const tokens = encode(JSON.stringify({ tools })).length;
      assert.ok(tokens <= MOST_TOKENS, `${count} servers: ${tokens} tokens`);
    }
  }
});

Deno.test("the description of search and the instructions name the servers, and stay short", () => {
  const few = states(3, (n) => ["filesystem", "github", "slack"][n] ?? "");
  const { search } = metaTools(serverLine(few), 50);
  assert.match(search.description ?? "", /filesystem, github, slack/);
  assert.match(instructions(few), /- github\n/);
  const names = (text: string) => META_TOOLS.filter((name) => text.includes("`" + name + "`"));
  assert.deepEqual(names(instructions(few)), META_TOOLS);
  assert.deepEqual(names(instructions(few, ["search", "call"])), ["search", "call"]);
  assert.deepEqual(names(instructions(few, [])), []);
  const many = states(5_000, (n) => `server-${n}`);
  assert.match(serverLine(many), /^server-0, .* and \d+ more$/);
  assert.ok(new TextEncoder().encode(instructions(many)).length < 2_048);
  const broken = few.map((one) => ({
    ...one,
    why: "x\u202e".repeat(400),
    state: "failed" as const,
  }));
  assert.ok(new TextEncoder().encode(instructions(broken)).length < 2_048);
  assert.doesNotMatch(instructions(broken), /\u202e/);
});
