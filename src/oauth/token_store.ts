/**
 * Keeps sign-ins: each in a file of its own in the PML home, for this person only.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { isObject, objectOf, visible } from "../core/json.ts";
import { stampAt } from "../io/place.ts";
import {
  locked,
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../io/private_files.ts";
import { repeated } from "../io/waiting.ts";
import type { OAuthServer } from "./oauth_server.ts";

/** The client that PML is for an authorization server. */
export type KeptClient = {
  readonly client_id: string;
  /** The secret that came with a registration. One of the configuration is never kept. */
  readonly client_secret?: string | undefined;
  /** How it proves who it is. */
  readonly method: "none" | "client_secret_basic" | "client_secret_post";
};

/** A client that was registered. */
export interface Registration {
  readonly client: KeptClient;
  /** The address that browsers are sent back to. */
  readonly redirect: string;
  /** When its secret expires, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** The addresses of servers for which the user signed in with a configured client. */
  readonly users?: readonly string[] | undefined;
}

/** A sign-in as it is kept. */
export interface Kept {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string | undefined;
  readonly resource: string;
  readonly client: KeptClient;
  /** The scopes that were granted. */
  readonly scopes: readonly string[];
  /** The scopes that a call needed and that were not granted. */
  readonly wanted?: readonly string[] | undefined;
  /** The token; undefined when the person must sign in again. */
  readonly accessToken?: string | undefined;
  readonly refreshToken?: string | undefined;
  /** When the access token came, and when it expires or was over, in milliseconds since 1970. */
  readonly since: number;
  readonly until?: number | undefined;
  /** Why the authorization server refused to renew a sign-in that is over. */
  readonly refusal?: string | undefined;
}

/** What a file says: all of a sign-in, or all but its secrets, which the keyring has. */
type Filed<T> = T & {
  /** Whether a refresh token is among the secrets in the keyring; undefined if there are none. */
  readonly isRenewed?: boolean | undefined;
};

/** What of a sign-in is secret, and where it is. */
type Secrets = Partial<Kept> & Pick<Kept, "client">;

/** Keeps secrets by their names, as the keyring of a system does. */
export interface Keyring {
  /** Returns a secret. Throws with the reason if the keyring does not give it. */
  get(name: string): Promise<string>;
  /** Keeps a secret in the place of an older one. Returns whether it can be read again. */
  set(name: string, value: string): Promise<boolean>;
  /** Removes a secret. */
  remove(name: string): Promise<void>;
}

/** Keeps sign-ins by their keys. */
export interface TokenStore {
  /** Returns a text that changes when a sign-in does; undefined if there is none. */
  stamp(key: string): string | undefined;
  /** Returns what the file says of a sign-in, or of a registered client. It starts nothing. */
  look<T extends Kept | Registration = Kept>(key: string): Filed<T> | undefined;
  /** Returns a sign-in, or a registered client; undefined if there is none. */
  read<T extends Kept | Registration = Kept>(key: string): Promise<T | undefined>;
  /**
   * Keeps a sign-in, for which the caller holds the lock, or a registered client: where it was,
   * or, if a person is there who can unlock it, in the keyring.
   */
  write(
    key: string,
    kept: Kept | Registration,
    options?: { readonly isAttended?: boolean },
  ): Promise<void>;
  /** Removes what is kept. */
  remove(key: string): Promise<void>;
  /** Returns all sign-ins. */
  all(): readonly Filed<Kept>[];
  /** Runs `work` while nobody else, in all processes, holds this lock of a sign-in. */
  locked<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Returns the key of a sign-in: two definitions of one service have two sign-ins. */
export function keyOf({ name, url, oauth }: OAuthServer): string {
  return sha256(JSON.stringify([name, url, oauth?.client_id ?? ""])).slice(0, 32);
}

/**
 * Returns the key of the client that was registered at an issuer for a server. A client that several
 * servers share would give a server a token without a consent page.
 */
export function clientKey(
  issuer: string,
  { name, url }: Pick<OAuthServer, "name" | "url">,
): string {
  return `client-${sha256(JSON.stringify([issuer, name, url])).slice(0, 32)}`;
}

/** Returns the key that registrations of an issuer had while all servers shared one. */
export function sharedClientKey(issuer: string): string {
  return `client-${sha256(issuer).slice(0, 32)}`;
}

/** The most addresses that are kept for a configured client. */
const USERS_MAX = 100;

/** Returns the addresses for which the user signed in with a configured client. */
export function usersOf(
  store: TokenStore,
  { issuer, client }: Pick<Kept, "issuer" | "client">,
): readonly string[] {
  return store.look<Registration>(usersKey(issuer, client))?.users ?? [];
}

/**
 * Keeps an address for which the user signs in with a configured client, also after the sign-in has
 * ended: the authorization server remembers the consent for the client.
 */
export async function keepUser(
  store: TokenStore,
  { issuer, client: { client_id }, url }: Pick<Kept, "issuer" | "client" | "url">,
): Promise<void> {
  const client: KeptClient = { client_id, method: "none" };
  const users = usersOf(store, { issuer, client });
  if (users.includes(url)) return;
  const all = [...users, url].slice(-USERS_MAX);
  await store.write(usersKey(issuer, client), { client, redirect: "", users: all });
}

function usersKey(issuer: string, { client_id }: KeptClient): string {
  return `client-${sha256(JSON.stringify(["users", issuer, client_id])).slice(0, 32)}`;
}

/** Removes the registration of a client for a server. A newer registration stays. */
export async function forgetClient(
  store: TokenStore,
  { issuer, client }: Pick<Kept, "issuer" | "client">,
  server: Pick<OAuthServer, "name" | "url">,
): Promise<void> {
  for (const key of [clientKey(issuer, server), sharedClientKey(issuer)]) {
    const known = store.look<Registration>(key)?.client.client_id;
    if (known === client.client_id) await store.remove(key);
  }
}

/** Keeps sign-ins in files, and their secrets in the keyring where there is one. */
export class FileTokenStore implements TokenStore {
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #keyring: Keyring | undefined;

