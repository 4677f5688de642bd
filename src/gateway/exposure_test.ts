import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import { toolId, wireName } from "../core/tool_id.ts";
import {
  ABC,
  FITS,
  hybrid,
  META,
  patterns,
  Scene,
  type Shelves,
  tools,
} from "./_exposure_scene_test.ts";
import type { ClientPeer } from "../protocol/connection.ts";
import { bareTools, RecentTools } from "./exposure.ts";
import type { ExposureSettings } from "./options.ts";

/** The listed tools, in order. `meta` represents the meta-tools. */
const CASES: readonly {
  readonly says: string;
  readonly settings: Partial<ExposureSettings>;
  readonly query?: string;
  readonly lists: readonly string[];
}[] = [
  { says: "meta_only lists the meta-tools", settings: { exposure: "meta_only" }, lists: META },
  {
    says: "meta_only looks at no query and no intent",
    settings: { exposure: "meta_only", intent: "one" },
    query: "one",
    lists: META,
  },
  {
    says: "some meta-tools may be left out",
    settings: { exposure: "meta_only", metaTools: ["search", "call"] },
    lists: ["search", "call"],
  },
  { says: "semantic without a query", settings: { exposure: "semantic" }, lists: META },
  {
    says: "semantic takes what fits nearly as well as the best",
    settings: { exposure: "semantic" },
    query: "it",
    lists: [...META, "b__two", "a__one"],
  },
  {
    says: "semantic is about the intent where there is no query",
    settings: { exposure: "semantic", intent: "it" },
    lists: [...META, "b__two", "a__one"],
  },
  {
    says: "semantic lists only so many",
    settings: { exposure: "semantic", semantic: { most: 1, threshold: 0 } },
    query: "it",
    lists: [...META, "b__two"],
  },
  {
    says: "full_proxy lists every tool that is not denied, by id",
    settings: { exposure: "full_proxy" },
    lists: ["a__one", "a__two", "b__one", "b__two", wireName(toolId("b", "x.y"))],
  },
  {
    says: "names are bare without a prefix",
    settings: { exposure: "full_proxy", prefix: false },
    lists: ["one", "two", "x.y"],
  },
  { says: "hybrid without a query", settings: hybrid({}), lists: META },
  {
    says: "hybrid takes what fits",
    settings: hybrid({}),
    query: "it",
    lists: [...META, "b__two", "a__one", "a__two"],
  },
  {
    says: "its threshold is what the options say",
    settings: hybrid({ semanticThreshold: 0.25 }),
    query: "it",
    lists: [...META, "b__two", "a__one", "a__two", "b__one"],
  },
  {
    says: "it may leave the meta-tools out",
    settings: hybrid({ exposeMetaTools: false }),
    query: "it",
    lists: ["b__two", "a__one", "a__two"],
  },
  {
    says: "it may leave the tools of servers out, the whitelist too",
    settings: hybrid({ exposeUnderlyingTools: false, whitelistedTools: patterns("a:*") }),
    query: "it",
    lists: META,
  },
  {
    says: "without the filter the first ones by id come, whatever is asked",
    settings: hybrid({ applySemanticFilter: false, maxUnderlyingTools: 3 }),
    query: "it",
    lists: [...META, "a__one", "a__two", "b__one"],
  },
  {
    says: "the whitelist comes first, by id, and nothing comes twice",
    settings: hybrid({ whitelistedTools: patterns("b:one", "a:two", "b:*") }),
    query: "it",
    lists: [
      ...META,
      "a__two",
      "b__one",
      "b__two",
      wireName(toolId("b", "x.y")),
      "a__one",
    ],
  },
  {
    says: "the whitelist is there without a query",
    settings: hybrid({ whitelistedTools: patterns("b:one", "nobody:*") }),
    lists: [...META, "b__one"],
  },
  {
    says: "the whitelist counts",
    settings: hybrid({ whitelistedTools: patterns("b:one"), maxUnderlyingTools: 2 }),
    query: "it",
    lists: [...META, "b__one", "b__two"],
  },
  {
    says: "the whitelist is never cut",
    settings: hybrid({
      whitelistedTools: patterns("a:*"),
      maxUnderlyingTools: 1,
      maxTokens: 1,
    }),
    query: "it",
    lists: [...META, "a__one", "a__two"],
  },
  {
    says: "a maximum of none leaves the whitelist",
    settings: hybrid({
      whitelistedTools: patterns("a:one"),
      maxUnderlyingTools: 0,
      applySemanticFilter: false,
    }),
    lists: [...META, "a__one"],
  },
  {
    says: "the blacklist beats the whitelist and what fits",
    settings: hybrid({
      whitelistedTools: patterns("*"),
      blacklistedTools: patterns("b:*", "a:one"),
    }),
    query: "it",
    lists: [...META, "a__two"],
  },
  {
    says: "what is blacklisted takes no place of the first ones",
    settings: hybrid({
      applySemanticFilter: false,
      maxUnderlyingTools: 2,
      blacklistedTools: patterns("a:*"),
    }),
    lists: [...META, "b__one", "b__two"],
  },
  {
    says: "what is denied is not listed, though it is whitelisted",
    settings: hybrid({ whitelistedTools: patterns("c:one") }),
    query: "it",
    lists: [...META, "b__two", "a__one", "a__two"],
  },
  {
    says: "a blank query is none",
    settings: { ...hybrid({}), intent: undefined },
    query: " \n",
    lists: META,
  },
];

