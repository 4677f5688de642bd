/**
 * `pml-hub key …`, `give` and `owners`: who may publish, and under which names.
 *
 * @module
 */

import { fqdnOf, quoted } from "@casys/pml/registry";
import type { Desk, KeyKind, KeyRecord } from "../store/store.ts";
import { newKey } from "../write/key.ts";
import { keepOnTerminal, print, tell } from "./out.ts";
import { openStore } from "./_store.ts";
import { type Typed, usage } from "./_typed.ts";

/** The variable of each kind of key. */
const USE: Readonly<Record<KeyKind, string>> = {
  publisher: "Publishers set it as PML_HUB_KEY.",
  client: "Users of PML set it as PML_API_KEY, and this hub as cloud.url.",
};

/** Makes, lists or revokes keys. */
export async function keys({ verb, file, data, json, isClient }: Typed): Promise<number> {
  await using store = await openStore(data);
  const { desk } = store;
  switch (verb) {
    case "key add":
      return await add(nameOf(file, "an organisation"), {
        desk,
        json,
        kind: isClient ? "client" : "publisher",
      });
    case "key revoke":
      if (await desk.revokeKey(file)) {
        print(json ? JSON.stringify({ revoked: file }) : `Revoked ${quoted(file)}`);
        return 0;
      }
      throw usage(`Cannot revoke ${quoted(file)}: there is no such key`, "Run `pml-hub key list`");
    default:
      for (const line of listed(await desk.keys(), json)) print(line);
      return 0;
  }
}

async function add(
  owner: string,
  { desk, json, kind }: { readonly desk: Desk; readonly json: boolean; readonly kind: KeyKind },
): Promise<number> {
  const { id, key, hash } = newKey(kind);
  await desk.addKey({ id, owner, hash, kind });
  if (json) print(JSON.stringify({ id, owner, kind, key }));
  else {
    print(key);
    tell(`The key ${id} of ${owner} is shown this once. ${USE[kind]}`);
  }
  keepOnTerminal();
  return 0;
}

function listed(all: readonly KeyRecord[], json: boolean): readonly string[] {
  if (json) return [JSON.stringify({ keys: all })];
  if (all.length === 0) return ["There are no keys. `pml-hub key add ORGANISATION` makes one"];
  return all.map(({ id, owner, kind, created, revoked }) => {
    const state = revoked === undefined ? "valid" : `revoked ${dayOf(revoked)}`;
    return `${id}  ${kind.padEnd(9)}  ${owner}  since ${dayOf(created)}  ${state}`;
  });
}

/** Assigns a namespace to an organisation, or lists all namespaces. */
export async function owners({ verb, words, data, json }: Typed): Promise<number> {
  await using store = await openStore(data);
  if (verb === "give") {
    const [first = "", second = ""] = words;
    const namespace = nameOf(first, "a namespace");
    const owner = nameOf(second, "an organisation");
    await store.desk.give({ namespace, owner });
    print(
      json
        ? JSON.stringify({ namespace, owner })
        : `${namespace} and all names below it are of ${owner}`,
    );
    return 0;
  }
  const all = await store.desk.namespaces();
  if (json) print(JSON.stringify({ namespaces: all }));
  else if (all.length === 0) print("There are no names yet");
  else for (const { namespace, owner } of all) print(`${namespace}  ${owner || "(the operator)"}`);
  return 0;
}

/** Returns a name that consists of one part, without an action and a version. */
function nameOf(text: string, what: string): string {
  const fqdn = fqdnOf(text);
  if (fqdn !== undefined && fqdn.action === undefined && fqdn.version === undefined) return text;
  throw usage(
    `Cannot name ${what} ${quoted(text)}: it is no name`,
    "Use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit",
  );
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}
