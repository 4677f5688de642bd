/**
 * `pml-hub key …`, `give` and `owners`: the keys, and the owners of namespaces.
 *
 * @module
 */

import { fqdnOf, quoted } from "@casys/pml/registry";
import type { KeyKind, KeyRecord, StoreAdmin } from "../store/store.ts";
import { newKey } from "../write/key.ts";
import { keepOnTerminal, print, printToStderr } from "./out.ts";
import { openStore } from "./_store.ts";
import { type CommandLine, usage } from "./_command_line.ts";

/** How a key of each kind is used. */
const USAGE: Readonly<Record<KeyKind, string>> = {
  publisher: "Publishers set it as PML_HUB_KEY.",
  client: "Users of PML set it as PML_API_KEY, and this hub as cloud.url.",
};

/** Creates, lists or revokes keys. */
export async function keys(
  { verb, operand, data, json, isClient }: CommandLine,
): Promise<number> {
  await using store = await openStore(data);
  const { admin } = store;
  switch (verb) {
    case "key add":
      return await addKey(parseName(operand, "an organisation"), {
        admin,
        json,
        kind: isClient ? "client" : "publisher",
      });
    case "key revoke":
      if (await admin.revokeKey(operand)) {
        print(json ? JSON.stringify({ revoked: operand }) : `Revoked ${quoted(operand)}`);
        return 0;
      }
      throw usage(
        `Cannot revoke ${quoted(operand)}: there is no such key`,
        "Run `pml-hub key list`",
      );
    default:
      for (const line of keyLines(await admin.keys(), json)) print(line);
      return 0;
  }
}

async function addKey(
  owner: string,
  { admin, json, kind }: {
    readonly admin: StoreAdmin;
    readonly json: boolean;
    readonly kind: KeyKind;
  },
): Promise<number> {
  const { id, key, hash } = newKey(kind);
  await admin.addKey({ id, owner, hash, kind });
  if (json) print(JSON.stringify({ id, owner, kind, key }));
  else {
    print(key);
    printToStderr(`The key ${id} of ${owner} is shown this once. ${USAGE[kind]}`);
  }
  keepOnTerminal();
  return 0;
}

function keyLines(records: readonly KeyRecord[], json: boolean): readonly string[] {
  if (json) return [JSON.stringify({ keys: records })];
  if (records.length === 0) {
    return ["There are no keys. Create one with `pml-hub key add ORGANISATION`"];
  }
  return records.map(({ id, owner, kind, created, revoked }) => {
    const state = revoked === undefined ? "valid" : `revoked ${dayOf(revoked)}`;
    return `${id}  ${kind.padEnd(9)}  ${owner}  since ${dayOf(created)}  ${state}`;
  });
}

/** Assigns a namespace to an organisation, or lists all namespaces. */
export async function owners({ verb, words, data, json }: CommandLine): Promise<number> {
  await using store = await openStore(data);
  if (verb === "give") {
    const [namespaceText = "", ownerText = ""] = words;
    const namespace = parseName(namespaceText, "a namespace");
    const owner = parseName(ownerText, "an organisation");
    await store.admin.give({ namespace, owner });
    print(
      json
        ? JSON.stringify({ namespace, owner })
        : `${namespace} and all names below it belong to ${owner}`,
    );
    return 0;
  }
  const all = await store.admin.namespaces();
  if (json) print(JSON.stringify({ namespaces: all }));
  else if (all.length === 0) print("There are no names yet");
  else for (const { namespace, owner } of all) print(`${namespace}  ${owner || "(the operator)"}`);
  return 0;
}

/** Returns `text` if it is a name without an action and a version. Throws `USAGE` otherwise. */
function parseName(text: string, what: string): string {
  const fqdn = fqdnOf(text);
  if (fqdn !== undefined && fqdn.action === undefined && fqdn.version === undefined) return text;
  throw usage(
    `Cannot use ${quoted(text)} as ${what}: it is not a name`,
    "Use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit",
  );
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}
