/**
 * What holds now: the configuration and what the person trusts of it, as one.
 *
 * @module
 */

import type { Unapproved } from "../core/server_identity.ts";
import { dirname, join } from "node:path";
import { loadConfig, type LoadedConfig, reloadConfig } from "../config/config.ts";
import type { Environment } from "../config/env.ts";
import { defaultRules, type RuleLine } from "../config/rules.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { FILE_NAME, realPathOf } from "../config/workspace.ts";
import type { Call, Verdict } from "../core/call.ts";
import { argumentsRule } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { staysInside } from "../io/place.ts";
import { alwaysWins } from "../permissions/rules.ts";
import { TrustStore } from "../permissions/trust.ts";
import { type ShownFile, type TrustState, WorkspaceTrust } from "../permissions/workspace_trust.ts";
import { type CapabilityPolicy, type PolicySnapshot, reads, snapshotOf } from "./snapshot.ts";

/** What the policy needs from outside. */
export interface PolicyOptions {
  /** The servers that ship with PML. */
  readonly builtins: ReadonlySet<string>;
  /** Hashes the code of a module; undefined where it cannot be read. */
  readonly integrityOf: (
    module: { readonly name: string; readonly path: string },
    maxBytes: number,
  ) => string | undefined;
  /** Whether a tool runs commands, queries or code, so that "Always" holds for its arguments only. */
  readonly exactAlways?: (id: ToolId) => boolean;
  /** Is told of what cannot be read, and that therefore counts for nothing. */
  readonly warn: (message: string) => void;
}

/** What has changed: the files or the trust in them, or the servers of registries. */
export type Change = "configuration" | "registry";

type Asked = Pick<Call, "id" | "arguments" | "fixed">;

const NO_TRUST: TrustState = { trusted: false, approved: new Map() };

/** Reads the configuration, decides what of it is trusted, and follows its changes. */
export class Policy {
  /** What the person trusts, kept in the PML home. */
  readonly store: TrustStore;
  readonly #options: PolicyOptions;
  readonly #trust: WorkspaceTrust;
  readonly #listeners = new Set<(change: Change) => void>();
  #loaded: LoadedConfig;
  /** The names of the servers of registries that the person approved here. */
  #approved: readonly string[] = [];
  #capabilities: CapabilityPolicy = { names: [] };
  #version = 0;
  #now: PolicySnapshot;

  private constructor(loaded: LoadedConfig, options: PolicyOptions) {
    this.#options = options;
    this.store = new TrustStore(loaded.environment.home, { warn: options.warn });
    this.#trust = new WorkspaceTrust(this.store);
    this.#loaded = loaded;
    this.#now = this.#snapshotOf(loaded, NO_TRUST);
  }

  /** Reads the configuration of a process that was started in `cwd`. */
  static async open(
    environment: Environment,
    options: PolicyOptions & { readonly cwd: string },
  ): Promise<Policy> {
    const policy = new Policy(await loadConfig(environment, options.cwd), options);
    await policy.settle();
    return policy;
  }

  /** What holds now. */
  get now(): PolicySnapshot {
    return this.#now;
  }

  /** Has `listener` told of each change. */
  onChange(listener: (change: Change) => void): void {
    this.#listeners.add(listener);
  }

