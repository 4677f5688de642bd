import { assertGolden } from "../../tests/kit/golden.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { type App, openApp } from "../app/app.ts";
import { environmentOf } from "../config/env.ts";
import { presets } from "../config/presets.ts";
import { sha256 } from "../core/hash.ts";
import { tokensOf } from "../core/tokens.ts";
import { config } from "./_config.ts";
import { planChange, setForPerson } from "./_config_file.ts";
import { presetPlan } from "./_config_preset.ts";
import { BREAK_EVEN, fitText } from "./_config_costs.ts";
import { recommendPreset } from "./_config_wizard.ts";
import { addServers, findTarget } from "./_undoable_edits.ts";

/** PML opened with the files of a test. */
interface House extends AsyncDisposable {
  readonly app: App;
  readonly home: string;
  readonly ws: string;
}

interface Files {
  readonly yaml?: string;
  readonly pml?: string;
  /** Whether the workspace file is trusted; "listed" if `PML_TRUST` names it. */
  readonly trusted?: boolean | "listed";
}

async function open({ yaml, pml, trusted = true }: Files = {}): Promise<House> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  await Deno.mkdir(ws);
  await Deno.mkdir(home, { mode: 0o700 });
  if (yaml !== undefined) await Deno.writeTextFile(join(home, "config.yaml"), yaml);
  if (pml !== undefined) await Deno.writeTextFile(join(ws, ".pml.json"), pml);
  const app = await openApp({
    cwd: ws,
    environment: environmentOf({
      HOME: root,
      PML_HOME: home,
      PML_WORKSPACE: ws,
      PML_REGISTRIES: "none",
      PML_LOG_LEVEL: "error",
      ...(trusted === "listed" && { PML_TRUST: ws }),
    }),
  });
  if (pml !== undefined && trusted === true) {
    const { store } = app.policy;
    await store.trust({ path: join(ws, ".pml.json"), hash: sha256(pml), servers: {} });
    await app.policy.reload();
  }
  return {
    ...{ app, ws, home },
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]();
      await Deno.remove(root, { recursive: true });
    },
  };
}

const signal = new AbortController().signal;

interface Seen {
  readonly values: Readonly<Record<string, { value: unknown; from: string; ignored?: unknown }>>;
  readonly warnings: readonly string[];
  readonly tokens: {
    readonly modes: readonly { readonly name: string; tools: number; tokens: number }[];
    readonly search: { readonly count: number; readonly median: number; readonly p95: number };
    readonly schema: { readonly count: number; readonly median: number; readonly p95: number };
  };
}

async function seen({ app }: House): Promise<Seen> {
  const { value, text = "" } = await config({ app, signal }, { words: ["show"], json: true });
  assert.ok(text.includes("docs/limits.md"), text);
  return value as Seen;
}

const YAML = `# mine
gateway:
  # keep this
  tools_exposure: full_proxy # and this
  meta_tools: [search, schema, call]
  hybrid:
    whitelisted_tools:
      - filesystem:read_file
limits: { call_ms: 5000 }
`;

Deno.test("config show says of each value where it comes from, and what of it is odd", async () => {
  const own = {
    version: 1,
    gateway: {
      tools_exposure: "semantic",
      hybrid: {
        whitelisted_tools: ["filesystem:read_file", "nobody:there"],
        blacklisted_tools: ["filesystem:*"],
      },
    },
  };
  await using house = await open({ yaml: YAML, pml: JSON.stringify(own) });
  const [yaml, file] = [join(house.home, "config.yaml"), join(house.ws, ".pml.json")];
  const { values, warnings } = await seen(house);
  assert.deepEqual(values["gateway.tools_exposure"], { value: "semantic", from: file });
  const names = ["search", "schema", "call"];
  assert.deepEqual(values["gateway.meta_tools"], { value: names, from: yaml });
  assert.deepEqual(values["gateway.hybrid.max_underlying_tools"], { value: 50, from: "default" });
  assert.deepEqual(values["limits.call_ms"], { value: 5_000, from: yaml });
  assert.equal(values["limits.batch"], undefined);
  assert.deepEqual(values.intent, { value: null, from: "default" });
  for (
    const said of [
      /^"nobody:there" matches no known tool/,
      /^"filesystem:read_file" is whitelisted and blacklisted/,
      /^gateway\.hybrid is ignored .*"semantic"/,
      /^there is no intent/,
    ]
  ) assert.equal(warnings.filter((warning) => said.test(warning)).length, 1, `${said}`);
});

