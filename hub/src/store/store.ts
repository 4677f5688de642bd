/**
 * What a hub keeps: the versions of servers and capabilities, their tags, and what is searched of
 * them. A store can be a file or a database server; the same tests hold for each.
 *
 * @module
 */

import type { CatalogQuery, Entry, RegistryStore } from "@casys/pml/registry";

/** A version that is offered to a store. */
export type Offered = Pick<Entry, "fqdn" | "version" | "manifest" | "code">;

/** What became of it. A version never changes, so other content is refused. */
export type Added = "added" | "same" | "refused";

/** A version of a store, and when it was added. */
export interface StoredEntry extends Entry {
  /** When it was added. */
  readonly created: Date;
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

/** A store. All that is told as added is kept, whatever happens to the process then. */
export interface HubStore extends RegistryStore, AsyncDisposable {
  /** Returns the entry of a version or a tag; without one, the newest that is no pre-release. */
  readonly entry: (fqdn: string, version: string | undefined) => Promise<StoredEntry | undefined>;
  /** Returns the newest entries that fit, ordered by name: one more than the limit if there is. */
  readonly page: (query: CatalogQuery) => Promise<readonly StoredEntry[]>;
  /** Adds versions, all at once or, if it throws, none. Says for each what became of it. */
  add(entries: readonly Offered[]): Promise<readonly Added[]>;
  /** Sets the tags of a name, in the place of those that it had. */
  tag(fqdn: string, tags: Readonly<Record<string, string>>): Promise<void>;
  /** Returns the versions of a name, the newest first. */
  versions(fqdn: string): Promise<readonly string[]>;
  /** Returns when each version of a name was added. */
  dates(fqdn: string): Promise<ReadonlyMap<string, Date>>;
  /** Returns the newest entries that were added last, the last one first. */
  latest(limit: number): Promise<readonly StoredEntry[]>;
  /** Returns the names whose newest version runs in the cloud, ordered, at most `limit`. */
  cloudNames(limit: number): Promise<readonly string[]>;
  /** Returns the rows of a name in the view `pml_registry`. */
  rows(fqdn: string): Promise<readonly RegistryRow[]>;
  /** Returns the number of names. Throws if the store does not answer. */
  size(): Promise<number>;
}
