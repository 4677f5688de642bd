/**
 * The parts of a running PML: the policy, the servers, the gateway, and the call path, which the first
 * call loads.
 *
 * @module
 */

import { join } from "node:path";
import { Log } from "../audit/log.ts";
import { Metrics } from "../audit/metrics.ts";
import { Redactor } from "../audit/redact.ts";
import type { LoadedConfig } from "../config/config.ts";
import type { Config } from "../config/current_config.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import { Keys, type KeysHost } from "../config/keys.ts";
import type { OsLayer } from "../config/os_layer.ts";
import { ending, messageOf } from "../core/errors.ts";
import { listedMetaTools } from "../config/exposure.ts";
import type { JsonObject } from "../core/json.ts";
import { INSTRUCTIONS, LIST_NAMES } from "../protocol/lists.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import type { ServerIdentity } from "../policy/server_identity.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { helloOf } from "../gateway/hello.ts";
import type { Hello } from "../protocol/connection.ts";
import type { Schemas } from "../calls/schemas.ts";
import { Servers, type ServersHost } from "../servers/lists/servers.ts";
import type { ToolNames } from "../servers/lists/tool_names.ts";
import { Backlog } from "../io/backlog.ts";
import { stampAt } from "../io/place.ts";
import { privateFolder } from "../io/private_files.ts";
import { ClientQuestions } from "../gateway/client_questions.ts";
import { ClientRoots } from "../servers/client_roots.ts";
import { BUILTIN_NAMES } from "../servers/module/builtin_names.ts";
import { ModuleFiles, type ModuleSource } from "../servers/module/module_files.ts";
import { sweepApprovals } from "../policy/sweep_approvals.ts";
import type { Pins } from "../policy/pins.ts";
import { mayHaveAdopted } from "../policy/pins_file.ts";
import { Policy } from "../policy/policy.ts";
import { hideOwnProcess } from "../sandbox/own_process.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import type { Machine } from "../servers/machine.ts";
import type { ServerOpener } from "../servers/server_opener.ts";
import { CLOUD_URL } from "../servers/cloud/kind.ts";
import { Catalog, type CatalogEntry } from "../search/catalog.ts";
import { cloudCatalog } from "../search/cloud_tools.ts";
import type { CallPath, CallPathOptions } from "./call_path.ts";
import { PassedCapabilities } from "../servers/passed_capabilities.ts";
import { Directory, type DirectoryHost } from "../servers/directory.ts";
import type { LateParts } from "../servers/source.ts";
import type { Finder, FinderHost } from "../gateway/finder.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import type { Capabilities, RunOpener } from "../workflow/capabilities.ts";
import type { SavingOpener } from "../workflow/code_tool.ts";
import type { Workflow } from "../workflow/workflow.ts";
import type { RegistryServers } from "../servers/registries/registry_servers.ts";
import { mayHaveCapabilities } from "../workflow/capability_files.ts";
import type { OpenCapabilities } from "../workflow/capability_saving.ts";

/** The options of `openApp()`. */
export interface AppOptions extends Pick<CallPathOptions, "hasClient" | "stays"> {
  /** The folder that the process was started in. */
  readonly cwd: string;
  /** The identity that it serves; by default the user. */
  readonly identity?: string | undefined;
  /** The environment; by default that of the process. */
  readonly environment?: Environment;
  /** Writes lines of the log; by default to stderr. */
  readonly write?: ((line: string) => void) | undefined;
}

type AppParts =
  & Pick<AppOptions, "stays" | "hasClient">
  & Pick<CallPathOptions, "policy" | "log" | "redactor" | "files" | "keys">;

/** Returns an environment that finds out how programs can be confined when that matters. */
function withLayers(environment: Environment): Environment {
  const confines = async (layer: OsLayer, workspace: string) => {
    const { availableLayer } = await import("../sandbox/confined_program.ts");
    const path = environment.get("PATH");
    return (await availableLayer(layer, path, workspace)).kind !== "none";
  };
  return { confines, ...environment };
}

