/**
 * What must hold after every attack, whatever it was: one answer an id, one pair of records a
 * call, nothing left behind, nothing leaked, and the gateway still serves.
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

/** The file that `assertServes()` reads; every workspace of an attack holds it. */
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

/** What is known of how a case went. */
export interface Expected {
  /** How many calls reached the gates; not counted without it. */
  readonly calls?: number;
  /** Further texts that may stand nowhere. */
  readonly secrets?: readonly string[];
}

/** Asserts that a good file can still be read. */
export async function assertServes(pml: RawStdio): Promise<void> {
  const { result, error } = await pml.callTool("filesystem__read_file", { path: "good.txt" });
  assert.equal(error, undefined);
  assert.equal(textOf({ result }), GOOD["good.txt"]);
}

/** Asserts that the gateway still serves, hangs up, and asserts all that must hold after it. */
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

/** Asserts what must hold once a gateway has ended, however it did. */
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

/** Gives every line of every journal of a workspace's PML home, file by file. */
export async function journalOf(ws: Workspace): Promise<readonly JournalLine[]> {
  const folder = join(ws.home, "journal");
  const names = await readdir(folder).catch(() => []);
  const texts = await Promise.all(
    names.filter((name) => name.endsWith(".jsonl")).sort()
      .map((name) => readFile(join(folder, name), "utf8")),
  );
  // What stands behind the last line end is being written.
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

/** Gives the lines of one kind. */
export function ofKind(
  lines: readonly JournalLine[],
  kind: JournalLine["kind"],
): readonly JournalLine[] {
  return lines.filter((line) => line.kind === kind);
}

/** Gives the events of the journal, in order. */
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

/** Gives the text of a tool's answer: all its text blocks, joined. */
export function textOf({ result }: Pick<Message, "result">): string {
  const blocks = (result?.content ?? []) as unknown as readonly { readonly text?: string }[];
  return Array.from(blocks, ({ text = "" }) => text).join("\n");
}

/** Gives the code of a refusal, whether it went to the model or to the client, or nothing. */
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

/** Reads every regular file under a folder but one; links are not followed. */
async function textsUnder(folder: string, but: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts: Record<string, string> = {};
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || path === but) continue;
    const { size } = await Deno.lstat(path);
    // What is larger was made large by the test itself, as a hole.
    if (size <= 64 * 1024 * 1024) texts[path] = await readFile(path, "latin1");
  }
  return texts;
}
