/**
 * Makes an entry of a file or a capability on the publisher's machine, and sends it to a hub.
 *
 * @module
 */

import { basename, join } from "node:path";
import {
  capabilityManifest,
  fqdnOf,
  type JsonObject,
  PmlError,
  quoted,
  readFolder,
  readRegular,
  savedCapability,
  type Signer,
} from "@casys/pml/registry";
import { bundled } from "./_bundle.ts";
import { type Members, send, type Target } from "./_client.ts";
import { graphOf } from "./_graph.ts";

export type { Members, Target } from "./_client.ts";

/** An entry that can be published. */
export interface Prepared {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: JsonObject;
  readonly code?: string;
  /** The files that were bundled, by their paths or addresses; one if nothing was. */
  readonly files: readonly string[];
}

const FILE = /^[^.].*\.(ts|js|json)$/;
const MOST = 2_000_000;

/**
 * Returns the entry of a saved capability; undefined if the text names none. The entry has the version
 * after the name: `my:weather@1.2.0`.
 */
export async function preparedCapability(text: string): Promise<Prepared | undefined> {
  const { name = "", action, version } = fqdnOf(text) ?? {};
  if (action === undefined || isThere(text)) return undefined;
  const fqdn = `${name}:${action}`;
  if (version === undefined) {
    throw unfit(text, "it has no version", `Write pml-hub publish ${fqdn}@1.0.0`);
  }
  const saved = await savedCapability(fqdn);
  const manifest = capabilityManifest({ fqdn, version, saved });
  return { fqdn, version, manifest, code: new TextDecoder().decode(saved.code), files: [fqdn] };
}

/**
 * Makes an entry of a module or a manifest. The file's name is the name of the entry. A module is
 * bundled if it imports something; its metadata is read in the sandbox, without any grant.
 */
export async function prepared(path: string, signal: AbortSignal): Promise<Prepared> {
  const name = basename(path);
  if (!FILE.test(name)) {
    throw unfit(path, "its name ends neither in .ts nor in .js or .json", "Rename it");
  }
  const { text, files } = await contentOf(path, signal);
  const folder = await Deno.makeTempDir({ prefix: "pml-publish-" });
  try {
    await Deno.writeTextFile(join(folder, name), text, { createNew: true, mode: 0o600 });
    const warnings: string[] = [];
    const versions = await readFolder(folder, {
      signal,
      warn: (message) => warnings.push(message),
    });
    const [entry, ...more] = versions.flatMap(({ entries }) => entries);
    if (entry === undefined || more.length > 0 || warnings.length > 0) {
      const why = warnings[0]?.replace(/^Cannot serve ".*?": /, "") ?? "it makes no entry";
      throw unfit(path, why, "Change it, and publish again");
    }
    const { fqdn, version, manifest, code } = entry;
    return {
      fqdn,
      version,
      manifest,
      files,
      ...code && { code: new TextDecoder().decode(code) },
    };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function contentOf(
  path: string,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly files: readonly string[] }> {
  if (!isThere(path)) throw unfit(path, "there is no such file", "Write pml-hub publish FILE");
  if (path.endsWith(".json")) {
    const { bytes } = readRegular(path, { most: MOST, links: true });
    return {
      text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
      files: [basename(path)],
    };
  }
  const graph = await graphOf(path, signal);
  const files = [...graph.files.values()].map(({ name }) => name);
  const only = graph.files.get(graph.entry);
  // A module without imports is published byte for byte.
  if (files.length === 1 && only?.imports.size === 0) return { text: only.text, files };
  return { text: await bundled(graph), files };
}

/** How an entry is sent. */
export interface PublishOptions extends Target {
  /** Signs the entry for the hub, if there is a key. */
  readonly signer?: Signer | undefined;
}

/** Sends an entry. The same entry twice is published once. */
export async function publish(entry: Prepared, options: PublishOptions): Promise<Members> {
  const { fqdn, version, code } = entry;
  const { registry, signer } = options;
  const put = async (issued: Date) => {
    const manifest = signer?.sign(entry.manifest, { registry, issued }) ?? entry.manifest;
    const body = { manifest, ...code !== undefined && { code } };
    return await send({ method: "PUT", path: `${fqdn}@${version}`, body }, options);
  };
  try {
    return await put(new Date());
  } catch (error) {
    // It may be there from an attempt before: the same key makes the same signature at its time.
    const issued = error instanceof PmlError ? new Date(String(error.detail?.issued)) : undefined;
    if (signer === undefined || issued === undefined || isNaN(Number(issued))) throw error;
    return await put(issued);
  }
}

/** Hides a version, or shows it again. */
export async function yankAt(
  { name, reason }: { readonly name: string; readonly reason: string | undefined },
  target: Target,
): Promise<Members> {
  const isYanked = reason !== undefined;
  const path = `${name}/${isYanked ? "yank" : "unyank"}`;
  return await send({ method: "POST", path, body: isYanked ? { reason } : {} }, target);
}

/** Lets a tag of a name stand for a version. */
export async function tagAt(
  { fqdn, version, tag }: {
    readonly fqdn: string;
    readonly version: string;
    readonly tag: string;
  },
  target: Target,
): Promise<Members> {
  const path = `${fqdn}/tags/${encodeURIComponent(tag)}`;
  return await send({ method: "PUT", path, body: { version } }, target);
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function unfit(path: string, why: string, hint: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot publish ${quoted(path, 300)}: ${why}`, { hint });
}