/** Reads the configuration and creates the parts. Starts nothing. */
export async function openApp(options: AppOptions): Promise<App> {
  await hideOwnProcess();
  const environment = withLayers(options.environment ?? readEnvironment());
  const redactor = new Redactor();
  if (environment.apiKey !== undefined) redactor.register(environment.apiKey);
  const log = new Log(redactor, environment.logLevel, options.write);
  const files = new ModuleFiles();
  const isNewHome = Deno.build.os === "windows" && stampAt(environment.home) === undefined;
  const policy = await Policy.open(environment, options, {
    builtins: BUILTIN_NAMES,
    modules: files,
    log,
    redactor,
  });
  const { homePath } = policy.now.loaded.environment;
  if (isNewHome && homePath === environment.home) await restrictHome(policy.now);
  const keys = new Keys(new PolicyKeysHost(policy, redactor, log));
  policy.useKeys(keys);
  const app = new App({ ...options, policy, log, redactor, files, keys });
  keys.useOutside(async () => await (await import("../oauth/looked_up_keys.ts")).lookUpKeys(app));
  // Approved servers of registries are there from the start, unless the client may choose another
  // folder.
  const { workspace: { root, found } } = policy.now.loaded;
  const mayMove = options.hasClient && found === "default";
  if (!mayMove && await mayHaveAdopted(policy.now.config.home, root)) {
    // Each call reports a broken lock.
    await app.registries().catch((error) => log.warn(error.message));
  }
  await app.lookAtCapabilities();
  if (options.stays) await Promise.all([app.recallInstructions(), app.recallNames()]);
  app.sweep();
  return app;
}

const NO_KEYS = { get: () => undefined, apiKey: undefined };

/** The sources of keys under a policy: none for an identity that may not use the user's keys. */
class PolicyKeysHost implements KeysHost {
  readonly #policy: Policy;
  readonly #redactor: Redactor;
  readonly #log: Log;

  constructor(policy: Policy, redactor: Redactor, log: Log) {
    this.#policy = policy;
    this.#redactor = redactor;
    this.#log = log;
  }

  isWithheld(): boolean {
    return this.#policy.now.config.narrowing?.identity?.keys === false;
  }

  environment(): ReturnType<KeysHost["environment"]> {
    const { environment } = this.#policy.now.loaded;
    if (!this.isWithheld()) return environment;
    return { ...NO_KEYS, home: join(environment.home, "no keys") };
  }

