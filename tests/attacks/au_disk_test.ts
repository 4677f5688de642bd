/**
 * A disk that becomes full while PML runs and has space again later. A limit on the file size, with
 * its signal ignored, simulates it: no file of PML can grow by one byte.
 *
 * @module
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Era, Message } from "../kit/json_rpc.ts";
import { treeOf } from "../kit/procwatch.ts";
import { pmlCommand } from "../kit/pml_command.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

const linux = { ignore: Deno.build.os !== "linux" };

const MODULE = `
export const __meta__ = {
  name: "own", version: "1.0.0",
  tools: {
    add: { outputSchema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } },
    fail: {},
    look: { permissions: { read: ["."] } },
    change: { permissions: { read: ["."], write: ["."] } },
    reach: { permissions: { net: ["example.com"] } },
    run: { permissions: { run: ["true"] } },
  },
};
export const add = ({ a, b }) => ({ sum: a + b });
export const fail = () => { throw new Error("the tool fails"); };
export const look = () => Deno.readTextFileSync("good.txt");
export const change = () => { Deno.writeTextFileSync("changed.txt", ""); return "changed"; };
export const reach = () => "reached";
export const run = () => "ran";
`;

const PML = {
  version: 1,
  permissions: { allow: ["filesystem:*", "shell:*", "git:*", "own:*"] },
  private_mcps: { own: { type: "deno", path: "own.js" } },
  grants: { own: { net: ["example.com"], run: ["true"] } },
};

interface Scene extends AsyncDisposable {
  readonly ws: Workspace;
  readonly pml: RawStdio;
  /** Stops all files of PML and its children from growing, or lifts that limit. */
  full(isFull: boolean): Promise<void>;
}

async function makeScene(era: Era, journal?: string): Promise<Scene> {
  const ws = await makeAttackWorkspace({ files: { "own.js": MODULE }, pml: PML });
  if (journal !== undefined) {
    await mkdir(ws.home, { recursive: true });
    await writeFile(join(ws.home, "config.yaml"), `journal: ${journal}\n`);
  }
  const ignoring = `trap '' XFSZ; exec "$0" "$@"`;
  const command = ["sh", "-c", ignoring, ...pmlCommand(), "stdio"] as const;
  const pml = new RawStdio(ws, { era, command });
  const full = async (isFull: boolean) => {
    // Calls that ran before are recorded completely.
    const count = (kind: string) => journalOf(ws).join().split(`"kind":"${kind}"`).length;
    await until(() => count("start") === count("end"));
    for (const { pid } of await treeOf(pml.pid)) {
      const fsize = `--fsize=${isFull ? 0 : "unlimited"}:unlimited`;
      const { status, stderr } = spawnSync("prlimit", [`--pid=${pid}`, fsize], {
        encoding: "utf8",
      });
      // A child may have ended meanwhile; new children inherit the limit of PML.
      assert.ok(status === 0 || pid !== pml.pid, stderr);
    }
  };
  await pml.open();
  const dispose = async () => {
    await pml[Symbol.asyncDispose]();
    await ws[Symbol.asyncDispose]();
  };
  return { ws, pml, full, [Symbol.asyncDispose]: dispose };
}

function call(pml: RawStdio, tool: string, args: Record<string, unknown> = {}): Promise<Message> {
  return pml.callTool("call", { tool, arguments: args });
}

function lines(text: string, like: RegExp): number {
  return text.split("\n").filter((line) => like.test(line)).length;
}

/** Returns the journal records of the last PML process, without incomplete lines. */
function journalOf(ws: Workspace): readonly string[] {
  const folder = join(ws.home, "journal");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8").split("\n").filter((line) => line !== "")
  );
}

Deno.test({
  name: "a full disk is reported once with its path, and refuses each call (AU3, RX9)",
  ...linux,
  fn: async () => {
    await using scene = await makeScene("2025-11-25");
    const { ws, pml, full } = scene;
    assert.equal(textOf(await call(pml, "filesystem:read_file", { path: "good.txt" })), "good\n");
    await full(true);
    for (let turn = 0; turn < 5; turn++) {
      const answer = await call(pml, "filesystem:read_file", { path: "good.txt" });
      assert.equal(codeOf(answer), "AUDIT_UNAVAILABLE", textOf(answer));
      assert.ok(textOf(answer).includes(join(ws.home, "journal")), textOf(answer));
      assert.match(textOf(answer), /the disk is full/);
    }
    // Lines of the first 250 ms are written after them.
    const errors = /error .*Cannot write the journal.*the disk is full/;
    await until(() => lines(pml.stderr, errors) > 0);
    assert.equal(lines(pml.stderr, errors), 1);
    await full(false);
    assert.equal(textOf(await call(pml, "filesystem:read_file", { path: "good.txt" })), "good\n");
    await until(() => lines(pml.stderr, /journal is written again/) > 0);
    assert.equal(lines(pml.stderr, /journal is written again/), 1);
    assert.equal(lines(pml.stderr, /Cannot write the journal/), 1);
    for (const line of journalOf(ws)) JSON.parse(line);
    assert.equal(readdirSync(join(ws.home, "journal")).length, 1);
    await endWell(ws, pml);
  },
});

