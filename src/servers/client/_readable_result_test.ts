import assert from "node:assert/strict";
import { isCallToolResult, isSpecType } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { isObject } from "../../core/json.ts";
import { readableResult } from "./_readable_result.ts";
import { assertGolden } from "../../../tests/kit/golden.ts";

const none = () => [];
const SAID = { type: "text", text: "said" };

function ofTool(answer: unknown, isStateless = false) {
  return readableResult(answer, { method: "tools/call", isStateless, extensions: none });
}

Deno.test("readableResult() removes null from optional members without a remark", () => {
  const structuredContent = { value: null, annotations: null };
  assert.deepEqual(
    ofTool({
      content: [
        { ...SAID, annotations: null, _meta: null },
        null,
        { type: "resource_link", uri: "mem://x", name: "n", title: null, size: null, icons: null },
        { type: "resource", resource: { uri: "mem://x", mimeType: null, text: "t", blob: null } },
        { ...SAID, annotations: { priority: null, audience: ["user"] } },
      ],
      structuredContent,
      isError: null,
      _meta: null,
    }),
    {
      content: [
        SAID,
        { type: "resource_link", uri: "mem://x", name: "n" },
        { type: "resource", resource: { uri: "mem://x", text: "t" } },
        { ...SAID, annotations: { audience: ["user"] } },
      ],
      structuredContent,
    },
  );
  assert.deepEqual(ofTool({ content: null }), { content: [] });
});

Deno.test("readableResult() keeps null as structured content in the stateless revision only", () => {
  assert.deepEqual(ofTool({ content: [SAID], structuredContent: null }), { content: [SAID] });
  const kept = { content: [SAID], structuredContent: null };
  assert.equal(ofTool(kept, true), kept);
});

