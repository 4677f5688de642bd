/**
 * Runs servers and connects to them: modules in the sandbox, programs on this machine, addresses,
 * and the cloud.
 *
 * @module
 */

import { join, resolve } from "node:path";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import type { Log } from "../audit/log.ts";
import type { Redactor } from "../audit/redact.ts";
import {
  certificatePaths,
  containerEnvironment,
  installEnvironment,
  programEnvironment,
  serverEnvironment,
} from "../config/child_environment.ts";
import type { Config } from "../config/current_config.ts";
import type { Keys } from "../config/keys.ts";
import type { CheckReport } from "../core/check.ts";
import { ending, PmlError } from "../core/errors.ts";
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
import type { UpstreamServer } from "./client/upstream_server.ts";
import type { ModuleHost } from "./module/module_host.ts";
import type { Modules } from "./module/modules.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import { HttpServers } from "./http/http_servers.ts";
import type { HttpServersHost, HttpValues } from "./http/http_options.ts";
import { HubRouting } from "./cloud/hub_routing.ts";
import { programOf, programsOf } from "./kinds.ts";
import { CLOUD_URL } from "./cloud/kind.ts";
import type { Cloud } from "./cloud/rpc.ts";
import type { ServerGrants } from "../policy/grants.ts";
import type { Layer } from "../sandbox/confined_program.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import { Reaper } from "../sandbox/reaper.ts";
import type { LogEntry, Protection } from "../sandbox/sandbox.ts";
import { ServerLog } from "./server_log.ts";
import type { Trial } from "./stdio/learn.ts";
import {
  type NewestPackage,
  type ServerScripts,
  type SpareOwner,
  StdioServers,
} from "./stdio/stdio_servers.ts";
import type { ProgramHost, StdioValues } from "./stdio/program_host.ts";
import type { ClientRoots } from "./client_roots.ts";
import { rootsFor } from "./visible_roots.ts";
import type { DefinitionValues } from "./definition_values.ts";
import { codeOf } from "./server_code.ts";
import { CompanyNetwork, proxyVariables } from "../policy/network.ts";
import { Packages } from "./packages.ts";

/** The options of `Machine`. */
export interface MachineOptions {
  readonly policy: Policy;
  readonly files: ModuleFiles;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly backlog?: Backlog;
  /** The roots of the client, if only one uses the servers. */
  readonly clientRoots?: ClientRoots;
  /** The owner of the process that waits for the first program. */
  readonly spares?: SpareOwner;
  /** The values of the definitions of files. */
  readonly values: DefinitionValues;
  /** Finds the present server of a name. */
  readonly opener: Pick<UpstreamsHost, "upstreamOf">;
  /** The clients, which get the notifications of servers. */
  readonly clients: UpstreamClients;
  /** Whether a client started this process. If that client ends, a hanging process is killed. */
  readonly hasClient?: boolean;
  /**
   * Whether the process stays. Then a search may install its configured model, and PML follows
   * sign-ins of the user.
   */
  readonly stays?: boolean;
}

