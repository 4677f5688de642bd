import assert from "node:assert/strict";
import { isCovered } from "./_uri_templates.ts";

function covers(template: string, uri: string): boolean {
  return isCovered(uri, [{ uriTemplate: template, name: "t" }]);
}

Deno.test("isCovered() matches addresses with URI templates (GX16)", () => {
  const table: readonly [
    template: string,
    covered: readonly string[],
    others: readonly string[],
  ][] = [
    ["test://item/{id}", ["test://item/7", "test://item/{id}"], [
      "test://item/7/more",
      "test://items/7",
      "x test://item/7",
      "test://item",
    ]],
    ["file:///{+path}", ["file:///a/b", "file:///"], ["file://a"]],
    ["file:///{path*}", ["file:///a/b"], ["http:///a"]],
    ["x://a{?q,limit}", ["x://a", "x://a?q=1&limit=2"], ["x://ab", "x://a&q=1"]],
    ["x://a{/b}{.c}", ["x://a", "x://a/1", "x://a/1.txt", "x://a.txt"], ["x://b", "x://a/1/2"]],
    ["x://*/{id}", ["x://*/1"], ["x://y/1"]],
    [String.raw`x://\\{id}`, [String.raw`x://\\1`], ["x://1"]],
    ["x://a{b", ["x://a{b"], ["x://a1"]],
  ];
  for (const [template, covered, others] of table) {
    for (const uri of covered) assert.ok(covers(template, uri), `${template} covers ${uri}`);
    for (const uri of others) assert.ok(!covers(template, uri), `${template} covers no ${uri}`);
  }
});

Deno.test("isCovered() takes bounded time for hostile templates and addresses (GX16)", () => {
  const template = `x://${"{+a}b".repeat(390)}`;
  assert.equal(covers(template, `x://${"b".repeat(1_000_000)}!`), false);
  assert.equal(covers("{+a}".repeat(600), "x".repeat(10)), false, "a template that is too long");
  assert.equal(covers(`x${"{?q}".repeat(400)}`, "x"), true);
});
