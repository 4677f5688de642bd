/**
 * A folder, served as a registry.
 *
 * @module
 */

import { Folder, type FolderOptions } from "./folder.ts";
import { openReference, type Reference, type ReferenceOptions } from "./reference.ts";
import { signerOf } from "./signer.ts";

/** How a folder is served. */
export interface FolderServing
  extends Omit<FolderOptions, "path" | "sign">, Omit<ReferenceOptions, "onError"> {
  /** The Ed25519 key that entries are signed with, as PEM. */
  readonly privateKey?: string | undefined;
  /** The address that clients configure, where it is not the one that is listened at. */
  readonly publicUrl?: string | undefined;
}

/** A folder that is served. */
export interface ServedFolder extends Reference {
  /** How many servers it has. */
  readonly size: number;
  /** What clients pin, where entries are signed. */
  readonly publicKey: string | undefined;
}

/** Serves a folder, given by its real path, until it is disposed. */
export async function serveFolder(path: string, options: FolderServing): Promise<ServedFolder> {
  const { privateKey, publicUrl, warn } = options;
  const signer = privateKey === undefined ? undefined : signerOf(privateKey);
  // Entries are signed with the address, which is not known before it listens.
  const address = Promise.withResolvers<string>();
  const folder = new Folder({
    ...options,
    path,
    sign: signer &&
      (async (manifest, issued) =>
        signer.sign(manifest, { registry: await address.promise, issued })),
  });
  const onError = (error: Error) => warn(error.message);
  await using opened = new AsyncDisposableStack();
  const reference = opened.use(await openReference(folder, { ...options, onError }));
  address.resolve(publicUrl ?? reference.url);
  const { length: size } = await folder.all();
  opened.move();
  return { ...reference, size, publicKey: signer?.publicKey };
}
