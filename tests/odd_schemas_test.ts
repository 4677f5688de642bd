/**
 * Tools with odd schemas: lists contain them as their servers wrote them, and clients can call
 * them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { textOf } from "./attacks/oracles.ts";
import { connect } from "./kit/client.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { NEWEST, type Table } from "./kit/said_server.ts";
import { until } from "./kit/wait.ts";
import { definitions, filesOf } from "./said_scene.ts";

const SEMVER =
  String.raw`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-]` +
  String.raw`[0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+` +
  String.raw`(?:\.[0-9a-zA-Z-]+)*))?$`;
const DRAFTS = "http://json-schema.org/";

function ofA(a: unknown, rest: object = {}): object {
  return { type: "object", properties: { a }, ...rest };
}

const text = (pattern: string) => ofA({ type: "string", pattern });

/** A schema, and arguments that its server accepts. */
type Form = readonly [schema: object, value: unknown];

/** Forms that every client can read. */
const FORMS: Readonly<Record<string, Form>> = {
  issue: [text(String.raw`^[A-Z]+-\d+$`), "PML-14"],
  semver: [text(SEMVER), "1.2.3-rc.1+5"],
  slug: [text("^[a-z0-9]+(?:-[a-z0-9]+)*$"), "a-slug-7"],
  word: [text("[a-z]+"), "a"],
  unique: [ofA({ type: "array", items: { type: "number" }, uniqueItems: true }), [1, 2]],
  recursive: [ofA({ type: "array", items: { $ref: "#" } }), [{ a: [] }]],
  defined: [
    ofA({ $ref: "#/$defs/node" }, {
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    }),
    { next: { next: {} } },
  ],
  dynamic: [
    ofA({ $dynamicRef: "#node" }, { $dynamicAnchor: "node", description: "A tree" }),
    { a: { a: {} } },
  ],
  recursive_ref: [
    ofA({ $recursiveRef: "#" }, {
      $schema: "https://json-schema.org/draft/2019-09/schema",
      $recursiveAnchor: true,
    }),
    { a: {} },
  ],
  anchor: [ofA({ $ref: "#it" }, { $defs: { it: { $anchor: "it", type: "string" } } }), "x"],
  ahead: [text(String.raw`^(?=.*\d).+$`), "a1"],
  behind: [text("(?<!a)b"), "cb"],
  back: [text(String.raw`^(a)\1$`), "aa"],
  flags: [text("(?i)abc"), "ABC"],
  names: [
    ofA({ patternProperties: { "^(?!x)": { type: "number" } }, additionalProperties: false }),
    { b: 1 },
  ],
  remote: [ofA({ $ref: "https://example.com/x.json" }), 1],
  file: [ofA({ $ref: "definitions.json#/x" }), 1],
  urn: [ofA({ $ref: "urn:x#/$defs/b" }, { $id: "urn:x" }), 1],
  dialect: [ofA({ type: "number" }, { $schema: "https://example.com/mine" }), "x"],
  draft_03: [
    ofA({ type: "any", required: true, divisibleBy: 2 }, { $schema: `${DRAFTS}draft-03/schema#` }),
    "x",
  ],
  draft_04: [
    ofA({ minimum: 1, exclusiveMinimum: true }, { $schema: `${DRAFTS}draft-04/schema#` }),
    2,
  ],
  latest: [ofA({ type: "string" }, { $schema: `${DRAFTS}schema#` }), "x"],
  any: [ofA({ type: "any" }), 1],
  float: [ofA({ type: ["float", "null"] }), 1.5],
  nullable: [ofA({ type: "string", nullable: true, enum: ["x"] }), null],
  own_required: [ofA({ type: "string", required: true }), "x"],
  format: [ofA({ type: "integer", format: "int64" }), 1],
  discriminator: [ofA({ oneOf: [{ type: "object" }], discriminator: { propertyName: "k" } }), {}],
  odd_keywords: [ofA({ type: "array", items: "string", minItems: "1", anyOf: {} }), ["x"]],
};

/**
 * Forms for which a client that parses them refuses the whole list, and the form that PML lists.
 */
const UNREADABLE: Readonly<Record<string, readonly [tool: object, shown: object]>> = {
  no_type: [{ inputSchema: { properties: { a: {} } } }, {
    inputSchema: { properties: { a: {} }, type: "object" },
  }],
  two_types: [{ inputSchema: { ...ofA({}), type: ["object", "null"] } }, { inputSchema: ofA({}) }],
  no_schema: [{}, { inputSchema: { type: "object" } }],
  null_schema: [{ inputSchema: null }, { inputSchema: { type: "object" } }],
  true_schema: [{ inputSchema: true }, { inputSchema: { type: "object" } }],
  odd_required: [{ inputSchema: { ...ofA({}), required: true } }, { inputSchema: ofA({}) }],
  null_properties: [{ inputSchema: { type: "object", properties: null } }, {
    inputSchema: { type: "object" },
  }],
  odd_output: [{ inputSchema: ofA({}), outputSchema: true }, { inputSchema: ofA({}) }],
  odd_words: [
    {
      title: null,
      description: null,
      inputSchema: ofA({}),
      annotations: { readOnlyHint: "yes", idempotentHint: true },
      icons: ["x.png"],
    },
    { inputSchema: ofA({}), annotations: { idempotentHint: true } },
  ],
};

const ANSWER = { content: [{ type: "text", text: "taken" }] };

function sceneryOf(tools: readonly object[], other?: Table) {
  const listed = { "tools/list": { result: { tools } }, "tools/call": { result: ANSWER } };
  const table: Table = other ?? listed;
  const tables = { older: table, newest: { ...NEWEST, ...table } };
  return makeAttackWorkspace({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: ["older:*", "newest:*"] },
      gateway: { tools_exposure: "full_proxy" },
      mcpServers: definitions(tables),
    },
  });
}

