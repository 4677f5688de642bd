/**
 * The interface of a server kind: the manifests and entries of files that define a server of the
 * kind, its consent lines, and the facts that an approval and `pml.lock` bind to. This half of a kind
 * reads no file and starts nothing, so that the configuration, the policy and the hub can use it.
 *
 * @module
 */

import type { OAuthSettings } from "../core/authorization.ts";
import type { CodeManifest, Manifest } from "./manifest.ts";
import type { Permissions } from "../protocol/tool.ts";
import type { ToolSettings } from "../core/tool_settings.ts";
import type { ValueSchema } from "../core/wanted.ts";

/** Names with values, as they were written: `${NAME}` is replaced later. */
export type Texts = Readonly<Record<string, string>>;

/** A server as a file or a registry defines it. Each kind adds its own members. */
export interface ServerDefinition {
  /** The name of its kind: `deno`, `stdio` or `http`. */
  readonly kind: string;
  /** The name. */
  readonly name: string;
  /** The name as it was written, if that is not valid for a server. */
  readonly title?: string;
  /** Whether it runs confined. A module always does. */
  readonly confine?: boolean;
  /** The tools to keep, if they are listed. All others are ignored. */
  readonly tools?: readonly string[];
  /** The settings for its tools. */
  readonly settings?: ToolSettings;
  /** The time limit of its calls in milliseconds, in place of `limits.call_ms`. */
  readonly timeoutMs?: number;
}

/** A server whose code is one file, which runs in the sandbox. */
export interface ModuleDefinition extends ServerDefinition {
  /** The absolute path of the file. */
  readonly path: string;
}

/** A program that speaks MCP on its pipes. */
export interface ProgramDefinition extends ServerDefinition {
  /** The program. */
  readonly command: string;
  /** The arguments of the program. */
  readonly args: readonly string[];
  /** The environment as it was written: `${NAME}` is replaced when the server starts. */
  readonly env: Readonly<Record<string, string>>;
  /** The working folder: an absolute path, or one that begins with a variable. */
  readonly cwd?: string;
  /** The file with further variables: an absolute path, or one that begins with a folder variable. */
  readonly envFile?: string;
  /**
   * Whether it counts as unconfined although it is confined: its grants name programs or paths to
   * write, and this machine has no layer that bounds them.
   */
  readonly isUnheld?: true;
}

/** A server that is reached over HTTP. */
export interface RemoteDefinition extends ServerDefinition {
  /** The URL. */
  readonly url: string;
  /** Whether the file declares the URL as one of HTTP+SSE. */
  readonly isSse?: boolean;
  /** The headers as they were written: `${NAME}` is replaced when a request is sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** The settings of the sign-in. `${NAME}` in the secret is replaced. */
  readonly oauth?: OAuthSettings | undefined;
  /** The file of authorities that are trusted for it as well; only in the user's file. */
  readonly ca?: string;
  /** The file of the client certificate; only in the user's file. */
  readonly cert?: string;
  /** The file of the key of that certificate. */
  readonly key?: string;
}

/** The values of a definition as they were written, by the kind of their place. */
export type DefinitionTexts = Readonly<
  Partial<
    Record<
      | "args"
      | "arguments"
      | "command"
      | "cwd"
      | "env"
      | "headers"
      | "oauth"
      | "url",
      Readonly<Record<string, string>>
    >
  >
>;

/** The facts of a server that depend on its kind, as an approval and `pml.lock` have them. */
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
  /** The variables that the manifest requires, for any kind. */
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
  /** Returns a list of texts without control characters; empty if it is missing. */
  plainTexts(key: string, value: unknown): readonly string[];
  /** Returns names of variables that a server may ask for. */
  variables(key: string, value: unknown): readonly string[];
  /** Returns variables that a server may set, with values, which may refer to others. */
  environment(key: string, value: unknown): Texts;
  /** Returns names with values, which may refer to variables. */
  values(key: string, value: unknown, isName: (text: string) => boolean): Texts;
  /** Returns an address that PML may send requests to. */
  address(key: string, value: unknown): string;
  /** Returns the permissions of the manifest and of all its tools. */
  permissions(): Permissions;
}

