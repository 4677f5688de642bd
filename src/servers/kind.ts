/**
 * The interface of a server kind: the manifests and the entries of files that define a server of
 * the kind, the consent lines, and the facts that an approval and `pml.lock` cover. This half of a
 * kind reads no file and starts nothing, so that the configuration, the policy and the hub can use
 * it. The other half is the runtime (`host.ts`).
 *
 * @module
 */

import type { OAuthSettings } from "../core/authorization.ts";
import type { CodeManifest, Manifest } from "./manifest.ts";
import type { Permissions } from "../protocol/tool.ts";
import type { ToolSettings } from "../core/tool_settings.ts";
import type { ValueSchema } from "../core/value_schema.ts";

/** Values by name, as they were written: `${NAME}` is not replaced yet. */
export type Texts = Readonly<Record<string, string>>;

/** A server as a file or a registry defines it. Each kind adds its own members. */
export interface ServerDefinition {
  /** The name of its kind, such as `deno`, `stdio` or `http`. */
  readonly kind: string;
  /** The valid name by which rules and calls name the server. */
  readonly name: string;
  /** The name as the file contains it, if it is not a valid name of a server. */
  readonly title?: string;
  /** Whether it runs confined. A module always does. */
  readonly confine?: boolean;
  /** The only tools that PML uses; undefined if it uses all. */
  readonly tools?: readonly string[];
  /** The user's settings for the tools of the server. */
  readonly settings?: ToolSettings;
  /** The time limit of calls to the server in milliseconds, in place of `limits.call_ms`. */
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
  /** The working folder: an absolute path, or a path that begins with a variable. */
  readonly cwd?: string;
  /**
   * The file with further variables: an absolute path, or a path that begins with a folder
   * variable.
   */
  readonly envFile?: string;
  /**
   * Whether the server counts as unconfined although it is confined: its grants name programs, or
   * paths to write, and this machine has no layer that enforces those grants.
   */
  readonly countsAsUnconfined?: true;
}

/** A server that is reached over HTTP. */
export interface RemoteDefinition extends ServerDefinition {
  /** The URL. */
  readonly url: string;
  /**
   * Whether the file declares that the server uses HTTP+SSE, the transport before Streamable HTTP.
   */
  readonly isSse?: boolean;
  /** The headers as they were written: `${NAME}` is replaced when a request is sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** The settings of the sign-in. `${NAME}` in the secret is replaced. */
  readonly oauth?: OAuthSettings | undefined;
  /**
   * The file of further certificate authorities to trust for this server; only in the user's file.
   */
  readonly ca?: string;
  /** The file of the client certificate; only in the user's file. */
  readonly cert?: string;
  /** The file of the key of that certificate. */
  readonly key?: string;
}

/** The texts of a definition as they were written, by the part of the definition. */
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

/** The facts of a server that depend on its kind, for approvals and `pml.lock`. */
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

/** A check of the value of a member of a manifest. */
export interface MemberKind<T> {
  /** The expected value, for the error. */
  readonly wanted: string;
  readonly is: (value: unknown) => boolean;
  /** Never set: it only connects the check with the type `T` of a valid value. */
  readonly as?: T;
}

/**
 * Reads the members of a manifest. Each method throws `REGISTRY_BAD_RESPONSE` for a wrong value.
 */
export interface ManifestReader {
  /** The JSON of the manifest. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The variables that the manifest requires, for any kind. */
  readonly envRequired: readonly string[];
  /** Returns the value of a key if it passes the check of `kind`. Null counts as missing. */
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
  /**
   * Returns variables that a server may set, with values. The values may refer to other variables.
   */
  environment(key: string, value: unknown): Texts;
  /** Returns names with values, which may refer to variables. */
  values(key: string, value: unknown, isName: (text: string) => boolean): Texts;
  /** Returns an address to which PML may send requests. */
  address(key: string, value: unknown): string;
  /** Returns the permissions of the manifest and of all its tools. */
  permissions(): Permissions;
}

