/**
 * The parts of a running PML: the policy, the servers, the gateway, and the call path, which the
 * first call loads.
 *
 * @module
 */

import { Log } from "../audit/log.ts";
import { Metrics } from "../audit/metrics.ts";
import { Redactor } from "../audit/redact.ts";
import type { Traces } from "../audit/spans.ts";
import type { LoadedConfig } from "../config/config.ts";
import type { Config } from "../config/current_config.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import { Keys } from "../config/keys.ts";
import { hasTraceEndpoint } from "../config/network_names.ts";
import type { OsLayer } from "../config/os_layer.ts";
import { endingError, messageOf } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { randomHex } from "../core/random.ts";
import { listedMetaTools } from "../config/exposure.ts";
import type { JsonObject } from "../core/json.ts";
import { INSTRUCTIONS, LIST_NAMES } from "../protocol/lists.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import type { ServerIdentity } from "../policy/server_identity.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { createHello } from "../gateway/hello.ts";
import type { Hello } from "../protocol/connection.ts";
import type { Schemas } from "../calls/schemas.ts";
import { Servers, type ServersHost } from "../servers/lists/servers.ts";
import type { ToolNames } from "../servers/lists/tool_names.ts";
import { Backlog } from "../io/backlog.ts";
import { stampAt } from "../io/path_info.ts";
import { privateFolder } from "../io/private_files.ts";
import { ClientQuestions } from "../gateway/client_questions.ts";
import { ClientRoots } from "../servers/client_roots.ts";
import { isProgramKind } from "../servers/kinds.ts";
import { BUILTIN_NAMES } from "../servers/module/builtin_names.ts";
import { ModuleFiles, type ModuleSource } from "../servers/module/module_files.ts";
import { sweepApprovals } from "../policy/sweep_approvals.ts";
import type { Pins } from "../policy/pins.ts";
import { mayHaveInstructions, mayHaveRegistryServers } from "../policy/pins_file.ts";
import { Policy, PolicyKeysHost } from "../policy/policy.ts";
import { hideOwnProcess } from "../sandbox/own_process.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import type { Machine } from "../servers/machine.ts";
import type { ServerOpener } from "../servers/server_opener.ts";
import { CLOUD_URL } from "../servers/cloud/kind.ts";
import { Catalog, type CatalogEntry } from "../search/catalog.ts";
import { cloudCatalog } from "../search/cloud_tools.ts";
import type { CallPath } from "./call_path.ts";
import { PassedCapabilities } from "../servers/passed_capabilities.ts";
import { Directory, type DirectoryHost } from "../servers/directory.ts";
import type { ServiceParts } from "../servers/service_parts.ts";
import type { LateParts } from "../servers/source.ts";
import type { Finder, FinderHost } from "../gateway/finder.ts";
import type { ObservedOutput } from "../workflow/declarations.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import type { Capabilities, RunOpener } from "../workflow/capabilities.ts";
import type { SavingOpener } from "../workflow/code_tool.ts";
import type { Workflow } from "../workflow/workflow.ts";
import type { SessionlessClients } from "../gateway/seen_clients.ts";
import type { RegistryServers } from "../servers/registries/registry_servers.ts";
import { mayHaveCapabilities } from "../workflow/capability_files.ts";
import type { OpenCapabilities } from "../workflow/capability_saving.ts";

/** The options of `openApp()`. */
export interface AppOptions extends Pick<ServiceParts, "hasClient" | "isLongRunning"> {
  /** The folder that the process was started in. */
  readonly cwd: string;
  /** The identity that the app serves; by default the user. */
  readonly identity?: string | undefined;
  /** The environment; by default the environment of the process. */
  readonly environment?: Environment;
  /** Writes a line of the log; by default to stderr. */
  readonly write?: ((line: string) => void) | undefined;
}

type AppParts = Pick<
  ServiceParts,
  "policy" | "log" | "redactor" | "files" | "keys" | "isLongRunning" | "hasClient"
>;

