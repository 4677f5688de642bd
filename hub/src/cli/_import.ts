/**
 * `pml-hub import FOLDER`: adds the entries of a folder of modules and manifests.
 *
 * @module
 */

import { quoted, readFolder, type Versions } from "@casys/pml/registry";
import type { AddResult, HubStore, OfferedVersion } from "../store/store.ts";
import { typedPath } from "./hub_process.ts";
import { print, printToStderr } from "./out.ts";
import { openStore } from "./_store.ts";
import { type CommandLine, usage } from "./_command_line.ts";

/** The number of versions that are added in one transaction. */
const VERSION_BATCH = 500;
/**
 * The number of names whose tags are set at the same time. Each change waits until all hubs on the
 * store use the new state, and changes can wait together.
 */
const TAG_BATCH = 100;

/** The results of adding the versions of a folder. */
type Counts = Record<AddResult | "left_out", number>;

/** Adds the entries of a folder. Returns 1 if some were refused or left out. */
export async function importFolder({ operand: folder, data, json }: CommandLine): Promise<number> {
  const counts: Counts = { added: 0, same: 0, refused: 0, left_out: 0 };
  const versions = await readFolder(realFolder(folder), {
    signal: new AbortController().signal,
    warn: (message) => {
      if (message.startsWith("Cannot serve ")) counts.left_out++;
      printToStderr(`warning: ${message}`);
    },
  });
  await using store = await openStore(data);
  const entries = versions.flatMap(({ entries }) => entries);
  for (let at = 0; at < entries.length; at += VERSION_BATCH) {
    await addBatch(entries.slice(at, at + VERSION_BATCH), { store, counts });
  }
  for (let at = 0; at < versions.length; at += TAG_BATCH) {
    await Promise.all(versions.slice(at, at + TAG_BATCH).map((name) => setTags(name, store)));
  }
  const { added, same, refused, left_out } = counts;
  print(
    json
      ? JSON.stringify(counts)
      : `Added ${added}, known already ${same}, refused ${refused}, left out ${left_out}`,
  );
  return refused + left_out === 0 ? 0 : 1;
}

async function addBatch(
  entries: readonly OfferedVersion[],
  { store, counts }: { readonly store: HubStore; readonly counts: Counts },
): Promise<void> {
  const results = await store.add(entries);
  for (const [at, { fqdn, version }] of entries.entries()) {
    const result = results[at] ?? "refused";
    counts[result]++;
    if (result === "refused") {
      const name = quoted(`${fqdn}@${version}`);
      printToStderr(
        `warning: Cannot add ${name}: it exists with other content; give it a new version`,
      );
    }
  }
}

/** Sets the tags of a name. Keeps the present tags if the folder has none for it. */
async function setTags({ fqdn, tags }: Pick<Versions, "fqdn" | "tags">, store: HubStore) {
  if (Object.keys(tags).length > 0) await store.tag(fqdn, tags);
}

function realFolder(folder: string): string {
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
