/**
 * The interface of a server kind: how a registry's manifest and a file define a server of the kind,
 * what the user is shown of it, and what an approval and `pml.lock` bind to. This half of a kind
 * reads no file and starts nothing, so that the configuration, the policy and the hub can use it.
 *
 * @module
 */

import type { CodeManifest, Manifest } from "../core/manifest.ts";
import type { Permissions } from "../core/tool.ts";

/** Names with values, as they were written: `${NAME}` is replaced later. */
export type Texts = Readonly<Record<string, string>>;

/** The facts of a server that are its kind's own, as an approval and `pml.lock` have them. */
export interface KindFacts {
  /** The hash of the code. */
  readonly integrity?: string;
  /** The program and its arguments. */
  readonly command?: readonly string[];
  readonly url?: string;
  readonly permissions?: Permissions;
  /** The variables that the server gets. */
  readonly env?: readonly string[];
  /** The headers that are sent to the server. */
  readonly headers?: readonly string[];
}

/** A value that a member of a manifest may have. */
export interface MemberKind<T> {
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
  readonly as?: T;
}

/** Reads the members of a manifest. Each method throws REGISTRY_BAD_RESPONSE for a wrong value. */
export interface ManifestReader {
  /** The JSON of the manifest. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The variables that the manifest requires, whatever its kind. */
  readonly envRequired: readonly string[];
  /** Returns the value of a key if it is of a kind. Null counts as missing. */
  read<T>(key: string, value: unknown, kind: MemberKind<T>): T;
  /** Returns an object. */
  object(key: string, value: unknown): Readonly<Record<string, unknown>>;
  /** Returns an object; undefined if it is missing. */
  objectIfAny(key: string, value: unknown): Readonly<Record<string, unknown>> | undefined;
  /** Returns the hash of code. */
  integrity(key: string, value: unknown): string;
  /** Returns a list of texts that each pass a test; empty if it is missing. */
  texts(
    key: string,
    value: unknown,
    item: { readonly what: string; readonly is: (text: string) => boolean },
  ): readonly string[];
  /** Returns names of variables that a server may ask for. */
  variables(key: string, value: unknown): readonly string[];
  /** Returns names with values, which may refer to variables. */
  values(key: string, value: unknown, isName: (text: string) => boolean): Texts;
  /** Returns an address that PML may send requests to. */
  address(key: string, value: unknown): string;
  /** Returns the permissions of the manifest and of all its tools. */
  permissions(): Permissions;
}

/** What the lines of a manifest are made with. */
export interface ManifestShowing {
  /** Returns a line for each permission that code asks for and gets. */
  readonly permissionLines: (permissions: Permissions) => readonly string[];
  /** Returns the description of the definition that is made of the manifest. */
  readonly describe: (changes?: object) => string;
  /** Returns a line with the network variables that a started program gets. */
  readonly foundLines: () => readonly string[];
  /** Returns the packages that a command installs without an exact version. */
  readonly unpinned: (program: {
    readonly name: string;
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Texts;
  }) => readonly string[];
}

/** How registries define servers of a kind. */
export interface ManifestKind<M extends Manifest = Manifest> {
  /** Whether only a name with an action, such as `fs:read_json`, may have such a manifest. */
  readonly isAction?: boolean;
  /** Whether calls need the key of the user's account. */
  readonly needsAccount?: boolean;
  /** Reads the members that only manifests of this kind have. */
  read(reader: ManifestReader): Omit<M, keyof Manifest> & Partial<Pick<Manifest, "envRequired">>;
  /** Returns the texts in which variables are replaced, arguments among them. */
  templates?(manifest: M): readonly string[];
  /** Returns the facts that an approval fixes. Values are not secret, and changes are shown. */
  facts(manifest: M): KindFacts;
  /** Returns the members of the definition of the server; undefined if the cloud runs it. */
  definition(
    manifest: M,
    codePath: (manifest: CodeManifest) => string,
  ): object | undefined;
  /** Returns what a yes covers, line by line. */
  lines(manifest: M, showing: ManifestShowing): readonly string[];
  /** Returns where each key goes, if the other lines do not contain that. */
  keyLines?(manifest: M): readonly string[];
  /** Returns a line if the key of the user's account is sent along. */
  accountLines?(manifest: M, hub: string | undefined): readonly string[];
  /** Returns the manifest as one that has code. */
  code?(manifest: M): CodeManifest;
  /** Returns the tools that the code says it calls, if calls are all that it can do. */
  calls?(manifest: M): readonly string[];
}

/** A kind of servers. */
export interface ServerKind<M extends Manifest = Manifest> {
  /** The name in configuration, manifests and lists. */
  readonly name: string;
  /** The name in `pml.lock`, in hashes and in the policies of companies. */
  readonly pinnedAs: string;
  /** Whether its code runs in the sandbox, with nothing but what is granted. */
  readonly isSandboxed: boolean;
  /** Whether it always needs a network. */
  readonly isOnline: boolean;
  /** How registries define such servers; undefined if they cannot. */
  readonly manifest?: ManifestKind<M>;
}