/**
 * Returns an environment that checks on demand whether a layer of the system can confine programs.
 */
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
  // Loads approved servers of registries at the start, unless the client may choose another folder.
  const { workspace: { root, found } } = policy.now.loaded;
  const mayMove = options.hasClient && found === "default";
  if (!mayMove && await mayHaveRegistryServers(policy.now.config.home, root)) {
    // Each call reports a broken lock, so the start does not fail.
    await app.registries().catch((error) => log.warn(error.message));
  }
  const isTraced = options.isLongRunning && hasTraceEndpoint(policy.now.loaded.environment);
  if (isTraced) app.traces = (await import("./app_traces.ts")).openTraces(app);
  await app.refreshCapabilities();
  if (options.isLongRunning) await Promise.all([app.recallInstructions(), app.recallNames()]);
  app.sweep();
  return app;
}

/** Creates the PML home on Windows, with an access list unless the folder inherits one. */
async function restrictHome({ config, loaded }: Policy["now"]): Promise<void> {
  if (config.problem !== undefined) return; // PML may have refused the path of the home
  const { AccessLists } = await import("../policy/access_list.ts");
  privateFolder(config.home);
  await AccessLists.of(loaded.environment).restrict(config.home);
}

/** The parts of the running PML that servers and their lists use. */
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
    this.#app.openGateway?.clients.notifyListChanged(...change);
  }

  onUnknown(name: string): void {
    const record = (callPath: CallPath) => callPath.record("unknown tool", { about: { name } });
    this.#app.callPath().then(record, () => {}); // the call reports errors
  }

  findOffer(id: ToolId): CatalogEntry | undefined {
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
  /** The configuration, and which parts of it the user trusts. */
  readonly policy: Policy;
  /** Finds the keys that servers want. */
  readonly keys: Keys;
  /** The counts since the start. */
  readonly metrics: Metrics = new Metrics();
  /** The metrics of identities whose token was revoked: counters never fall. */
  readonly endedMetrics: Metrics[] = [];
  /** The roots of the client of `pml stdio`. */
  readonly clientRoots: ClientRoots = new ClientRoots();
  /** Passes questions that servers ask outside of calls to the client of `pml stdio`. */
  readonly clientQuestions: ClientQuestions = new ClientQuestions(this);
  /** Counts the bytes that are queued for the client. */
  readonly backlog: Backlog = new Backlog(() => this.config().limits.queuedBytes);
  /** Every known tool. */
  readonly catalog: Catalog = new Catalog();
  /** Every known server. */
  readonly servers: Servers;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string> = BUILTIN_NAMES;
  /** Finds servers by their names. */
  readonly directory: Directory;
  /** The gateway; undefined until it is loaded. Until then there is no client. */
  openGateway: Gateway | undefined;
  /** The clients to record; undefined if this PML does not serve the user's own clients. */
  clientNotes: SessionlessClients | undefined;
  /** Records traces; undefined unless the user set an endpoint for them. */
  traces: Traces | undefined;
  /** The lowest level of log messages that a client wants; undefined until a client sets one. */
  level: string | undefined;
  /** The start of the value of PML_RUN in all programs that this PML starts. */
  readonly runMark: string = randomHex(12);
  /** The supervisor that waits for the first program, if one was started. */
  spare: SpareKeeper | undefined;
  /** Resolved when a client got a first list. */
  readonly firstList: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Resolved when a client got a first list, or a first call has ended. */
  readonly firstAnswer: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Resolves when calls may begin. */
  ready: Promise<unknown> = Promise.resolve();
  /** The parts that exist before the app. */
  readonly parts: AppParts;
  #schemas: Promise<Schemas> | undefined;
  readonly #closing = new AbortController();
  #callPath: Promise<CallPath> | undefined;
  #pins: Promise<Pins> | undefined;
  #memory: Promise<UseMemory> | undefined;
  #toolNames: ToolNames | undefined;
  #workflow: Promise<Workflow> | undefined;
  #gateway: Promise<Gateway> | undefined;
  #finder: Promise<Finder> | undefined;
  #cloudTools: Catalog | undefined;
  #openingRegistries: Promise<RegistryServers> | undefined;
  #capabilities: OpenCapabilities | undefined;
  #openingCapabilities: Promise<OpenCapabilities> | undefined;
  /** The name and the version of the client of `pml stdio`. */
  #stdioClient: JsonObject | undefined;
  /** The servers of registries; undefined until they begin to load, and after that failed. */
  #registries: RegistryServers | undefined;

  /** Creates the app from its parts, and follows changes of the policy. */
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
      // guard: early-change
      this.spare?.[Symbol.dispose]();
      this.servers.lists.replace(this.directory.all());
      for (const list of LIST_NAMES) this.openGateway?.clients.notifyListChanged(list);
      const { loaded } = policy.now;
      // A change of the trust alone does not reload the configuration.
      const isNew = loaded !== lastLoad;
      lastLoad = loaded;
      // Only the user's PML logs it, because the PML of an identity may be closed by then.
      if (change === "configuration" && isNew && !loaded.identity) logConfigChange(this);
    });
  }

  /** Returns the servers of registries. The first call loads them. */
  registries(): Promise<RegistryServers> {
    if (this.closing.aborted) return Promise.reject(endingError("begin"));
    // Tries again after a failure: the user may have corrected a broken `pml.lock`.
    this.#openingRegistries ??= this.#openRegistries().catch((error) => {
      this.#openingRegistries = undefined;
      throw error;
    });
    return this.#openingRegistries;
  }

  /** Loads the modules that ship with PML. */
  async builtinModules(): Promise<ReadonlyMap<string, ModuleSource>> {
    return (await import("../servers/module/builtins.ts")).builtins();
  }

  /** Returns the call path: the pipeline, approvals and the machine. The first call loads it. */
  callPath(): Promise<CallPath> {
    if (this.closing.aborted) return Promise.reject(endingError("begin"));
    this.#callPath ??= this.ready.then(async () => {
      const { openCallPath } = this.directory.all().some(({ kind }) => isProgramKind(kind))
        ? await import("./program_call_path.ts")
        : await import("./app_call_path.ts");
      return await openCallPath(this);
    });
    return this.#callPath;
  }

  /** The call path if it was loaded or is being loaded, so that servers may run. */
  get openCallPath(): Promise<CallPath> | undefined {
    return this.#callPath;
  }

  /** Opens the runner of servers, with the network. */
  async machine(): Promise<Machine> {
    return (await this.callPath()).machine;
  }

  /** Returns the process groups of this PML. */
  async groups(): Promise<Machine["groups"]> {
    return (await this.machine()).groups;
  }

  /** Notifies clients that their lists of tools, ranked by the intent, may differ now. */
  notifyRankedTools(): void {
    this.openGateway?.clients.notifyListChanged("tools");
  }

  /** Returns the memory of tool use. It is loaded after the first call. */
  openMemory(): Promise<UseMemory> {
    return this.#memory ??= import("../workflow/use_memory.ts").then(({ UseMemory }) => {
      const { home, workspace, restrictions } = this.config();
      const owner = JSON.stringify([workspace, restrictions?.identity?.name ?? null]);
      const path = `${home}/memory/${sha256(owner).slice(0, 32)}.json`;
      return new UseMemory({ path, common: `${home}/memory.json` }, this.policy, this.log);
    });
  }

  /** Returns the observed types of results, for tools without an output schema. */
  async observedOutput(): Promise<ObservedOutput> {
    const memory = await this.openMemory();
    return (server, definition) => {
      // The user may have changed the shown definition. Observations belong to the tool's own
      // definition.
      const entry = this.catalog.toolsOf(server).find(({ tool }) => tool.name === definition.name);
      const own = entry && this.catalog.get(entry.id)?.own;
      return entry && own && memory.observedSchema(entry.id, own);
    };
  }

  /** Returns the runner of plans and code. The first plan or code loads it. */
  workflow(): Promise<Workflow> {
    return this.#workflow ??= import("./app_workflow.ts").then(({ openWorkflow }) =>
      openWorkflow(this)
    );
  }

  /** Returns the saved capabilities. The first call loads them. */
  capabilities(): Promise<OpenCapabilities> {
    this.#openingCapabilities ??= import("./app_capabilities.ts").then(
      ({ openCapabilities: capabilitiesOf }) => {
        this.#capabilities = capabilitiesOf(this);
        this.#capabilities.capabilities.refresh();
        return this.#capabilities;
      },
    );
    return this.#openingCapabilities;
  }

  /** Reads the saved capabilities again, because another process may have changed them. */
  async refreshCapabilities(): Promise<void> {
    if (this.#capabilities !== undefined) this.#capabilities.capabilities.refresh();
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

  /** The servers of registries, if they were opened. */
  get registryServers(): RegistryServers | undefined {
    return this.#registries;
  }

  /** Records requests whose answers the client did not read. */
  readonly recordLostAnswers = (requests: readonly string[]): void =>
    void this.#callPath?.then((callPath) => callPath.recordLostAnswers(requests), () => {});

  /** Returns the configuration as it was read. */
  loaded(): LoadedConfig {
    return this.policy.now.loaded;
  }

  /** Returns the current configuration. */
  config(): Config {
    return this.policy.now.config;
  }

  /**
   * Returns the variables that servers of registries need, if the user approved the servers here.
   */
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
    const { cloud: { url = CLOUD_URL } = {}, restrictions } = this.config();
    const server = { name: "pml", kind: "cloud", url } as const;
    if (restrictions?.company?.forbids(server) !== undefined) return undefined;
    try {
      return this.keys.cloud() === undefined ? undefined : this.#cloudTools ??= cloudCatalog();
    } catch {
      return undefined; // the key is not valid, which calls report
    }
  }

  /** Returns the search for tools. The first call loads it. */
  finder(): Promise<Finder> {
    if (this.closing.aborted) return Promise.reject(endingError("begin"));
    return this.#finder ??= import("../gateway/finder.ts").then(({ Finder }) => new Finder(this));
  }

  /** Sets the log level that clients want, also for servers that start later. */
  setLevel(level: string): void {
    this.level = level;
    this.#callPath?.then(({ machine }) => machine.setLevel(level), () => {});
  }

  /** Writes the names of tools to the PML home, for the instructions of the next process. */
  async keepNames(): Promise<void> {
    if (this.#namesTools()) await (await this.#names()).write();
  }

  /**
   * The name and version of the client; undefined if clients with several of them are connected.
   */
  get onlyClient(): JsonObject | undefined {
    const infos = this.openGateway?.clients.infos ?? [];
    return infos.length > 1 ? undefined : infos[0] ?? this.#stdioClient;
  }

  /** Stores the capabilities and the name of the client of `pml stdio`. */
  takeCapabilities(capabilities: JsonObject, info?: JsonObject): void {
    this.#stdioClient = info;
    this.clientRoots.capability = capabilities.roots;
    this.servers.lists.setCapabilities(capabilities);
  }

  /**
   * Returns PML's description of itself for the handshake. `isAlone`: the client is the only one,
   * so that it gets the experimental capabilities and the unknown extensions of servers.
   */
  hello(isStateless = false, { isAlone = false } = {}): Hello {
    const { gateway, home, workspace } = this.config();
    const metaTools = listedMetaTools(gateway);
    const { toolsetFor } = this.config().restrictions ?? {};
    const serverInstructions = this.servers.instructionsIn({ ...gateway, toolsetFor });
    const declared = isAlone
      ? new PassedCapabilities(home).of(
        this.servers.unblockedServers.map((server) => ({ ...server, workspace })),
      )
      : {};
    return createHello(this.servers.shownStates(), {
      ...gateway,
      tools: this.#namesTools() ? this.#toolNames?.modelTools() : undefined,
      metaTools,
      isStateless,
      serverInstructions,
      declared,
    });
  }

  /** Reads the approved instructions of servers that were listed here before, for `full_proxy`. */
  async recallInstructions(): Promise<void> {
    if (this.config().gateway.exposure !== "full_proxy") return;
    const names = this.directory.all().map(({ name }) => name);
    // Returns early, so that the code of pins and calls is not loaded before the first answer.
    if (!await mayHaveInstructions(this.policy, names)) return;
    const pins = await this.pins();
    const { judge } = this.policy.now;
    for (const identity of await this.identities()) {
      const { name } = identity;
      const tools = pins.listedBy(name).filter((tool) => tool !== INSTRUCTIONS);
      const isDenied = (tool: string) => judge(toolId(name, tool)).kind === "deny";
      if (tools.length > 0 && tools.every(isDenied)) continue;
      // If the pins cannot be read, calls report that.
      const text = await pins.instructionsOf(identity).catch(() => undefined);
      if (text !== undefined) this.servers.setRecalledInstructions(name, text);
    }
  }

  /**
   * Reads the names of tools that an earlier process wrote, if the instructions may contain them.
   */
  async recallNames(): Promise<void> {
    // Returns early, so that a new home does not load this code before the first answer.
    if (!this.#namesTools() || stampAt(`${this.config().home}/names`) === undefined) return;
    await (await this.#names()).recall();
  }

  async #names(): Promise<ToolNames> {
    const { ToolNames } = await import("../servers/lists/tool_names.ts");
    return this.#toolNames ??= new ToolNames(this);
  }

  /**
   * Returns whether the instructions name tools. A client needs `call` to use the names. If clients
   * have tool sets, the set of this client is not known yet, so no tool is named.
   */
  #namesTools(): boolean {
    const { gateway, restrictions } = this.config();
    // guard: names-toolset
    if (restrictions?.toolsetFor !== undefined) return false;
    return listedMetaTools(gateway).includes("call");
  }

  /** Returns the pins: the state of servers and tools that was first seen or approved. */
  async pins(): Promise<Pins> {
    this.#pins ??= import("../policy/pins.ts").then(({ pinsOf }) => pinsOf(this.policy, this.log));
    return await this.#pins;
  }

  /** Returns the identities of servers, as they would be pinned now. Starts nothing. */
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
    const refresh = () =>
      void this.refreshCapabilities().catch((error) => this.log.warn(messageOf(error)));
    this.policy.watch(this.#closing.signal, refresh).catch((error) =>
      this.log.warn(
        `Cannot watch the configuration, so a change applies with the next call: ${
          messageOf(error)
        }`,
      )
    );
  }

  /** Ends everything that a call started. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(endingError("go on"));
    if (this.parts.isLongRunning) await this.keepNames();
    this.spare?.[Symbol.dispose]();
    this.#registries?.[Symbol.dispose]();
    this.servers[Symbol.dispose]();
    this.openGateway?.[Symbol.dispose]();
    await this.clientNotes?.[Symbol.asyncDispose]();
    await this.traces?.[Symbol.asyncDispose]();
    await (await this.#finder)?.[Symbol.asyncDispose]();
    await (await this.#callPath)?.[Symbol.asyncDispose]();
    (await this.#memory)?.[Symbol.dispose]();
    this.sweep();
  }

  /** Removes expired approvals from the PML home, because they contain the arguments of calls. */
  sweep(): void {
    const { home, limits } = this.config();
    sweepApprovals(home, Date.now(), limits.approvalMs);
  }

  /** Returns the checks of values against schemas. The first call loads them. */
  schemas(): Promise<Schemas> {
    return this.#schemas ??= import("../calls/schemas.ts").then(({ Schemas }) => new Schemas());
  }

  async #openRegistries(): Promise<RegistryServers> {
    const { RegistryServers } = await import("../servers/registries/registry_servers.ts");
    const pins = await this.pins();
    const servers = new RegistryServers({ ...this.parts, pins }, this.builtins);
    // Set before `open()`, so that the servers found so far are listed at once.
    this.#registries = servers;
    await servers.open().catch((error) => {
      this.#registries = undefined;
      throw error;
    });
    return servers;
  }
}

function logConfigChange({ log, policy }: App): void {
  const { problem } = policy.now.config;
  if (problem === undefined) log.info("The configuration was applied");
  else log.error(problem.message);
}