  trusted(): string | undefined {
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

/** Makes a new home on Windows, with an access list where it does not inherit one. */
async function restrictHome({ config, loaded }: Policy["now"]): Promise<void> {
  if (config.problem !== undefined) return; // the home may be refused
  const { AccessLists } = await import("../policy/access_list.ts");
  privateFolder(config.home);
  await AccessLists.of(loaded.environment).restrict(config.home);
}

/** The running PML for its servers and their lists. */
class AppServersHost implements ServersHost {
  readonly policy: Policy;
  readonly keys: Keys;
  readonly catalog: Catalog;
  readonly #app: App;

  constructor(app: App) {
    this.policy = app.policy;
    this.keys = app.keys;
    this.catalog = app.catalog;
    this.#app = app;
  }

  waitMs(): number {
    return this.#app.config().limits.firstListMs;
  }

  onChange(...change: Parameters<ServersHost["onChange"]>): void {
    this.#app.openGateway?.clients.listChanged(...change);
  }

  onUnknown(name: string): void {
    this.#app.callPath().then(unknownIn(name), () => {}); // the call reports errors
  }

  offered(id: ToolId): CatalogEntry | undefined {
    const { registryServers } = this.#app;
    return registryServers?.offers.catalog?.get(id) ?? this.#app.cloudTools()?.get(id);
  }
}

/** A running PML, as transports and commands use it. */
export class App
  implements
    RunOpener,
    SavingOpener,
    GroupsOpener,
    FinderHost,
    DirectoryHost,
    LateParts,
    AsyncDisposable {
  /** Writes to stderr. */
  readonly log: Log;
  /** The configuration, and the trusted part of it. */
  readonly policy: Policy;
  /** Finds the keys that servers want. */
  readonly keys: Keys;
  /** The counts since the start. */
  readonly metrics: Metrics = new Metrics();
  /** The roots of the client of `pml stdio`. */
  readonly clientRoots: ClientRoots = new ClientRoots();
  /** Passes questions of servers outside of calls to the client of `pml stdio`. */
  readonly clientQuestions: ClientQuestions = new ClientQuestions(this);
  /** The bytes that wait for the client. */
  readonly backlog: Backlog = new Backlog(() => this.config().limits.queuedBytes);
  /** Every known tool. */
  readonly catalog: Catalog = new Catalog();
  /** Every known server. */
  readonly servers: Servers;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string> = BUILTIN_NAMES;
  /** Finds servers by their names. */
  readonly directory: Directory;
  /** The gateway, where it is there already: before that there is no client either. */
  openGateway: Gateway | undefined;
  /** The clients to record, if this PML serves the user's own. */
  clientNotes: AsyncDisposable | undefined;
  /** The lowest level of log messages that a client wants; undefined until a client sets one. */
  level: string | undefined;
  /** The keeper that waits for the first program, if one was started. */
  spare: SpareKeeper | undefined;
  /** Resolved when a client got a first list. */
  readonly firstList: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Resolves when calls may begin. */
  ready: Promise<unknown> = Promise.resolve();
  /** The parts that were created before. */
  readonly parts: AppParts;
  #schemas: Promise<Schemas> | undefined;
  readonly #closing = new AbortController();
  #path: Promise<CallPath> | undefined;
  #pins: Promise<Pins> | undefined;
  #memory: Promise<UseMemory> | undefined;
  #toolNames: ToolNames | undefined;
  #workflow: Promise<Workflow> | undefined;
  #gateway: Promise<Gateway> | undefined;
  #finder: Promise<Finder> | undefined;
  #cloudTools: Catalog | undefined;
  #opening: Promise<RegistryServers> | undefined;
  #capabilities: OpenCapabilities | undefined;
  #openingCapabilities: Promise<OpenCapabilities> | undefined;
  /** The name and the version of the client of `pml stdio`. */
  #stdioClient: JsonObject | undefined;
  /** The servers of registries, once something is known of them. */
  #registries: RegistryServers | undefined;

  /** Takes the parts that were created before. */
  constructor(parts: AppParts) {
    const { policy, log, keys } = this.parts = parts;
    this.keys = keys;
    this.policy = policy;
    this.log = log;
    this.servers = new Servers(new AppServersHost(this));
    this.directory = new Directory(this, parts.redactor);
    policy.useReaders(this.directory);
    this.servers.lists.replace(this.directory.all());
    let lastLoad = policy.now.loaded;
    policy.onChange((change) => {
      this.servers.lists.replace(this.directory.all());
      for (const list of LIST_NAMES) this.openGateway?.clients.listChanged(list);
      const { loaded } = policy.now;
      // Looking at the trust again changes nothing that was read.
      const isNew = loaded !== lastLoad;
      lastLoad = loaded;
      // Only the user's PML logs it, because the PML of an identity may be closed by then.
      if (change === "configuration" && isNew && !loaded.identity) logApplied(this);
    });
  }

  /** Returns the servers of registries. The first call loads them. */
  registries(): Promise<RegistryServers> {
    if (this.closing.aborted) return Promise.reject(ending("begin"));
    // Tries again after a failure: the user may have corrected a broken `pml.lock`.
    this.#opening ??= this.#openRegistries().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Loads the modules that ship with PML. */
  async builtinModules(): Promise<ReadonlyMap<string, ModuleSource>> {
    return (await import("../servers/module/builtins.ts")).builtins();
  }

  /** Returns the call path: the pipeline, approvals and the machine. The first call loads it. */
  callPath(): Promise<CallPath> {
    if (this.closing.aborted) return Promise.reject(ending("begin"));
    this.#path ??= this.ready.then(async () =>
      (await import("./app_call_path.ts")).callPathOf(this)
    );
    return this.#path;
  }

  /** Opens the runner of servers, with the network. */
  async machine(): Promise<Machine> {
    return (await this.callPath()).machine;
  }

  /** Returns the process groups of this PML. */
  async groups(): Promise<Machine["groups"]> {
    return (await this.machine()).groups;
  }

  /** Notifies clients that lists of tools by the intent may differ. */
  toolsRanked(): void {
    this.openGateway?.clients.listChanged("tools");
  }

  /** Returns the memory of the use of tools. It is loaded after the first call. */
  memory(): Promise<UseMemory> {
    return this.#memory ??= import("./app_memory.ts").then(({ memoryOf }) => memoryOf(this));
  }

  /** Returns the runner of plans and code. The first of them loads it. */
  workflow(): Promise<Workflow> {
    return this.#workflow ??= import("./app_workflow.ts").then(({ workflowOf }) =>
      workflowOf(this)
    );
  }

  /** Returns the saved capabilities. They are loaded if there are some, or when the first is saved. */
  capabilities(): Promise<OpenCapabilities> {
    this.#openingCapabilities ??= import("./app_capabilities.ts").then(
      ({ openCapabilities: capabilitiesOf }) => {
        this.#capabilities = capabilitiesOf(this);
        this.#capabilities.capabilities.look();
        return this.#capabilities;
      },
    );
    return this.#openingCapabilities;
  }

