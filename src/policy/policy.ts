/**
 * The policy in force: the configuration, and which parts of it the user trusts.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import { type Folders, foldersOf } from "../core/folder_variables.ts";
import { memoized } from "../core/memo.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Unapproved } from "./server_identity.ts";
import { dirname, join } from "node:path";
import type { Forbidding } from "../config/company.ts";
import { loadConfig, type LoadedConfig, reloadConfig } from "../config/config.ts";
import type { Config, ConfigOwner } from "../config/current_config.ts";
import type { Environment } from "../config/env.ts";
import type { Keys, KeysHost } from "../config/keys.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { moduleOf } from "../servers/kinds.ts";
import type { RulingFiles } from "../config/ruling_files.ts";
import { readWorkspaceFile, type WorkspaceFile } from "../config/file.ts";
import { FILE_NAME, pathExists } from "../config/workspace.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { realPathOf, staysInside } from "../io/path_info.ts";
import { isRegularFile, type WarningLog } from "../io/private_files.ts";
import { type TrustLines, TrustStore } from "./trust.ts";
import type { RuleFile } from "./rule_file.ts";
import type { PinnedWorkspace } from "./pinned_workspace.ts";
import {
  type ShownFile,
  type ShownFileReader,
  type TrustState,
  WorkspaceTrust,
} from "./workspace_trust.ts";
import type { Readers } from "./rules.ts";
import { type CapabilityPolicy, type PolicySnapshot, snapshotOf } from "./snapshot.ts";
import { turnTime } from "../io/waiting.ts";

/** A module that a file names. */
interface NamedPath {
  readonly name: string;
  readonly path: string;
}

/** Hashes the code of modules. `ModuleFiles` implements it. */
export interface ModuleHashes {
  /** Returns the hash of the code of a module; undefined if it cannot be read. */
  integrityOf(module: NamedPath, maxBytes: number): string | undefined;
}

/** The collaborators of a policy. */
export interface PolicyParts {
  /** The names of the servers that are part of PML. */
  readonly builtins: ReadonlySet<string>;
  readonly modules: ModuleHashes;
  /** Logs a warning for each file that cannot be read. Such a file has no effect. */
  readonly log: WarningLog;
  readonly redactor: Redactor;
}

/** The part that changed: the files and the trust in them, or the servers of registries. */
export type PolicyChange = "configuration" | "registry";

const NO_TRUST: TrustState = { trusted: false, approved: new Map() };
/** The time between two comparisons of the configuration files, in milliseconds. */
const COMPARE_MS = 1_000;

