/**
 * Keeps sign-ins: each in a file of its own in the PML home, for this person only.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { isObject, objectOf } from "../core/json.ts";
import { stampAt } from "../io/place.ts";
import {
  locked,
  privateFolder,
  readPrivate,
  syncName,
  unlessGone,
  writePrivate,
} from "../io/private_files.ts";
import type { OAuthServer } from "./sign_ins.ts";

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
}

/** Keeps sign-ins by their keys. */
export interface TokenStore {
  /** Returns a text that changes when a sign-in does; undefined if there is none. */
  stamp(key: string): string | undefined;
  /** Returns a sign-in, or the client of an issuer; undefined if there is none. */
  read<T = Kept>(key: string): T | undefined;
  /** Keeps a sign-in, for which the caller holds the lock, or the client of an issuer. */
  write(key: string, kept: Kept | Registration): Promise<void>;
  /** Removes what is kept. */
  remove(key: string): Promise<void>;
  /** Returns all sign-ins. */
  all(): readonly Kept[];
  /** Runs `work` while nobody else, in all processes, holds this lock of a sign-in. */
  locked<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Returns the key of a sign-in: two definitions of one service have two sign-ins. */
export function keyOf({ name, url, oauth }: OAuthServer): string {
  return sha256(JSON.stringify([name, url, oauth?.client_id ?? ""])).slice(0, 32);
}

/** Returns the key of the client that was registered at an issuer. */
export function clientKey(issuer: string): string {
  return `client-${sha256(issuer).slice(0, 32)}`;
}

/** Keeps sign-ins in files. */
export class FileTokenStore implements TokenStore {
  readonly #folder: string;
  readonly #warn: (message: string) => void;

  /** Takes the folder; it is made when the first sign-in is kept. */
  constructor(folder: string, warn: (message: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
  }

  stamp(key: string): string | undefined {
    return stampAt(this.#at(key));
  }

  read<T = Kept>(key: string): T | undefined {
    const parse = (json: unknown) => {
      if (!isObject(objectOf(json).client)) throw new Error("it is no sign-in");
      return json as T; // this class alone writes these files
    };
    return readPrivate(this.#at(key), { parse, warn: this.#warn });
  }

  async write(key: string, kept: Kept | Registration): Promise<void> {
    await writePrivate(this.#at(key), kept);
  }

  async remove(key: string): Promise<void> {
    const at = this.#at(key);
    await Deno.remove(at).then(() => syncName(at)).catch(unlessGone);
  }

  all(): readonly Kept[] {
    privateFolder(this.#folder);
    return [...Deno.readDirSync(this.#folder)]
      .flatMap(({ name }) => /^\w{32}\.json$/.test(name) ? this.read(name.slice(0, 32)) ?? [] : []);
  }

  async locked<T>(key: string, work: () => Promise<T>): Promise<T> {
    return await locked(join(this.#folder, `${key}.lock`), work);
  }

  #at(key: string): string {
    return join(this.#folder, `${key}.json`);
  }
}