Deno.test("readableResult() turns unknown blocks into text, unless an extension has them", () => {
  const video = { type: "com.example/video/clip", data: "AA==" };
  const [block] = ofTool({ content: [video] })?.content as readonly unknown[];
  assert.deepEqual(block, { type: "text", text: JSON.stringify(video) });
  const known = readableResult({ content: [video] }, {
    method: "tools/call",
    extensions: () => ["com.example/video"],
  });
  assert.deepEqual(known, { content: [video] });
  const failed = { type: "error", text: "it failed", annotations: { priority: 1 } };
  const [text, remark] = ofTool({ content: [failed] })?.content as readonly { text?: string }[];
  assert.deepEqual(text, { type: "text", text: "it failed", annotations: { priority: 1 } });
  assert.match(
    remark?.text ?? "",
    /^\[PML: The tool did run\. .*corrected: a block of type "error": not known/,
  );
});

Deno.test("readableResult() corrects images, and names each correction with its value", () => {
  const png = "iVBORw0KGgo=";
  const image = (more: object) => ofTool({ content: [{ type: "image", ...more }] });
  const first = (more: object) => (image(more)?.content as readonly unknown[])[0];
  const good = { type: "image", data: png, mimeType: "image/png" };
  assert.deepEqual(first({ data: png }), good);
  assert.deepEqual(first({ data: `data:image/png;base64,${png}`, mimeType: null }), good);
  assert.deepEqual(first({ data: "_-A=", mimeType: "image/png" }), { ...good, data: "/+A=" });
  assert.deepEqual(first({ data: "AA==" }), {
    type: "resource",
    resource: { uri: "image:result", blob: "AA==" },
  });
  assert.deepEqual(first({ data: "!", mimeType: "image/png" }), {
    type: "text",
    text: '{"type":"image","data":"!","mimeType":"image/png"}',
  });
  const annotations = { priority: 5, lastModified: "2025-01-01T10:00:00", audience: ["system"] };
  const { content, _meta } = ofTool({ content: [{ ...SAID, annotations }] }) as {
    content: readonly { text: string }[];
    _meta: Record<string, unknown>;
  };
  assert.deepEqual(content[0], { ...SAID, annotations: {} });
  const { "pml/repairs": repairs, ...others } = _meta;
  assert.deepEqual(others, {});
  assertGolden("call/corrected annotations", (repairs as readonly string[]).join("\n"));
  assert.match(content[1]?.text ?? "", /priority 5: not from 0 to 1; lastModified "2025/);
});

Deno.test("readableResult() takes texts, lists and other JSON as the result of a tool", () => {
  const texts = (answer: unknown) =>
    (ofTool(answer)?.content as readonly { text: string }[]).map(({ text }) => text);
  assert.deepEqual(texts("said").slice(0, 1), ["said"]);
  assert.deepEqual(texts([SAID]).slice(0, 1), ["said"]);
  assert.deepEqual(texts(7).slice(0, 1), ["7"]);
  assert.match(texts(null)[0] ?? "", /result: not an object/);
  assert.deepEqual(texts({ content: "said" }).slice(0, 1), ["said"]);
  assert.deepEqual(texts({ content: SAID }).slice(0, 1), ["said"]);
  assert.equal(ofTool(undefined), undefined);
  assert.equal(readableResult(null, { method: "prompts/get", extensions: none }), undefined);
});

Deno.test("readableResult() names at most ten corrections", () => {
  const content = Array.from({ length: 15 }, (_, at) => ({ type: `t${at}` }));
  const { _meta } = ofTool({ content }) as { _meta: { "pml/repairs": readonly string[] } };
  assert.equal(_meta["pml/repairs"].length, 11);
  assert.equal(_meta["pml/repairs"][10], "5 more");
});

const odd = fc.constantFrom<unknown>(
  1,
  "x",
  null,
  {},
  [],
  { a: 1 },
  undefined,
  true,
  ["user"],
  0.5,
);
const annotations = fc.oneof(
  odd,
  fc.record({
    audience: odd,
    priority: fc.oneof(odd, fc.double()),
    lastModified: fc.oneof(
      odd,
      fc.constantFrom("2025-02-29T10:00:00Z", "2024-02-29T10:00:00+01:00", "2025-01-01T10:00Z"),
      fc.constantFrom("2025-1-1T10:00:00Z", "2025-01-01T25:00:00Z", "2025-01-01t10:00:00z"),
    ),
  }, { requiredKeys: [] }),
);
const data = fc.oneof(
  odd,
  fc.constantFrom("AAAA", "?", "A", "AA==", "A A A A", "_-A=", "data:image/png;base64,AAAA", "="),
);
const members = {
  text: fc.oneof(fc.string(), odd),
  uri: fc.oneof(fc.webUrl(), odd),
  blob: data,
  mimeType: odd,
  _meta: odd,
};
const block = fc.oneof(
  odd,
  fc.record({
    type: fc.constantFrom<unknown>("text", "image", "audio", "resource", "resource_link", "x", 1),
    annotations,
    data,
    name: odd,
    title: odd,
    size: odd,
    icons: fc.oneof(odd, fc.array(fc.record({ src: odd, sizes: odd, theme: odd }))),
    resource: fc.oneof(odd, fc.record(members, { requiredKeys: [] })),
    ...members,
  }, { requiredKeys: ["type"] }),
);

/** Asserts that a result is readable for the SDK, and unchanged if it was readable before. */
function assertReadable(method: string, { json, is }: {
  readonly json: unknown;
  readonly is: (value: unknown) => boolean;
}): void {
  const known = readableResult(json, { method, extensions: none });
  assert.ok(known !== undefined && is(JSON.parse(JSON.stringify(known))), JSON.stringify(known));
  const again = readableResult(known, { method, extensions: none });
  assert.equal(again, known, "a corrected result needs no correction");
  if (isObject(json) && is(json)) {
    assert.equal(JSON.stringify((known._meta as undefined) ?? {}).includes("pml/repairs"), false);
  }
}

Deno.test("the SDK reads every corrected result, and correct results stay the same", () => {
  const result = fc.record({
    content: fc.oneof(fc.array(block, { maxLength: 3 }), odd),
    isError: odd,
    structuredContent: odd,
    _meta: odd,
  }, { requiredKeys: [] });
  fc.assert(
    fc.property(result, (given) => {
      const json = JSON.parse(JSON.stringify(given));
      assertReadable("tools/call", { json, is: isCallToolResult });
    }),
    { numRuns: 2_000, seed: 11 },
  );
});

Deno.test("the SDK reads every corrected prompt, resource and completion", () => {
  const message = fc.oneof(
    odd,
    fc.record({
      role: fc.constantFrom("user", "system", null),
      content: fc.oneof(block, fc.array(block, { maxLength: 2 })),
    }, { requiredKeys: [] }),
  );
  const contents = fc.oneof(odd, fc.record(members, { requiredKeys: [] }));
  const list = (one: fc.Arbitrary<unknown>) => fc.oneof(odd, fc.array(one, { maxLength: 3 }));
  const parts = [
    ["prompts/get", { messages: list(message), description: odd }, isSpecType.GetPromptResult],
    ["resources/read", { contents: list(contents) }, isSpecType.ReadResourceResult],
    ["completion/complete", {
      completion: fc.oneof(odd, fc.record({ values: list(odd), total: odd, hasMore: odd })),
    }, isSpecType.CompleteResult],
  ] as const;
  for (const [method, shape, is] of parts) {
    const result = fc.record({ ...shape, _meta: odd } as Record<string, fc.Arbitrary<unknown>>, {
      requiredKeys: [],
    });
    fc.assert(
      fc.property(result, (given) => {
        assertReadable(method, { json: JSON.parse(JSON.stringify(given)), is });
      }),
      { numRuns: 1_000, seed: 12 },
    );
  }
});