/** Reads the configuration, decides which parts are trusted, and watches for changes. */
export class Policy implements PinnedWorkspace, ShownFileReader, ConfigOwner, Readers {
  /** The trust records of the user in the PML home. */
  readonly store: TrustStore;
  /** The approvals of the workspace file. */
  readonly trust: WorkspaceTrust;
  readonly #parts: PolicyParts;
  readonly #listeners = new Set<(change: PolicyChange) => void>();
  #loaded: LoadedConfig;
  /** The registries of the servers that the user approved in this workspace, by their names. */
  #approved: ReadonlyMap<string, string> = new Map();
  #capabilities: CapabilityPolicy | undefined;
  #keys: Pick<Keys, "plain"> | undefined;
  #readers: Readers | undefined;
  #version = 0;
  readonly #foldersOf = memoized(({ config, loaded }: PolicySnapshot) =>
    foldersOf({ workspace: config.workspace, userHome: loaded.environment.userHome })
  );
  #now: PolicySnapshot;
  /** The state of the configuration files before the last read; undefined before the first one. */
  #files: RulingFiles | undefined;
  #comparedAt = performance.now();
  #isStale = false;
  #refreshing: Promise<void> | undefined;
  /** Called each time after the files were read again. */
  #onReread = () => {};

  private constructor(loaded: LoadedConfig, parts: PolicyParts) {
    this.#parts = parts;
    this.store = new TrustStore(loaded.environment.home, parts.log, (path) => this.#linesAt(path));
    this.trust = new WorkspaceTrust(this.store);
    this.#loaded = loaded;
    this.#now = this.#snapshotOf(loaded, NO_TRUST);
  }

  /** Reads the configuration for a process that was started in `cwd`. */
  static async open(
    environment: Environment,
    { cwd, identity }: { readonly cwd: string; readonly identity?: string | undefined },
    parts: PolicyParts,
  ): Promise<Policy> {
    const policy = new Policy(await loadConfig(environment, cwd, identity), parts);
    await policy.settle();
    return policy;
  }

  /** Sets the keys. They need the policy, so they are opened after it. */
  useKeys(keys: Pick<Keys, "plain">): void {
    this.#keys = keys;
  }

  /**
   * Sets the servers, which `isReader()` asks. They need the policy, so they are created after it.
   */
  useReaders(readers: Readers): void {
    this.#readers = readers;
  }

  /** Returns whether PML derives that a tool only reads. */
  isReader(id: ToolId): boolean {
    return this.#readers?.isReader(id) === true;
  }

  /** Registers a value of the workspace file that looks like a secret, so that logs redact it. */
  readonly register = (value: string): void => void this.#parts.redactor.register(value);

  /** Returns the value of a variable that is not a key, such as a host. */
  readonly plain = (name: string): string | undefined => this.#keys?.plain(name);

  /** The current configuration. */
  get config(): Config {
    return this.#now.config;
  }

  /** The current snapshot. */
  get now(): PolicySnapshot {
    return this.#now;
  }

  /**
   * Returns whether the snapshot matches the files as they are now. Compares them at most once a
   * second. If this returns false, the caller must call `refresh()` before it judges a call.
   */
  isCurrent(): boolean {
    if (this.#isStale || this.#refreshing !== undefined) return false;
    const now = turnTime();
    if (now - this.#comparedAt < COMPARE_MS) return true;
    this.#comparedAt = now;
    this.#isStale = this.#files?.hasChanged() ?? true;
    return !this.#isStale;
  }

  /** Reads the files again and applies changes. If it rejects, the next refresh tries again. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#reread().finally(() => this.#refreshing = undefined);
    await this.#refreshing;
  }

  /** Adds a listener to changes. */
  onChange(listener: (change: PolicyChange) => void): void {
    this.#listeners.add(listener);
  }

  /** Makes a new snapshot from the files that were read last and the current trust in them. */
  async settle(): Promise<void> {
    let loaded: LoadedConfig;
    let trust: TrustState;
    do {
      loaded = this.#loaded;
      trust = await this.trust.stateOf(await this.#shownFile());
      // If the files were read again meanwhile, this trust is about older files.
    } while (loaded !== this.#loaded);
    this.#now = this.#snapshotOf(loaded, trust);
    this.#notify("configuration");
  }

  /** Sets the approved servers of registries: the address of the registry of each name. */
  approve(registries: ReadonlyMap<string, string>): void {
    this.#approved = registries;
    // Newly read files are used only after their trust is determined.
    this.#now = this.#snapshotOf(this.#now.loaded, this.#now.trust);
    this.#notify("registry");
  }

  /** Sets the rules for saved capabilities. */
  useCapabilities(capabilities: CapabilityPolicy): void {
    this.#capabilities = capabilities;
    this.approve(this.#approved);
  }

  /** Reads the files again, and settles. */
  async reload(): Promise<void> {
    await this.#load();
    await this.settle();
  }

  /** Reads the files again. If `moveTo()` chose another folder meanwhile, reads the files there. */
  async #load(): Promise<void> {
    let [before, loaded] = [this.#loaded, await reloadConfig(this.#loaded)];
    while (before !== this.#loaded) {
      [before, loaded] = [this.#loaded, await reloadConfig(this.#loaded)];
    }
    this.#loaded = loaded;
  }

  /** Changes the workspace to another folder, before any call ran in the first one. */
  async moveTo(workspace: string): Promise<void> {
    const { environment, cwd, identity } = this.#loaded;
    this.#loaded = await loadConfig({ ...environment, workspace }, cwd, identity);
    // `isCurrent()` still compares the files of the first workspace.
    this.#isStale = true;
    await this.settle();
  }

  /**
   * Watches the files until the signal aborts. Calls `onReread` each time the files were read
   * again. Rejects if the system cannot watch files: then only `isCurrent()` detects changes.
   */
  async watch(signal: AbortSignal, onReread: () => void): Promise<void> {
    this.#onReread = onReread;
    const { rulingPaths, watchConfig } = await import("../config/watch.ts");
    const paths = () => [...rulingPaths(this.#loaded), ...this.#trustPaths()];
    const reread = async () => {
      // A refresh that began before the watcher started could miss a change.
      await this.#refreshing?.catch(() => {});
      await this.refresh().catch((error) =>
        this.#parts.log.warn(`Cannot apply the change: ${messageOf(error)}`)
      );
    };
    await watchConfig(paths, reread, signal);
  }

  async #reread(): Promise<void> {
    this.#isStale = true;
    const [{ RulingFiles }, { isOtherConfig, rulingPaths }] = await Promise.all([
      import("../config/ruling_files.ts"),
      import("../config/watch.ts"),
    ]);
    // This state is taken before the files are read, so that a change in between is detected.
    const files = new RulingFiles([...rulingPaths(this.#loaded), ...this.#trustPaths()]);
    const { root } = this.#loaded.workspace;
    await this.#load();
    // `#loaded` may have been read for an approval and not be in force, so compare with the
    // snapshot.
    if (isOtherConfig(this.#loaded, this.#now.loaded)) await this.settle();
    else {
      // Caches for servers are bound to these objects.
      this.#loaded = this.#now.loaded;
      await this.#applyTrust();
    }
    // If `moveTo()` changed the folder meanwhile, `files` describes the former folder.
    if (this.#loaded.workspace.root === root) {
      this.#files = files;
      this.#comparedAt = performance.now();
      this.#isStale = false;
    }
    this.#onReread();
  }

  #trustPaths(): readonly string[] {
    const { file } = this.#loaded;
    return file ? [this.store.fileOf(file.realPath)] : [];
  }

  /** Makes a new snapshot if another process granted or revoked the trust, or approved code. */
  async #applyTrust(): Promise<void> {
    const { trusted, approved } = await this.trust.stateOf(await this.#shownFile());
    const { trust } = this.#now;
    const isSame = trusted === trust.trusted && approved.size === trust.approved.size &&
      [...approved].every(([name, integrity]) => trust.approved.get(name) === integrity);
    // guard: trust-revoked
    if (!isSame) await this.settle();
  }

  /** Returns the definition of a server in the user's file or in a trusted file. */
  definitionOf(server: string): ServerDefinition | undefined {
    return findServer(this.#now.config.servers, server);
  }

  /** Returns the path of the file that disables or forbids a server; undefined if none does. */
  fileThatDisables(server: string): string | undefined {
    const { file, parents, userConfig } = this.#now.loaded;
    return [file, ...parents, userConfig].find((each) => each?.disabled.includes(server))?.path ??
      this.whyForbidden(server)?.path;
  }

  /** Returns why the company's policy forbids a server that a file defines. */
  whyForbidden(server: string): Forbidding | undefined {
    const { config: { restrictions }, loaded: { file, userConfig } } = this.#now;
    const company = restrictions?.company;
    const own = company &&
      [...file?.servers ?? [], ...userConfig.servers].find(({ name }) => name === server);
    return own && company?.forbids(own);
  }

  /** Returns whether a rule names a server, in the user's file or in a trusted file. */
  hasRuleFor(server: string): boolean {
    const { loaded: { file, userConfig }, config: { rules, trusted } } = this.#now;
    const sources = [userConfig.path, ...(trusted && file !== undefined ? [file.path] : [])];
    return [rules.allow, rules.ask, rules.deny].flat().some(({ pattern, source }) =>
      pattern.kind !== "any" && pattern.server === server && sources.includes(source)
    );
  }

  /** Returns the approved hash of the code of a module. */
  approvedCode(server: string): string | undefined {
    return this.#now.trust.approved.get(server);
  }

  /**
   * Returns the approval that the workspace file needs, or that a call of one server needs;
   * undefined if none.
   */
  async findUnapproved(server?: string): Promise<Unapproved | undefined> {
    if (server !== undefined && this.#isApproved(server)) return undefined;
    const unapproved = await this.trust.findUnapproved(await this.#shownFile(), this, server);
    if (unapproved === undefined) {
      // Another process may have added trust meanwhile.
      await this.settle();
      return undefined;
    }
    const accept = async () => {
      await unapproved.accept();
      await this.settle();
    };
    return { ...unapproved, accept };
  }

  /** Reads the workspace file again, to compare it with the file that a question showed. */
  async readAgain(): Promise<ShownFile | undefined> {
    await this.#load();
    return await this.#shownFile();
  }

  /** Returns why a server must not be listed now; undefined if it may be. */
  whyBlocked(server: string): string | undefined {
    if (this.#isApproved(server)) return undefined;
    return this.#now.trust.trusted
      ? "its code is not the approved one; a call or `pml trust` asks the user"
      : "the workspace file is not trusted; a call or `pml trust` asks the user";
  }

  /** The PML home. */
  get home(): string {
    return this.#now.loaded.environment.home;
  }

  /** The folder of the workspace. */
  get root(): string {
    return this.#now.loaded.workspace.root;
  }

  /**
   * Returns whether the workspace file defines a server. A definition that was replaced while its
   * server started does not count as the user's own.
   */
  isShared(definition: ServerDefinition): boolean {
    return !this.#now.loaded.userConfig.servers.includes(definition);
  }

  /** The values of the folder variables of definitions. */
  get folders(): Folders {
    return this.#foldersOf(this.#now);
  }

  /** The path of the workspace file, which may not exist. */
  get rulesFile(): string {
    const { file, workspace } = this.#now.loaded;
    return file?.path ?? join(workspace.root, FILE_NAME);
  }

  /** Returns the file to which "Always" writes the rule of a tool. */
  fileFor(id: ToolId): RuleFile {
    const { path, servers } = this.#now.loaded.userConfig;
    const definition = this.definitionOf(splitToolId(id).server);
    const isOwn = definition !== undefined && servers.includes(definition) &&
      this.#now.config.restrictions?.identity === undefined;
    // PML does not write through a link: users keep linked settings in a repository.
    const isOfUser = isOwn && (isRegularFile(path) || !pathExists(path));
    return isOfUser ? { path, isOfUser } : { path: this.rulesFile, isOfUser };
  }

  #notify(change: PolicyChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  #snapshotOf(loaded: LoadedConfig, trust: TrustState): PolicySnapshot {
    return snapshotOf(loaded, {
      version: ++this.#version,
      trust,
      registries: this.#approved,
      builtins: this.#parts.builtins,
      capabilities: this.#capabilities,
      readers: this,
    });
  }

  #isApproved(server: string): boolean {
    const { loaded, trust } = this.#now;
    const own = loaded.file && findServer(loaded.file.servers, server);
    if (own === undefined) return true;
    // Until the file is trusted, its definitions do not count: a known name means another server.
    if (!trust.trusted) return this.#now.known(server);
    const module = moduleOf(own);
    if (module === undefined) return true;
    const integrity = this.#integrityOf(module);
    // Unreadable code cannot run; loading it reports the error.
    // guard: module-approved
    return integrity === undefined || integrity === trust.approved.get(server);
  }

  #integrityOf(module: NamedPath): string | undefined {
    return this.#parts.modules.integrityOf(module, this.#now.config.limits.moduleBytes);
  }

  async #shownFile(): Promise<ShownFile | undefined> {
    const { file, workspace: { root } } = this.#loaded;
    if (file === undefined) return undefined;
    const isListed = file.path === file.realPath && isTrustedByVariable(this.#loaded);
    const namedModules = file.servers.flatMap((server) => moduleOf(server) ?? [])
      .map(({ name, path }) => ({ name, path, isOutside: !staysInside(root, path) }));
    const hash = file.hash.replace("sha256-", "");
    // An untrusted file must not cause reads outside the workspace.
    const mustNotReadOutside = !isListed && namedModules.some(({ isOutside }) => isOutside) &&
      !await this.store.isTrusted(file.path, hash);
    const modules = namedModules.map(({ isOutside, ...module }) => ({
      ...module,
      integrity: isOutside && mustNotReadOutside ? undefined : this.#integrityOf(module),
      ...(isOutside && mustNotReadOutside && { isOutside }),
    }));
    return {
      path: file.path,
      isLink: file.path !== file.realPath,
      hash,
      lines: () => this.#linesOf(file),
      servers: file.servers.map(({ name }) => name),
      modules,
      isListed,
    };
  }

  /** Returns the lines of a question about a workspace file, without the lines about code. */
  async #linesOf(file: WorkspaceFile): Promise<readonly string[]> {
    const { environment } = this.#loaded;
    const { builtins } = this.#parts;
    const { register, plain } = this;
    const { shownLines } = await import("../config/workspace_lines.ts");
    return shownLines(file, { ...environment, builtins, register, plain });
  }

  async #linesAt(path: string): Promise<TrustLines | undefined> {
    const file = await readWorkspaceFile(path, { problems: [], warnings: [] });
    if (file === undefined) return undefined;
    const { trustLines } = await import("./_trust_facts.ts");
    // The hash of a module's code is not part of the file, so an edit does not approve it.
    const lines = await trustLines({ lines: () => this.#linesOf(file), modules: [] });
    return { hash: file.hash.replace("sha256-", ""), lines };
  }
}

/** Returns whether `PML_TRUST` lists the workspace file or its folder. */
export function isTrustedByVariable({ environment, file }: LoadedConfig): boolean {
  if (file === undefined) return false;
  const places = [file.realPath, dirname(file.realPath)];
  return environment.trust.some((path) => places.includes(realPathOf(path)));
}

/** Finds the definition of a server by its name. A loop without a closure: every call runs it. */
function findServer(
  servers: readonly ServerDefinition[],
  server: string,
): ServerDefinition | undefined {
  for (const own of servers) if (own.name === server) return own;
  return undefined;
}

/** The sources of keys under a policy: none for an identity that may not use the user's keys. */
export class PolicyKeysHost implements KeysHost {
  readonly #policy: Policy;
  readonly #redactor: Redactor;
  readonly #log: WarningLog;

  /** Takes the policy; reads no key yet. */
  constructor(policy: Policy, redactor: Redactor, log: WarningLog) {
    this.#policy = policy;
    this.#redactor = redactor;
    this.#log = log;
  }

  isWithheld(): boolean {
    return this.#policy.now.config.restrictions?.identity?.keys === false;
  }

  environment(): ReturnType<KeysHost["environment"]> {
    const { environment } = this.#policy.now.loaded;
    if (!this.isWithheld()) return environment;
    return { get: () => undefined, apiKey: undefined, home: join(environment.home, "no keys") };
  }

  trustedRoot(): string | undefined {
    const { config, loaded } = this.#policy.now;
    return config.trusted && !this.isWithheld() ? loaded.workspace.root : undefined;
  }

  folders(): Policy["folders"] {
    return this.#policy.folders;
  }

  register(value: string): void {
    this.#redactor.register(value);
  }

  warn(message: string): void {
    this.#log.warn(message);
  }
}