Deno.test("config show lists the settings of an untrusted file as ignored", async () => {
  const pml = '{"version": 1, "gateway": {"tools_exposure": "nonsense"}, "intent": "evil"}';
  await using house = await open({ pml, trusted: false });
  const { values, warnings } = await seen(house);
  assert.deepEqual(values["gateway.tools_exposure"], {
    value: "meta_only",
    from: "default",
    ignored: "meta_only",
  });
  assert.deepEqual(values.intent, { value: null, from: "default", ignored: "evil" });
  assert.ok(warnings.some((text) => /"nonsense" is none of meta_only/.test(text)), `${warnings}`);
  assert.ok(warnings.some((text) => /not trusted/.test(text)));
  const shown = await config({ app: house.app, signal }, { words: ["intent"] });
  assert.equal(shown.text, "No intent is set");
  assert.match(shown.note ?? "", /"evil", which is ignored/);
});

Deno.test("config show measures each preset, and answers of search and schema, as clients get them", async () => {
  await using house = await open();
  const { modes, search, schema } = (await seen(house)).tokens;
  const named = Object.fromEntries(modes.map((mode) => [mode.name, mode]));
  assert.deepEqual(Object.keys(named), ["now", ...(await presets()).map(({ name }) => name)]);
  const gateway = await house.app.gateway();
  const list = await gateway.exposedTools();
  assert.deepEqual(
    [named.now?.tools, named.now?.tokens],
    [list.length, tokensOf(JSON.stringify(list))],
  );
  assert.deepEqual(named.meta_only, { ...named.now, name: "meta_only" });
  const all = house.app.catalog.list().filter(({ id }) =>
    house.app.policy.now.judge(id).kind !== "deny"
  );
  assert.equal(named.full_proxy?.tools, all.length);
  assert.ok((named.full_proxy?.tokens ?? 0) > 5 * (named.now?.tokens ?? 0));
  assert.deepEqual([search.count, schema.count], [all.length, all.length]);
  assert.ok(search.median > 100 && search.median <= search.p95, JSON.stringify(search));
  assert.ok(schema.median > 50 && schema.median <= schema.p95, JSON.stringify(schema));
});

/** Returns a text without figures, which depend on the tools of the built-in servers. */
function figured(text: string): string {
  return text.replaceAll(/[\d,]+(?= tools?\b| tokens?\b)/g, "N");
}

Deno.test("A preset changes its own keys of config.yaml, and nothing else of it", async () => {
  const [, , balanced] = await presets();
  assert.ok(balanced);
  await using house = await open({ yaml: YAML });
  const path = join(house.home, "config.yaml");
  const plan = await presetPlan(house.app, { preset: balanced, workspace: false });
  assertGolden("config/effect of a preset without an intent", figured(plan.message));
  assert.equal(await Deno.readTextFile(path), YAML);
  await plan.change.write();
  const text = await Deno.readTextFile(path);
  const kept = ["# mine", "# keep this", "# and this", "- filesystem:read_file", "call_ms: 5000"];
  for (const part of kept) assert.ok(text.includes(part), `${part} in ${text}`);
  await house.app.policy.reload();
  const { gateway, limits } = house.app.config();
  assert.deepEqual(gateway.hybrid.whitelistedTools.map(({ text }) => text), [
    "filesystem:read_file",
  ]);
  const { exposure, metaTools, hybrid: { maxTokens, maxUnderlyingTools } } = gateway;
  assert.deepEqual(
    [exposure, metaTools.length, maxTokens, maxUnderlyingTools, limits.callMs],
    ["hybrid", 3, 5_000, 20, 5_000],
  );
  const again = await presetPlan(house.app, { preset: balanced, workspace: false });
  assert.equal(again.change.diff, "");
});

