/**
 * Opens the servers that the directory lists. Where a server comes from decides its definition and
 * its approval, and the runtime of its kind opens it.
 *
 * @module
 */

import type { ServerDefinition } from "./kind.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Manifest } from "./manifest.ts";
import type { Approval, FindTool, KnownServerOptions, Listing } from "./known_server.ts";
import type { Server } from "./server.ts";
import type { Servers } from "./lists/servers.ts";
import { unknownTool } from "./lists/unknown_tool.ts";
import { McpServer } from "./client/mcp_server.ts";
import type { UpstreamServer } from "./client/upstream_server.ts";
import type { ModuleUse } from "./module/loader.ts";
import { grantsOf } from "../policy/grants.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { OAuthServer } from "../oauth/sign_ins.ts";
import type { HttpValues } from "./http/http_options.ts";
import { CLOUD, CLOUD_URL } from "./cloud/kind.ts";
import type { OpenOptions, ServerHost } from "./host.ts";
import { kindNamed, kindOf, KINDS, moduleOf } from "./kinds.ts";
import { Runtimes } from "./runtimes.ts";
import { getToolRouting, isListedLocal } from "./cloud/routing.ts";
import {
  actionApproval,
  CAPABILITY_APPROVAL,
  namedApproval,
  NOTHING_TO_APPROVE,
  ownApproval,
  registryApproval,
} from "./approval_sources.ts";
import { DefinitionValues } from "./definition_values.ts";
import type { Directory } from "./directory.ts";
import { Logins } from "../oauth/logins.ts";
import { Machine, type MachineOptions } from "./machine.ts";
import type { RegistryServer } from "./registries/registry_entry.ts";
import type { RegistryServers } from "./registries/registry_servers.ts";
import type { CapabilityRunner } from "./capability/capability_server.ts";
import type { Parts } from "./namespace_parts.ts";
import type { NamespaceServer } from "./namespace_server.ts";
import type { UnknownServer } from "./unknown_server.ts";

/** What opening servers needs. */
export interface ServerOpenerOptions extends Omit<MachineOptions, "way" | "values"> {
  readonly directory: Directory;
  readonly servers: Servers;
  /** Loads the built-in modules. */
  readonly builtins: () => Promise<ReadonlyMap<string, ModuleSource>>;
  /** Returns the servers of registries. */
  readonly registries: () => Promise<RegistryServers>;
  /** Returns what the person saved. */
  readonly capabilities: () => Promise<{ readonly capabilities: CapabilityRunner }>;
}

/** A server as its source found it; without a kind nothing can be opened. */
interface SourcedServer extends Partial<Omit<OpenOptions, keyof KnownServerOptions>> {
  readonly approval: Approval;
  readonly kind?: string;
}

/** The classes of entries of the directory that have no kind. */
interface Entries {
  readonly NamespaceServer: typeof NamespaceServer;
  readonly UnknownServer: typeof UnknownServer;
}

/** The servers of registries, and the values of their definitions. */
interface Registered {
  readonly servers: RegistryServers;
  readonly values: DefinitionValues;
}

/** The kinds of servers that connections lead to: programs, addresses and the cloud. */
const CONNECTED = KINDS.filter(({ isSandboxed }) => !isSandboxed).map(({ name }) => name);

/** Opens servers of every kind; starts nothing before the first call. */
export class ServerOpener implements ServerHost {
  /** What runs them. */
  readonly machine: Machine;
  /** Signs the person in at servers. */
  readonly logins: Logins;
  readonly #options: ServerOpenerOptions;
  readonly #find: FindTool;
  readonly #opened = new WeakMap<Listing, Server>();
  readonly #values: DefinitionValues;
  readonly #runtimes = new Runtimes(this);
  #builtins: ReadonlyMap<string, ModuleSource> | undefined;
  #registered: Registered | undefined;
  #entries: Entries | undefined;

  /** Takes what there is. */
  constructor(options: ServerOpenerOptions) {
    this.#options = options;
    this.#values = new DefinitionValues(options);
    this.#find = (id) => options.servers.definition(id);
    this.machine = new Machine({
      ...options,
      values: this.#values,
      way: (name, isCloud) => this.#wayTo(name, isCloud),
    });
    const { policy, servers } = options;
    const { machine } = this;
    this.logins = new Logins({
      home: policy.now.config.home,
      signIns: () => machine.signIns(),
      serverOf: (name) => this.#signInAt(name),
      closing: machine.closing,
      waitMs: () => policy.now.config.limits.approvalMs,
      onChange: (name, mark) => {
        machine.addresses.renew(name, mark);
        servers.lists.expire(name);
      },
    });
  }

