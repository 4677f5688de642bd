/**
 * What runs servers and reaches them: the sandbox of modules, the programs on this machine, the
 * addresses that speak MCP, the cloud.
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
import type { Check } from "../core/check.ts";
import { ending, PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { withFolders } from "../core/folder_variables.ts";
import { quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ServerIdentity } from "../policy/server_identity.ts";
import { toolId } from "../core/tool_id.ts";
import type { Backlog } from "../io/backlog.ts";
import { StartProgress } from "./client/start_progress.ts";
import { Upstreams, type UpstreamsOptions } from "./client/upstreams.ts";
import type { UpstreamServer } from "./client/upstream_server.ts";
import type { ModuleHost } from "./module/module_host.ts";
import type { Modules } from "./module/modules.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import { HttpServers } from "./http/http_servers.ts";
import { HubRouting } from "./cloud/hub_routing.ts";
import { CLOUD_URL } from "./cloud/kind.ts";
import { programOf, programsOf } from "./kinds.ts";
import type { Cloud } from "./cloud/rpc.ts";
import type { Grants } from "../policy/grants.ts";
import type { Layer } from "../sandbox/confined_program.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import { Reaper } from "../sandbox/reaper.ts";
import type { LogEntry, Protection } from "../sandbox/sandbox.ts";
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

/** What the machine stands in. */
export interface MachineOptions {
  readonly policy: Policy;
  readonly files: ModuleFiles;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly backlog?: Backlog;
  /** The roots of the client, where only one uses the servers. */
  readonly clientRoots?: ClientRoots;
  /** Has the keeper that waits for the first program. */
  readonly spares?: SpareOwner;
  /** The values of the definitions of files. */
  readonly values: DefinitionValues;
  /** Finds the way to a server, of those in the cloud or of the others. */
  readonly upstreamOf: (name: string, isCloud: boolean) => UpstreamServer;
  /** What servers and clients say to each other. */
  readonly events: Pick<UpstreamsOptions, "told" | "capabilities" | "level">;
  /** Whether a client started this process, which is then killed if it hangs and that is gone. */
  readonly hasClient?: boolean;
  /**
   * Whether the process stays. Then a search may install what it was told to use, and it follows
   * where the person signs in.
   */
  readonly stays?: boolean;
}

/** The common values of the connections of a machine. */
interface Basics {
  readonly home: string;
  readonly groups: Reaper;
  readonly fetch: Fetch;
  readonly room: Backlog["room"] | undefined;
  readonly workspace: () => string;
  readonly limits: () => Config["limits"];
}