Deno.test("a preset removes the values of another preset that it ignores, and keeps those of the user", async () => {
  const [metaOnly, semantic, balanced, , fullProxy] = await presets();
  assert.ok(metaOnly && semantic && balanced && fullProxy);
  await using house = await open({ yaml: "gateway:\n  name: mine\n" });
  const path = join(house.home, "config.yaml");
  const use = async (preset: typeof balanced) => {
    const plan = await presetPlan(house.app, { preset, workspace: false });
    await plan.change.write();
    await house.app.policy.reload();
    return plan;
  };
  for (const other of [metaOnly, semantic, fullProxy]) {
    await use(balanced);
    assert.match(await Deno.readTextFile(path), /hybrid:/);
    await use(other);
    const exposure = `  tools_exposure: ${other.name}\n`;
    assert.equal(await Deno.readTextFile(path), `gateway:\n  name: mine\n${exposure}`);
  }
  const listed = await presetPlan(house.app, { preset: fullProxy, workspace: false });
  assertGolden("config/a preset that is in use", figured(listed.message));
  await use(balanced);
  const own = (await Deno.readTextFile(path)).replace("max_tokens: 5000", "max_tokens: 700");
  await Deno.writeTextFile(path, own);
  await house.app.policy.reload();
  const { about } = await use(semantic);
  assert.match(await Deno.readTextFile(path), /hybrid:\n {4}max_tokens: 700\n$/);
  assert.ok("tools" in about);
});

