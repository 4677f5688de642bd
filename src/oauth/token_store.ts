/**
 * Stores sign-ins: each in a private file in the PML home.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { isObject, objectOf, visible } from "../core/json.ts";
import { stampAt } from "../io/path_info.ts";
import {
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  type WarningLog,
  withLock,
  writePrivate,
} from "../io/private_files.ts";
import { retryWhileBusy } from "../io/waiting.ts";
import type { OAuthServer } from "./oauth_server.ts";

/** The OAuth client of PML at an authorization server. */
export type StoredClient = {
  readonly client_id: string;
  /** The secret of a registration. A configured secret is never stored. */
  readonly client_secret?: string | undefined;
  /** How the client authenticates. */
  readonly method: "none" | "client_secret_basic" | "client_secret_post";
};

/** A registered client. */
export interface Registration {
  readonly client: StoredClient;
  /** The redirect URL. */
  readonly redirect: string;
  /** When its secret expires, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** The addresses of servers for which the user signed in with a configured client. */
  readonly users?: readonly string[] | undefined;
}

/** A stored sign-in. */
export interface StoredSignIn {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string | undefined;
  readonly resource: string;
  readonly client: StoredClient;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /** The scopes that a call needed and that were not granted. */
  readonly wanted?: readonly string[] | undefined;
  /** The access token; undefined when the user must sign in again. */
  readonly accessToken?: string | undefined;
  readonly refreshToken?: string | undefined;
  /** When the access token was received, in milliseconds since 1970. */
  readonly since: number;
  /** When the access token expires or expired, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** Why the authorization server refused to renew a sign-in that has ended. */
  readonly refusal?: string | undefined;
}

/** The content of a file: a sign-in, without its secrets if these are in the keyring. */
export type FileContent<T> = T & {
  /**
   * Whether the sign-in has a refresh token. A file has this member only if its secrets are in the
   * keyring.
   */
  readonly isRenewed?: boolean | undefined;
};

/** Returns whether the secrets of a file are in the keyring. */
export function isInKeyring(content: FileContent<unknown> | undefined): boolean {
  return content?.isRenewed !== undefined;
}

/** The secret fields of a sign-in. */
type Secrets = Partial<StoredSignIn> & Pick<StoredSignIn, "client">;

/** Stores secrets by name, such as the keyring of the system. */
export interface Keyring {
  /** Returns a secret. Throws with the reason if the keyring does not return it. */
  get(name: string): Promise<string>;
  /** Stores or replaces a secret. Returns whether it can be read again. */
  set(name: string, value: string): Promise<boolean>;
  /** Removes a secret. */
  remove(name: string): Promise<void>;
}

/** Stores sign-ins by key. */
export interface TokenStore {
  /** Returns a text that changes when a sign-in changes; undefined if there is none. */
  stamp(key: string): string | undefined;
  /** Returns the content of the file of a sign-in or a registered client. Starts no program. */
  peek<T extends StoredSignIn | Registration = StoredSignIn>(
    key: string,
  ): FileContent<T> | undefined;
  /** Returns a sign-in, or a registered client; undefined if there is none. */
  read<T extends StoredSignIn | Registration = StoredSignIn>(key: string): Promise<T | undefined>;
  /**
   * Stores a sign-in or a registered client where it was stored before, or in the keyring if the
   * user is present to unlock it. For a sign-in, the caller must have its lock.
   */
  write(
    key: string,
    entry: StoredSignIn | Registration,
    options?: { readonly isAttended?: boolean },
  ): Promise<void>;
  /** Removes a sign-in or a registered client. */
  remove(key: string): Promise<void>;
  /** Returns all sign-ins. */
  all(): readonly FileContent<StoredSignIn>[];
  /** Runs `work` with the exclusive lock of a sign-in, across all processes. */
  withLock<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Returns the key of a sign-in. Two definitions of one service have separate sign-ins. */
export function signInKey({ name, url, oauth }: OAuthServer): string {
  return sha256(JSON.stringify([name, url, oauth?.client_id ?? ""])).slice(0, 32);
}

/**
 * Returns the key of the client that is registered at an issuer for a server. Each server has its
 * own client: with a shared client, a server could get a token without a consent page.
 */
export function clientKey(
  issuer: string,
  { name, url }: Pick<OAuthServer, "name" | "url">,
): string {
  return `client-${sha256(JSON.stringify([issuer, name, url])).slice(0, 32)}`;
}

/** Returns the key of older registrations at an issuer, which all servers shared. */
export function sharedClientKey(issuer: string): string {
  return `client-${sha256(issuer).slice(0, 32)}`;
}

/** The maximum number of stored URLs of a configured client. */
const USERS_MAX = 100;

/** Returns the URLs of servers for which the user signed in with a configured client. */
export function usersOf(
  store: TokenStore,
  { issuer, client }: Pick<StoredSignIn, "issuer" | "client">,
): readonly string[] {
  return store.peek<Registration>(usersKey(issuer, client))?.users ?? [];
}

/**
 * Stores the URL of a server for which the user signs in with a configured client. The URL stays
 * after the sign-in ends, because the authorization server remembers the consent for the client.
 */
export async function keepUser(
  store: TokenStore,
  { issuer, client: { client_id }, url }: Pick<StoredSignIn, "issuer" | "client" | "url">,
): Promise<void> {
  const client: StoredClient = { client_id, method: "none" };
  const key = usersKey(issuer, client);
  // Another sign-in with the client may begin at the same time.
  // guard: sign-in-users
  await store.withLock(key, async () => {
    const users = usersOf(store, { issuer, client });
    if (users.includes(url)) return;
    const all = [...users, url].slice(-USERS_MAX);
    await store.write(key, { client, redirect: "", users: all });
  });
}

function usersKey(issuer: string, { client_id }: StoredClient): string {
  return `client-${sha256(JSON.stringify(["users", issuer, client_id])).slice(0, 32)}`;
}

/** Removes the registration of a client for a server. A newer registration stays. */
export async function forgetClient(
  store: TokenStore,
  { issuer, client }: Pick<StoredSignIn, "issuer" | "client">,
  server: Pick<OAuthServer, "name" | "url">,
): Promise<void> {
  for (const key of [clientKey(issuer, server), sharedClientKey(issuer)]) {
    const clientId = store.peek<Registration>(key)?.client.client_id;
    if (clientId === client.client_id) await store.remove(key);
  }
}

/** Stores sign-ins in files, and their secrets in the keyring if there is one. */
export class FileTokenStore implements TokenStore {
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #keyring: Keyring | undefined;