  /** Opens a server: the same one for the same listing. */
  async open(listing: Listing): Promise<Server> {
    const { pins, registries, keys } = this.#options;
    if (listing.origin !== "builtin") await keys.looked();
    // Where a name was pinned decides whether it may be asked for in the cloud.
    // guard: pinned-read
    if (listing.definition === undefined) await pins.state();
    const isMixed = listing.kind === "namespace";
    if ((isMixed || listing.origin === "registry") && listing.definition !== undefined) {
      const servers = await registries();
      const registryOf = (name: string) => servers.at(name)?.identity.pinned.source;
      const values = () => new DefinitionValues({ ...this.#options, registryOf });
      this.#registered ??= { servers, values: values() };
    }
    if (isMixed || listing.origin === "registry") {
      const [{ NamespaceServer }, { UnknownServer }] = await Promise.all([
        import("./namespace_server.ts"),
        import("./unknown_server.ts"),
      ]);
      this.#entries ??= { NamespaceServer, UnknownServer };
    }
    const parts = isMixed ? partsOf(listing) : [listing];
    if (parts.some(({ origin }) => origin === "builtin")) {
      this.#builtins ??= await this.#options.builtins();
    }
    await Promise.all(parts.flatMap(runtimesOf).map((kind) => this.#runtimes.load(kind)));
    return this.#open(listing);
  }

  /** Returns the saved capabilities. */
  async capabilities(): Promise<CapabilityRunner> {
    return (await this.#options.capabilities()).capabilities;
  }

  /** Follows where the user signs in, if the process stays. */
  followSignIns(): void {
    if (!this.#options.stays) return;
    this.logins.follow().catch(({ message }) => this.#options.log.debug(message));
  }

  /** Returns a server to sign in at. Throws if nobody can sign in there. */
  async #signInAt(name: string): Promise<OAuthServer> {
    const listing = this.#options.directory.at(name);
    const cannot = (code: ErrorCode, why: string, hint?: string) =>
      new PmlError(code, `Cannot sign in or out at ${quoted(name)}: ${why}`, { hint });
    if (kindNamed(listing.kind)?.definition?.remote === undefined) {
      throw this.#options.policy.forbidden(name)?.error ??
        cannot("USAGE", "no server over HTTP has this name", "See `pml list`");
    }
    const blocked = listing.blocked();
    // guard: login-untrusted
    if (blocked !== undefined) throw cannot("WORKSPACE_UNTRUSTED", blocked);
    await this.open(listing);
    const values = this.#wayTo(name, false).values as HttpValues; // it is of this kind
    if (Object.keys(values.headers).some((header) => /^authorization$/i.test(header))) {
      throw cannot("USAGE", "its definition has an Authorization header");
    }
    return values;
  }

  #open(listing: Listing): Server {
    const known = this.#opened.get(listing);
    if (known !== undefined) return known;
    const server = listing.kind === "namespace"
      ? this.#namespace(listing)
      : this.#opening(listing, this.#sourceOf(listing));
    this.#opened.set(listing, server);
    return server;
  }

  #opening(listing: Listing, { approval, kind, ...found }: SourcedServer): Server {
    const options = { listing, approval, find: this.#find };
    const { servers } = this.#options;
    if (kind === undefined) return new (this.#loaded().UnknownServer)({ ...options, servers });
    return this.#runtimes.of(kind).open({ values: this.#values, ...options, ...found });
  }

  #namespace(listing: Listing): Server {
    const { servers, log } = this.#options;
    const { NamespaceServer, UnknownServer } = this.#loaded();
    const none = { listing, approval: actionApproval(this.#options), find: this.#find };
    return new NamespaceServer({
      ...{ ...none, approval: CAPABILITY_APPROVAL },
      parts: listing.definition as Parts, // the directory made it
      unknown: new UnknownServer({ ...none, servers }),
      open: (part) => this.#open(part),
      tell: (message) => log.info(message),
    });
  }

  #loaded(): Entries {
    if (this.#entries === undefined) throw new Error("Cannot open a name that no server has");
    return this.#entries;
  }

  /** Finds the definition and the approval of a server by where it comes from. */
  #sourceOf(listing: Listing): SourcedServer {
    const { name, origin, kind } = listing;
    // guard: disabled-unapproved
    if (kind === "disabled") return { approval: NOTHING_TO_APPROVE };
    if (origin === "builtin") {
      return { approval: NOTHING_TO_APPROVE, kind, use: () => this.#shipped(name) };
    }
    if (kindNamed(kind)?.isSaved) return { approval: actionApproval(this.#options), kind };
    // guard: own-is-local
    if (origin === "private") return this.#ofFile(listing.definition as ServerDefinition);
    const { servers: found, values } = this.#registered ?? {};
    const registered = listing.definition && found?.at((listing.definition as Manifest).fqdn);
    if (registered !== undefined && values !== undefined) {
      return this.#ofRegistry(registered, values);
    }
    return this.#ofHub(name);
  }

  #ofFile(own: ServerDefinition): SourcedServer {
    const { policy, servers, pins } = this.#options;
    const identity = () => this.machine.packages.identityOf(own);
    const instructions = () => servers.saidBy(own.name);
    const approval = ownApproval(own, { policy, pins, identity, instructions });
    const server = { approval, kind: own.kind, definition: own };
    const module = moduleOf(own);
    if (module === undefined) return server;
    const { name, path } = module;
    const use = (): ModuleUse => ({
      source: { kind: "file", name, path },
      // It may have had no file until now.
      approved: policy.approvedCode(name) ?? NO_CODE,
      grants: policy.now.config.grants[name],
    });
    return { ...server, use };
  }

  #ofRegistry(registered: RegistryServer, values: DefinitionValues): SourcedServer {
    const { definition, identity: found, found: { manifest } } = registered;
    const { name, fqdn, kind } = manifest;
    if (definition === undefined) {
      return { approval: namedApproval({ ...this.#options, isCloud: true }), kind, manifest };
    }
    const { packages, starts, closing } = this.machine;
    packages.found(definition, found);
    const identity = () => packages.identityOf(definition);
    const approval = registryApproval(definition, { ...this.#options, identity });
    const server = { approval, kind, definition, manifest, values };
    const module = moduleOf(definition);
    if (module === undefined) return server;
    const { integrity, permissions } = found.pinned;
    const use = (): ModuleUse => ({
      source: { kind: "file", name, path: module.path },
      approved: integrity ?? NO_CODE,
      promised: permissions,
      grants: grantsOf(manifest, this.#options.policy.now.config.grants[name]),
    });
    const fetched = async () =>
      await this.#registered?.servers.ready(fqdn, {
        signal: closing,
        tell: (message) => starts.tell(name, message),
      });
    return { ...server, use, fetched };
  }

  /** Finds a name that no file and no approved registry defines: the hub may run it. */
  #ofHub(name: string): SourcedServer {
    if (!this.#runsInCloud(name)) return { approval: namedApproval(this.#options) };
    const { narrowing, cloud } = this.#options.policy.now.config;
    const server = { name, kind: CLOUD.name, url: cloud?.url ?? CLOUD_URL };
    const refusal = narrowing?.company?.forbids(server);
    if (refusal === undefined) {
      return { approval: namedApproval({ ...this.#options, isCloud: true }), kind: CLOUD.name };
    }
    const unapproved = () => Promise.reject(refusal.error);
    return { approval: { ...NOTHING_TO_APPROVE, unapproved } };
  }

  #shipped(name: string): ModuleUse {
    const source = this.#builtins?.get(name);
    if (source === undefined) throw new Error(`no built-in is called ${name}`);
    return { source, approved: undefined, grants: this.#options.policy.now.config.grants[name] };
  }

  #runsInCloud(name: string): boolean {
    // What was pinned to run here is nobody's in the cloud, also where it is not to be had now.
    const pinned = this.#options.pins.pinned(name);
    // guard: pinned-here
    if (pinned !== undefined && !kindOf(pinned).isInCloud) return false;
    // The list of the hub adds names, and takes none from this machine.
    const isAdded = !isListedLocal(name) && this.machine.hub.has(name);
    return isAdded || getToolRouting(name) === "cloud";
  }

  /** Finds the way to a server by what its name stands for now; to none that nobody approved. */
  #wayTo(name: string, isCloud: boolean): UpstreamServer {
    const listing = this.#options.directory.at(name);
    const isConnected = listing.blocked() === undefined &&
      runtimesOf(listing).every((kind) => this.#runtimes.has(kind)) && !isSandboxed(listing) &&
      (listing.origin !== "registry" || this.#entries !== undefined);
    const server = isConnected ? this.#open(listing) : undefined;
    const { upstreams, far } = this.machine;
    if (server instanceof McpServer && server.isReachedBy(isCloud ? far : upstreams)) {
      return server.way();
    }
    throw unknownTool(name, this.#options.servers);
  }
}

/** Returns whether a server runs in the sandbox, or has tools that do. */
function isSandboxed({ kind }: Listing): boolean {
  return kind === "namespace" || kindNamed(kind)?.isSandboxed === true;
}

/** Returns the listings of a namespace: that of the server of its name, and its capabilities. */
function partsOf({ definition }: Listing): readonly Listing[] {
  const { base, actions } = definition as Parts; // the directory made it
  return [...base === undefined ? [] : [base], ...actions.map(({ listing }) => listing)];
}

/**
 * Returns the kinds whose runtimes a server needs. After a change of the configuration a name may
 * lead to another connection, which is then opened at once, and a name of a registry may be one of
 * the cloud.
 */
function runtimesOf({ kind, origin, definition }: Listing): readonly string[] {
  const { kind: name = kind } = origin === "registry" ? definition as Manifest ?? {} : { kind };
  const own = kindNamed(name)?.isSandboxed ? [name] : [];
  return own.length > 0 && origin !== "registry" ? own : [...own, ...CONNECTED];
}

/** Stands for the hash of a module that nobody approved: no code has it. */
const NO_CODE = "no code";