/** Runs and reaches servers; starts nothing before the first call. */
export class Machine implements ModuleHost, ProgramHost, AsyncDisposable {
  /** Tells the calls that wait how what they wait for comes along. */
  readonly starts: StartProgress = new StartProgress();
  /** Is told what modules log, without keys. */
  heard: (server: string, entry: LogEntry) => void;
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
  /** Ends what was started if PML is killed. */
  readonly groups: Reaper;
  /** Starts programs. */
  readonly programs: StdioServers;
  /** Reaches addresses. */
  readonly addresses: HttpServers;
  /** The connections to programs and addresses. */
  readonly upstreams: Upstreams;
  /** The connections to the cloud. */
  readonly far: Upstreams;
  /** The hub's list of what runs in the cloud. */
  readonly hub: HubRouting;
  /** What is installed, and pinned. */
  readonly packages: Packages;
  readonly #options: MachineOptions;
  readonly #trials = new Map<string, Trial>();
  readonly #tried = memoized((trial: Trial) =>
    memoized((server: StdioValues) => ({ ...server, trial }))
  );
  readonly #closing = new AbortController();
  /** Returns what stays closed: what servers run from is not for modules to write. */
  readonly #protection = memoized(({ servers }: Config) => ({
    ...protectedPaths,
    paths: servers.flatMap((server) => codeOf(server, this.#options.policy.folders)),
  }));
  readonly #basics: Basics;
  #modules: Promise<Modules> | undefined;
  #cloud: Promise<Cloud> | undefined;
  #network: Promise<GuardedFetch> | undefined;
  #signIns: Promise<SignIns> | undefined;

  /** Takes what there is. */
  constructor(options: MachineOptions) {
    this.#options = options;
    const { policy, log, upstreamOf } = options;
    this.heard = logged(log);
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
    const basics = this.#basics = {
      ...{ home, groups: this.groups, fetch: this.fetch, room: options.backlog?.room },
      workspace: () => this.workspace,
      limits: () => this.limits,
    };
    const shared = { ...basics, ...this.#upstreamsOptions() };
    this.programs = new StdioServers(this);
    this.addresses = new HttpServers({
      ...basics,
      authorization: async (server) => {
        // The person signed in, and an identity may be without the person's keys.
        const isPoor = this.#config().narrowing?.identity?.keys === false;
        // guard: sign-in-identity
        return isPoor ? undefined : (await this.signIns()).of(server);
      },
    });
    this.upstreams = new Upstreams({ ...shared, server: (name) => upstreamOf(name, false) });
    // The cloud has its own: nothing that is asked of a server of the person's finds a way there.
    this.far = new Upstreams({ ...shared, server: (name) => upstreamOf(name, true) });
    this.hub = new HubRouting({
      file: join(home, "hub_routing.json"),
      fetch: this.fetch,
      hub: () => {
        const url = this.#config().cloud?.url;
        return { url: url ?? CLOUD_URL, isNamed: url !== undefined };
      },
      key: () => options.keys.cloud()?.value,
      warn: (message) => log.warn(message),
    });
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

  /** The layer that the user wants now. */
  get osLayer(): Config["osLayer"] {
    return this.#config().osLayer;
  }

  /** Pauses the readers of servers if too much waits for the client. */
  get room(): Backlog["room"] | undefined {
    return this.#options.backlog?.room;
  }

  /** The keeper that waits for the first program, if there is one. */
  get spare(): SpareKeeper | undefined {
    return this.#options.spares?.spare;
  }

  /** Returns the grants of a server now. */
  grants(server: string): Grants | undefined {
    return this.#config().grants[server];
  }

  /** Returns the value of a variable. */
  variable(name: string): string | undefined {
    return this.#options.keys.get(name);
  }

  /** Returns how the person's registry of packages is reached now. */
  installEnvironment(): Readonly<Record<string, string>> {
    const { environment } = this.#options.policy.now.loaded;
    return { ...installEnvironment(environment), ...proxyVariables(this.#options) };
  }

  /** Removes secrets from texts of servers that are not results. */
  withoutSecrets<T>(said: T): T {
    return this.#options.redactor.clean(said);
  }

  /** Logs an entry of a module, without secrets. */
  logModule(server: string, { level, text }: LogEntry): void {
    this.heard(server, { level, text: this.#options.redactor.redact(text) });
  }

  /** Logs a text of a server that is not a message. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void {
    this.#trials.get(server)?.hear(text);
    this.#options.log[level](text, { server });
  }

  /** Tells the running servers which log messages clients want. */
  setLevel(level: string): void {
    this.#each((upstreams) => upstreams.setLevel(level));
  }

  /** Follows a resource for one client less, whatever its server's name stands for now. */
  unfollow(followed: Parameters<Upstreams["unfollow"]>[0]): void {
    this.#each((upstreams) => upstreams.unfollow(followed));
  }

  /** Returns the servers of the files as they would be pinned now; starts nothing. */
  identities(): readonly ServerIdentity[] {
    const { policy, files } = this.#options;
    const { file, person } = policy.now.loaded;
    const own = file?.servers ?? [];
    const names = new Set(own.map(({ name }) => name));
    return [...own, ...person.servers.filter(({ name }) => !names.has(name))]
      .map((server) => this.packages.writtenAs(server, files));
  }

  /** Returns a program as it is tried out, where it is. */
  tried(server: StdioValues): StdioValues {
    const trial = this.#trials.get(server.name);
    return trial === undefined ? server : this.#tried(trial)(server);
  }

  /** Has a server run confined from now on, with these alone, and keeps what it asks for. */
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
      ...{ name: server, workspace, cwd, home, userHome, isHeld },
      protection: protectedPaths,
    };
    const given = Object.keys({ ...env, ...more, ...serverEnvironment(environment) });
    const certificates = certificatePaths(environment);
    const trial = new Trial({ ...where, grants, env: more, certificates, given });
    this.#trials.get(server)?.[Symbol.dispose]();
    this.#trials.set(server, trial);
    return trial;
  }

  /** Returns the layer of the system that confines programs on this machine. */
  async layer(): Promise<Layer> {
    const { workspace, osLayer } = this.#config();
    const path = serverEnvironment(this.#options.policy.now.loaded.environment).PATH;
    const { availableLayer } = await import("../sandbox/confined_program.ts");
    return await availableLayer(osLayer, path, workspace);
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

  /** Installs the package that a server is, and gives its install scripts that did not run. */
  async scriptsOf(server: string): Promise<ServerScripts> {
    return await this.programs.scriptsOf(valuesOf(server, this.#options), this.closing);
  }

  /** Looks up the newest version of a server's package; undefined if npm has no such package. */
  async newestOf(server: string): Promise<NewestPackage | undefined> {
    return await this.programs.newestOf(valuesOf(server, this.#options), this.closing);
  }

  /** Tries what modules need on this machine, and looks at what was installed. */
  async checks(): Promise<readonly Check[]> {
    return [
      ...await (await this.modules()).checks(),
      await this.#confinedCheck(),
      ...await this.packages.checks(),
    ];
  }

  /** Names what confines servers with `"confine": true`, and those that nothing bounds. */
  async #confinedCheck(): Promise<Check> {
    const layer = await this.layer();
    const name = "confined servers";
    if (layer.kind !== "none") {
      const said = layer.kind === "landlock" ? "landlock" : `bubblewrap ${layer.version}`;
      return { name, ok: true, said: `${said}: closed paths stay closed when folders are moved` };
    }
    const wide = programsOf(this.#config().servers).filter((one) => one.isUnheld);
    const names = wide.map((one) => one.name).join(", ");
    const more = names === "" ? "" : `. With grants that count as unconfined: ${names}`;
    const said = `Deno alone (${layer.why}): the workspace is read-only for them${more}`;
    return { name, ok: true, said, hint: "Landlock, or bubblewrap on PATH, lets them write in it" };
  }

  /** The way out to the network, which is opened when something first goes there. */
  readonly fetch: Fetch = async (url, options) => {
    this.#network ??= import("../transport/http/client/guarded_fetch.ts").then(({ GuardedFetch }) =>
      new GuardedFetch(new CompanyNetwork(this.#options))
    );
    return await (await this.#network).fetch(url, options);
  };

  /** Returns the sign-ins of the person, which are loaded by the first server over HTTP. */
  signIns(): Promise<SignIns> {
    this.#signIns ??= import("../oauth/open_sign_ins.ts").then(({ openSignIns }) =>
      openSignIns(this.#options, this.fetch, this.closing)
    );
    return this.#signIns;
  }

  /** Returns the client of the cloud. The first connection loads it. */
  cloud(): Promise<Cloud> {
    return this.#cloud ??= import("./cloud/rpc.ts").then(({ Cloud }) =>
      new Cloud({
        ...this.#basics,
        url: () => this.#config().cloud?.url,
        keys: this.#options.keys,
      })
    );
  }

  /** Returns what runs modules in the sandbox. The first module loads it. */
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
  }

  #each(act: (upstreams: Upstreams) => void): void {
    for (const upstreams of [this.upstreams, this.far]) act(upstreams);
  }

  async #openModules(): Promise<Modules> {
    const { Modules } = await import("./module/modules.ts");
    return new Modules(this, this.#options.files);
  }

  #upstreamsOptions(): Omit<UpstreamsOptions, "server" | keyof Basics> {
    const { policy, events } = this.#options;
    return {
      ...events,
      withoutSecrets: (said) => this.withoutSecrets(said),
      roots: (server) => rootsFor(server, this.#options),
      mayFollow: (server) => policy.now.judge(toolId(server, "@resources")).kind !== "deny",
      onLog: (server, level, text) => this.logServer(server, level, text),
      starts: this.starts,
    };
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }
}

/** Returns what a server is started with. Throws if no command starts it. */
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

/** Returns what writes the lines of modules to the log. */
function logged(log: Log): Machine["heard"] {
  return (server, { level, text }) => {
    const serious = level === "error" || level === "warn";
    log[serious ? level : "debug"](text, { server });
  };
}