  /**
   * Uses a folder, which is created for the first sign-in. Without a keyring, the files contain the
   * secrets.
   */
  constructor(folder: string, log: WarningLog, keyring?: Keyring) {
    this.#folder = folder;
    this.#log = log;
    this.#keyring = keyring;
  }

  stamp(key: string): string | undefined {
    return stampAt(this.#pathOf(key));
  }

  peek<T extends StoredSignIn | Registration = StoredSignIn>(
    key: string,
  ): FileContent<T> | undefined {
    return readPrivate(this.#pathOf(key), parseEntry<FileContent<T>>, this.#log);
  }

  async read<T extends StoredSignIn | Registration = StoredSignIn>(
    key: string,
  ): Promise<T | undefined> {
    const content = this.peek<T>(key);
    if (!isInKeyring(content)) return content;
    try {
      if (this.#keyring === undefined) throw new Error("this system has no keyring");
      return parseEntry<T>(JSON.parse(await this.#keyring.get(this.#nameOf(key))));
    } catch (error) {
      const why = visible(`${Object(error).message}`.trim(), 300);
      throw new PmlError("KEY_MISSING", `Cannot get your sign-in from the keyring: ${why}`, {
        hint: "Unlock your keyring, or sign in again with `pml login`",
      });
    }
  }

  // New secrets are stored in the keyring before the file refers to them, and old secrets are
  // removed after the file no longer refers to them. If the process is killed in between, `read`
  // returns the new secrets with the older file.
  async write(
    key: string,
    entry: StoredSignIn | Registration,
    { isAttended = false }: { readonly isAttended?: boolean } = {},
  ): Promise<void> {
    const wasInKeyring = isInKeyring(this.peek(key));
    // Registrations are included. They have a client secret but no token.
    const { accessToken, refreshToken, client, ...publicFields }: Secrets = entry;
    const { client_secret, ...publicClient } = client;
    const hasSecret = [accessToken, refreshToken, client_secret].some((secret) =>
      secret !== undefined
    );
    const isStored = (wasInKeyring || isAttended) && hasSecret &&
      await this.#keyring?.set(this.#nameOf(key), JSON.stringify(entry));
    const isRenewed = refreshToken !== undefined;
    // guard: sign-in-keyring
    await writePrivate(
      this.#pathOf(key),
      isStored ? { ...publicFields, client: publicClient, isRenewed } : entry,
    );
    if (wasInKeyring && !isStored) await this.#removeFromKeyring(key);
  }

  async remove(key: string): Promise<void> {
    const path = this.#pathOf(key);
    // A locked keyring may still contain the secret although the file does not refer to it.
    // guard: sign-in-keyring-out
    await this.#removeFromKeyring(key, !isInKeyring(this.peek(key)));
    await retryWhileBusy(() => Deno.remove(path)).then(() => syncName(path)).catch(unlessGone);
  }

  all(): readonly FileContent<StoredSignIn>[] {
    return this.#keys().flatMap((key) => /^\w{32}$/.test(key) ? this.peek(key) ?? [] : []);
  }

  /** Returns the names of all secrets in the keyring. */
  namesInKeyring(): readonly string[] {
    return this.#keys().filter((key) => isInKeyring(this.peek(key)))
      .map((key) => this.#nameOf(key));
  }

  #keys(): readonly string[] {
    try {
      return [...Deno.readDirSync(this.#folder)]
        .flatMap(({ name }) => name.endsWith(".json") ? name.slice(0, -5) : []);
    } catch (error) {
      return unlessGone(error) ?? [];
    }
  }

  async #removeFromKeyring(key: string, isSilent = false): Promise<void> {
    await this.#keyring?.remove(this.#nameOf(key)).catch(({ message }) => {
      if (!isSilent) this.#log.warn(message);
    });
  }

  /** Returns the name of the secrets in the keyring, which several PML homes may share. */
  #nameOf(key: string): string {
    privateFolder(this.#folder);
    return `sign-in-${sha256(`${Deno.realPathSync(this.#folder)} ${key}`).slice(0, 32)}`;
  }

  async withLock<T>(key: string, work: () => Promise<T>): Promise<T> {
    return await withLock(join(this.#folder, `${key}.lock`), work);
  }

  #pathOf(key: string): string {
    return join(this.#folder, `${key}.json`);
  }
}

function parseEntry<T>(json: unknown): T {
  if (!isObject(objectOf(json).client)) throw new Error("it is not a sign-in");
  return json as T; // only `FileTokenStore` writes these files
}
