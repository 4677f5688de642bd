/**
 * Runs servers and connects to them: modules in the sandbox, programs on this machine, addresses,
 * and the cloud.
 *
 * @module
 */

import { join, resolve } from "node:path";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import type { Log } from "../audit/log.ts";
import type { Metrics } from "../audit/metrics.ts";
import {
  certificatePaths,
  containerEnvironment,
  installEnvironment,
  programEnvironment,
  serverEnvironment,
} from "../config/child_environment.ts";
import type { Config } from "../config/current_config.ts";
import type { CheckReport } from "../core/check.ts";
import { endingError, PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { withFolders } from "../core/folder_variables.ts";
import type { Authorization } from "../core/authorization.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ServerIdentity } from "../policy/server_identity.ts";
import { toolId } from "../core/tool_id.ts";
import type { Backlog } from "../io/backlog.ts";
import { StartProgress } from "./client/start_progress.ts";
import type { UpstreamClients } from "./client/upstream_clients.ts";
import { Upstreams } from "./client/upstreams.ts";
import type { UpstreamsHost } from "./client/upstreams_host.ts";
import type { UpstreamServer } from "./client/wire.ts";
import type { Tracer } from "../protocol/trace.ts";
import type { ModuleHost } from "./module/module_host.ts";
import type { Modules } from "./module/modules.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import { HttpServers } from "./http/http_servers.ts";
import type { HttpServersHost, HttpValues } from "./http/http_options.ts";
import { HubRouting } from "./cloud/hub_routing.ts";
import { programOf, programsOf } from "./kinds.ts";
import { CLOUD_URL } from "./cloud/kind.ts";
import type { TrialBounds } from "./kind.ts";
import type { Cloud } from "./cloud/rpc.ts";
import type { ServerGrants } from "../policy/grants.ts";
import type { Layer } from "../sandbox/confined_program.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import { Reaper } from "../sandbox/reaper.ts";
import type { LogEntry, Protection } from "../sandbox/sandbox.ts";
import { ServerLog } from "./server_log.ts";
import type { Trial } from "./stdio/learn.ts";
import { type NewestPackage, type ServerScripts, StdioServers } from "./stdio/stdio_servers.ts";
import type { ProgramHost, StdioValues } from "./stdio/program_host.ts";
import { rootsFor } from "./visible_roots.ts";
import type { DefinitionValues } from "./definition_values.ts";
import { codeOf } from "./server_code.ts";
import { CompanyNetwork, proxyVariables } from "../policy/network.ts";
import { Packages } from "./packages.ts";
import type { ServiceParts } from "./service_parts.ts";

/** Runs servers and connects to them. Starts nothing before the first call. */
export class Machine
  implements ModuleHost, ProgramHost, UpstreamsHost, HttpServersHost, AsyncDisposable {
  /** Reports the progress of starts to the calls that wait for them. */
  readonly starts: StartProgress = new StartProgress();
  /** Is called with the log entries of modules, without secrets. */
  onModuleLog: (server: string, entry: LogEntry) => void;
  /** The PML home. */
  readonly home: string;
  /** The user's certificates, which confined servers may read. */
  readonly certificates: readonly string[];
  /** The environment of every server, with PATH. */
  readonly serverEnvironment: Readonly<Record<string, string>>;
  /** The variables that servers in containers get as well. */
  readonly containerEnvironment: Readonly<Record<string, string>>;
  /** The environment of the programs of modules. */
  readonly programEnvironment: Readonly<Record<string, string>>;
  /** Ends the started processes if PML is killed. */
  readonly groups: Reaper;
  /** The clients, which get the notifications of servers. */
  readonly clients: UpstreamClients;
  /** Records the spans of requests; undefined if PML records no traces. */
  readonly tracer: Tracer | undefined;
  /** Counts the requests to servers. */
  readonly metrics: Pick<Metrics, "countSent"> | undefined;
  /** Starts programs. */
  readonly programs: StdioServers;
  /** Connects to addresses. */
  readonly addresses: HttpServers;
  /** The connections to programs and addresses. */
  readonly upstreams: Upstreams;
  /** The connections to the cloud. */
  readonly cloudUpstreams: Upstreams;
  /** The hub's list of servers in the cloud. */
  readonly hub: HubRouting;
  /** The installed packages, and their pins. */
  readonly packages: Packages;
  readonly #parts: ServiceParts;
  readonly #opener: Pick<UpstreamsHost, "upstreamOf">;
  readonly #values: DefinitionValues;
  readonly #trials = new Map<string, Trial>();
  /** The stored logs of modules. */
  readonly #moduleLogs = new Map<string, ServerLog>();
  /**
   * Returns the same object for the same trial and server, because a new object is another server.
   */
  readonly #withTrialOf = memoized((trial: Trial) =>
    memoized((server: StdioValues) => ({ ...server, trial }))
  );
  readonly #closing = new AbortController();
  /**
   * Returns the protected paths. They include the code of servers, which modules must not change.
   */
  readonly #protection = memoized(({ servers }: Config) => ({
    ...protectedPaths,
    paths: servers.flatMap((server) => codeOf(server, this.#parts.policy.folders)),
  }));
  #modules: Promise<Modules> | undefined;
  #cloud: Promise<Cloud> | undefined;
  #network: Promise<GuardedFetch> | undefined;
  #signIns: Promise<SignIns> | undefined;

  /** `opener` finds servers by name; `values` fills in definitions. Starts nothing. */
  constructor(
    parts: ServiceParts,
    opener: Pick<UpstreamsHost, "upstreamOf">,
    values: DefinitionValues,
  ) {
    this.#parts = parts;
    this.#opener = opener;
    this.#values = values;
    const { policy, log } = parts;
    this.onModuleLog = moduleLogger(log);
    const { environment } = policy.now.loaded;
    const { home } = environment;
    this.home = home;
    this.certificates = certificatePaths(environment);
    this.serverEnvironment = serverEnvironment(environment);
    this.containerEnvironment = containerEnvironment(environment);
    this.programEnvironment = programEnvironment(environment);
    this.groups = new Reaper(join(home, "sandbox", `${Deno.pid}-`), parts.spares?.runMark);
    if (parts.hasClient) void this.groups.watch();
    this.packages = new Packages(parts);
    this.clients = parts.clients;
    this.tracer = parts.tracer;
    this.metrics = parts.metrics;
    this.programs = new StdioServers(this);
    this.addresses = new HttpServers(this);
    this.upstreams = new Upstreams(this);
    // The cloud has separate connections, so that no request for a user's server reaches the cloud.
    this.cloudUpstreams = new Upstreams(this);
    this.hub = new HubRouting(this, parts.keys, log);
    // guard: following-anew
    policy.onChange(() => this.#each((upstreams) => upstreams.refollow()));
    parts.clientRoots?.listen(() => this.#each((upstreams) => upstreams.rootsChanged()));
  }

  /** Aborts when PML ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The current workspace. */
  get workspace(): string {
    return this.#config().workspace;
  }

  /** The names and paths that are currently closed to servers. */
  get protection(): Omit<Protection, "granted"> {
    return this.#protection(this.#config());
  }

  /** The current limits. */
  get limits(): Config["limits"] {
    return this.#config().limits;
  }

  /** The layer of the operating system that the user chose to confine programs. */
  get osLayer(): Config["osLayer"] {
    return this.#config().osLayer;
  }

  /** Waits while too much data waits for the client, so that servers are read more slowly. */
  get waitForMemory(): Backlog["waitForMemory"] | undefined {
    return this.#parts.backlog?.waitForMemory;
  }

  /** The address of the hub, if the user configured one. */
  get cloudUrl(): string | undefined {
    return this.#config().cloud?.url;
  }

  /** The address of the hub, and whether the user configured it. */
  get hubAddress(): { readonly url: string; readonly isNamed: boolean } {
    const { cloudUrl } = this;
    return { url: cloudUrl ?? CLOUD_URL, isNamed: cloudUrl !== undefined };
  }

  /** The start of the value of PML_RUN in all programs. */
  get runMark(): string {
    return this.groups.mark;
  }

  /** The supervisor process that waits for the first program, if there is one. */
  get spare(): SpareKeeper | undefined {
    return this.#parts.spares?.spare;
  }

  /** Returns the current grants of a server. */
  grants(server: string): ServerGrants | undefined {
    return this.#config().grants[server];
  }

  /** Returns the value of a variable. */
  variable(name: string): string | undefined {
    return this.#parts.keys.get(name);
  }

  /** Returns the variables with which installers reach the user's package registry. */
  installEnvironment(): Readonly<Record<string, string>> {
    const { environment } = this.#parts.policy.now.loaded;
    return { ...installEnvironment(environment), ...proxyVariables(this.#parts) };
  }

  /** Removes secrets from values of a server other than the results of calls. */
  withoutSecrets<T>(value: T): T {
    return this.#parts.redactor.clean(value);
  }

  /** Logs an entry of a module, without secrets. */
  logModule(server: string, { level, text }: LogEntry): void {
    const safe = this.#parts.redactor.redact(text);
    const stored = this.#moduleLogs.get(server) ?? new ServerLog(this.home, server);
    this.#moduleLogs.set(server, stored);
    stored.add(`${level}: ${safe}\n`);
    this.onModuleLog(server, { level, text: safe });
  }

  /** Logs a text of a server that is not a message. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void {
    this.#trials.get(server)?.addOutput(text);
    this.#parts.log[level](text, { server });
  }

  /** Sets the log level of the running servers. */
  setLevel(level: string): void {
    this.#each((upstreams) => upstreams.setLevel(level));
  }

  /**
   * Returns the server that has this name now, if it uses these connections (`upstreams`). Throws
   * if it is not approved.
   */
  upstreamOf(name: string, upstreams: Upstreams): UpstreamServer {
    return this.#opener.upstreamOf(name, upstreams);
  }

  /** Returns the roots that a server may see. */
  roots(server: string): Promise<readonly JsonObject[]> {
    return rootsFor(server, this.#parts);
  }

  /** Returns whether the current rules allow following resources of a server. */
  mayFollow(server: string): boolean {
    return this.#parts.policy.now.judge(toolId(server, "@resources")).kind !== "deny";
  }

  /** Returns the sign-in of a server over HTTP. */
  async authorization(server: HttpValues): Promise<Authorization | undefined> {
    // The sign-in belongs to the user. An identity without the right to the user's keys cannot use
    // it.
    const lacksKeys = this.#config().restrictions?.identity?.keys === false;
    // guard: sign-in-identity
    return lacksKeys ? undefined : (await this.signIns()).of(server);
  }

  /** Removes one follower of a resource, even if the name belongs to another server now. */
  unfollow(followed: Parameters<Upstreams["unfollow"]>[0]): void {
    this.#each((upstreams) => upstreams.unfollow(followed));
  }

  /** Returns the identities of the servers of files, to pin them. Starts nothing. */
  identities(): readonly ServerIdentity[] {
    const { policy, files } = this.#parts;
    const { file, userConfig } = policy.now.loaded;
    const workspaceServers = file?.servers ?? [];
    const names = new Set(workspaceServers.map(({ name }) => name));
    return [...workspaceServers, ...userConfig.servers.filter(({ name }) => !names.has(name))]
      .map((server) => this.packages.presentIdentityOf(server, files));
  }

  /** Returns a program with the settings of its trial, if there is one. */
  withTrial(server: StdioValues): StdioValues {
    const trial = this.#trials.get(server.name);
    return trial === undefined ? server : this.#withTrialOf(trial)(server);
  }

  /** Returns the trial of a server, if there is one. */
  trialOf(server: string): TrialBounds | undefined {
    return this.#trials.get(server);
  }

  /** Begins a trial: the server runs confined to these grants, and its accesses are recorded. */
  async tryOut(
    server: string,
    { grants, env: more }: Pick<Trial, "grants" | "env">,
  ): Promise<Trial> {
    const { policy } = this.#parts;
    const { Trial } = await import("./stdio/learn.ts");
    const { loaded: { environment }, config: { workspace } } = policy.now;
    const definition = policy.definitionOf(server);
    const { env = {}, cwd: written = "" } = definition && programOf(definition) || {};
    const cwd = resolve(workspace, withFolders(written, policy.folders));
    const { home, userHome } = environment;
    const isConfinedBySystem = (await this.layer()).kind !== "none";
    const where = {
      name: server,
      workspace,
      cwd,
      home,
      userHome,
      hasSystemLayer: isConfinedBySystem,
      protection: protectedPaths,
    };
    const names = Object.keys({ ...env, ...more, ...this.serverEnvironment });
    const { certificates } = this;
    const trial = new Trial({ ...where, grants, env: more, certificates, variableNames: names });
    this.#trials.get(server)?.[Symbol.dispose]();
    this.#trials.set(server, trial);
    return trial;
  }

  /** Returns the layer of the system that confines programs on this machine. */
  async layer(): Promise<Layer> {
    const { workspace, osLayer } = this.#config();
    const { availableLayer } = await import("../sandbox/confined_program.ts");
    return await availableLayer(osLayer, this.serverEnvironment.PATH, workspace);
  }

  /** Returns a warning for the user if only Deno confines modules here; otherwise undefined. */
  async layerRemark(): Promise<string | undefined> {
    const { osLayer } = this.#config();
    // With "off" the user chose no layer; with "required" no module runs without one.
    if (osLayer === "off" || osLayer === "required") return undefined;
    if ((await this.layer()).kind !== "none") return undefined;
    return "On this system Deno alone confines modules: they get no file, program or host that was " +
      "not granted, but a program of yours that swaps a link at the right moment could mislead them";
  }

  /** Returns the names of the configured servers whose command installs a package. */
  serversWithPackages(): readonly string[] {
    return this.programs.packagedNames(programsOf(this.#config().servers));
  }

  /**
   * Installs the package of a server. Returns the install scripts of the package and its
   * dependencies that did not run.
   */
  async scriptsOf(server: string): Promise<ServerScripts> {
    return await this.programs.scriptsOf(this.#valuesOf(server), this.closing);
  }

  /**
   * Looks up the newest version of a server's package. Returns undefined if the command of the
   * server installs no npm package.
   */
  async newestOf(server: string): Promise<NewestPackage | undefined> {
    return await this.programs.newestOf(this.#valuesOf(server), this.closing);
  }

  /** Checks that modules run on this machine, and that confined servers and packages are intact. */
  async checks(): Promise<readonly CheckReport[]> {
    return [
      ...await (await this.modules()).checks(),
      await this.#confinedCheck(),
      ...await this.packages.checks(),
    ];
  }

  /** Reports which layer confines servers with `"confine": true`, and which count as unconfined. */
  async #confinedCheck(): Promise<CheckReport> {
    const layer = await this.layer();
    const name = "confined servers";
    if (layer.kind !== "none") {
      const used = layer.kind === "landlock" ? "landlock" : `bubblewrap ${layer.version}`;
      return {
        name,
        ok: true,
        message: `${used}: closed paths stay closed when folders are moved`,
      };
    }
    const unbounded = programsOf(this.#config().servers).filter((one) => one.countsAsUnconfined);
    const names = unbounded.map((one) => one.name).join(", ");
    const more = names === "" ? "" : `. With grants that count as unconfined: ${names}`;
    const text = `Deno alone (${layer.why}): the workspace is read-only for them${more}`;
    return {
      name,
      ok: true,
      message: text,
      hint: "Landlock, or bubblewrap on PATH, lets them write in it",
    };
  }

  /** Sends HTTP requests. The first one loads the client. */
  readonly fetch: Fetch = async (url, options) => {
    this.#network ??= import("../transport/http/client/guarded_fetch.ts").then(({ GuardedFetch }) =>
      new GuardedFetch(new CompanyNetwork(this.#parts))
    );
    return await (await this.#network).fetch(url, options);
  };

  /** Returns the sign-ins of the user. The first server over HTTP loads them. */
  signIns(): Promise<SignIns> {
    this.#signIns ??= import("../oauth/open_sign_ins.ts").then(({ openSignIns }) =>
      openSignIns(this.#parts, this.fetch, this.closing)
    );
    return this.#signIns;
  }

  /** Returns the client of the cloud. The first connection loads it. */
  cloud(): Promise<Cloud> {
    return this.#cloud ??= import("./cloud/rpc.ts").then(({ Cloud }) =>
      new Cloud(this, this.#parts.keys)
    );
  }

  /** Returns the runner of modules. The first module loads it. */
  modules(): Promise<Modules> {
    return this.#modules ??= this.#openModules();
  }

  /** Ends the processes and connections of a server. The next call starts it again. */
  async end(server: string): Promise<void> {
    const modules = await this.#modules;
    await Promise.all(
      [modules, this.upstreams, this.cloudUpstreams].map((each) => each?.end(server)),
    );
  }

  /**
   * Returns the running processes and connections of a server. Their function `rss()` returns the
   * resident memory in bytes, including child processes; 0 if it is not known.
   */
  async runningOf(server: string): Promise<readonly { rss(): number }[]> {
    const modules = await this.#modules;
    return [modules, this.upstreams, this.cloudUpstreams].flatMap((each) =>
      each?.runningOf(server) ?? []
    );
  }

  /** Ends every child and server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.hub[Symbol.dispose]();
    this.#closing.abort(endingError("start the module"));
    const open = [await this.#modules, this.upstreams, this.cloudUpstreams];
    await Promise.all(open.map((each) => each?.[Symbol.asyncDispose]()));
    (await this.#network)?.[Symbol.dispose]();
    await this.groups[Symbol.asyncDispose]();
    for (const trial of this.#trials.values()) trial[Symbol.dispose]();
    for (const stored of this.#moduleLogs.values()) stored[Symbol.dispose]();
  }

  #each(act: (upstreams: Upstreams) => void): void {
    for (const upstreams of [this.upstreams, this.cloudUpstreams]) act(upstreams);
  }

  async #openModules(): Promise<Modules> {
    const { Modules } = await import("./module/modules.ts");
    return new Modules(this, this.#parts.files);
  }

  #config(): Config {
    return this.#parts.policy.now.config;
  }

  /** Returns the values with which a server is started. Throws if no command starts the server. */
  #valuesOf(server: string): StdioValues {
    const { policy } = this.#parts;
    const definition = policy.definitionOf(server);
    const program = definition && programOf(definition);
    if (program !== undefined) return this.#values.stdio(program);
    const why = definition === undefined ? "no file of yours defines it" : "no command starts it";
    throw policy.whyForbidden(server)?.error ??
      new PmlError("USAGE", `Cannot install ${quoted(server)}: ${why}`, {
        hint: "Name one of `pml list` that a command starts",
      });
  }
}

/** Returns a function that writes log entries of modules to the log. */
function moduleLogger(log: Log): Machine["onModuleLog"] {
  return (server, { level, text }) => {
    const serious = level === "error" || level === "warn";
    log[serious ? level : "debug"](text, { server });
  };
}
