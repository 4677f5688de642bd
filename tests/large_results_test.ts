/**
 * Large results: the answer contains the beginning and how to read on, and a client reads on with
 * `call`. The peers are clients and servers of the SDK, in both revisions.
 */

import assert from "node:assert/strict";
import process from "node:process";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect, type ConnectOptions } from "./kit/client.ts";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { treeOf } from "./kit/procwatch.ts";
import { repoFile } from "./kit/pml_command.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

interface RealResult {
  readonly kind: string;
  readonly name: string;
  readonly source: string;
  readonly ask: string;
  /** The request that reads on; undefined if the first answer contains the fact. */
  readonly read?: { readonly select?: string; readonly [parameter: string]: unknown };
  readonly fact: string;
}

interface Answer {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

const RESULTS: readonly RealResult[] = JSON.parse(
  await Deno.readTextFile(new URL("fixtures/results/results.json", import.meta.url)),
);
const KEPT = /pml:\/\/results\/[a-z2-7]{12}\.result/;

async function workspaceOf(gateway: object = {}): Promise<Workspace> {
  const config = repoFile("deno.json");
  const script = repoFile("tests/kit/results_server.ts");
  const args = ["run", "-A", "--quiet", `--config=${config}`, script, "./calls"];
  const env = { DENO_DIR: "${DENO_DIR}" };
  return await makeAttackWorkspace({
    pml: {
      version: 1,
      gateway,
      permissions: { allow: ["r:*"] },
      mcpServers: { r: { command: process.execPath, args, env } },
    },
  });
}

function textIn({ content }: Answer): string {
  return content.map(({ text = "" }) => String(text)).join("\n");
}

function keptIn(answer: Answer): string {
  return KEPT.exec(textIn(answer))?.[0] ?? assert.fail(textIn(answer).slice(0, 2_000));
}

const bytesOf = (answer: Answer) =>
  new TextEncoder().encode(answer.content.map(({ text, uri }) => text ?? uri).join("\n")).length;

/** A client of the SDK whose calls of meta-tools return answers. */
async function clientOf(ws: Workspace, era: Era, options: ConnectOptions = {}) {
  const { client, raw } = await connect(ws, { era, ...options });
  const ask = async (args: Record<string, unknown>, name = "call") =>
    await client.callTool({ name, arguments: args }) as unknown as Answer;
  const get = (tool: string, more = {}) => ask({ tool: `r:${tool}`, ...more });
  const dispose = async () => {
    await client.close();
    await raw[Symbol.asyncDispose]();
    await ws[Symbol.asyncDispose]();
  };
  return { client, raw, ws, ask, get, [Symbol.asyncDispose]: dispose };
}

const median = (sizes: readonly number[]) =>
  sizes.toSorted((one, other) => one - other)[Math.floor(sizes.length / 2)] ?? 0;

for (const era of ERAS) {
  Deno.test(`each of 60 real results has a short answer, and its fact is one call away, on ${era}`, async () => {
    await using at = await clientOf(await workspaceOf(), era);
    assert.equal(RESULTS.length, 60);
    const sizes: number[] = [];
    const missing: string[] = [];
    for (const { name, ask, read, fact } of RESULTS) {
      const first = await at.get(name);
      sizes.push(bytesOf(first));
      const { select, ...parameters } = read ?? {};
      const request = {
        tool: keptIn(first),
        arguments: parameters,
        ...select !== undefined && { select },
      };
      const last = read === undefined ? first : await at.ask(request);
      if (read !== undefined) sizes.push(bytesOf(last));
      // The fact is a part of a text, or of JSON with escapes.
      const escaped = JSON.stringify(fact).slice(1, -1);
      const text = textIn(last);
      if (![fact, escaped].some((one) => text.includes(one))) {
        missing.push(`${name}: ${ask}\n${text}`);
      }
    }
    assert.deepEqual(missing, []);
    assert.ok(median(sizes) <= 2_000, `the median answer has ${median(sizes)} bytes`);
    assert.ok(Math.max(...sizes) <= 6_000, `the largest answer has ${Math.max(...sizes)} bytes`);
  });
}

const codeOf = ({ structuredContent }: Answer) =>
  (structuredContent as { readonly error?: { readonly code: string } } | undefined)?.error?.code;

/** Returns how often tools of the server ran. */
async function callsOf(ws: Workspace): Promise<number> {
  const text = await Deno.readTextFile(ws.file("calls")).catch(() => "");
  return text.split("\n").length - 1;
}

for (const era of ERAS) {
  Deno.test(`a large text is read on by lines and by words, on ${era}`, async () => {
    await using at = await clientOf(await workspaceOf(), era);
    const first = await at.get("lines");
    const text = textIn(first);
    for (const line of ["line 1", "line 2", "line 2999", "line 3000"]) {
      assert.ok(text.split("\n").includes(line), line);
    }
    assert.ok(/\b3000\b/.test(text), "it names the number of lines");
    const tool = keptIn(first);
    assert.deepEqual(first.content.map(({ type }) => type), ["text", "resource_link"]);
    assert.equal(first.content[1]?.uri, tool);
    const read = async (args: Record<string, unknown>) =>
      textIn(await at.ask({ tool, arguments: args }));
    assert.equal(
      (await read({ lines: "1500-1502" })).split("\n").slice(1).join(),
      "line 1500,line 1501,line 1502",
    );
    assert.equal((await read({ lines: "-2" })).split("\n").slice(1).join(), "line 2999,line 3000");
    assert.equal((await read({ lines: 7 })).split("\n").slice(1).join(), "line 7");
    assert.ok((await read({ grep: "LINE 1500" })).startsWith("0 of 3000"));
    assert.ok((await read({ grep: "ine 1500" })).includes("\n1500: line 1500"));
    assert.ok((await read({ grep: "line" })).includes("next: offset="));
    const { contents: [content] } = await at.client.readResource({ uri: `${tool}?lines=3000` });
    assert.ok(JSON.stringify(content).includes("line 3000"));
    for (
      const wrong of [{ lines: "x" }, { lines: "9-3" }, { lines: "4000" }, { grep: "" }, { odd: 1 }]
    ) {
      assert.equal(
        codeOf(await at.ask({ tool, arguments: wrong })),
        "BAD_ARGUMENTS",
        JSON.stringify(wrong),
      );
    }
    assert.equal(
      codeOf(await at.ask({ tool: "pml://results/aaaaaaaaaaaa.result" })),
      "BAD_ARGUMENTS",
    );
    const failed = await at.get("failed");
    assert.equal(failed.isError, true);
    assert.ok(
      textIn(await at.ask({ tool: keptIn(failed), arguments: { lines: "5" } })).includes("line 5"),
    );
    const blocks = await at.get("blocks");
    const part = await at.ask({ tool: keptIn(blocks), arguments: { lines: "12" } });
    assert.ok(textIn(part).includes('"name":"item 11"'));
    assert.equal(await callsOf(at.ws), 3);
  });

  Deno.test(`select returns a part of a result, on ${era}`, async () => {
    await using at = await clientOf(await workspaceOf(), era);
    const selected = async (tool: string, select: string) => textIn(await at.get(tool, { select }));
    assert.equal(await selected("small", "/a/b"), "1");
    assert.equal(await selected("small", "c[?@ > `1`]"), "[2]");
    assert.equal(await selected("structured", "items[7].name"), "item 7");
    assert.equal(await selected("items", "/1999/name"), "item 1999");
    assert.equal(await selected("items", "[?id==`3`] | [0].name"), "item 3");
    // A selected part that is large stays outside, too.
    const large = await at.get("items", { select: "[].{id: id, name: name}" });
    const tool = keptIn(large);
    assert.equal(textIn(await at.ask({ tool, select: "[-1].name" })), "item 1999");
    assert.equal(await callsOf(at.ws), 6);
  });

  Deno.test(`a select without a match is an error with the shape, and the tool need not run again, on ${era}`, async () => {
    await using at = await clientOf(await workspaceOf(), era);
    for (const select of ["/items/0", "items[0].name"]) {
      const answer = await at.get("items", { select });
      assert.equal(codeOf(answer), "BAD_ARGUMENTS");
      assert.ok(textIn(answer).includes("array(2000) of {id: number"), textIn(answer));
      assert.equal(textIn(await at.ask({ tool: keptIn(answer), select: "/0/name" })), "item 0");
    }
    assert.equal(codeOf(await at.get("plain", { select: "/a" })), "BAD_ARGUMENTS");
    assert.equal(await callsOf(at.ws), 3);
    assert.equal(codeOf(await at.get("items", { select: "items[" })), "BAD_ARGUMENTS");
    assert.equal(codeOf(await at.get("items", { select: "nothing(@)" })), "BAD_ARGUMENTS");
    assert.equal(
      codeOf(await at.get("items", { select: `a${".a".repeat(2_000)}` })),
      "BAD_ARGUMENTS",
    );
    assert.equal(await callsOf(at.ws), 4, "an expression that cannot be parsed runs nothing");
    const [event, ...others] = ofKind(await journalOf(at.ws), "event")
      .filter(({ event }) => event === "result selected");
    assert.equal(others.length, 3);
    assert.deepEqual([event?.about?.tool, event?.about?.select], ["r:items", "/items/0"]);
  });
}

Deno.test("each call of a batch may select a part of its result", async () => {
  for (const era of ERAS) {
    await using at = await clientOf(await workspaceOf(), era);
    const calls = [
      { tool: "r:items", select: "[?id==`3`] | [0].name" },
      { tool: "r:structured", select: "/items/7/name" },
      { tool: "r:small" },
      { tool: "r:items", select: "items[" },
      { tool: "r:items", select: "/items/0" },
      { tool: "r:failed", select: "/a" },
    ];
    const answer = await at.ask({ calls }, "batch");
    const texts = answer.content.map(({ text }) => String(text));
    assert.deepEqual([texts[1], texts[3]], ["item 3", "item 7"], textIn(answer));
    assert.ok(texts[5]?.includes('"b": 1'), texts[5]);
    assert.ok(texts[6]?.endsWith(" r:items failed") && texts[7]?.includes("BAD_ARGUMENTS"));
    assert.equal(textIn(await at.ask({ tool: keptIn(answer), select: "/0/name" })), "item 0");
    assert.ok(texts[10]?.endsWith(" r:failed failed"), texts[10]);
    assert.equal(await callsOf(at.ws), 5, "an expression that cannot be parsed runs nothing");
  }
});

Deno.test("the journal contains each read and selected part, without literal values", async () => {
  await using at = await clientOf(await workspaceOf(), "2026-07-28");
  const tool = keptIn(await at.get("items"));
  await at.ask({ tool, select: "[?name=='geheim'] | [0]" });
  await at.ask({ tool, arguments: { grep: "geheim" } });
  await at.ask({ tool, arguments: { pointer: "/7" } });
  const journal = await journalOf(at.ws);
  const reads = ofKind(journal, "event").filter(({ event }) => event === "result read");
  const name = tool.slice("pml://results/".length);
  assert.deepEqual(reads.map(({ about }) => about), [
    { result: name, select: "[?name=='…'] | [0]" },
    { result: name, grep: { grep: "string(6)" } },
    { result: name, pointer: "/7" },
  ]);
  assert.ok(!JSON.stringify(journal).includes("geheim"));
});

Deno.test("hostile expressions end, and reach nothing that an object inherits", async () => {
  await using at = await clientOf(await workspaceOf(), "2025-11-25");
  const doubled = `[@, @]${" | [@, @]".repeat(60)}`;
  const products = "map(&length(sort_by(items, &name)), items)";
  const hostile = [
    doubled,
    products.replaceAll("items", "@").replace("@,", "[],"),
    `${"(".repeat(900)}a${")".repeat(900)}`,
    `${"[".repeat(1_000)}`,
    "join('', map(&join('', map(&to_string(@), [].name)), [].name))",
  ];
  const tool = keptIn(await at.get("items"));
  for (const select of hostile) {
    const answer = await at.ask({ tool, select });
    const isRefused = codeOf(answer) === "BAD_ARGUMENTS";
    assert.ok(isRefused || bytesOf(answer) < 4_000, `${select.slice(0, 40)}: ${bytesOf(answer)}`);
  }
  for (const name of ["constructor", "__proto__", "hasOwnProperty", "toString", "valueOf"]) {
    for (const select of [`[0].${name}`, `[0].{a: @}.a.${name}`, `[0].${name}.constructor`]) {
      assert.equal(codeOf(await at.ask({ tool, select })), "BAD_ARGUMENTS", select);
    }
  }
  assert.equal(textIn(await at.ask({ tool, select: "[0].name" })), "item 0");
});

Deno.test("a slow selection delays no other, and a cancelled one ends at once", async () => {
  await using at = await clientOf(await workspaceOf(), "2025-11-25", { ownProcess: true });
  const pids = async () => new Set((await treeOf(at.raw.pid)).map(({ pid }) => pid));
  const tool = keptIn(await at.get("items"));
  const before = await pids();
  assert.equal(textIn(await at.ask({ tool, select: "[0].name" })), "item 0");
  const first = [...await pids()].filter((pid) => !before.has(pid));
  assert.notEqual(first.length, 0);
  const doubled = Array(5).fill("[@, @][]").join(" | ");
  const sorted = Array(45).fill("sort_by(@, &name) | sort_by(@, &id)").join(" | ");
  const slow = (signal: AbortSignal) => {
    const args = { tool, select: `${doubled} | ${sorted} | length(@)` };
    const state = { isSettled: false };
    const calling = at.client.callTool({ name: "call", arguments: args }, { signal })
      .then(() => {}, () => {}).finally(() => state.isSettled = true);
    return { state, calling };
  };
  const [stop, stopOther] = [new AbortController(), new AbortController()];
  const cancelled = slow(stop.signal);
  const other = slow(stopOther.signal);
  assert.equal(textIn(await at.ask({ tool, select: "[1].name" })), "item 1");
  assert.ok(!cancelled.state.isSettled && !other.state.isSettled);
  stop.abort();
  await cancelled.calling;
  // Both began together, so this one would end as late as the other without the cancellation. PML
  // may have started another process meanwhile, which goes on.
  await until(async () => {
    const living = await pids();
    return first.some((pid) => !living.has(pid));
  });
  assert.ok(!other.state.isSettled);
  stopOther.abort();
  await other.calling;
  assert.equal(textIn(await at.ask({ tool, select: "[2].name" })), "item 2");
});

/** The exposures, and whether a result through `call` and by the name of the tool is cut. */
const EXPOSURES: readonly (readonly [object, boolean, boolean])[] = [
  [{ tools_exposure: "meta_only" }, true, false],
  [{ tools_exposure: "hybrid" }, true, true],
  [{ tools_exposure: "full_proxy" }, false, false],
  [{ tools_exposure: "meta_only", meta_tools: ["batch", "schema"] }, false, false],
];

Deno.test("a result stays whole where the client's list has no tool that reads on, or the tool has an output schema", async () => {
  for (const [gateway, isCut, isDirectCut] of EXPOSURES) {
    await using at = await clientOf(await workspaceOf(gateway), "2026-07-28");
    const isWhole = (answer: Answer) => textIn(answer).includes("line 1500");
    const about = JSON.stringify(gateway);
    assert.equal(isWhole(await at.ask({}, "r__lines")), !isDirectCut, about);
    assert.equal(isWhole(await at.get("lines")), !isCut, about);
    assert.equal(isWhole(await at.get("picture")), true, about);
    for (const answer of [await at.get("promised"), await at.ask({}, "r__promised")]) {
      const { items } = answer.structuredContent as { readonly items: readonly unknown[] };
      assert.equal(items.length, 2_000, about);
    }
    const batch = await at.ask({ calls: [{ tool: "r:lines" }] }, "batch");
    assert.equal(isWhole(batch), !isCut, about);
  }
});

Deno.test("the results of a batch share the size of one answer, and the smaller ones stay whole", async () => {
  await using at = await clientOf(await workspaceOf(), "2025-11-25");
  const names = ["lines", "small", "rows-blocks-1", "plain", "items"];
  const calls = names.map((name) => ({ tool: `r:${name}` }));
  const answer = await at.ask({ calls }, "batch");
  const text = textIn(answer);
  assert.ok(text.includes('{"a": {"b": 1}, "c": [1, 2]}') && text.includes("no JSON"));
  assert.equal(text.match(new RegExp(KEPT, "g"))?.length, 6, "three results, twice each");
  assert.ok(bytesOf(answer) < 8_000, `${bytesOf(answer)} bytes`);
  // Each of these is small enough for one answer, but not all together.
  const rows = await at.get("items", { select: "[:300]" });
  assert.ok(!KEPT.test(textIn(rows)), "it is whole");
  const many = await at.ask({ calls: Array(4).fill({ tool: "r:middle" }) }, "batch");
  const cut = textIn(many).match(/^Result: text of 11/gm)?.length;
  assert.equal(cut, 2, "two of four fit");
});