  /** Reads the saved capabilities again, which another process may have changed. */
  async lookAtCapabilities(): Promise<void> {
    if (this.#capabilities !== undefined) this.#capabilities.capabilities.look();
    else if (mayHaveCapabilities(this.config().home)) await this.capabilities();
  }

  /** Returns the opener of the servers of the directory. */
  async serverOpening(): Promise<ServerOpener> {
    return (await this.callPath()).opener;
  }

  /** The saved capabilities, if they were opened. */
  get savedCapabilities(): Capabilities | undefined {
    return this.#capabilities?.capabilities;
  }

  /** The servers of registries, where they were opened. */
  get registryServers(): RegistryServers | undefined {
    return this.#registries;
  }

  /** Records requests whose answers the client did not read. */
  readonly recordLostAnswers = (requests: readonly string[]): void =>
    void this.#path?.then((path) => path.recordLostAnswers(requests), () => {});

  /** Returns the configuration as it was read. */
  loaded(): LoadedConfig {
    return this.policy.now.loaded;
  }

  /** Returns the current configuration. */
  config(): Config {
    return this.policy.now.config;
  }

  /** The variables that the servers of registries need which the user approved here. */
  registryKeys(): readonly { readonly server: string; readonly names: readonly string[] }[] {
    return this.#registries?.neededVariables() ?? [];
  }

  /** Returns the gateway, which is loaded when it is first needed. */
  gateway(): Promise<Gateway> {
    this.#gateway ??= import("./app_gateway.ts").then(({ openGatewayOf: gatewayOf }) =>
      this.openGateway = gatewayOf(this)
    );
    return this.#gateway;
  }

  /** Returns the tools of the cloud, if there is a key for it and no policy forbids it. */
  cloudTools(): Catalog | undefined {
    const { cloud: { url = CLOUD_URL } = {}, narrowing } = this.config();
    const server = { name: "pml", kind: "cloud", url } as const;
    if (narrowing?.company?.forbids(server) !== undefined) return undefined;
    try {
      return this.keys.cloud() === undefined ? undefined : this.#cloudTools ??= cloudCatalog();
    } catch {
      return undefined; // the key is not valid, which calls report
    }
  }

  /** Returns the search for tools. The first call loads it. */
  finder(): Promise<Finder> {
    if (this.closing.aborted) return Promise.reject(ending("begin"));
    return this.#finder ??= import("../gateway/finder.ts").then(({ Finder }) => new Finder(this));
  }

  /** Sets the log level of clients, also for servers that start later. */
  setLevel(level: string): void {
    this.level = level;
    this.#path?.then(({ machine }) => machine.setLevel(level), () => {});
  }

