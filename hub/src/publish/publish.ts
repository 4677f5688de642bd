/**
 * Creates an entry from a file or a capability on the publisher's machine, and sends it to a hub.
 *
 * @module
 */

import { basename, join, resolve } from "node:path";
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
import { bundle } from "./_bundle.ts";
import { type HubAnswer, send, type Target } from "./_client.ts";
import { readGraph } from "./_graph.ts";

export type { HubAnswer, Target } from "./_client.ts";

/** An entry that can be published. */
export interface PreparedEntry {
  readonly fqdn: string;
  readonly version: string;
  readonly manifest: JsonObject;
  readonly code?: string;
  /** The paths or addresses of the files in the code; one if the module imports nothing. */
  readonly files: readonly string[];
}

const FILE = /^[^.].*\.(ts|js|json)$/;
const MAX_MANIFEST = 2_000_000;

/**
 * Returns the entry of a saved capability, with the version of `text` (`my:weather@1.2.0`). Returns
 * undefined if the text is not the name of a capability, or if it is a file in the working folder.
 */
export async function prepareCapability(
  text: string,
  folder: string,
): Promise<PreparedEntry | undefined> {
  const { name = "", action, version } = fqdnOf(text) ?? {};
  if (action === undefined || isFile(resolve(folder, text))) return undefined;
  const fqdn = `${name}:${action}`;
  if (version === undefined) {
    throw publishError(text, "it has no version", `Write pml-hub publish ${fqdn}@1.0.0`);
  }
  const saved = await savedCapability(fqdn);
  const manifest = capabilityManifest({ fqdn, version, saved });
  return { fqdn, version, manifest, code: new TextDecoder().decode(saved.code), files: [fqdn] };
}

/**
 * Creates an entry from a module or a manifest. The file's name is the name of the entry. A module
 * with imports is bundled. The sandbox reads its metadata without any permission. A relative path
 * starts from the working folder.
 */
export async function prepareFile(
  path: string,
  { folder: workingFolder, signal }: { readonly folder: string; readonly signal: AbortSignal },
): Promise<PreparedEntry> {
  const name = basename(path);
  if (!FILE.test(name)) {
    throw publishError(path, "its name does not end in .ts, .js or .json", "Rename the file");
  }
  const { text, files } = await readContent(path, { folder: workingFolder, signal });
  const folder = await Deno.makeTempDir({ prefix: "pml-publish-" });
  try {
    await Deno.writeTextFile(join(folder, name), text, { createNew: true, mode: 0o600 });
    const warnings: string[] = [];
    const versions = await readFolder(folder, {
      signal,
      warn: (message) => warnings.push(message),
    });
    const [entry, ...others] = versions.flatMap(({ entries }) => entries);
    if (entry === undefined || others.length > 0 || warnings.length > 0) {
      const why = warnings[0]?.replace(/^Cannot serve ".*?": /, "") ??
        "it does not define an entry";
      throw publishError(path, why, "Fix the file, and publish again");
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

async function readContent(
  typedPath: string,
  { folder, signal }: { readonly folder: string; readonly signal: AbortSignal },
): Promise<{ readonly text: string; readonly files: readonly string[] }> {
  const path = resolve(folder, typedPath);
  if (!isFile(path)) {
    throw publishError(typedPath, "there is no such file", "Write pml-hub publish FILE");
  }
  if (path.endsWith(".json")) {
    const { bytes } = readRegular(path, { most: MAX_MANIFEST, links: true });
    return {
      text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
      files: [basename(path)],
    };
  }
  const graph = await readGraph(path, signal);
  const files = [...graph.files.values()].map(({ name }) => name);
  const entryFile = graph.files.get(graph.entry);
  // A module without imports is published byte for byte.
  if (files.length === 1 && entryFile?.imports.size === 0) return { text: entryFile.text, files };
  return { text: await bundle(graph), files };
}

/** Options of `publish()`. */
export interface PublishOptions extends Target {
  /** Signs the entry for the hub, if there is a key. */
  readonly signer?: Signer | undefined;
}

/** Sends an entry. Sending the same entry again changes nothing. */
export async function publish(entry: PreparedEntry, options: PublishOptions): Promise<HubAnswer> {
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
    // An earlier attempt may have published the entry with an earlier signature time. Signing with
    // that time results in the same manifest, which the hub accepts.
    const issued = error instanceof PmlError ? new Date(String(error.detail?.issued)) : undefined;
    if (signer === undefined || issued === undefined || isNaN(Number(issued))) throw error;
    return await put(issued);
  }
}

/** Hides a version, or shows it again. */
export async function yankAt(
  { name, reason }: { readonly name: string; readonly reason: string | undefined },
  target: Target,
): Promise<HubAnswer> {
  const isYanked = reason !== undefined;
  const path = `${name}/${isYanked ? "yank" : "unyank"}`;
  return await send({ method: "POST", path, body: isYanked ? { reason } : {} }, target);
}

/** Sets a tag of a name to a version. */
export async function tagAt(
  { fqdn, version, tag }: {
    readonly fqdn: string;
    readonly version: string;
    readonly tag: string;
  },
  target: Target,
): Promise<HubAnswer> {
  const path = `${fqdn}/tags/${encodeURIComponent(tag)}`;
  return await send({ method: "PUT", path, body: { version } }, target);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

function publishError(path: string, why: string, hint: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot publish ${quoted(path, 300)}: ${why}`, { hint });
}