Deno.test("selectTools() lists the tools of each exposure and each option", async (t) => {
  for (const { says, settings, query, lists } of CASES) {
    await t.step(says, async () => {
      using scene = new Scene(ABC, { denied: ["c:one"], scores: { ...FITS, "z:offer": 0.9 } });
      assert.deepEqual(await scene.names(settings, query), lists);
    });
  }
});

Deno.test("selectTools() keeps the list within its tokens, and leaves out a tool that is too large", async () => {
  const large = { name: "one", description: "x".repeat(50_000), inputSchema: {} };
  using scene = new Scene({ ...ABC, a: [large, ...tools("two")] }, { scores: FITS });
  const options = { semanticThreshold: 0, exposeMetaTools: false };
  const all = await scene.list(hybrid(options), "it");
  assert.deepEqual(all.map(({ name }) => name), ["b__two", "a__one", "c__one", "a__two", "b__one"]);
  const cost = (list: readonly JsonObject[]) =>
    list.reduce((sum, tool) => sum + tokensOf(JSON.stringify(tool)), 0);
  const small = all.filter(({ name }) => name !== "a__one");
  const names = (maxTokens: number) => scene.names(hybrid({ ...options, maxTokens }), "it");
  assert.deepEqual(await names(cost(all)), all.map(({ name }) => name));
  assert.deepEqual(await names(cost(all) - 1), ["b__two", "a__one", "c__one", "a__two"]);
  assert.deepEqual(await names(cost(small)), small.map(({ name }) => name));
  assert.deepEqual(await names(cost(small) - 1), ["b__two", "c__one", "a__two"]);
  assert.deepEqual(await names(0), []);
  const first = await scene.names(
    hybrid({ ...options, maxTokens: cost(small.slice(0, 2)), whitelistedTools: patterns("c:*") }),
    "it",
  );
  assert.deepEqual(first, ["c__one", "b__two"], "what is whitelisted costs, too");
});

Deno.test("selectTools() replaces tools that are too large by tools with lower scores", async () => {
  const large = { name: "one", description: "x".repeat(50_000), inputSchema: {} };
  using scene = new Scene({ ...ABC, a: [large, ...tools("two")] }, { scores: FITS });
  const options = { semanticThreshold: 0, exposeMetaTools: false, maxUnderlyingTools: 2 };
  const names = (maxTokens?: number) => scene.names(hybrid({ ...options, maxTokens }), "it");
  assert.deepEqual(await names(), ["b__two", "a__one"]);
  assert.deepEqual(scene.asked.map(({ options: { limit } }) => limit), [2]);
  assert.deepEqual(await names(1_000), ["b__two", "c__one"]);
});

