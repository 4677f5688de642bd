/**
 * Serves a folder as a registry.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import { answer } from "./answers.ts";
import type { WarningLog } from "../io/private_files.ts";
import { Folder, type FolderReader, type FolderSigner } from "./folder.ts";
import { openReference, type ReferenceOptions, type ReferenceRegistry } from "./reference.ts";
import { type Signer, signerOf } from "./signer.ts";

/** The options of `serveFolder`. */
export interface FolderServing extends Omit<ReferenceOptions, "onError"> {
  /** Logs a warning with the reason for each omitted file. */
  readonly log: WarningLog;
  /** The Ed25519 key for signing entries, as PEM. */
  readonly privateKey?: string | undefined;
  /** The URL that clients configure, if it differs from the listening address. */
  readonly publicUrl?: string | undefined;
}

/** A folder that is being served. */
export interface ServedFolder extends ReferenceRegistry {
  /** The number of servers in it. */
  readonly size: number;
  /** The key that clients pin, if entries are signed. */
  readonly publicKey: string | undefined;
}

/** Signs for the URL of a registry, which is known only after it listens. */
class AddressSigner implements FolderSigner {
  readonly publicKey: string;
  readonly #signer: Signer;
  readonly #address: Promise<string>;

  constructor(privateKey: string, address: Promise<string>) {
    this.#signer = signerOf(privateKey);
    this.publicKey = this.#signer.publicKey;
    this.#address = address;
  }

  async sign(manifest: JsonObject, issued: Date): Promise<JsonObject> {
    return this.#signer.sign(manifest, { registry: await this.#address, issued });
  }
}

/** Serves a folder until it is disposed. */
export async function serveFolder(
  reader: FolderReader,
  options: FolderServing,
): Promise<ServedFolder> {
  const { privateKey, publicUrl, log } = options;
  const address = Promise.withResolvers<string>();
  const signer = privateKey === undefined
    ? undefined
    : new AddressSigner(privateKey, address.promise);
  const folder = new Folder(reader, log, signer);
  const onError = (error: Error) => log.warn(error.message);
  await using stack = new AsyncDisposableStack();
  const reference = stack.use(
    await openReference((request) => answer(request, folder), { ...options, onError }),
  );
  address.resolve(publicUrl ?? reference.url);
  const { length: size } = await folder.all();
  stack.move();
  return { ...reference, size, publicKey: signer?.publicKey };
}
