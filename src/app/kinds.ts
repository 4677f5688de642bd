/**
 * Makes servers of what the directory lists, each by its kind.
 *
 * @module
 */

import type { ServerDefinition } from "../servers/kind.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Manifest } from "../core/manifest.ts";
import type { Approval, FindTool, KnownServerOptions, Listing } from "../core/known_server.ts";
import type { Server } from "../core/server.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Servers } from "../gateway/servers.ts";
import { unknownTool } from "../gateway/unknown_tool.ts";
import { McpServer } from "../mcp_client/mcp_server.ts";
import type { UpstreamServer } from "../mcp_client/upstreams.ts";
import type { ModuleUse } from "../modules/loader.ts";
import type { Modules } from "../modules/modules.ts";
import { grantsOf } from "../permissions/grants.ts";
import type { ModuleSource } from "../modules/module_files.ts";
import { ModuleServer } from "../modules/module_server.ts";
import { CloudServer } from "../remote/cloud_server.ts";
import type { OAuthServer } from "../oauth/sign_ins.ts";
import type { HttpValues } from "../remote/http_servers.ts";
import { CLOUD, CLOUD_URL, type CloudManifest } from "../servers/cloud/kind.ts";
import { callsOf, kindNamed, kindOf, moduleOf, programOf, remoteOf } from "../servers/kinds.ts";
import { getToolRouting, isListedLocal } from "../remote/routing.ts";
import type { CloudEntry } from "../remote/rpc.ts";
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
import { Logins } from "./logins.ts";
import { Machine, type MachineOptions } from "./machine.ts";
import type { RegistryServer } from "./entry.ts";
import type { RegistryServers } from "./registry_servers.ts";
import type { Capabilities, Namespace, SavedServerOptions } from "../workflow/capabilities.ts";
import type { Parts } from "./namespace_parts.ts";
import { NamespaceServer } from "./namespace_server.ts";
import { UnknownServer } from "./unknown_server.ts";

/** What opening servers needs. */
export interface KindsOptions extends Omit<MachineOptions, "way" | "values"> {
  readonly directory: Directory;
  readonly servers: Servers;
  /** Loads the built-in modules. */
  readonly builtins: () => Promise<ReadonlyMap<string, ModuleSource>>;
  /** Returns the servers of registries. */
  readonly registries: () => Promise<RegistryServers>;
  /** Returns what the person saved. */
  readonly capabilities: () => Promise<{ readonly capabilities: Capabilities }>;
}

/** What a server is approved by, and how it is made. */
interface Kind {
  readonly approval: Approval;
  readonly make: (options: KnownServerOptions) => Server;
}

/** Returns whether a server runs in the sandbox, or has tools that do. */
function isSandboxed({ kind }: Listing): boolean {
  return kind === "namespace" || kindNamed(kind)?.isSandboxed === true;
}

/** What runs modules, and those that ship with PML. */
interface Sandbox {
  readonly modules: Modules;
  readonly builtins: ReadonlyMap<string, ModuleSource>;
}

/** The servers of registries, and the values of their definitions. */
interface Registered {
  readonly servers: RegistryServers;
  readonly values: DefinitionValues;
}

/** Opens servers of every kind; starts nothing before the first call. */
export class Kinds {
  /** What runs them. */
  readonly machine: Machine;
  /** Signs the person in at servers. */
  readonly logins: Logins;
  readonly #options: KindsOptions;
  readonly #find: FindTool;
  readonly #opened = new WeakMap<Listing, Server>();
  readonly #values: DefinitionValues;
  #sandbox: Sandbox | undefined;
  #registered: Registered | undefined;
  #capabilities: Capabilities | undefined;