Deno.test("selectTools() lists under bare names only the tools that these names call", async () => {
  const shelves = { a: tools("one"), b: tools("one", "two"), mine: tools("two", "three") };
  using scene = new Scene(shelves, { builtins: ["a"], denied: ["b:two"] });
  const settings = { exposure: "full_proxy", prefix: false } as const;
  // A bare name of a denied tool is refused, so no other tool may be shown under it.
  assert.deepEqual(await scene.names(settings), ["one", "three"]);
  assert.deepEqual([...bareTools(scene.catalog).values()].map(({ id }) => id), [
    "b:one",
    "b:two",
    "mine:three",
  ]);
});

Deno.test("selectTools() searches with the query, or else the intent, and without registry offers", async () => {
  using scene = new Scene(ABC, { scores: { "b:two": 0.5 } });
  assert.deepEqual(await scene.names({ exposure: "semantic", intent: "work" }, "q"), META);
  await scene.list({ exposure: "semantic", intent: "work" }, "  ");
  await scene.list({ ...hybrid({ maxUnderlyingTools: 3 }), intent: "work" });
  assert.deepEqual(scene.asked.map(({ query }) => query), ["q", "work", "work"]);
  const limits = scene.asked.map(({ options: { limit, threshold, offers } }) => ({
    limit,
    threshold,
    offers,
  }));
  assert.deepEqual(limits, [
    { limit: 20, threshold: 0.7, offers: false },
    { limit: 20, threshold: 0.7, offers: false },
    { limit: 3, threshold: 0.6, offers: false },
  ]);
});

Deno.test("selectTools() starts no server for a list that has none of its tools", async () => {
  const problem = new PmlError("CONFIG_INVALID", "Cannot use the configuration");
  const starts: readonly (readonly [number, Partial<ExposureSettings>, string?])[] = [
    [0, { exposure: "meta_only", intent: "it" }, "it"],
    [0, { exposure: "semantic" }],
    [0, hybrid({})],
    [0, hybrid({ exposeUnderlyingTools: false, applySemanticFilter: false }), "it"],
    [0, hybrid({ maxUnderlyingTools: 0 }), "it"],
    [3, hybrid({ whitelistedTools: patterns("a:one") })],
    [3, hybrid({ applySemanticFilter: false })],
    [3, { exposure: "semantic", intent: "it" }],
    [3, { exposure: "full_proxy" }],
  ];
  for (const [started, settings, query] of starts) {
    using scene = new Scene(ABC);
    await scene.list(settings, query);
    assert.equal(scene.started, started, JSON.stringify(settings));
    using broken = new Scene(ABC, { problem });
    const names = await broken.names(settings, query);
    assert.equal(broken.started, 0);
    assert.deepEqual(names, settings.exposure === "full_proxy" ? [] : META);
  }
});

const PAGED: Shelves = {
  a: [
    { name: "shown", inputSchema: {}, _meta: { ui: { resourceUri: "ui://app" } } },
    { name: "poll", inputSchema: {}, _meta: { ui: { visibility: ["app"] } } },
    ...tools("plain"),
  ],
  // Without a page nothing may call it.
  b: [{ name: "poll", inputSchema: {}, _meta: { ui: { visibility: ["app"] } } }, ...tools("one")],
};
const MODES: readonly Partial<ExposureSettings>[] = [
  { exposure: "meta_only" },
  { exposure: "semantic" },
  hybrid({}),
  hybrid({ exposeUnderlyingTools: false, whitelistedTools: patterns("b:*") }),
];

