/**
 * `pml-hub waiting`, `accept`, `reject`, `yank` and `unyank`: the operator decides which versions
 * readers see.
 *
 * @module
 */

import { entryName, fqdnOf, type JsonObject, quoted, textOf } from "@casys/pml/registry";
import type { DecideResult, HubStore, WaitingEntry } from "../store/store.ts";
import { print } from "./out.ts";
import { openStore } from "./_store.ts";
import { type CommandLine, usage } from "./_command_line.ts";

const MAX_LISTED = 1_000;
const MAX_REASON = 300;

/** Lists the waiting versions, or accepts or rejects one. */
export async function moderate(commandLine: CommandLine): Promise<number> {
  const { verb, words, data, json } = commandLine;
  await using store = await openStore(data);
  if (verb === "waiting") return printWaiting(await store.admin.waiting(MAX_LISTED), json);
  const [name = "", hash = ""] = words;
  const target = parseTarget(name);
  const decided = await store.admin.decide({ ...target, hash }, verb === "accept");
  if (decided !== "done") throw decisionError(decided, name);
  const state = verb === "accept" ? "public" : "rejected";
  print(json ? JSON.stringify({ ...target, state }) : `${quoted(name)} is ${state}`);
  return 0;
}

function decisionError(decided: Exclude<DecideResult, "done">, name: string) {
  const why = {
    missing: "it is not waiting",
    other: "the waiting version has another hash; review it again",
    foreign: "its name now belongs to another organisation; reject the waiting version",
    exists: "this version already exists with other content; reject the waiting version",
  }[decided];
  return usage(`Cannot decide about ${quoted(name)}: ${why}`, "Run `pml-hub waiting`");
}

function printWaiting(entries: readonly WaitingEntry[], json: boolean): number {
  if (json) {
    const items = entries.map(({ fqdn, version, owner, created, hash, manifest, code }) => ({
      fqdn,
      version,
      owner,
      created,
      hash,
      manifest,
      ...code && { code: new TextDecoder().decode(code) },
    }));
    print(JSON.stringify({ waiting: items }));
  } else if (entries.length === 0) print("No versions are waiting");
  else for (const entry of entries) for (const line of linesOf(entry)) print(line);
  return 0;
}

function linesOf({ fqdn, version, owner, hash, manifest, code }: WaitingEntry): readonly string[] {
  const size = code === undefined ? "no code" : `${code.length} bytes of code`;
  return [
    `${fqdn}@${version}  of ${owner}  ${textOf(manifest.type)}, ${size}`,
    `  ${quoted(textOf(manifest.description), 200)}`,
    `  may: ${permissions(manifest)}`,
    `  pml-hub accept ${fqdn}@${version} ${hash}`,
  ];
}

function permissions({ permissions, install, url, proxy_to, tools_used }: JsonObject): string {
  const requests = permissions ?? install ?? url ?? proxy_to ??
    (tools_used && { calls: tools_used }) ??
    null;
  return quoted(JSON.stringify(requests), 500);
}

/** Hides a version, or shows it again. */
export async function yank(
  { verb, operand, data, reason, json }: CommandLine,
): Promise<number> {
  const target = parseTarget(operand);
  if (reason.length > MAX_REASON) {
    throw usage(`Cannot hide the version: the reason has more than ${MAX_REASON} characters`);
  }
  await using store = await openStore(data);
  await setYanked(store, { target, reason: verb === "yank" ? reason : undefined });
  const state = verb === "yank" ? "hidden" : "shown";
  print(json ? JSON.stringify({ ...target, state }) : `${quoted(operand)} is ${state}`);
  return 0;
}

async function setYanked(
  store: HubStore,
  { target, reason }: { readonly target: Target; readonly reason: string | undefined },
): Promise<void> {
  if (await store.admin.yank(target, reason) === undefined) return;
  const name = `${target.fqdn}@${target.version}`;
  throw usage(`Cannot change ${quoted(name)}: there is no such version`);
}

type Target = { readonly fqdn: string; readonly version: string };

function parseTarget(text: string): Target {
  const fqdn = fqdnOf(text);
  if (fqdn?.version !== undefined) return { fqdn: entryName(fqdn), version: fqdn.version };
  throw usage(`Cannot find ${quoted(text)}: write NAME@VERSION`);
}
