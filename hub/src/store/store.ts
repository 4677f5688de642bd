/**
 * The store of a hub: the versions of servers and capabilities, their tags, and their texts for
 * searches. A store is a file or a database server; the same tests run for both.
 *
 * @module
 */

import type { CatalogQuery, EntryVersion, RegistryStore } from "@casys/pml/registry";
import type { Related } from "./follows.ts";

export type { Related };

/** A version to add to a store. */
export type OfferedVersion = Pick<EntryVersion, "fqdn" | "version" | "manifest" | "code">;

/** The result of adding a version. "refused": the version exists with other content. */
export type AddResult = "added" | "same" | "refused";

/** A version in a store. */
export interface StoredEntry extends EntryVersion {
  /** When the version was added. */
  readonly created: Date;
  /** The organisation that published the version; undefined if the operator added it. */
  readonly owner?: string;
  /** Why the version was hidden. Only requests for exactly this version return it. */
  readonly yanked?: string;
}

/**
 * The kind of a key. A publisher changes the entries of an organisation (`PML_HUB_KEY`); a client
 * reads a hub that requires keys (`PML_API_KEY`). A key of one kind is not valid as the other.
 */
export type KeyKind = "publisher" | "client";

/** A new key. The store contains only its hash. */
export interface NewKey {
  readonly id: string;
  readonly owner: string;
  readonly hash: string;
  readonly kind: KeyKind;
}

/** A key of an organisation, without the key itself. */
export interface KeyRecord {
  /** The id that the operator uses for the key. */
  readonly id: string;
  readonly owner: string;
  readonly kind: KeyKind;
  readonly created: Date;
  readonly revoked?: Date;
}

/** A namespace and its owner. */
export interface NamespaceRecord {
  readonly namespace: string;
  /** An organisation; empty for the operator. */
  readonly owner: string;
}

/** A version that waits for the operator. */
export interface WaitingEntry extends OfferedVersion {
  readonly owner: string;
  readonly created: Date;
  /** The hash of the manifest, which contains the hash of the code. */
  readonly hash: string;
}

/** Limits on the names and versions of one organisation. */
export interface Shares {
  /** The maximum number of versions of one name. */
  readonly versions: number;
  /** The maximum number of names of one organisation. */
  readonly names: number;
  /** The maximum number of versions of one organisation that wait for the operator. */
  readonly waiting: number;
}

/** A version to publish. */
export interface Publication {
  readonly offered: OfferedVersion;
  /** The hash of the key that the request contained. */
  readonly keyHash: string;
  /** Whether the version waits until the operator accepts it. */
  readonly isModerated: boolean;
  readonly shares: Shares;
}

/** Why a change was refused. */
export type Refusal =
  | { readonly why: "key" | "missing" | "too_wide" }
  /** The version exists with other content. `issued` is the time of its signature, if any. */
  | { readonly why: "exists"; readonly issued?: string }
  /** The namespace belongs to another organisation, or looks like one that does. */
  | { readonly why: "foreign" | "look_alike"; readonly namespace: string }
  | { readonly why: "full"; readonly share: keyof Shares }
  /** The key has made all changes that it may make in this minute. */
  | { readonly why: "rate"; readonly seconds: number };

/** The result of a publication. */
export type PublishResult =
  | { readonly state: "public" | "waiting"; readonly isNew: boolean }
  | Refusal;

/**
 * The result of a decision. All except "done" change nothing: "missing" (the version is not waiting),
 * "other" (it has another hash by now), "exists" (with other content) and "foreign" (another owner).
 */
export type DecideResult = "done" | "missing" | "other" | "exists" | "foreign";

/** A change of a published name. Without `keyHash`, the operator makes it. */
export interface Change {
  readonly fqdn: string;
  readonly keyHash?: string | undefined;
}

/**
 * Makes the changes of publishers and the operator. Each change is one transaction that also reads the
 * key, so that a revoked key changes nothing.
 */
