/**
 * The invariants after every attack: one answer for each id, one pair of records for each call, no
 * process or file left, no secret leaked, and the gateway still serves.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json, Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { END_MS } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";

/** The file that `assertServes()` reads; every workspace of an attack contains it. */
export const GOOD = { "good.txt": "good\n" } as const;

/** A line of the journal. */
export interface JournalLine {
  readonly kind: "start" | "end" | "event";
  readonly callId?: string;
  readonly tool?: string;
  readonly via?: string;
  readonly run?: string;
  readonly outcome?: string;
  readonly verdict?: string;
  readonly code?: string;
  readonly unchecked?: boolean;
  readonly event?: string;
  readonly answer?: string;
  readonly about?: Json;
}

/** The expected result of a case. */
export interface Expected {
  /** How many calls reached the checks; not counted if undefined. */
  readonly calls?: number;
  /** Further texts that must not appear anywhere. */
  readonly secrets?: readonly string[];
}

/** Asserts that a good file can still be read. */
export async function assertServes(pml: RawStdio): Promise<void> {
  const { result, error } = await pml.callTool("filesystem__read_file", { path: "good.txt" });
  assert.equal(error, undefined);
  assert.equal(textOf({ result }), GOOD["good.txt"]);
}

/** Asserts that the gateway still serves, closes stdin, and checks all invariants. */
export async function endWell(
  ws: Workspace,
  pml: RawStdio,
  expected: Expected = {},
): Promise<void> {
  await assertServes(pml);
  const { code, ms } = await pml.close();
  assert.equal(code, 0, pml.stderr);
  assert.ok(ms < END_MS, `the end took ${ms} ms`);
  pml.assertAnswered();
  await assertAftermath(ws, pml, expected);
}

/** Checks all invariants of a gateway that has ended in any way. */
export async function assertAftermath(
  ws: Workspace,
  pml: RawStdio,
  { calls, secrets = [] }: Expected = {},
): Promise<void> {
  pml.assertClean();
  await pml.watch.assertNothingLeft();
  await assertNoTempFiles(ws);
  await ws.assertCanaries();
  const lines = await journalOf(ws);
  assertPaired(lines);
  if (calls !== undefined) assert.equal(ofKind(lines, "start").length, calls, "calls journalled");
  const files = await textsUnder(ws.root, ws.outside);
  for (const secret of [ws.canary, ...secrets]) {
    assertNoLeak(secret, { ...files, stdout: pml.stdout, stderr: pml.stderr });
  }
}

/** Returns every line of every journal of a workspace's PML home, file by file. */
export async function journalOf(ws: Workspace): Promise<readonly JournalLine[]> {
  const folder = join(ws.home, "journal");
  const names = await readdir(folder).catch(() => []);
  const texts = await Promise.all(
    names.filter((name) => name.endsWith(".jsonl")).sort()
      .map((name) => readFile(join(folder, name), "utf8")),
  );
  // The text after the last line end is still being written.
  return texts.flatMap((text) =>
    text.split("\n").slice(0, -1).map((line) => JSON.parse(line) as JournalLine)
  );
}

/** Asserts that each call has one start and one end, in this order. */
export function assertPaired(lines: readonly JournalLine[]): void {
  const seen = new Map<string, string[]>();
  for (const { kind, callId } of lines) {
    if (kind !== "event") seen.set(String(callId), [...seen.get(String(callId)) ?? [], kind]);
  }
  for (const [callId, kinds] of seen) assert.deepEqual(kinds, ["start", "end"], `call ${callId}`);
}

/** Returns the lines of one kind. */
export function ofKind(
  lines: readonly JournalLine[],
  kind: JournalLine["kind"],
): readonly JournalLine[] {
  return lines.filter((line) => line.kind === kind);
}

/** Returns the events of the journal, in order. */
export async function eventsOf(ws: Workspace): Promise<readonly string[]> {
  const events = ofKind(await journalOf(ws), "event").map(({ event }) => String(event));
  return events.filter((event) => !event.startsWith("journal "));
}

/** Asserts that no temporary file of PML or of a module is left. */
export async function assertNoTempFiles(ws: Workspace): Promise<void> {
  const left = [
    ...await under(join(ws.root, "tmp")),
    ...await under(join(ws.home, "sandbox")),
    ...(await under(ws.root)).filter((path) => path.endsWith(".tmp")),
  ];
  assert.deepEqual(left, [], "temporary files are left");
}

/** Returns the text of a tool's answer: all its text blocks, joined. */
export function textOf({ result }: Pick<Message, "result">): string {
  const blocks = (result?.content ?? []) as unknown as readonly { readonly text?: string }[];
  return Array.from(blocks, ({ text = "" }) => text).join("\n");
}

/** A call of a batch: its blocks of content, and its error. */
export interface BatchedCall {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly error?: { readonly code: string };
}

/** Returns the calls of the answer of `batch`, in order. */
export function batchedCalls({ result }: Pick<Message, "result">): readonly BatchedCall[] {
  const { content = [], _meta } = (result ?? {}) as unknown as Partial<BatchedCall> & {
    readonly _meta?: {
      readonly "pml/batch"?: readonly { blocks: number; error?: { code: string } }[];
    };
  };
  let at = 0;
  return (_meta?.["pml/batch"] ?? []).map(({ blocks, ...rest }) => {
    const from = at + 1; // after the line with the name
    at = from + blocks;
    return { ...rest, content: content.slice(from, at) };
  });
}

/**
 * Returns the code of a refusal, as a tool result or as an error of the protocol; undefined if
 * there is none.
 */
export function codeOf({ result, error }: Message): string | undefined {
  if (error !== undefined) {
    const { code } = (error.data ?? {}) as { readonly code?: string };
    return code ?? String(error.code);
  }
  const told = result?.structuredContent?.error?.code as unknown;
  return typeof told === "string" ? told : undefined;
}

async function under(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names.map((name) => join(folder, name));
}

/** Reads every regular file under a folder except one; links are not followed. */
async function textsUnder(folder: string, but: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts: Record<string, string> = {};
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || path === but) continue;
    const { size } = await Deno.lstat(path);
    // Larger files are sparse files of the test itself.
    if (size <= 64 * 1024 * 1024) texts[path] = await readFile(path, "latin1");
  }
  return texts;
}

/** Returns the text of an answer of `batch` without its random mark, to compare two answers. */
export function withoutMark(text: string): string {
  return text.replaceAll(/\[[a-z0-9]{8} (\d+\/\d+)\]/g, "[MARK $1]");
}