Deno.test("a client that shows pages gets their tools in every exposure", async () => {
  for (const settings of MODES) {
    using scene = new Scene(PAGED, { showsPages: true });
    assert.deepEqual(await scene.names(settings), [...META, "a__shown", "a__poll"]);
  }
  using scene = new Scene(PAGED, { showsPages: true, denied: ["a:shown"] });
  const full = await scene.list({ exposure: "full_proxy" });
  assert.deepEqual(full.map(({ name }) => name), ["a__plain", "b__one", "a__poll"]);
  const closed = hybrid({ blacklistedTools: patterns("a:poll") });
  assert.deepEqual(await scene.names(closed), META);
  // The bounds count the tools that models see.
  const bounded = hybrid({ applySemanticFilter: false, maxUnderlyingTools: 2 });
  assert.deepEqual(await scene.names(bounded), [...META, "a__plain", "b__one", "a__poll"]);
});

Deno.test("a client without pages gets no tool for pages alone, and no server starts for it", async () => {
  using scene = new Scene(PAGED);
  for (const settings of MODES) assert.deepEqual(await scene.names(settings), META);
  assert.equal(scene.started, 0);
  const full = await scene.names({ exposure: "full_proxy" });
  assert.deepEqual(full, ["a__plain", "a__shown", "b__one"]);
});

Deno.test("the address of a page contains its server, unless names have no prefix", async () => {
  using scene = new Scene(PAGED, { showsPages: true });
  const metaOf = async (prefix: boolean) => {
    const all = await scene.list({ exposure: "full_proxy", prefix });
    return all.find(({ name }) => String(name).endsWith("shown"))?._meta;
  };
  assert.deepEqual(await metaOf(true), { ui: { resourceUri: "ui://a/app" } });
  assert.deepEqual(await metaOf(false), { ui: { resourceUri: "ui://app" } });
});

Deno.test("lists by an intent also have the whitelist and the tools that were used lately", async () => {
  const recent = [toolId("c", "one"), toolId("a", "two")];
  using scene = new Scene(ABC, { scores: FITS, recent, denied: ["a:two"] });
  const semantic = { exposure: "semantic" } as const;
  assert.deepEqual(await scene.names(semantic, "it"), [...META, "c__one", "b__two", "a__one"]);
  assert.deepEqual(await scene.names(semantic), META, "without an intent");
  const listed = { ...hybrid({ whitelistedTools: patterns("b:one") }), ...semantic };
  assert.deepEqual(await scene.names(listed, "it"), [
    ...META,
    "b__one",
    "c__one",
    "b__two",
    "a__one",
  ]);
  const few = hybrid({ maxUnderlyingTools: 1, semanticThreshold: 0.9 });
  assert.deepEqual(await scene.names(few, "it"), [...META, "c__one"]);
  assert.deepEqual(await scene.names({ exposure: "meta_only" }, "it"), META);
});

function clientOf(isBrief: boolean, owner: object) {
  // Members that the test does not use are left out.
  return { peer: { isBrief } as ClientPeer, owner };
}

Deno.test("the tools that were used lately stay the same for a connection", async () => {
  let count = 0;
  const recent = new RecentTools({
    recentTools: () => Promise.resolve([toolId("s", `t${++count}`)]),
  });
  const [one, other] = [clientOf(false, {}), clientOf(false, {})];
  assert.deepEqual(await recent.findFor(one), ["s:t1"]);
  assert.deepEqual(await recent.findFor(other), ["s:t2"]);
  assert.deepEqual(await recent.findFor(one), ["s:t1"]);
  // Clients that live for one request share a owner.
  const owner = {};
  assert.deepEqual(await recent.findFor(clientOf(true, owner)), ["s:t3"]);
  assert.deepEqual(await recent.findFor(clientOf(true, owner)), ["s:t3"]);
});

Deno.test("a failure to read the use of tools is tried again with the next list", async () => {
  let count = 0;
  const recent = new RecentTools({
    recentTools: () => ++count === 1 ? Promise.reject(new Error("broken")) : Promise.resolve([]),
  });
  const client = clientOf(false, {});
  await assert.rejects(recent.findFor(client), /broken/);
  assert.deepEqual(await recent.findFor(client), []);
});