export interface StoreAdmin {
  /** Publishes a version, or stores it until the operator accepts or rejects it. */
  publish(publication: Publication): Promise<PublishResult>;
  /** Hides a version with a reason, or shows it again. Returns undefined if it succeeds. */
  yank(
    version: Change & { readonly version: string },
    reason: string | undefined,
  ): Promise<Refusal | undefined>;
  /** Sets a tag of a name to a version, or removes it. Returns undefined if it succeeds. */
  setTag(
    tag: Change & { readonly tag: string },
    version: string | undefined,
  ): Promise<Refusal | undefined>;
  /** Returns the tags of a name. */
  tagsOf(fqdn: string): Promise<Readonly<Record<string, string>>>;
  /** Stores the hash of a new key. */
  addKey(key: NewKey): Promise<void>;
  /** Returns whether there is a client's key with this hash that is not revoked. */
  isClientKey(hash: string): Promise<boolean>;
  /**
   * Counts a change of a key, for all hubs of this store together. Returns undefined if the key may
   * make the change.
   */
  takeTurn(keyHash: string, perMinute: number): Promise<Refusal | undefined>;
  /** Returns all keys, the oldest first. */
  keys(): Promise<readonly KeyRecord[]>;
  /** Revokes a key. Returns whether there is such a key. */
  revokeKey(id: string): Promise<boolean>;
  /** Assigns a namespace to an organisation, or to the operator. */
  give(record: NamespaceRecord): Promise<void>;
  /** Returns all namespaces, ordered by name. */
  namespaces(): Promise<readonly NamespaceRecord[]>;
  /** Returns the waiting versions, the oldest first, at most `limit`. */
  waiting(limit: number): Promise<readonly WaitingEntry[]>;
  /** Publishes a waiting version if it is accepted, or else removes it. */
  decide(
    version: { readonly fqdn: string; readonly version: string; readonly hash: string },
    isAccepted: boolean,
  ): Promise<DecideResult>;
}

/** The row of a version in the view `pml_registry`. */
export interface RegistryRow {
  readonly record_type: "mcp-server" | "capability";
  readonly fqdn: string;
  readonly type: string;
  readonly routing: string;
  readonly description: string | null;
  readonly install_command: string | null;
  /** JSON: a list of texts. */
  readonly install_args: string | null;
  readonly proxy_to: string | null;
  /** JSON: a list of names. */
  readonly env_required: string | null;
  /** JSON. */
  readonly warnings: string | null;
  readonly version: string;
  /** JSON: the tags of this version. */
  readonly version_tag: string;
}

/** A store. A change whose promise is fulfilled survives a crash of the process. */
export interface HubStore extends RegistryStore, AsyncDisposable {
  /** Makes the changes of publishers and the operator. */
  readonly admin: StoreAdmin;
  /**
   * Returns a text that changes with each change by any process. When the promise of a change is
   * fulfilled, all processes see the change.
   */
  stamp(): string | Promise<string>;
  /** Returns the entry of a version or a tag; without either, the newest that is not a pre-release. */
  readonly entry: (fqdn: string, version: string | undefined) => Promise<StoredEntry | undefined>;
  /**
   * Returns the newest entry of each name that matches, ordered by name. Returns one more than the
   * limit if there are more.
   */
  readonly page: (query: CatalogQuery) => Promise<readonly StoredEntry[]>;
  /** Adds all versions, or none if it throws. Returns the result for each version, in order. */
  add(entries: readonly OfferedVersion[]): Promise<readonly AddResult[]>;
  /** Replaces the tags of a name. */
  tag(fqdn: string, tags: Readonly<Record<string, string>>): Promise<void>;
  /** Returns the versions of a name that are not hidden, the newest first. */
  versions(fqdn: string): Promise<readonly string[]>;
  /** Returns when each version of a name was added. */
  dates(fqdn: string): Promise<ReadonlyMap<string, Date>>;
  /** Returns the newest entries that were added last, the last one first. */
  latest(limit: number): Promise<readonly StoredEntry[]>;
  /** Returns the names whose newest version runs in the cloud, ordered, at most `limit`. */
  cloudNames(limit: number): Promise<readonly string[]>;
  /** Returns the tools that published capabilities call right after or before a tool. */
  related(tool: string, limit: number): Promise<readonly Related[]>;
  /** Returns the rows of a name in the view `pml_registry`. */
  rows(fqdn: string): Promise<readonly RegistryRow[]>;
  /** Returns the number of names. Throws if the store does not answer. */
  size(): Promise<number>;
}