  /**
   * Takes the folder, which is made when the first sign-in is kept. Without a keyring, secrets are
   * in the files.
   */
  constructor(folder: string, log: WarningLog, keyring?: Keyring) {
    this.#folder = folder;
    this.#log = log;
    this.#keyring = keyring;
  }

  stamp(key: string): string | undefined {
    return stampAt(this.#at(key));
  }

  look<T extends Kept | Registration = Kept>(key: string): Filed<T> | undefined {
    return readPrivate(this.#at(key), parsed<Filed<T>>, this.#log);
  }

  async read<T extends Kept | Registration = Kept>(key: string): Promise<T | undefined> {
    const filed = this.look<T>(key);
    if (filed?.isRenewed === undefined) return filed;
    try {
      if (this.#keyring === undefined) throw new Error("there is none here");
      return parsed<T>(JSON.parse(await this.#keyring.get(this.#nameOf(key))));
    } catch (error) {
      const why = visible(`${Object(error).message}`.trim(), 300);
      throw new PmlError("KEY_MISSING", `Cannot get your sign-in from the keyring: ${why}`, {
        hint: "Unlock your keyring, or sign in again with `pml login`",
      });
    }
  }

  // The keyring has the new secrets before the file says so, and loses them after it says so. One
  // that is killed between leaves new secrets behind the older file, which `read` returns.
  async write(
    key: string,
    kept: Kept | Registration,
    { isAttended = false }: { readonly isAttended?: boolean } = {},
  ): Promise<void> {
    const isThere = this.look(key)?.isRenewed !== undefined;
    // Also of a registration, which has no token.
    const { accessToken, refreshToken, client, ...open }: Secrets = kept;
    const { client_secret, ...known } = client;
    const isSecret = [accessToken, refreshToken, client_secret].some((one) => one !== undefined);
    const isIn = (isThere || isAttended) && isSecret &&
      await this.#keyring?.set(this.#nameOf(key), JSON.stringify(kept));
    const isRenewed = refreshToken !== undefined;
    // guard: sign-in-keyring
    await writePrivate(
      this.#at(key),
      isIn ? { ...open, client: known, isRenewed } : kept,
    );
    if (isThere && !isIn) await this.#forget(key);
  }

  async remove(key: string): Promise<void> {
    const at = this.#at(key);
    // A locked keyring may have it still, though the file says nothing of it.
    // guard: sign-in-keyring-out
    await this.#forget(key, this.look(key)?.isRenewed === undefined);
    await repeated(() => Deno.remove(at)).then(() => syncName(at)).catch(unlessGone);
  }

  all(): readonly Filed<Kept>[] {
    return this.#keys().flatMap((key) => /^\w{32}$/.test(key) ? this.look(key) ?? [] : []);
  }

  /** Returns the names of all secrets in the keyring. */
  inKeyring(): readonly string[] {
    return this.#keys().filter((key) => this.look(key)?.isRenewed !== undefined)
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

  async #forget(key: string, isSilent = false): Promise<void> {
    await this.#keyring?.remove(this.#nameOf(key)).catch(({ message }) => {
      if (!isSilent) this.#log.warn(message);
    });
  }

  /** Returns the name of secrets in the keyring, which several PML homes may use. */
  #nameOf(key: string): string {
    privateFolder(this.#folder);
    return `sign-in-${sha256(`${Deno.realPathSync(this.#folder)} ${key}`).slice(0, 32)}`;
  }

  async locked<T>(key: string, work: () => Promise<T>): Promise<T> {
    return await locked(join(this.#folder, `${key}.lock`), work);
  }

  #at(key: string): string {
    return join(this.#folder, `${key}.json`);
  }
}

function parsed<T>(json: unknown): T {
  if (!isObject(objectOf(json).client)) throw new Error("it is no sign-in");
  return json as T; // `FileTokenStore` alone writes these
}