/** The functions that consent lines of manifests use. */
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

/** The words for a kind on the pages of a registry. */
export interface ManifestText {
  /** The kind in one or two words, such as `module`. */
  readonly title: string;
  /** The kind in a sentence. */
  readonly summary: string;
  /** Whether an empty list of permissions is shown as well. */
  readonly listsPermissions?: boolean;
  /** The part of a `server.json` of the official MCP Registry that defines such a server. */
  readonly official?: "package" | "remote";
}

/** A kind as registries use it: its words, and the parts of its entries. */
export interface PublishedKind extends ManifestText {
  /** Whether an entry has code next to its manifest. */
  readonly hasCode: boolean;
  /** Whether the code only calls tools. It is JSON then. */
  readonly onlyCalls: boolean;
  /** Whether the cloud runs such servers. */
  readonly isInCloud: boolean;
}

/** How registries define servers of a kind. */
export interface ManifestKind<M extends Manifest = Manifest> {
  /** Whether only a name with an action, such as `fs:read_json`, may have such a manifest. */
  readonly isAction?: boolean;
  /** The words for the kind on the pages of a registry. */
  readonly text: ManifestText;
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
  /** Returns the facts that an approval covers, one line each. */
  lines(manifest: M, showing: ManifestShowing): readonly string[];
  /** Returns where each key goes, if the other lines do not contain that. */
  keyLines?(manifest: M): readonly string[];
  /** Returns a line if the key of the user's account is sent along. */
  accountLines?(manifest: M, hub: string | undefined): readonly string[];
  /** Returns the manifest as one that has code. */
  code?(manifest: M): CodeManifest;
  /** Returns the tools that the code calls, for code that can do nothing else. */
  calls?(manifest: M): readonly string[];
}

/** The parts of which the forms of entries in files consist. */
export interface FormParts {
  readonly text: ValueSchema<string>;
  /** A text that is not empty. */
  readonly filled: ValueSchema<string>;
  readonly texts: ValueSchema<string[]>;
  readonly flag: ValueSchema<boolean>;
  /** The name of a variable. */
  readonly variable: ValueSchema<string>;
  /** The path of a file or folder. */
  readonly path: ValueSchema<string>;
  /** The path of a certificate, which only the user's own file may have. */
  readonly certificate: ValueSchema<string>;
  readonly port: ValueSchema<number>;
  /** The tools to keep, or settings for them. */
  readonly listedTools: ValueSchema<unknown>;
  /** Settings for tools, by their names. */
  readonly settings: ValueSchema<unknown>;
  /** Returns a text that matches. */
  readonly matching: (wanted: string, grammar: RegExp) => ValueSchema<string>;
  /** Returns the key `type` with these values. */
  readonly type: (...types: readonly string[]) => { readonly type: ValueSchema<string> };
  /** The variables that a registry's entry requires. */
  readonly required: Readonly<Record<string, ValueSchema<unknown>>>;
  /** The keys of a registry's entry, which can be pasted. */
  readonly pasted: Readonly<Record<string, ValueSchema<unknown>>>;
  /** The keys that clients write and PML ignores. */
  readonly beside: Readonly<Record<string, ValueSchema<unknown>>>;
}

/** The forms of entries that define servers of a kind, by the values of `type`. */
export interface EntryForms {
  /** The entries of `private_mcps`. */
  readonly own: Readonly<Record<string, ValueSchema<unknown>>>;
  /** The entries of `mcpServers`, as clients write them. */
  readonly clients: Readonly<Record<string, ValueSchema<unknown>>>;
}