/** Runs servers and connects to them. Starts nothing before the first call. */
export class Machine
  implements ModuleHost, ProgramHost, UpstreamsHost, HttpServersHost, AsyncDisposable {
  /** Reports the progress of starts to the calls that wait for them. */
  readonly starts: StartProgress = new StartProgress();
  /** Called with log entries of modules, without keys. */
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
  /** Starts programs. */
  readonly programs: StdioServers;
  /** Connects to addresses. */
  readonly addresses: HttpServers;
  /** The connections to programs and addresses. */
  readonly upstreams: Upstreams;
  /** The connections to the cloud. */
  readonly far: Upstreams;
  /** The hub's list of servers in the cloud. */
  readonly hub: HubRouting;
  /** The installed packages, and their pins. */
  readonly packages: Packages;
  readonly #options: MachineOptions;
  readonly #trials = new Map<string, Trial>();
  /** The stored logs of modules. */
  readonly #moduleLogs = new Map<string, ServerLog>();
  readonly #tried = memoized((trial: Trial) =>
    memoized((server: StdioValues) => ({ ...server, trial }))
  );
  readonly #closing = new AbortController();
  /** Returns the protected paths: modules must not write the files that servers run from. */
  readonly #protection = memoized(({ servers }: Config) => ({
    ...protectedPaths,
    paths: servers.flatMap((server) => codeOf(server, this.#options.policy.folders)),
  }));
  #modules: Promise<Modules> | undefined;
  #cloud: Promise<Cloud> | undefined;
  #network: Promise<GuardedFetch> | undefined;
  #signIns: Promise<SignIns> | undefined;

  /** Takes the options. Starts nothing. */
  constructor(options: MachineOptions) {
    this.#options = options;
    const { policy, log } = options;
    this.onModuleLog = logged(log);
    const { environment } = policy.now.loaded;
    const { home } = environment;
    this.home = home;
    this.certificates = certificatePaths(environment);
    this.serverEnvironment = serverEnvironment(environment);
    this.containerEnvironment = containerEnvironment(environment);
    this.programEnvironment = programEnvironment(environment);
    this.groups = new Reaper(join(home, "sandbox", `${Deno.pid}-`));
    if (options.hasClient) void this.groups.watch();
    this.packages = new Packages(options);
    this.clients = options.clients;
    this.programs = new StdioServers(this);
    this.addresses = new HttpServers(this);
    this.upstreams = new Upstreams(this);
    // The cloud has separate connections, so that no request to a user's server can reach it.
    this.far = new Upstreams(this);
    this.hub = new HubRouting(this, options.keys, log);
    // guard: following-anew
    policy.onChange(() => this.#each((upstreams) => upstreams.refollow()));
    options.clientRoots?.listen(() => this.#each((upstreams) => upstreams.rootsChanged()));
  }

  /** Aborts when PML ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The workspace now. */
  get workspace(): string {
    return this.#config().workspace;
  }

  /** The names and paths that stay closed now. */
  get protection(): Omit<Protection, "granted"> {
    return this.#protection(this.#config());
  }

  /** The limits now. */
  get limits(): Config["limits"] {
    return this.#config().limits;
  }

  /** The layer that the user chose. */
  get osLayer(): Config["osLayer"] {
    return this.#config().osLayer;
  }

  /** Pauses the readers of servers if too much waits for the client. */
  get room(): Backlog["room"] | undefined {
    return this.#options.backlog?.room;
  }

  /** The address of the hub, if the user named one. */
  get cloudUrl(): string | undefined {
    return this.#config().cloud?.url;
  }

  /** The address of the hub, and whether the user named it. */
  get hubAddress(): { readonly url: string; readonly isNamed: boolean } {
    const { cloudUrl } = this;
    return { url: cloudUrl ?? CLOUD_URL, isNamed: cloudUrl !== undefined };
  }

  /** The keeper that waits for the first program, if there is one. */
  get spare(): SpareKeeper | undefined {
    return this.#options.spares?.spare;
  }

  /** Returns the grants of a server now. */
  grants(server: string): ServerGrants | undefined {
    return this.#config().grants[server];
  }

  /** Returns the value of a variable. */
  variable(name: string): string | undefined {
    return this.#options.keys.get(name);
  }

  /** Returns the variables by which installers reach the user's registry of packages. */
  installEnvironment(): Readonly<Record<string, string>> {
    const { environment } = this.#options.policy.now.loaded;
    return { ...installEnvironment(environment), ...proxyVariables(this.#options) };
  }

  /** Removes secrets from texts of servers that are not results. */
  withoutSecrets<T>(value: T): T {
    return this.#options.redactor.clean(value);
  }

  /** Logs an entry of a module, without secrets. */
  logModule(server: string, { level, text }: LogEntry): void {
    const safe = this.#options.redactor.redact(text);
    const stored = this.#moduleLogs.get(server) ?? new ServerLog(this.home, server);
    this.#moduleLogs.set(server, stored);
    stored.add(`${level}: ${safe}\n`);
    this.onModuleLog(server, { level, text: safe });
  }

  /** Logs a text of a server that is not a message. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void {
    this.#trials.get(server)?.hear(text);
    this.#options.log[level](text, { server });
  }

  /** Sets the log level of the running servers. */
  setLevel(level: string): void {
    this.#each((upstreams) => upstreams.setLevel(level));
  }

  /** Returns the present server of a name on one of the connections. Throws if it is not approved. */
  upstreamOf(name: string, upstreams: Upstreams): UpstreamServer {
    return this.#options.opener.upstreamOf(name, upstreams);
  }

  /** Returns the roots that a server may see. */
  roots(server: string): Promise<readonly JsonObject[]> {
    return rootsFor(server, this.#options);
  }

  /** Returns whether the rules allow resources of a server to be followed. */
  mayFollow(server: string): boolean {
    return this.#options.policy.now.judge(toolId(server, "@resources")).kind !== "deny";
  }

  /** Returns the sign-in of a server over HTTP. */
  async authorization(server: HttpValues): Promise<Authorization | undefined> {
    // The sign-in is the user's, and an identity may not use the user's keys.
    const isPoor = this.#config().narrowing?.identity?.keys === false;
    // guard: sign-in-identity
    return isPoor ? undefined : (await this.signIns()).of(server);
  }

  /** Removes one follower of a resource, also if its server's name has another meaning now. */
  unfollow(followed: Parameters<Upstreams["unfollow"]>[0]): void {
    this.#each((upstreams) => upstreams.unfollow(followed));
  }

  /** Returns the identities of the servers of files, to pin them. Starts nothing. */
  identities(): readonly ServerIdentity[] {
    const { policy, files } = this.#options;
    const { file, person } = policy.now.loaded;
    const own = file?.servers ?? [];
    const names = new Set(own.map(({ name }) => name));
    return [...own, ...person.servers.filter(({ name }) => !names.has(name))]
      .map((server) => this.packages.writtenAs(server, files));
  }

  /** Returns a program with the settings of its trial, if there is one. */
  withTrial(server: StdioValues): StdioValues {
    const trial = this.#trials.get(server.name);
    return trial === undefined ? server : this.#tried(trial)(server);
  }

  /** Begins a trial: the server runs confined to these grants, and its accesses are recorded. */
  async tryOut(
    server: string,
    { grants, env: more }: Pick<Trial, "grants" | "env">,
  ): Promise<Trial> {
    const { policy } = this.#options;
    const { Trial } = await import("./stdio/learn.ts");
    const { loaded: { environment }, config: { workspace } } = policy.now;
    const own = policy.definitionOf(server);
    const { env = {}, cwd: written = "" } = own && programOf(own) || {};
    const cwd = resolve(workspace, withFolders(written, policy.folders));
    const { home, userHome } = environment;
    const isHeld = (await this.layer()).kind !== "none";
    const where = {
      name: server,
      workspace,
      cwd,
      home,
      userHome,
      isHeld,
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

  /** Returns a sentence for the user if only Deno confines modules here; undefined otherwise. */
  async layerRemark(): Promise<string | undefined> {
    const { osLayer } = this.#config();
    // The user chose no layer, or no modules without one.
    if (osLayer === "off" || osLayer === "required") return undefined;
    if ((await this.layer()).kind !== "none") return undefined;
    return "On this system Deno alone confines modules: they get no file, program or host that was " +
      "not granted, but a program of yours that swaps a link at the right moment could mislead them";
  }

  /** Returns the names of the configured servers whose command installs a package. */
  async packaged(): Promise<readonly string[]> {
    return await this.programs.packaged(programsOf(this.#config().servers), this.closing);
  }

  /** Installs the package of a server, and returns its packages with scripts that did not run. */
  async scriptsOf(server: string): Promise<ServerScripts> {
    return await this.programs.scriptsOf(valuesOf(server, this.#options), this.closing);
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: string): Promise<NewestPackage | undefined> {
    return await this.programs.newestOf(valuesOf(server, this.#options), this.closing);
  }

  /** Checks that modules run on this machine, and that confined servers and packages are intact. */
  async checks(): Promise<readonly CheckReport[]> {
    return [
      ...await (await this.modules()).checks(),
      await this.#confinedCheck(),
      ...await this.packages.checks(),
    ];
  }

  /** Returns the layer that confines servers with `"confine": true`, and the unconfined ones. */
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
    const wide = programsOf(this.#config().servers).filter((one) => one.isUnheld);
    const names = wide.map((one) => one.name).join(", ");
    const more = names === "" ? "" : `. With grants that count as unconfined: ${names}`;
    const text = `Deno alone (${layer.why}): the workspace is read-only for them${more}`;
    return {
      name,
      ok: true,
      message: text,
      hint: "Landlock, or bubblewrap on PATH, lets them write in it",
    };
  }

  /** Sends requests to the network, whose client is loaded by the first one. */
  readonly fetch: Fetch = async (url, options) => {
    this.#network ??= import("../transport/http/client/guarded_fetch.ts").then(({ GuardedFetch }) =>
      new GuardedFetch(new CompanyNetwork(this.#options))
    );
    return await (await this.#network).fetch(url, options);
  };

  /** Returns the sign-ins of the user, which are loaded by the first server over HTTP. */
  signIns(): Promise<SignIns> {
    this.#signIns ??= import("../oauth/open_sign_ins.ts").then(({ openSignIns }) =>
      openSignIns(this.#options, this.fetch, this.closing)
    );
    return this.#signIns;
  }

  /** Returns the client of the cloud. The first connection loads it. */
  cloud(): Promise<Cloud> {
    return this.#cloud ??= import("./cloud/rpc.ts").then(({ Cloud }) =>
      new Cloud(this, this.#options.keys)
    );
  }

  /** Returns the runner of modules. The first module loads it. */
  modules(): Promise<Modules> {
    return this.#modules ??= this.#openModules();
  }

  /** Ends every child and server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.hub[Symbol.dispose]();
    this.#closing.abort(ending("start the module"));
    const open = [await this.#modules, this.upstreams, this.far];
    await Promise.all(open.map((each) => each?.[Symbol.asyncDispose]()));
    (await this.#network)?.[Symbol.dispose]();
    await this.groups[Symbol.asyncDispose]();
    for (const trial of this.#trials.values()) trial[Symbol.dispose]();
    for (const stored of this.#moduleLogs.values()) stored[Symbol.dispose]();
  }

  #each(act: (upstreams: Upstreams) => void): void {
    for (const upstreams of [this.upstreams, this.far]) act(upstreams);
  }

  async #openModules(): Promise<Modules> {
    const { Modules } = await import("./module/modules.ts");
    return new Modules(this, this.#options.files);
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }
}

/** Returns the values to start a server with. Throws if no command starts it. */
function valuesOf(
  server: string,
  { policy, values }: Pick<MachineOptions, "policy" | "values">,
): StdioValues {
  const own = policy.definitionOf(server);
  const program = own && programOf(own);
  if (program !== undefined) return values.stdio(program);
  const why = own === undefined ? "no file of yours defines it" : "no command starts it";
  throw policy.forbidden(server)?.error ??
    new PmlError("USAGE", `Cannot install ${quoted(server)}: ${why}`, {
      hint: "Name one of `pml list` that a command starts",
    });
}

/** Returns a function that writes log entries of modules to the log. */
function logged(log: Log): Machine["onModuleLog"] {
  return (server, { level, text }) => {
    const serious = level === "error" || level === "warn";
    log[serious ? level : "debug"](text, { server });
  };
}
