/**
 * Serves a folder as a registry.
 *
 * @module
 */

import { answer } from "./answers.ts";
import { Folder, type FolderOptions } from "./folder.ts";
import { openReference, type ReferenceOptions, type ReferenceRegistry } from "./reference.ts";
import { signerOf } from "./signer.ts";

/** The options of `serveFolder`. */
export interface FolderServing
  extends Omit<FolderOptions, "path" | "sign">, Omit<ReferenceOptions, "onError"> {
  /** The Ed25519 key for signing entries, as PEM. */
  readonly privateKey?: string | undefined;
  /** The URL that clients configure, if it differs from the one that is listened at. */
  readonly publicUrl?: string | undefined;
}

/** A folder that is being served. */
export interface ServedFolder extends ReferenceRegistry {
  /** The number of servers in it. */
  readonly size: number;
  /** The key that clients pin, if entries are signed. */
  readonly publicKey: string | undefined;
}

/** Serves a folder, given by its real path, until it is disposed. */
export async function serveFolder(path: string, options: FolderServing): Promise<ServedFolder> {
  const { privateKey, publicUrl, warn } = options;
  const signer = privateKey === undefined ? undefined : signerOf(privateKey);
  // The signature covers the URL, which is known only after listening has begun.
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
  const reference = opened.use(
    await openReference((asked) => answer(asked, folder), { ...options, onError }),
  );
  address.resolve(publicUrl ?? reference.url);
  const { length: size } = await folder.all();
  opened.move();
  return { ...reference, size, publicKey: signer?.publicKey };
}