/** An entry of a file that defines a server, with the members that all kinds have. */
export interface FileEntry {
  /** The entry, as the schema of its kind requires it. */
  readonly json: object;
  /** The name of the server, and the one that was written. */
  readonly names: Pick<ServerDefinition, "name" | "title">;
  /** The tools to keep. */
  readonly tools: readonly string[] | undefined;
  /** The settings for its tools, if there are any. */
  readonly settings: Pick<ServerDefinition, "settings">;
  /** The time limit of its calls, if it has one. */
  readonly limits: Pick<ServerDefinition, "timeoutMs">;
  /** Returns an absolute path. Paths in a file are relative to its folder. */
  readonly pathOf: (path: string) => string;
  /** Warns about the value of a key. */
  readonly warn: (key: string, message: string) => void;
}

/** The functions and values that descriptions use. */
export interface DescriptionParts {
  /** Returns the end of a sentence with the values that a server is given; empty without values. */
  readonly describeValues: (what: string, values: Texts) => string;
  /** Returns the value of a variable in the host of an address. */
  readonly plain?: ((name: string) => string | undefined) | undefined;
  /** The names of the variables in the `envFile`; undefined if the file was not read. */
  readonly fileNames?: readonly string[] | undefined;
}

/** The facts of a definition that an approval binds to. Values stay out of `pml.lock`. */
export interface DefinitionFacts {
  readonly command?: readonly string[];
  readonly url?: string;
  readonly env?: Texts;
  readonly headers?: Texts;
}

/** A server as a company's policy compares it: a definition or a manifest. */
export interface PolicySubject {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly confine?: boolean | undefined;
  readonly isUnheld?: true;
}

/** The definitions of a kind. */
export interface DefinitionKind<D extends ServerDefinition = ServerDefinition> {
  /** Returns the forms of entries. If missing, no file defines such a server. */
  forms?(parts: FormParts): EntryForms;
  /** The values of `type` in files. */
  readonly types: readonly string[];
  /** Reads an entry of a file, which has the form of its type. */
  read?(entry: FileEntry): Omit<D, "kind">;
  /** Returns a description for consent, `pml list` and `pml why`. */
  describe(definition: D, parts: DescriptionParts): string;
  /** Returns the facts that an approval, a pin and the lock bind to. */
  identity(definition: D): DefinitionFacts;
  /** Returns the texts in which variables are replaced. If missing, it gets granted variables only. */
  texts?(definition: D): DefinitionTexts;
  /** Returns the further words by which a company's policy forbids the server. */
  policyWords?(server: PolicySubject): readonly string[];
  /** Returns the definition as that of a module. */
  module?(definition: D): ModuleDefinition;
  /** Returns the definition as that of a program. */
  program?(definition: D): ProgramDefinition;
  /** Returns the definition as that of a server at a URL. */
  remote?(definition: D): RemoteDefinition;
}

/** A kind of servers. */
export interface ServerKind<
  M extends Manifest = Manifest,
  D extends ServerDefinition = ServerDefinition,
> {
  /** The name in configuration, manifests and lists. */
  readonly name: string;
  /** The name in `pml.lock`, in hashes and in the policies of companies. */
  readonly pinnedAs: string;
  /**
   * Whether its code runs in the sandbox, with the granted permissions alone. The definitions of its
   * tools are then part of that code.
   */
  readonly isSandboxed: boolean;
  /** Whether it always needs a network. */
  readonly isOnline: boolean;
  /** Whether it notifies clients of changed lists, and may show each client other lists. */
  readonly notifies: boolean;
  /** Whether it checks the arguments and results of all its tools itself, so that PML need not. */
  readonly checksItself: boolean;
  /** Whether the cloud runs it. Calls then need the key of the user's account. */
  readonly isInCloud?: boolean;
  /** Whether it may have tools that its list lacks. */
  readonly hasUnlistedTools?: boolean;
  /** Whether the user saved it, and has read it before. */
  readonly isSaved?: boolean;
  /** The definitions of such servers; undefined if they have none. */
  readonly definition?: DefinitionKind<D>;
  /** How registries define such servers; undefined if they cannot. */
  readonly manifest?: ManifestKind<M>;
}
