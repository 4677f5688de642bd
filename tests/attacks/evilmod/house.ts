/**
 * Opens a gateway on a trusted workspace with hostile and honest modules, and tells in short what
 * their calls came to.
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

/** How a house of modules is opened. */
export interface HouseOptions {
  /** Server name to its module: a file beside this one (`life.ts`), or the text itself. */
  readonly modules: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, number>>;
  /** Further keys of `.pml.json`. */
  readonly pml?: Readonly<Record<string, unknown>>;
  readonly stdio?: RawStdioOptions;
  /** Whether PML runs as a process of its own, as in `RawStdioOptions`. */
  readonly ownProcess?: boolean;
  readonly era?: Era;
  /** Texts that may be found nowhere afterwards, beside the canary. */
  readonly secrets?: readonly string[];
}

/** What a call came to. */
export interface Said {
  /** The code of PML's refusal, if it was one. */
  readonly code: string | undefined;
  readonly text: string;
  readonly structured: Json | undefined;
  readonly detail: Json | undefined;
  readonly isError: boolean;
  readonly message: Message;
}

/** An open house. */
export interface House {
  readonly ws: Workspace;
  readonly pml: RawStdio;
  /** Calls a tool by its id, through the meta-tool. */
  call(id: string, args?: Record<string, unknown>, ms?: number): Promise<Said>;
}

/** Opens a house, runs an attack in it, and asserts what must hold after every attack. */
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
      said(await pml.callTool("call", { tool: id, arguments: args }, { ms })),
  });
  await endWell(ws, pml, { secrets: options.secrets });
}

/** Asserts that a call was refused with a code, and gives what was said. */
export function assertRefused(
  told: Said,
  { code, like = /./ }: { readonly code: string; readonly like?: RegExp },
): Said {
  assert.equal(told.code, code, told.text);
  assert.ok(told.isError);
  assert.match(told.text, like);
  return told;
}

/** A group of probes of `probes.ts`, how many there are at least, and what each refusal says. */
export interface Group {
  readonly group: string;
  readonly least: number;
  readonly like: RegExp;
}

/** Asserts that every probe of a group was refused, in words that fit; `tool` runs them. */
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

/** Says in short what an answer holds. */
export function said(message: Message): Said {
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

/** Reads the text of a module beside this file, with what it imports from there: it is one file. */
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