  /** Writes the names of tools, for the instructions that the next process writes. */
  async keepNames(): Promise<void> {
    if (this.#namesTools()) await (await this.#names()).keep();
  }

  /** The name and the version of the client, if all clients have the same ones. */
  get onlyClient(): JsonObject | undefined {
    const infos = this.openGateway?.clients.infos ?? [];
    return infos.length > 1 ? undefined : infos[0] ?? this.#stdioClient;
  }

  /** Takes the capabilities and the name of the client of `pml stdio`. */
  takeCapabilities(able: JsonObject, info?: JsonObject): void {
    this.#stdioClient = info;
    this.clientRoots.capability = able.roots;
    this.servers.lists.serve(able);
  }

  /**
   * Returns PML's description of itself for the handshake. `isAlone`: the client is the only one, so
   * that it gets the experimental capabilities and the unknown extensions of servers.
   */
  hello(isStateless = false, { isAlone = false } = {}): Hello {
    const { gateway, home, workspace } = this.config();
    const metaTools = listedMetaTools(gateway);
    const { toolsetFor } = this.config().narrowing ?? {};
    const ofServers = this.servers.instructionsIn({ ...gateway, toolsetFor });
    const declared = isAlone
      ? new PassedCapabilities(home).of(
        this.servers.unblocked.map((one) => ({ ...one, workspace })),
      )
      : {};
    return helloOf(this.servers.shownStates(), {
      ...gateway,
      tools: this.#namesTools() ? this.#toolNames?.atHand() : undefined,
      metaTools,
      isStateless,
      ofServers,
      declared,
    });
  }

  /**
   * Reads the approved instructions of servers that were listed here before. With `full_proxy` they
   * are part of PML's own, which a client gets at once.
   */
  async recallInstructions(): Promise<void> {
    if (this.config().gateway.exposure !== "full_proxy") return;
    const pins = await this.pins();
    // Without it, a new home would have the call path loaded before the first answer.
    if (!this.directory.all().some(({ name }) => pins.listedBy(name).length > 0)) return;
    const { judge } = this.policy.now;
    for (const identity of await this.identities()) {
      const { name } = identity;
      const tools = pins.listedBy(name).filter((tool) => tool !== INSTRUCTIONS);
      const isDenied = (tool: string) => judge(toolId(name, tool)).kind === "deny";
      if (tools.length > 0 && tools.every(isDenied)) continue;
      // If the pins cannot be read, calls report that.
      const text = await pins.instructionsOf(identity).catch(() => undefined);
      if (text !== undefined) this.servers.recall(name, text);
    }
  }

  /** Reads the names of tools that an earlier process wrote, if the instructions may contain them. */
  async recallNames(): Promise<void> {
    // Without any, a new home would have their code loaded before the first answer.
    if (!this.#namesTools() || stampAt(`${this.config().home}/names`) === undefined) return;
    await (await this.#names()).recall();
  }

  async #names(): Promise<ToolNames> {
    const { ToolNames } = await import("../servers/lists/tool_names.ts");
    return this.#toolNames ??= new ToolNames(this);
  }

  /**
   * Returns whether the instructions name tools: a client needs `call` for them. If clients have
   * tool sets, PML does not know yet which tools exist for this one.
   */
  #namesTools(): boolean {
    const { gateway, narrowing } = this.config();
    // guard: names-toolset
    if (narrowing?.toolsetFor !== undefined) return false;
    return listedMetaTools(gateway).includes("call");
  }

  /** Returns the pins: servers and tools as they were first seen, or approved. */
  async pins(): Promise<Pins> {
    this.#pins ??= import("../policy/pins.ts").then(({ pinsOf }) => pinsOf(this.policy, this.log));
    return await this.#pins;
  }

  /** Returns the identities of the servers of files, as they would be pinned now. Starts nothing. */
  async identities(): Promise<readonly ServerIdentity[]> {
    const own = (await this.callPath()).machine.identities();
    if (this.config().registries.length === 0) return own;
    return [...own, ...await (await this.registries()).identities()];
  }

  /** Aborts when PML is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Follows changes of the configuration until PML is closed. */
  watch(): void {
    const look = () =>
      void this.lookAtCapabilities().catch((error) => this.log.warn(messageOf(error)));
    this.policy.watch(this.#closing.signal, look).catch((error) =>
      this.log.warn(
        `Cannot watch the configuration, so a change applies with the next call: ${
          messageOf(error)
        }`,
      )
    );
  }

  /** Ends everything that a call started. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(ending("go on"));
    if (this.parts.stays) await this.keepNames();
    this.spare?.[Symbol.dispose]();
    this.#registries?.[Symbol.dispose]();
    this.servers[Symbol.dispose]();
    this.openGateway?.[Symbol.dispose]();
    await this.clientNotes?.[Symbol.asyncDispose]();
    await (await this.#finder)?.[Symbol.asyncDispose]();
    await (await this.#path)?.[Symbol.asyncDispose]();
    (await this.#memory)?.[Symbol.dispose]();
    this.sweep();
  }

  /** Removes expired approvals, which contain the arguments of calls, from the PML home. */
  sweep(): void {
    const { home, limits } = this.config();
    sweepApprovals(home, Date.now(), limits.approvalMs);
  }

  /** Returns the checks of values against schemas, which are loaded when they are first needed. */
  schemas(): Promise<Schemas> {
    return this.#schemas ??= import("../calls/schemas.ts").then(({ Schemas }) => new Schemas());
  }

  async #openRegistries(): Promise<RegistryServers> {
    const { RegistryServers } = await import("../servers/registries/registry_servers.ts");
    const pins = await this.pins();
    const servers = new RegistryServers({ ...this.parts, pins, builtins: this.builtins });
    // Its servers are listed at once.
    this.#registries = servers;
    await servers.open().catch((error) => {
      this.#registries = undefined;
      throw error;
    });
    return servers;
  }
}

/** Returns a function that records an unknown name of a tool. */
function unknownIn(name: string): (path: CallPath) => void {
  return (path) => path.record("unknown tool", { about: { name } });
}

function logApplied({ log, policy }: App): void {
  const { problem } = policy.now.config;
  if (problem === undefined) log.info("The configuration was applied");
  else log.error(problem.message);
}