/** The functions that build the consent lines of manifests. */
export interface ManifestLineParts {
  /** Returns a line for each permission that code requests and gets. */
  readonly permissionLines: (permissions: Permissions) => readonly string[];
  /** Returns the description of the server that the manifest defines. */
  readonly describe: (changes?: object) => string;
  /** Returns a line with the network variables that a started program gets. */
  readonly networkLines: () => readonly string[];
  /** Returns the packages that a command installs without an exact version. */
  readonly unpinned: (program: {
    readonly name: string;
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Texts;
  }) => readonly string[];
}

/** The texts about a kind on the pages of a registry. */
export interface ManifestText {
  /** The kind in one or two words, such as `module`. */
  readonly title: string;
  /** The kind in a sentence. */
  readonly summary: string;
  /** Whether the page also shows an empty list of permissions. */
  readonly listsPermissions?: boolean;
  /** The part of a `server.json` of the official MCP Registry that defines such a server. */
  readonly official?: "package" | "remote";
}

/** A kind as registries use it: its texts, and the parts of its entries. */
export interface PublishedKind extends ManifestText {
  /** Whether an entry has code next to its manifest. */
  readonly hasCode: boolean;
  /** Whether the code can only call tools. Such code is JSON. */
  readonly onlyCalls: boolean;
  /** Whether the cloud runs such servers. */
  readonly isInCloud: boolean;
}

/** How registries define servers of a kind. */
export interface ManifestKind<M extends Manifest = Manifest> {
  /** Whether only a name with an action, such as `fs:read_json`, may have such a manifest. */
  readonly isAction?: boolean;
  /** The texts about the kind on the pages of a registry. */
  readonly text: ManifestText;
  /** Reads the members that only manifests of this kind have. */
  read(reader: ManifestReader): Omit<M, keyof Manifest> & Partial<Pick<Manifest, "envRequired">>;
  /** Returns the texts in which variables are replaced, including arguments. */
  templates?(manifest: M): readonly string[];
  /**
   * Returns the facts that an approval covers. Their values are not secret: approval requests show
   * changes.
   */
  facts(manifest: M): KindFacts;
  /** Returns the members of the definition of the server; undefined if the cloud runs it. */
  definition(
    manifest: M,
    codePath: (manifest: CodeManifest) => string,
  ): object | undefined;
  /** Returns the facts that an approval covers, one line each. */
  lines(manifest: M, showing: ManifestLineParts): readonly string[];
  /** Returns lines that say to where each key is sent, if `lines` does not say so. */
  keyLines?(manifest: M): readonly string[];
  /** Returns a line if PML also sends the key of the user's account (`PML_API_KEY`). */
  accountLines?(manifest: M, hub: string | undefined): readonly string[];
  /** Returns the manifest, typed as a manifest with code. */
  code?(manifest: M): CodeManifest;
  /** Returns the tools that the code calls, for code that can do nothing else. */
  calls?(manifest: M): readonly string[];
}

/** The schemas from which the forms of entries in files are built. */
export interface FormParts {
  readonly text: ValueSchema<string>;
  /** A text that is not empty. */
  readonly nonEmpty: ValueSchema<string>;
  readonly texts: ValueSchema<string[]>;
  readonly flag: ValueSchema<boolean>;
  /** The name of a variable. */
  readonly variable: ValueSchema<string>;
  /** The path of a file. */
  readonly path: ValueSchema<string>;
  readonly folder: ValueSchema<string>;
  /** The path of a certificate, which only the user's own file may have. */
  readonly certificate: ValueSchema<string>;
  readonly port: ValueSchema<number>;
  /** The tools to keep, or settings for them. */
  readonly listedTools: ValueSchema<unknown>;
  /** Settings for tools, by their names. */
  readonly settings: ValueSchema<unknown>;
  /** Returns the schema of a text that matches `grammar`; `wanted` describes it in errors. */
  readonly matching: (wanted: string, grammar: RegExp) => ValueSchema<string>;
  /** Returns the key `type` with these values. */
  readonly type: (...types: readonly string[]) => { readonly type: ValueSchema<string> };
  /** The variables that a registry's entry requires. */
  readonly required: Readonly<Record<string, ValueSchema<unknown>>>;
  /** Further keys that an entry of a registry has, so that users can paste such an entry. */
  readonly pasted: Readonly<Record<string, ValueSchema<unknown>>>;
  /** The keys that clients write and PML ignores. */
  readonly ignored: Readonly<Record<string, ValueSchema<unknown>>>;
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
  /** The name of the server, and the name in the file if that name is not valid. */
  readonly names: Pick<ServerDefinition, "name" | "title">;
  /** The tools to keep. */
  readonly tools: readonly string[] | undefined;
  /** The settings for the server's tools, if there are any. */
  readonly settings: Pick<ServerDefinition, "settings">;
  /** The time limit of calls to the server, if there is one. */
  readonly limits: Pick<ServerDefinition, "timeoutMs">;
  /** Returns an absolute path. Paths in a file are relative to its folder. */
  readonly pathOf: (path: string) => string;
  /** Warns about the value of a key. */
  readonly warn: (key: string, message: string) => void;
}

