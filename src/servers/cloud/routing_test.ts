import assert from "node:assert/strict";
import fc from "fast-check";
import routing from "../../../config/mcp-routing.json" with { type: "json" };
import { isUsableServerName } from "../../core/tool_id.ts";
import { getToolRouting } from "./routing.ts";

Deno.test("getToolRouting() sends the cloud's own tools and well-known services to the cloud", () => {
  for (const id of ["pml:search", "pml", "tavily", "tavily:search", "exa__search", "slack:post"]) {
    assert.equal(getToolRouting(id), "cloud", id);
  }
  assert.equal(getToolRouting("mcp__pml__github__create_issue"), "cloud");
});

Deno.test("getToolRouting() keeps everything else local", () => {
  const ids = ["filesystem:read_file", "shell:exec", "sqlite", "git__status", "unknown:tool", ""];
  for (const id of [...ids, "tavily-local:x", "my:tavily", "Tavily:x", "__proto__:x", "tavil"]) {
    assert.equal(getToolRouting(id), "local", id);
  }
  const known = new Set([...routing.cloud, "pml"]);
  fc.assert(fc.property(fc.string(), fc.string(), (server, tool) => {
    fc.pre(!known.has(server.split(/:|__/)[0] ?? ""));
    assert.equal(getToolRouting(`${server}:${tool}`), "local");
  }));
});

Deno.test("the routing list contains each server once, under a valid name", () => {
  const names = [...routing.local, ...routing.cloud];
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.ok(isUsableServerName(name) || name === "pml:*", name);
  for (const name of ["filesystem", "shell", "sqlite", "git"]) {
    assert.ok(routing.local.includes(name));
  }
  assert.equal(routing.default, "local");
});