const tools = Object.entries(FORMS).map(([name, [inputSchema]]) => ({
  name,
  description: `Takes ${name}`,
  inputSchema,
  "x/kept": { deep: [1] },
}));

Deno.test("a tool with an odd schema is listed unchanged, and can be called", async () => {
  await using ws = await sceneryOf(tools);
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const { result } = await pml.request("tools/list", {});
  const listed = result?.tools as unknown as readonly { readonly name: string }[];
  for (const server of ["older", "newest"]) {
    const own = listed.filter(({ name }) => name.startsWith(`${server}__`))
      .map((tool) => ({ ...tool, name: tool.name.slice(server.length + 2) }));
    const sorted = tools.toSorted((one, other) => one.name < other.name ? -1 : 1);
    assert.equal(JSON.stringify(own), JSON.stringify(sorted), "not byte by byte the same");
    for (const [name, [, a]] of Object.entries(FORMS)) {
      const answer = await pml.callTool(`${server}__${name}`, { a });
      assert.equal(textOf(answer), "taken", name);
    }
    // The server checks its arguments itself.
    const other = await pml.callTool(`${server}__issue`, { a: "x" });
    assert.equal(textOf(other), "taken");
  }
});

Deno.test("an odd tool removes no other from a client's list, and can be called", async () => {
  const odd = Object.entries(UNREADABLE).map(([name, [tool]]) => ({ name, ...tool }));
  await using ws = await sceneryOf(odd);
  await using connection = await connect(ws, { era: "2025-11-25" });
  const { client } = connection;
  const { tools } = await client.listTools();
  for (const server of ["older", "newest"]) {
    for (const [name, [, shown]] of Object.entries(UNREADABLE)) {
      const wire = `${server}__${name}`;
      assert.deepEqual(tools.find((one) => one.name === wire), { name: wire, ...shown });
      const { content } = await client.callTool({ name: wire, arguments: { a: "x" } });
      assert.deepEqual(content, ANSWER.content, name);
    }
  }
});

Deno.test("an odd resource or prompt removes no other from a client's list", async () => {
  const table = {
    "resources/list": {
      result: {
        resources: [{ uri: "test://a", mimeType: null }, {
          uri: "test://b",
          name: "b",
        }],
      },
    },
    "resources/templates/list": { result: { resourceTemplates: [{ uriTemplate: "t://{id}" }] } },
    "prompts/list": { result: { prompts: [{ name: "p", description: 7, arguments: "none" }] } },
  };
  await using ws = await sceneryOf([], table);
  await using connection = await connect(ws, { era: "2026-07-28" });
  const { client } = connection;
  // PML's own items come first; those of servers follow later.
  await until(async () => (await client.listResources()).resources.length >= 6);
  await until(async () => (await client.listResourceTemplates()).resourceTemplates.length >= 3);
  await until(async () => (await client.listPrompts()).prompts.length >= 2);
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const { prompts } = await client.listPrompts();
  for (const server of ["older", "newest"]) {
    const own = resources.filter(({ uri }) => uri.startsWith(`pml://${server}/`));
    assert.deepEqual(own, [
      { uri: `pml://${server}/test://a`, name: "test://a" },
      { uri: `pml://${server}/test://b`, name: "b" },
    ]);
    const template = { uriTemplate: `pml://${server}/t://{id}`, name: "t://{id}" };
    assert.deepEqual(resourceTemplates.filter(({ uriTemplate: uri }) => uri.includes(server)), [
      template,
    ]);
    assert.deepEqual(prompts.filter(({ name }) => name.startsWith(server)), [
      { name: `${server}__p` },
    ]);
  }
});

/** Names that PML replaces. The title contains the original name for the model and the user. */
const NAMES = ["读取文件", "créer un fichier", "get user (v2)", "group:go", "a@b", "x".repeat(150)];

Deno.test("a tool with any name is listed under a valid name, and called by its own", async () => {
  const inputSchema = ofA({});
  const table = {
    "tools/list": {
      result: {
        tools: [
          ...NAMES.map((name) => ({ name, inputSchema, _meta: { mine: 1 } })),
          // A `_meta` with another name does not redirect the call.
          { name: "plain", inputSchema, _meta: { "pml/name": "other" } },
        ],
      },
    },
    "tools/call": { echo: "name" },
  } as const;
  await using ws = await sceneryOf([], table);
  await using connection = await connect(ws, { era: "2025-11-25" });
  const { client } = connection;
  for (const server of ["older", "newest"]) {
    const { tools } = await client.listTools();
    const own = tools.filter(({ name }) => name.startsWith(server));
    assert.equal(own.length, NAMES.length + 1);
    for (const { name, title, _meta } of own) {
      assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
      const called = await client.callTool({ name, arguments: {} });
      const [{ text }] = called.content as unknown as [{ text: string }];
      assert.equal(text, title ?? "plain");
      if (title !== undefined) assert.deepEqual(_meta, { mine: 1, "pml/name": title });
    }
    assert.deepEqual(own.flatMap(({ title }) => title ?? []).toSorted(), NAMES.toSorted());
  }
});

Deno.test("`pml tools SERVER:TOOL` shows a schema as its server wrote it", async () => {
  await using ws = await sceneryOf([...tools, { name: "own", inputSchema: ofA({}), verdict: "x" }]);
  for (const name of ["ahead", "remote", "draft_03"]) {
    const result = await runPml(ws, ["tools", `older:${name}`, "--json"]);
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(JSON.parse(result.stdout).inputSchema, FORMS[name]?.[0]);
  }
  const output = await runPml(ws, ["tools", "older:own", "--json"]);
  assert.equal(JSON.parse(output.stdout).verdict, "runs");
});
