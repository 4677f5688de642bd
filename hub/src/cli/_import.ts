/**
 * `pml-hub import FOLDER`: adds the entries of a folder of modules and manifests.
 *
 * @module
 */

import { quoted, readFolder, type Versions } from "@casys/pml/registry";
import type { Added, HubStore, Offered } from "../store/store.ts";
import { typedPath } from "./hub_process.ts";
import { print, tell } from "./out.ts";
import { openStore } from "./_store.ts";
import { type Typed, usage } from "./_typed.ts";

/** How many versions are added in one transaction. */
const TOGETHER = 500;
/** How many names get their tags at once: each waits until all hubs answer with them. */
const TAGGED = 100;

/** The results of adding the versions of a folder. */
type Counts = Record<Added | "left_out", number>;

/** Adds a folder, and returns 1 if something of it was refused or left out. */
export async function importFolder({ file, data, json }: Typed): Promise<number> {
  const counts: Counts = { added: 0, same: 0, refused: 0, left_out: 0 };
  const versions = await readFolder(folderOf(file), {
    signal: new AbortController().signal,
    warn: (message) => {
      if (message.startsWith("Cannot serve ")) counts.left_out++;
      tell(`warning: ${message}`);
    },
  });
  await using store = await openStore(data);
  const entries = versions.flatMap(({ entries }) => entries);
  for (let at = 0; at < entries.length; at += TOGETHER) {
    await addSome(entries.slice(at, at + TOGETHER), { store, counts });
  }
  for (let at = 0; at < versions.length; at += TAGGED) {
    await Promise.all(versions.slice(at, at + TAGGED).map((one) => keepTags(one, store)));
  }
  const { added, same, refused, left_out } = counts;
  print(
    json
      ? JSON.stringify(counts)
      : `Added ${added}, known already ${same}, refused ${refused}, left out ${left_out}`,
  );
  return refused + left_out === 0 ? 0 : 1;
}

async function addSome(
  entries: readonly Offered[],
  { store, counts }: { readonly store: HubStore; readonly counts: Counts },
): Promise<void> {
  const became = await store.add(entries);
  for (const [at, { fqdn, version }] of entries.entries()) {
    const added = became[at] ?? "refused";
    counts[added]++;
    if (added === "refused") {
      const name = quoted(`${fqdn}@${version}`);
      tell(`warning: Cannot add ${name}: it is there with other content; give it a new version`);
    }
  }
}

/** A folder without tags for a name changes none. */
async function keepTags({ fqdn, tags }: Pick<Versions, "fqdn" | "tags">, store: HubStore) {
  if (Object.keys(tags).length > 0) await store.tag(fqdn, tags);
}

function folderOf(folder: string): string {
  try {
    const path = Deno.realPathSync(typedPath(folder));
    if (Deno.statSync(path).isDirectory) return path;
  } catch {
    // the error below reports it
  }
  throw usage(
    `Cannot import ${quoted(folder, 300)}: there is no such folder`,
    "Write `pml-hub import FOLDER`",
  );
}