/** The functions and values that descriptions use. */
export interface DescriptionParts {
  /** Returns the end of a sentence with the values that a server gets; empty without values. */
  readonly describeValues: (what: string, values: Texts) => string;
  /** Returns the value of a variable in the host of an address. */
  readonly plain?: ((name: string) => string | undefined) | undefined;
  /** The names of the variables in the `envFile`; undefined if the file was not read. */
  readonly fileNames?: readonly string[] | undefined;
  /** The running trial of `pml learn` for the server. */
  readonly trial?: TrialBounds | undefined;
}

/** The bounds of a server while `pml learn` tries it. */
export interface TrialBounds {
  /**
   * Whether the server is confined: this machine enforces the grants of the trial, or they name no
   * program and no path to write.
   */
  readonly isConfined: boolean;
}

/**
 * The facts of a definition that an approval covers. `pml.lock` contains no values of variables.
 */
export interface DefinitionFacts {
  readonly command?: readonly string[];
  readonly url?: string;
  readonly env?: Texts;
  readonly headers?: Texts;
}

/** The facts of a definition or a manifest that a company's policy compares. */
export interface PolicySubject {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly confine?: boolean | undefined;
  readonly countsAsUnconfined?: true;
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
  /** Returns the facts that an approval, a pin and the lock cover. */
  identity(definition: D): DefinitionFacts;
  /**
   * Returns the texts in which PML replaces variables. If this function is missing, servers get
   * only variables that a grant names.
   */
  texts?(definition: D): DefinitionTexts;
  /** Returns further words with which a company's policy can forbid the server. */
  policyWords?(server: PolicySubject): readonly string[];
  /** Returns the definition, typed as the definition of a module. */
  module?(definition: D): ModuleDefinition;
  /** Returns the definition, typed as the definition of a program. */
  program?(definition: D): ProgramDefinition;
  /** Returns the definition, typed as the definition of a server at a URL. */
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
   * Whether the code of such a server runs in the sandbox, with granted permissions only. The
   * definitions of its tools are part of that code, so they need no separate approval.
   */
  readonly isSandboxed: boolean;
  /** Whether servers of this kind always need the network. */
  readonly isOnline: boolean;
  /** Whether servers report changed lists, and may have different lists for each client. */
  readonly notifies: boolean;
  /** Whether servers check the arguments and results of their tools, so that PML need not. */
  readonly checksItself: boolean;
  /** Whether the cloud runs the servers. Calls then need the key of the user's account. */
  readonly isInCloud?: boolean;
  /** Whether a server may have tools that its list does not contain. */
  readonly hasUnlistedTools?: boolean;
  /** Whether the user saved the servers, and so approved their code. */
  readonly isSaved?: boolean;
  /** The definitions of such servers; undefined if they have none. */
  readonly definition?: DefinitionKind<D>;
  /** How registries define such servers; undefined if they cannot. */
  readonly manifest?: ManifestKind<M>;
}
