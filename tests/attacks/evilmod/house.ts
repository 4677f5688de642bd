/**
 * Runs attacks: opens a gateway on a trusted workspace with hostile and honest modules, and returns
 * short forms of the results of calls.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Era, Json, Message } from "../../kit/json_rpc.ts";
import { repoFile } from "../../kit/pml_command.ts";
import { RawStdio, type RawStdioOptions } from "../../kit/raw_stdio.ts";
import { makeWorkspace, type Workspace } from "../../kit/workspace.ts";
import { codeOf, endWell, GOOD, textOf } from "../oracles.ts";

/** The modules and options of an attack. */
export interface HouseOptions {
  /** The module of each server name: a file next to this one (`life.ts`), or the text itself. */
  readonly modules: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, number>>;
  /** Further keys of `.pml.json`. */
  readonly pml?: Readonly<Record<string, unknown>>;
  readonly stdio?: RawStdioOptions;
  /** Whether PML runs as a separate process, as in `RawStdioOptions`. */
  readonly ownProcess?: boolean;
  readonly era?: Era;
  /** Texts that must not appear anywhere afterwards, next to the canary. */
  readonly secrets?: readonly string[];
}

/** The outcome of a call. */
export interface CallSummary {
  /** The code of PML's refusal, if there was one. */
  readonly code: string | undefined;
  readonly text: string;
  readonly structured: Json | undefined;
  readonly detail: Json | undefined;
  readonly isError: boolean;
  readonly message: Message;
}

/** An open workspace with its gateway. */
export interface House {
  readonly ws: Workspace;
  readonly pml: RawStdio;
  /** Calls a tool by its id, through the meta-tool. */
  call(id: string, args?: Record<string, unknown>, ms?: number): Promise<CallSummary>;
}

/** Opens a workspace, runs an attack in it, and asserts the invariants after every attack. */
export async function attack(
  options: HouseOptions,
  run: (house: House) => Promise<void>,
): Promise<void> {
  await using ws = await openWorkspace(options);
  await using pml = new RawStdio(ws, {
    era: options.era,
    ownProcess: options.ownProcess,
    ...options.stdio,
  });
  await pml.open();
  await run({
    ws,
    pml,
    call: async (id, args = {}, ms) =>
      summaryOf(await pml.callTool("call", { tool: id, arguments: args }, { ms })),
  });
  await endWell(ws, pml, { secrets: options.secrets });
}

/** Asserts that a call was refused with a code, and returns its text. */
export function assertRefused(
  summary: CallSummary,
  { code, like = /./ }: { readonly code: string; readonly like?: RegExp },
): CallSummary {
  assert.equal(summary.code, code, summary.text);
  assert.ok(summary.isError);
  assert.match(summary.text, like);
  return summary;
}

/** A group of probes of `probes.ts`, their least number, and the pattern of each refusal. */
export interface Group {
  readonly group: string;
  readonly least: number;
  readonly like: RegExp;
}

/** Asserts that every probe of a group was refused with a matching text; `tool` runs them. */
export async function assertHeld(
  { call }: House,
  { tool, group, args }: {
    readonly tool: "probe" | "again";
    readonly group: Group;
    readonly args: Record<string, unknown>;
  },
): Promise<void> {
  const told = (await call(`evil:${tool}`, { group: group.group, ...args })).structured ?? {};
  assert.ok(Object.keys(told).length >= group.least, `${Object.keys(told).length} probes`);
  for (const [name, text] of Object.entries(told)) {
    assert.doesNotMatch(String(text), /^GOT /, name);
    assert.match(String(text), group.like, name);
  }
}

/** Returns the short form of an answer. */
export function summaryOf(message: Message): CallSummary {
  const structured = message.result?.structuredContent;
  return {
    message,
    structured,
    code: codeOf(message),
    text: textOf(message),
    detail: structured?.error?.detail,
    isError: (message.result?.isError as unknown) === true,
  };
}

/** Reads the text of a module next to this file, with its local imports inlined into one file. */
export async function moduleText(name: string): Promise<string> {
  const text = await readFile(repoFile(`tests/fixtures/evil_modules/${name}`), "utf8");
  const own = text.replace(/^import type .*\n/gm, "");
  const [line, part] = /^import .* from "\.\/(\w+\.ts)";$/m.exec(own) ?? [];
  if (line === undefined || part === undefined) return own;
  const inner = (await moduleText(part)).replaceAll(/^export /gm, "");
  return own.replace(line, () => inner);
}

async function openWorkspace(options: HouseOptions): Promise<Workspace> {
  const { modules, files, limits = {}, pml = {}, env } = options;
  const names = Object.keys(modules);
  const texts = await Promise.all(names.map(async (name) => {
    const text = modules[name] ?? "";
    return [`${name}.ts`, /^\w+\.ts$/.test(text) ? await moduleText(text) : text] as const;
  }));
  const ws = await makeWorkspace({
    ...(env === undefined ? {} : { env }),
    files: { ...GOOD, ...Object.fromEntries(texts), ...files },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", ...names.map((name) => `${name}:*`)] },
      private_mcps: Object.fromEntries(
        names.map((name) => [name, { type: "deno", path: `./${name}.ts` }]),
      ),
      ...pml,
    },
  });
  await mkdir(ws.home, { recursive: true, mode: 0o700 });
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ limits }), { mode: 0o600 });
  return ws;
}