Deno.test("a change of config.yaml keeps comments, line ends and the byte order mark, and fills empty sections", async () => {
  const yaml = "\uFEFF# mine\r\ngateway:\r\n  # none yet\r\nlimits: { call_ms: 5000 } # so\r\n";
  await using house = await open({ yaml });
  const path = join(house.home, "config.yaml");
  const made = await setForPerson(house.app, { keys: ["search", "model"], value: "/a b" });
  assert.equal(made, path);
  assert.match(await Deno.readTextFile(path), /# so\r\nsearch:\r\n {2}model: \/a b\r\n$/);
  const [, , balanced] = await presets();
  assert.ok(balanced);
  await (await presetPlan(house.app, { preset: balanced, workspace: false })).change.write();
  await addServers(house.app, await findTarget(house.app, false), {
    servers: { x: { command: "x" } },
  });
  const text = await Deno.readTextFile(path);
  assert.doesNotMatch(text, /[^\r]\n/);
  for (const kept of ["\uFEFF# mine\r\n", "# none yet", "# so\r\n"]) {
    assert.ok(text.includes(kept), `${kept} in ${text}`);
  }
  await house.app.policy.reload();
  const { problem, gateway, limits, model, servers } = house.app.config();
  assert.deepEqual(
    [problem, gateway.exposure, limits.callMs, model, servers.map(({ name }) => name)],
    [undefined, "hybrid", 5_000, "/a b", ["x"]],
  );
});

Deno.test("a config.yaml that cannot get a key, or is a link, is not changed, with the reason", async () => {
  await using house = await open();
  const path = join(house.home, "config.yaml");
  const set = () => setForPerson(house.app, { keys: ["search", "model"], value: "m" });
  await Deno.writeTextFile(path, "search: 1\n");
  await assert.rejects(set(), { code: "CONFIG_INVALID" });
  assert.equal(await Deno.readTextFile(path), "search: 1\n");
  await Deno.rename(path, join(house.ws, "other.yaml"));
  await Deno.symlink(join(house.ws, "other.yaml"), path);
  await assert.rejects(set(), { code: "CONFIG_INVALID", message: /it is a link/ });
});

Deno.test("A preset says where the workspace file overrules it", async () => {
  const [metaOnly, , balanced] = await presets();
  assert.ok(metaOnly && balanced);
  const pml = '{"version": 1, "gateway": {"tools_exposure": "full_proxy", ' +
    '"hybrid": {"max_tokens": 500, "semantic_threshold": 0.7, "whitelisted_tools": ["a:b"]}}}';
  await using house = await open({ pml });
  const { message } = await presetPlan(house.app, { preset: metaOnly, workspace: false });
  const exposure = 'gateway.tools_exposure: "full_proxy"';
  assert.ok(
    message.includes(`.pml.json sets ${exposure}, which has priority here; \`--workspace\``),
    message,
  );
  const both = await presetPlan(house.app, { preset: balanced, workspace: false });
  // A value that equals the preset, or that the preset does not set, is not reported.
  const hybrid = "gateway.hybrid.max_underlying_tools";
  assert.ok(!both.message.includes(hybrid), both.message);
  assert.ok(
    both.message.includes(`${exposure}, gateway.hybrid.max_tokens: 500, which`),
    both.message,
  );
  const here = await presetPlan(house.app, { preset: metaOnly, workspace: true });
  assert.doesNotMatch(here.message, /priority here/);
});

const INTENT = [{ at: ["intent"], entry: 'a "web" app\n— 中文' }] as const;

Deno.test("a change of the workspace file keeps its comments and its trust", async () => {
  const pml = '{\n  // mine\n  "version": 1,\n  "mcpServers": {"x": {"command": "x"}}, // end\n}\n';
  for (const trusted of [true, "listed"] as const) {
    await using house = await open({ pml, trusted });
    const { app, ws } = house;
    const change = await planChange(app, { workspace: true, settings: INTENT });
    await change.write();
    const text = await Deno.readTextFile(join(ws, ".pml.json"));
    assert.ok(text.includes("// mine") && text.includes("// end"), text);
    if (trusted === "listed") continue;
    await app.policy.reload();
    assert.deepEqual([app.config().trusted, app.config().intent], [true, INTENT[0].entry]);
    const gone = await planChange(app, {
      workspace: true,
      settings: [{ at: ["intent"], entry: undefined }],
    });
    await gone.write();
    await app.policy.reload();
    assert.deepEqual([app.config().trusted, app.config().intent], [true, undefined]);
  }
});

Deno.test("a missing workspace file is created and trusted; an untrusted one is not changed", async () => {
  await using empty = await open();
  await (await planChange(empty.app, { workspace: true, settings: INTENT })).write();
  const { mode } = await Deno.stat(join(empty.ws, ".pml.json"));
  assert.equal((mode ?? 0) & 0o777, 0o644);
  const { store } = empty.app.policy;
  const text = await Deno.readTextFile(join(empty.ws, ".pml.json"));
  assert.equal(JSON.parse(text).intent, INTENT[0].entry);
  assert.ok(await store.isTrusted(join(empty.ws, ".pml.json"), sha256(text)));
  await using other = await open({ pml: '{"version": 1}', trusted: false });
  await assert.rejects(planChange(other.app, { workspace: true, settings: INTENT }), {
    code: "WORKSPACE_UNTRUSTED",
  });
  // Nor is a file that changes while the user decides.
  await using late = await open({ pml: '{"version": 1}' });
  const change = await planChange(late.app, { workspace: true, settings: INTENT });
  const evil = '{"version": 1, "intent": "evil"}';
  await Deno.writeTextFile(join(late.ws, ".pml.json"), evil);
  await assert.rejects(change.write(), /it was changed meanwhile/);
  assert.equal(await Deno.readTextFile(join(late.ws, ".pml.json")), evil);
  assert.ok(!await late.app.policy.store.isTrusted(join(late.ws, ".pml.json"), sha256(evil)));
});

Deno.test("pml config reports invalid values, and shows the planned change as JSON", async () => {
  await using house = await open();
  const typed = (words: readonly string[], more = {}) =>
    config({ app: house.app, signal }, { words, json: true, ...more });
  const wrong: readonly (readonly [readonly string[], object?])[] = [
    [["all"]],
    [["show", "all"]],
    [["show"], { wizard: true }],
    [["intent", "x"], { preset: "balanced" }],
    [["intent", "x".repeat(2_001)]],
    [[], { preset: "fast" }],
    [[], { wizard: true }],
  ];
  for (const [words, more] of wrong) {
    await assert.rejects(typed(words, more), { code: "USAGE" }, JSON.stringify({ words, more }));
  }
  const { value: preset } = await typed([], { preset: "advanced", workspace: true });
  const intent = await typed(["intent", "a", "web app"]);
  const path = join(house.ws, ".pml.json");
  const { tokens, ...planned } = preset as { readonly tokens: { readonly estimated: boolean } };
  assert.deepEqual(planned, {
    preset: "meta_only",
    path,
    gateway: { tools_exposure: "meta_only" },
    tools: { before: 6, after: 6 },
    diff:
      '+ {\n+   "version": 1,\n+   "gateway": {\n+     "tools_exposure": "meta_only"\n+   }\n+ }',
  });
  assert.equal(tokens.estimated, true);
  assert.equal((intent.value as { readonly intent: string }).intent, "a web app");
  const none = await typed(["intent", ""], { json: false });
  assert.match(none.note ?? "", /nothing was changed/);
  await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
});

Deno.test("recommendPreset() weighs all tools against the break-even, the client's limit and the intent", () => {
  const said = { client: "other", plannedCount: 0, intent: undefined } as const;
  const costs = (tools: number, tokens: number) => ({
    catalog: { servers: 3, tools },
    modes: [
      { name: "meta_only", tools: 4, tokens: 500, saves: 0.9 },
      { name: "full_proxy", tools, tokens, saves: 0 },
    ],
  });
  const of = (...[from, more]: [ReturnType<typeof costs>, object?]) =>
    recommendPreset(from, { ...said, ...more });
  assert.equal(of(costs(8, 900)).name, "full_proxy");
  assert.equal(of(costs(8, 3_400)).name, "full_proxy");
  assert.equal(of(costs(8, 3_401)).name, "meta_only");
  assert.equal(of(costs(0, 0)).name, "full_proxy");
  assert.match(
    of(costs(8, 900), { plannedCount: 10 }).why,
    /\b8 tools of 3 .*\b130 for 10 .*\b14,900/,
  );
  assert.equal(of(costs(8, 900), { plannedCount: 10 }).name, "meta_only");
  assert.equal(of(costs(8, 9_000), { intent: "web" }).name, "hybrid_balanced");
  const many = of(costs(41, 900), { client: "cursor" });
  assert.deepEqual(
    [many.name, /\b40\b.*\bcursor\b/.test(many.why)],
    [
      "meta_only",
      true,
    ],
  );
});

Deno.test("the line about costs and the wizard recommend the same preset at any size", () => {
  for (const tokens of [100, 3_400, 3_500, 7_000, 7_100, 90_000]) {
    const modes = [{ name: "full_proxy", tools: 9, tokens, saves: 0 }];
    const { name } = recommendPreset({ catalog: { servers: 1, tools: 9 }, modes }, {
      ...{ client: "other", plannedCount: 0, intent: undefined },
    });
    const mode = tokens <= 3_400 ? "full_proxy" : tokens <= 7_000 ? "cache" : "meta_only";
    const fit = { mode, full_proxy: tokens, meta_only: 900, break_even: BREAK_EVEN } as const;
    assert.match(fitText(fit, "semantic"), new RegExp(`--preset ${name}\``), `${tokens}`);
    assert.doesNotMatch(fitText(fit, name as "full_proxy" | "meta_only"), /--preset/);
  }
});
