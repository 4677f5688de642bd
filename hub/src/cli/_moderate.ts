/**
 * `pml-hub waiting`, `accept`, `reject`, `yank` and `unyank`: what readers of a hub see.
 *
 * @module
 */

import { entryName, fqdnOf, type JsonObject, quoted, textOf } from "@casys/pml/registry";
import type { Decided, HubStore, WaitingEntry } from "../store/store.ts";
import { print } from "./out.ts";
import { openStore } from "./_store.ts";
import { type Typed, usage } from "./_typed.ts";

const MOST = 1_000;
const REASON = 300;

/** Lists the versions that wait for a decision, or decides about one. */
export async function moderate(typed: Typed): Promise<number> {
  const { verb, words, data, json } = typed;
  await using store = await openStore(data);
  if (verb === "waiting") return list(await store.desk.waiting(MOST), json);
  const [name = "", hash = ""] = words;
  const target = targetOf(name);
  const decided = await store.desk.decide({ ...target, hash }, verb === "accept");
  if (decided !== "done") throw undecided(decided, name);
  const state = verb === "accept" ? "public" : "rejected";
  print(json ? JSON.stringify({ ...target, state }) : `${quoted(name)} is ${state}`);
  return 0;
}

function undecided(decided: Exclude<Decided, "done">, name: string) {
  const why = {
    missing: "it does not wait",
    other: "the waiting version has another hash; look at it again",
    foreign: "its name now belongs to another organisation; reject the waiting version",
    exists: "this version exists already with other content; reject the waiting one",
  }[decided];
  return usage(`Cannot decide about ${quoted(name)}: ${why}`, "Run `pml-hub waiting`");
}

function list(all: readonly WaitingEntry[], json: boolean): number {
  if (json) {
    const items = all.map(({ fqdn, version, owner, created, hash, manifest, code }) => ({
      fqdn,
      version,
      owner,
      created,
      hash,
      manifest,
      ...code && { code: new TextDecoder().decode(code) },
    }));
    print(JSON.stringify({ waiting: items }));
  } else if (all.length === 0) print("Nothing waits");
  else for (const entry of all) for (const line of linesOf(entry)) print(line);
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
export async function yank({ verb, file, data, reason, json }: Typed): Promise<number> {
  const target = targetOf(file);
  if (reason.length > REASON) {
    throw usage(`Cannot hide it: the reason has more than ${REASON} characters`);
  }
  await using store = await openStore(data);
  await yanked(store, { target, reason: verb === "yank" ? reason : undefined });
  const state = verb === "yank" ? "hidden" : "shown";
  print(json ? JSON.stringify({ ...target, state }) : `${quoted(file)} is ${state}`);
  return 0;
}

async function yanked(
  store: HubStore,
  { target, reason }: { readonly target: Target; readonly reason: string | undefined },
): Promise<void> {
  if (await store.desk.yank(target, reason) === undefined) return;
  const name = `${target.fqdn}@${target.version}`;
  throw usage(`Cannot change ${quoted(name)}: there is no such version`);
}

type Target = { readonly fqdn: string; readonly version: string };

function targetOf(text: string): Target {
  const fqdn = fqdnOf(text);
  if (fqdn?.version !== undefined) return { fqdn: entryName(fqdn), version: fqdn.version };
  throw usage(`Cannot find ${quoted(text)}: write NAME@VERSION`);
}