  /** Takes what there is. */
  constructor(options: KindsOptions) {
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
    const saved = isMixed ? (listing.definition as Parts).base : listing;
    if (isMixed || saved !== undefined && kindNamed(saved.kind)?.isSaved) {
      this.#capabilities = (await this.#options.capabilities()).capabilities;
    }
    if (isSandboxed(listing)) {
      const [modules, builtins] = await Promise.all([
        this.machine.modules(),
        this.#options.builtins(),
      ]);
      this.#sandbox ??= { modules, builtins };
    }
    return this.#open(listing);
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
    const { approval, make } = this.#kindOf(listing);
    const server = make({ listing, approval, find: this.#find });
    this.#opened.set(listing, server);
    return server;
  }

  #kindOf(listing: Listing): Kind {
    const { name, origin, kind } = listing;
    const { policy, servers, pins } = this.#options;
    const unknown: Kind["make"] = (options) => new UnknownServer({ ...options, servers });
    // guard: disabled-unapproved
    if (kind === "disabled") return { approval: NOTHING_TO_APPROVE, make: unknown };
    if (origin === "builtin") {
      return { approval: NOTHING_TO_APPROVE, make: this.#module(() => this.#shipped(name)) };
    }
    if (kind === "namespace") {
      const parts = listing.definition as Parts; // the directory made it
      const none = { listing, approval: actionApproval(this.#options), find: this.#find };
      const make: Kind["make"] = (options) =>
        new NamespaceServer({
          ...{ ...options, parts, unknown: new UnknownServer({ ...none, servers }) },
          open: (part) => this.#open(part),
          tell: (message) => this.#options.log.info(message),
        });
      return { approval: CAPABILITY_APPROVAL, make };
    }
    if (kindNamed(kind)?.isSaved) {
      const namespace = listing.definition as Namespace; // the directory took it from there
      const make: Kind["make"] = (options) =>
        this.#capabilities?.server(namespace, this.#withCheck(options)) ?? unknown(options);
      return { approval: actionApproval(this.#options), make };
    }
    // guard: own-is-local
    if (origin === "private") {
      const own = listing.definition as ServerDefinition; // the directory took it from a file
      const identity = () => this.machine.packages.identityOf(own);
      const instructions = () => this.#options.servers.saidBy(own.name);
      const approval = ownApproval(own, { policy, pins, identity, instructions });
      return { approval, make: this.#defined(own) };
    }
    const { servers: found, values } = this.#registered ?? {};
    const registered = listing.definition && found?.at((listing.definition as Manifest).fqdn);
    if (registered !== undefined && values !== undefined) {
      return this.#ofRegistry(registered, values);
    }
    const isCloud = this.#runsInCloud(name);
    const { narrowing, cloud } = policy.now.config;
    const refusal = isCloud &&
      narrowing?.company?.forbids({ name, kind: CLOUD.name, url: cloud?.url ?? CLOUD_URL });
    const approval = refusal
      ? { ...NOTHING_TO_APPROVE, unapproved: () => Promise.reject(refusal.error) }
      : namedApproval({ ...this.#options, isCloud });
    return {
      approval,
      make: isCloud && !refusal ? this.#cloud({ name, manifest: undefined }) : unknown,
    };
  }

  #ofRegistry(registered: RegistryServer, values: DefinitionValues): Kind {
    const { definition, identity: found, found: { manifest } } = registered;
    const { name, fqdn } = manifest;
    if (definition === undefined) {
      const approval = namedApproval({ ...this.#options, isCloud: true });
      const cloud = manifest as CloudManifest; // no other kind has no definition
      return { approval, make: this.#cloud({ name, manifest: cloud }) };
    }
    const { packages } = this.machine;
    packages.found(definition, found);
    const identity = () => packages.identityOf(definition);
    const approval = registryApproval(definition, { ...this.#options, identity });
    const module = moduleOf(definition);
    if (module === undefined) return { approval, make: this.#program(definition, values) };
    const { path } = module;
    const { integrity, permissions } = found.pinned;
    const use = (): ModuleUse => ({
      source: { kind: "file", name, path },
      approved: integrity ?? NO_CODE,
      promised: permissions,
      grants: grantsOf(manifest, this.#options.policy.now.config.grants[name]),
    });
    const { starts, closing } = this.machine;
    const fetched = async () =>
      await this.#registered?.servers.ready(fqdn, {
        signal: closing,
        tell: (message) => starts.tell(name, message),
      });
    const saved = this.#capabilities;
    const calls = callsOf(manifest);
    if (calls !== undefined && saved !== undefined) {
      const place = {
        id: fqdn as ToolId,
        hash: integrity ?? NO_CODE,
        path,
        calls,
        fetched,
      };
      const make: Kind["make"] = (options) => saved.ofRegistry(place, this.#withCheck(options));
      return { approval, make };
    }
    return { approval, make: this.#module(use, fetched) };
  }

  #withCheck(options: KnownServerOptions): SavedServerOptions {
    const { modules } = this.#loaded();
    return { ...options, wrong: (...of) => modules.wrongValue(...of) };
  }

  #module(use: () => ModuleUse, fetched?: () => Promise<void>): Kind["make"] {
    const { modules } = this.#loaded();
    return (options) => new ModuleServer({ ...options, modules, use, ...(fetched && { fetched }) });
  }

  #loaded(): Sandbox {
    if (this.#sandbox === undefined) throw new Error("Cannot open a module: no code runs modules");
    return this.#sandbox;
  }

  #shipped(name: string): ModuleUse {
    const source = this.#loaded().builtins.get(name);
    if (source === undefined) throw new Error(`no built-in is called ${name}`);
    return { source, approved: undefined, grants: this.#options.policy.now.config.grants[name] };
  }

  #defined(own: ServerDefinition): Kind["make"] {
    const module = moduleOf(own);
    if (module === undefined) return this.#program(own, this.#values);
    const { name, path } = module;
    const { policy } = this.#options;
    return this.#module(() => ({
      source: { kind: "file", name, path },
      // It may have had no file till now.
      approved: policy.approvedCode(name) ?? NO_CODE,
      grants: policy.now.config.grants[name],
    }));
  }

  #program(own: ServerDefinition, values: DefinitionValues): Kind["make"] {
    const { machine } = this;
    const way = this.#wayOf(own, values);
    return (options) => new McpServer({ ...options, upstreams: machine.upstreams, way });
  }

  #wayOf(own: ServerDefinition, values: DefinitionValues): () => UpstreamServer {
    const { machine } = this;
    const remote = remoteOf(own);
    if (remote !== undefined) {
      if (this.#options.stays) {
        this.logins.follow().catch(({ message }) => this.#options.log.debug(message));
      }
      return () => machine.addresses.of(values.http(remote));
    }
    const program = programOf(own);
    if (program === undefined) throw new Error(`no way leads to ${own.name}`);
    return () => machine.programs.of(machine.tried(values.stdio(program)));
  }

  #cloud(entry: CloudEntry): Kind["make"] {
    const { cloud, hub, far } = this.machine;
    return (options) => new CloudServer({ ...options, cloud, hub, entry, upstreams: far });
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
    const isProgram = listing.blocked() === undefined && !isSandboxed(listing);
    const server = isProgram ? this.#open(listing) : undefined;
    if (server instanceof McpServer && server instanceof CloudServer === isCloud) {
      return server.way();
    }
    throw unknownTool(name, this.#options.servers);
  }
}

/** Stands for the hash of a module that nobody approved: no code has it. */
const NO_CODE = "no code";
