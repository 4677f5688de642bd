import assert from "node:assert/strict";
import {
  isForModel,
  isForPages,
  showsPages,
  toolPage,
  withPageAddress,
  withPageAddresses,
} from "./apps.ts";
import { splitListAddress } from "./placed_address.ts";

const APPS = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
const tool = (ui: object, more: object = {}) => ({ name: "t", _meta: { ui, ...more } });

Deno.test("a client shows pages if it declares the extension", () => {
  assert.ok(showsPages({ extensions: APPS }));
  for (
    const extensions of [undefined, {}, [], { "io.modelcontextprotocol/ui": null }, { ui: {} }]
  ) {
    assert.ok(!showsPages({ extensions } as never));
  }
});

Deno.test("a tool is visible to models and pages unless its visibility is a list", () => {
  const both = [{ name: "t" }, tool({}), tool({ visibility: "app" }), { name: "t", _meta: [] }];
  for (const one of [...both, tool({ visibility: ["app", "model"] })]) {
    assert.deepEqual([isForModel(one), isForPages(one)], [true, true]);
  }
  const seen = (visibility: unknown) => {
    const one = tool({ visibility });
    return [isForModel(one), isForPages(one)];
  };
  assert.deepEqual([["app"], ["model"], []].map(seen), [
    [false, true],
    [true, false],
    [false, false],
  ]);
});

Deno.test("toolPage() reads both keys, and takes no other scheme for a page", () => {
  assert.equal(toolPage(tool({ resourceUri: "ui://a" }, { "ui/resourceUri": "ui://b" })), "ui://a");
  assert.equal(toolPage(tool({}, { "ui/resourceUri": "ui://b" })), "ui://b");
  for (const resourceUri of ["https://a", "UI://a", 7, null]) {
    assert.equal(toolPage(tool({ resourceUri })), undefined);
  }
});

Deno.test("the address of a page leads back to its server and its own address", () => {
  for (const own of ["ui://a/b.html", "ui://", "ui://s/a", "ui://a?b#c\nd", "ui:///a"]) {
    const { _meta } = withPageAddress(tool({ resourceUri: own }), "s.t-1");
    const { resourceUri } = _meta.ui as { readonly resourceUri: string };
    assert.deepEqual(splitListAddress("ui://", resourceUri), { server: "s.t-1", name: own });
  }
  for (const other of ["pml://s/ui://a", "ui://s", "ui://S/a", "s://a/b"]) {
    assert.equal(splitListAddress("ui://", other), undefined);
  }
});

Deno.test("withPageAddress() changes both keys together, and nothing else", () => {
  const ui = { resourceUri: "ui://a", visibility: ["app"], x: 1 };
  assert.deepEqual(
    withPageAddress(tool(ui, { "ui/resourceUri": "ui://a", other: "ui://a" }), "s"),
    tool({ ...ui, resourceUri: "ui://s/a" }, { "ui/resourceUri": "ui://s/a", other: "ui://a" }),
  );
  for (const one of [tool({ resourceUri: "https://a" }), { name: "t" }]) {
    assert.equal(withPageAddress(one, "s"), one);
  }
});

Deno.test("withPageAddresses() changes links, resources, messages and tasks in a result", () => {
  const link = (uri: string) => ({ type: "resource_link", uri, name: "n" });
  const embedded = (uri: string) => ({ type: "resource", resource: { uri, text: "<p>" } });
  const resultOf = (uri: string) => ({
    content: [{ type: "text", text: "ui://a" }, link(uri), embedded(uri), link("s://a")],
    contents: [{ uri, text: "" }, { uri: "s://a", text: "" }],
    messages: [{ role: "user", content: link(uri) }, { role: "user", content: embedded("s://a") }],
    result: { content: [link(uri)] },
    structuredContent: { uri: "ui://a" },
    _meta: { ui: { resourceUri: uri } },
  });
  assert.deepEqual(withPageAddresses(resultOf("ui://a"), "s"), resultOf("ui://s/a"));
  const other = { content: [{ type: "text", text: "ui://a" }, link("s://a")], isError: false };
  assert.equal(withPageAddresses(other, "s"), other);
});