Deno.test({
  name:
    'with "best_effort" only reading calls run, and their results report the missing record (AU3)',
  ...linux,
  fn: async () => {
    await using scene = await makeScene("2026-07-28", "best_effort");
    const { ws, pml, full } = scene;
    const recorded = await call(pml, "own:add", { a: 1, b: 2 });
    assert.ok(!textOf(recorded).includes("not recorded"));
    await full(true);
    const read = await call(pml, "filesystem:read_file", { path: "good.txt" });
    assert.match(textOf(read), /^good\n[^]*PML: this call was not recorded.*the disk is full/);
    const sum = await call(pml, "own:add", { a: 1, b: 2 });
    assert.deepEqual(sum.result?.structuredContent as unknown, { sum: 3 });
    assert.match(textOf(sum), /not recorded/);
    const meta = sum.result?._meta as Record<string, unknown> | undefined;
    assert.equal(meta?.["pml/journal"], "not recorded");
    // A child with other permissions, which starts while the disk is full.
    assert.match(textOf(await call(pml, "own:look")), /^good\n[^]*not recorded/);
    const failed = await call(pml, "own:fail");
    assert.match(textOf(failed), /the tool fails[^]*this call was not recorded/);
    const missing = await call(pml, "own:nothing");
    assert.match(textOf(missing), /UNKNOWN_TOOL|not recorded/);
    const changing: [string, Record<string, unknown>][] = [
      ["own:change", {}],
      ["own:reach", {}],
      ["own:run", {}],
      ["filesystem:write_file", { path: "new.txt", content: "x" }],
      ["shell:exec", { command: "true" }],
      ["git:status", {}],
    ];
    for (const [tool, args] of changing) {
      const answer = await call(pml, tool, args);
      assert.equal(codeOf(answer), "AUDIT_UNAVAILABLE", `${tool}: ${textOf(answer)}`);
    }
    assert.throws(() => statSync(ws.file("changed.txt")));
    const batch = await pml.callTool("batch", {
      calls: [{ tool: "own:add", arguments: { a: 2, b: 2 } }, { tool: "own:change" }],
    });
    assert.match(textOf(batch), /not recorded/);
    assert.match(textOf(batch), /AUDIT_UNAVAILABLE/);
    await until(() => lines(pml.stderr, /error .*Cannot write the journal/) > 0);
    assert.equal(lines(pml.stderr, /error .*Cannot write the journal/), 1);
    await full(false);
    assert.ok(!textOf(await call(pml, "own:look")).includes("not recorded"));
    assert.ok(!textOf(await call(pml, "own:change")).includes("AUDIT"));
    await endWell(ws, pml);
  },
});

Deno.test({
  name:
    "a disk that is full at the start is reported, leaves no partial file, and is used once it has space (AU3, RX9)",
  ...linux,
  fn: async () => {
    await using scene = await makeScene("2025-11-25", "best_effort");
    const { ws, pml, full } = scene;
    await full(true);
    // The module was never described: its description is not stored, and is used by this process
    // only.
    const sum = await call(pml, "own:add", { a: 1, b: 2 });
    assert.match(textOf(sum), /"sum":3[^]*not recorded/);
    for (let turn = 0; turn < 3; turn++) {
      assert.equal(codeOf(await call(pml, "own:change")), "AUDIT_UNAVAILABLE");
    }
    assert.deepEqual(readdirSync(join(ws.home, "journal")), []);
    const torn = readdirSync(ws.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /meta|pins|lists|trust/.test(entry.parentPath))
      .filter(({ name }) => /tmp|\.[0-9a-f]{8}-/.test(name));
    assert.deepEqual(torn.map(({ name }) => name), []);
    await full(false);
    assert.equal(textOf(await call(pml, "own:change")), "changed");
    assert.equal(lines(pml.stderr, /Cannot write the journal/), 1);
    await endWell(ws, pml);
  },
});

const LATE = `
export const __meta__ = {
  name: "late", version: "1.0.0",
  tools: { reach: { permissions: { net: ["example.com"] } } },
};
await new Promise((resolve) => setTimeout(resolve, 1_500));
export const reach = () => "reached";
`;

Deno.test({
  name: "a grant added while a call runs without a record does not apply to that call (AU3)",
  ...linux,
  fn: async () => {
    await using scene = await makeScene("2025-11-25", "best_effort");
    const { ws, pml, full } = scene;
    const applied = () => lines(pml.stderr, /The configuration was applied/);
    const configure = async (grants: object) => {
      const before = applied();
      const said = {
        version: 1,
        permissions: { allow: ["filesystem:*", "late:*"] },
        private_mcps: { late: { type: "deno", path: "late.js" } },
        grants,
      };
      await writeFile(ws.file(".pml.json"), JSON.stringify(said));
      await until(() => applied() > before);
    };
    await writeFile(ws.file("late.js"), LATE);
    await configure({});
    await full(true);
    const alone = (await treeOf(pml.pid)).length;
    const answer = call(pml, "late:reach");
    // PML inspects the grants that apply now, which starts a child. A spare child may start
    // earlier.
    await until(() => lines(pml.stderr, /Cannot write the journal/) > 0);
    await until(async () => (await treeOf(pml.pid)).length > alone);
    await configure({ late: { net: ["example.com"] } });
    assert.match(textOf(await answer), /^OVERLOADED/);
    assert.match(textOf(await call(pml, "late:reach")), /AUDIT_UNAVAILABLE|journal/);
    await full(false);
    assert.equal(textOf(await call(pml, "late:reach")), "reached");
    await endWell(ws, pml);
  },
});