  /** Decides what holds, by what was read last and what is trusted now. */
  async settle(): Promise<void> {
    let loaded: LoadedConfig;
    let trust: TrustState;
    do {
      loaded = this.#loaded;
      trust = await this.#trust.stateOf(await this.#shown());
      // What was read meanwhile is not what the trust was told of.
    } while (loaded !== this.#loaded);
    this.#now = this.#snapshotOf(loaded, trust);
    this.#tell("configuration");
  }

  /** Takes the names of the servers of registries that the person approved here. */
  approve(names: readonly string[]): void {
    this.#approved = names;
    // What was read meanwhile was not judged yet: it counts when that is done.
    this.#now = this.#snapshotOf(this.#now.loaded, this.#now.trust);
    this.#tell("registry");
  }

  /** Takes what holds of the capabilities that the person saved. */
  takeCapabilities(capabilities: CapabilityPolicy): void {
    this.#capabilities = capabilities;
    this.approve(this.#approved);
  }

  /** Reads the files again, and settles. */
  async reload(): Promise<void> {
    this.#loaded = await reloadConfig(this.#loaded);
    await this.settle();
  }

  /** Follows changes of the files, and calls `look` after each, until the signal aborts. */
  async watch(signal: AbortSignal, look: () => void): Promise<void> {
    const follow = (loaded: LoadedConfig) => {
      this.#loaded = loaded;
      this.settle().catch((error) => this.#options.warn(`Cannot apply the change: ${error}`));
    };
    const { watchConfig } = await import("../config/watch.ts");
    await watchConfig(this.#loaded, { onChange: follow, onLook: look, signal });
  }

  /** Returns the definition of a server in a file of the person's, or in a trusted one. */
  definitionOf(server: string): ServerDefinition | undefined {
    return this.#now.config.servers.find(({ name }) => name === server);
  }

  /** Names the file that switches a server off; undefined where none does. */
  disabledIn(server: string): string | undefined {
    const { file, parents, person } = this.#now.loaded;
    return [file, ...parents, person].find((each) => each?.disabled.includes(server))?.path;
  }

  /** Tells whether a rule of the person names a server; what an untrusted file says is not theirs. */
  names(server: string): boolean {
    const { loaded: { file, person }, config: { rules, trusted } } = this.#now;
    const sources = [person.path, ...(trusted && file !== undefined ? [file.path] : [])];
    return [rules.allow, rules.ask, rules.deny].flat().some(({ pattern, source }) =>
      pattern.kind !== "any" && pattern.server === server && sources.includes(source)
    );
  }

  /** Returns the hash of the code of a file's module that was approved. */
  approvedCode(server: string): string | undefined {
    return this.#now.trust.approved.get(server);
  }

  /**
   * Tells what nobody has approved yet: of the whole workspace file, or of what a call of one
   * server needs.
   */
  async unapproved(server?: string): Promise<Unapproved | undefined> {
    if (server !== undefined && this.#isApproved(server)) return undefined;
    const again = async () => {
      this.#loaded = await reloadConfig(this.#loaded);
      return await this.#shown();
    };
    const unapproved = await this.#trust.unapproved(await this.#shown(), {
      again,
      ...(server === undefined ? {} : { server }),
    });
    if (unapproved === undefined) {
      // Another process may have trusted it meanwhile.
      await this.settle();
      return undefined;
    }
    const accept = async () => {
      await unapproved.accept();
      await this.settle();
    };
    return { ...unapproved, accept };
  }

  /** Says why a server's tools may not be asked for now; undefined when they may. */
  blocked(server: string): string | undefined {
    if (this.#isApproved(server)) return undefined;
    return this.#now.trust.trusted
      ? "its code is not the approved one; calling it, or `pml trust`, asks the person"
      : "the workspace file is not trusted; calling it, or `pml trust`, asks the person";
  }

  /** Tells whether a file that `PML_TRUST` lists allows a tool of a server by its name. */
  allowsBeforehand(verdict: Verdict | undefined): boolean {
    const { file } = this.#loaded;
    // A bare `*` covers no first use, so what allows one names its server.
    return verdict?.kind === "allow" && verdict.source === file?.path && isListed(this.#loaded);
  }

  /** Gives the rule that "Always" would add for a call, where it would count. */
  alwaysOffered(call: Asked): string | undefined {
    const { id, arguments: args } = call;
    const { loaded, config, known } = this.#now;
    const rule = this.#alwaysRule(call);
    if (rule === undefined || loaded.file !== undefined && !config.trusted) return undefined;
    if (loaded.wide && reads(config, id)) return undefined;
    const wanted = { rule, id, args, source: this.rulesFile };
    const { workspace, rules } = config;
    return alwaysWins(rules, { ...wanted, known, workspace }) ? rule : undefined;
  }

  /** Allows a tool for good in the workspace file, or exactly this call of one that runs code. */
  async always(call: Asked): Promise<void> {
    const { deny, ask, allow } = defaultRules();
    const rule = this.#alwaysRule(call);
    if (rule === undefined) throw new TypeError("no rule can be written for these arguments");
    const { addAllow } = await import("../permissions/always.ts");
    await addAllow(this.rulesFile, {
      rule,
      trusted: this.store,
      defaults: { deny: texts(deny), ask: texts(ask), allow: texts(allow) },
      listed: isListed(this.#loaded),
    });
    await this.reload();
  }

  /** The workspace file, or the one that would be it. */
  get rulesFile(): string {
    const { file, workspace } = this.#now.loaded;
    return file?.path ?? join(workspace.root, FILE_NAME);
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }

  #snapshotOf(loaded: LoadedConfig, trust: TrustState): PolicySnapshot {
    return snapshotOf(loaded, {
      version: ++this.#version,
      trust,
      known: [...this.#options.builtins, ...this.#approved, ...this.#capabilities.names],
      capabilities: this.#capabilities.judge,
    });
  }

  #alwaysRule({ id, arguments: args, fixed }: Asked): string | undefined {
    const { run = [] } = this.#now.config.grants[splitToolId(id).server] ?? {};
    // The rule would be a line of the file, with the value of a variable in it.
    const hasSecret = fixed !== undefined && JSON.stringify(fixed.shown) !== JSON.stringify(args);
    // No rule can name a look at what a server has.
    if (id.endsWith(":@tools")) return undefined;
    const exact = run.length > 0 || this.#options.exactAlways?.(id);
    if (exact && hasSecret) return undefined;
    return exact ? argumentsRule(id, args) : id;
  }

  #isApproved(server: string): boolean {
    const { loaded, trust } = this.#now;
    const own = loaded.file?.servers.find(({ name }) => name === server);
    if (own === undefined) return true;
    // The name of a built-in, or of the person's own, stands for that until the file is trusted.
    if (!trust.trusted) return this.#now.known(server);
    if (own.kind !== "deno") return true;
    const integrity = this.#integrityOf(own);
    // Code that cannot be read cannot run either: loading it says why.
    return integrity === undefined || integrity === trust.approved.get(server);
  }

  #integrityOf(module: { readonly name: string; readonly path: string }): string | undefined {
    return this.#options.integrityOf(module, this.#now.config.limits.moduleBytes);
  }

  async #shown(): Promise<ShownFile | undefined> {
    const { environment, file, workspace: { root } } = this.#loaded;
    if (file === undefined) return undefined;
    const listed = file.path === file.realPath && isListed(this.#loaded);
    const named = file.servers.filter((server) => server.kind === "deno")
      .map(({ name, path }) => ({ name, path, outside: !staysInside(root, path) }));
    const hash = file.hash.replace("sha256-", "");
    // Who wrote the file has no say in what is touched beyond the workspace.
    const isClosed = !listed && named.some(({ outside }) => outside) &&
      !await this.store.isTrusted(file.path, hash);
    const modules = named.map(({ outside, ...module }) => ({
      ...module,
      integrity: outside && isClosed ? undefined : this.#integrityOf(module),
      ...(outside && isClosed && { outside }),
    }));
    return {
      path: file.path,
      linked: file.path !== file.realPath,
      hash,
      lines: async () => (await import("../config/shown.ts")).shownLines(file, environment),
      servers: file.servers.map(({ name }) => name),
      modules,
      listed,
    };
  }
}

/** Tells whether `PML_TRUST` names the workspace file or the folder that it lies in. */
function isListed({ environment, file }: LoadedConfig): boolean {
  if (file === undefined) return false;
  const places = [file.realPath, dirname(file.realPath)];
  return environment.trust.some((path) => places.includes(realPathOf(path)));
}

function texts(rules: readonly RuleLine[]): string[] {
  return rules.map(({ pattern }) => pattern.text);
}
