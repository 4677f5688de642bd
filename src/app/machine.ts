/**
 * What runs on this machine, and what is spoken to from it: the modules in the sandbox, and the MCP
 * servers of the person's, on stdio and over HTTP.
 *
 * @module
 */

import { join } from "node:path";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import type { Log } from "../audit/log.ts";
import type { Redactor } from "../audit/redact.ts";
import {
  certificatePaths,
  installEnvironment,
  programEnvironment,
  serverEnvironment,
} from "../config/child_environment.ts";
import type { Config } from "../config/config.ts";
import type { Keys } from "../config/keys.ts";
import type { ServerDefinition, StdioDefinition } from "../config/servers.ts";
import type { Call, Outcome } from "../core/call.ts";
import type { Check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import { defined, quoted } from "../core/json.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import type { Manifest } from "../core/manifest.ts";
import { memoized } from "../core/memo.ts";
import { splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import type { Servers } from "../gateway/servers.ts";
import type { Backlog } from "../io/backlog.ts";
import { Starts } from "../mcp_client/start_progress.ts";
import { Upstreams, type UpstreamsOptions } from "../mcp_client/upstreams.ts";
import { Local } from "../modules/executor.ts";
import { assertPromised } from "../modules/loader.ts";
import type { ModuleFiles, ModuleSource } from "../modules/module_files.ts";
import type { AtHand, Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { assertIntegrity } from "../registry/integrity.ts";
import type { GuardedFetch } from "../remote/guarded_fetch.ts";
import { HttpServers } from "../remote/http_servers.ts";
import { Cloud } from "../remote/rpc.ts";
import { Reaper } from "../sandbox/reaper.ts";
import type { Trial } from "../stdio/learn.ts";
import { type ServerScripts, type StdioServer, StdioServers } from "../stdio/stdio_servers.ts";
import { Filled } from "./definition_values.ts";
import { grantsOf } from "./entry.ts";
import { Packages } from "./packages.ts";
import type { Adopted } from "./registry_servers.ts";

/** What the machine stands in. */
export interface MachineOptions {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly files: ModuleFiles;
  readonly builtins: ReadonlyMap<string, ModuleSource>;
  /** The servers of registries. */
  readonly adopted: () => Promise<Adopted>;
  readonly keys: Keys;
  /** What a registry says of a server that it knows. */
  readonly manifest: (server: string) => Manifest | undefined;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly backlog?: Backlog;
  /** What servers and clients say to each other. */
  readonly between: Pick<UpstreamsOptions, "told" | "capabilities" | "level">;
  /** Whether a client started this process, which is then killed if it hangs and that is gone. */
  readonly hasClient?: boolean;
}

const NO_ITEMS: readonly ListItem[] = [];

/** Runs what passed the gates; nothing is started before the first call. */
export class Machine implements AsyncDisposable {
  /** What runs far away. */
  readonly cloud: Cloud;
  /** Tells the calls that wait how what they wait for comes along. */
  readonly starts: Starts = new Starts();
  /** Ends what was started if PML is killed. */
  readonly groups: Reaper;
  readonly #options: MachineOptions;
  readonly #local: Local;
  readonly #upstreams: Upstreams;
  readonly #far: Upstreams;
  readonly #trials = new Map<string, Trial>();
  readonly #closing = new AbortController();
  readonly #packages: Packages;
  #network: Promise<GuardedFetch> | undefined;
  #scripts?: (own: StdioDefinition) => Promise<ServerScripts>;

  /** Takes what there is. */
  constructor(options: MachineOptions) {
    this.#options = options;
    const { home } = options.policy.now.loaded.environment;
    this.groups = new Reaper(join(home, "sandbox", `${Deno.pid}-`));
    if (options.hasClient) void this.groups.watch();
    this.#packages = new Packages(options);
    this.#local = this.#openLocal();
    this.cloud = this.#openCloud();
    const shared = this.#upstreamsOptions();
    this.#upstreams = new Upstreams({ ...shared, server: this.#waysFrom(shared) });
    // The cloud has its own: nothing that is asked of a server of the person's finds a way there.
    this.#far = new Upstreams({ ...shared, server: (name) => this.cloud.of(name) });
    options.policy.onChange(() => this.#each((upstreams) => upstreams.refollow()));
  }

  /** Gives a list of a server; modules have tools only. */
  async listOf(server: string, list: ListName): Promise<readonly ListItem[]> {
    return await this.#list(server, list).catch((error) => this.#withoutSecrets(error));
  }

  /** Forgets what a server listed, so that it is asked again. */
  forget(server: string): void {
    this.#upstreams.forget(server);
  }

  /** Tells the running servers which log messages clients want. */
  setLevel(level: string): void {
    this.#each((upstreams) => upstreams.setLevel(level));
  }

  /** Runs a call, or passes another request on. */
  async call(call: Call): Promise<Outcome> {
    return await this.#run(call).catch((error) => this.#withoutSecrets(error));
  }

  /** Runs a call of a tool in the cloud. */
  async callCloud(call: Call): Promise<Outcome> {
    const run = this.cloud.calling((one) => this.#far.call(one));
    return await run(call).catch((error) => this.#withoutSecrets(error));
  }

  /** Follows a resource for one less. */
  unfollow(
    followed: { readonly server: string; readonly uri: string; readonly isTask?: boolean },
  ): void {
    this.#each((upstreams) => upstreams.unfollow(followed));
  }

  /** Says in plain sentences what a tool of a module may do; nothing of other tools. */
  async permissionsOf(id: ToolId): Promise<readonly string[]> {
    const { server, tool } = splitToolId(id);
    const { kind } = this.#options.policy.definitionOf(server) ?? { kind: "deno" };
    return kind === "deno" ? await this.#local.permissionsOf(server, tool) : [];
  }

  /** Tells whether a tool is one of a module, which can neither write nor reach anything. */
  async onlyReads(id: ToolId): Promise<boolean> {
    const { server, tool } = splitToolId(id);
    return !this.isUpstream(server) && await this.#local.onlyReads(server, tool);
  }

  /** Gives a server of the person's as it is pinned; undefined for what ships with PML. */
  handOf(server: string): AtHand | undefined {
    return this.#packages.handOf(server);
  }

  /** Gives a server as a file has it, whether that is trusted or not; nothing is started. */
  atHand(own: ServerDefinition): AtHand {
    return this.#packages.atHand(own, this.#options.files);
  }

  /** Gives the hash of the code of a module. */
  integrityOf(server: string): string {
    return this.#local.identify(server).integrity;
  }

  /** Has a server run confined from now on, with these alone, and keeps what it asks for. */
  async tryOut(
    server: string,
    { grants, env: more }: Pick<Trial, "grants" | "env">,
  ): Promise<Trial> {
    const { policy } = this.#options;
    const { Trial } = await import("../stdio/learn.ts");
    const { loaded: { environment }, config: { workspace } } = policy.now;
    const own = policy.definitionOf(server);
    const { env = {}, cwd = workspace } = own?.kind === "stdio" ? own : {};
    const { home, userHome } = environment;
    const where = { name: server, workspace, cwd, home, userHome, protection: protectedPaths };
    const given = Object.keys({ ...env, ...more, ...serverEnvironment(environment) });
    const certificates = certificatePaths(environment);
    const trial = new Trial({ ...where, grants, env: more, certificates, given });
    this.#trials.get(server)?.[Symbol.dispose]();
    this.#trials.set(server, trial);
    return trial;
  }

  /** Installs the package that a server is, and gives its install scripts that did not run. */
  async scriptsOf(server: string): Promise<ServerScripts> {
    const own = this.#options.policy.definitionOf(server);
    const found = own?.kind === "stdio" ? await this.#scripts?.(own) : undefined;
    if (found !== undefined) return found;
    const why = own === undefined ? "no file of yours defines it" : "no command starts it";
    throw new PmlError("BAD_ARGUMENTS", `Cannot install ${quoted(server)}: ${why}`, {
      hint: "Name a server with a command in .pml.json (trusted) or in config.yaml",
    });
  }

  /** Tries what modules need on this machine, and looks at what was installed. */
  async checks(): Promise<readonly Check[]> {
    return [...await this.#local.checks(), ...this.#packages.checks()];
  }

  /** Ends every child and server. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the module: PML is ending"));
    const open = [this.#local, this.#upstreams, this.#far];
    await Promise.all(open.map((each) => each[Symbol.asyncDispose]()));
    (await this.#network)?.[Symbol.dispose]();
    await this.groups[Symbol.asyncDispose]();
    for (const trial of this.#trials.values()) trial[Symbol.dispose]();
  }

  #each(act: (upstreams: Upstreams) => void): void {
    for (const upstreams of [this.#upstreams, this.#far]) act(upstreams);
  }

  async #list(server: string, list: ListName): Promise<readonly ListItem[]> {
    if (this.isUpstream(server)) return await this.#upstreams.listOf(server, list);
    if (list !== "tools") return NO_ITEMS;
    const far = this.#options.manifest(server);
    if (far?.kind === "cloud") return far.tools.map(({ name }) => this.cloud.listed(server, name));
    await this.#fetched(server);
    const { meta, definitions } = await this.#local.load(server);
    const promised = this.#options.policy.adopted(server)?.hand.pinned.permissions;
    if (promised !== undefined) assertPromised(meta, promised);
    return definitions;
  }

  /** Has the code of a registry's module at hand before it is read. */
  async #fetched(server: string): Promise<void> {
    const { policy, adopted } = this.#options;
    if (policy.adopted(server)?.definition?.kind !== "deno") return;
    await (await adopted()).ready(server, {
      signal: this.#closing.signal,
      tell: (message) => this.starts.tell(server, message),
    });
  }

  async #run(call: Call): Promise<Outcome> {
    const { server } = splitToolId(call.id);
    if (call.method === "tools/list") {
      await this.#list(server, "tools");
      return { kind: "result", result: { content: [] } };
    }
    if (this.isUpstream(server)) return await this.#upstreams.call(call);
    if (call.method === undefined) return await this.#local.call(call);
    throw new PmlError("BAD_REQUEST", `Cannot ask ${quoted(server)}: it has tools only`, {
      hint: "See `pml://servers` for what each server has",
    });
  }

  /** Errors repeat what a module said, and it may have said a key that it was given. */
  #withoutSecrets(error: unknown): never {
    if (!(error instanceof PmlError)) throw error;
    const { code, message, hint, detail } = error;
    const { redactor } = this.#options;
    const told = defined({ hint, detail: detail && redactor.clean(detail) });
    throw new PmlError(code, redactor.redact(message), { ...told, cause: error });
  }

  #openLocal(): Local {
    const { files, builtins, policy, log } = this.#options;
    const own = () => this.#config().servers.filter((server) => server.kind === "deno");
    return new Local({
      // What is hashed here is what runs: a later look at the file could find another.
      files: {
        identify: (source, maxBytes) => {
          const found = files.identify(source, maxBytes);
          const { integrity: atHand } = found;
          assertIntegrity(source.name, { approved: this.approved(source.name), atHand });
          return found;
        },
      },
      home: this.#config().home,
      source: (name) => {
        const server = policy.definitionOf(name);
        if (server === undefined) return builtins.get(name);
        return server.kind === "deno" ? { kind: "file", name, path: server.path } : undefined;
      },
      workspace: () => this.#config().workspace,
      grants: (server) => {
        const manifest = this.#options.manifest(server);
        const own = this.#config().grants[server];
        return manifest === undefined ? own : grantsOf(manifest, own);
      },
      variable: (name) => this.#options.keys.get(name),
      environment: programEnvironment(policy.now.loaded.environment),
      // What modules run from is not for modules to write.
      protection: () => ({ ...protectedPaths, paths: own().map(({ path }) => path) }),
      limits: () => this.#config().limits,
      osLayer: () => this.#config().osLayer,
      groups: this.groups,
      onLog: (server, { level, text }) => {
        const serious = level === "error" || level === "warn";
        log[serious ? level : "debug"](text, { server });
      },
    });
  }

  #openCloud(): Cloud {
    const { keys, manifest } = this.#options;
    return new Cloud({
      fetch: this.fetch,
      room: this.#options.backlog?.room,
      limits: () => this.#config().limits,
      url: () => this.#config().cloud?.url,
      key: () => keys.cloud(),
      find: (name) => keys.get(name),
      fill: (headers, server) => keys.filled({ headers }, server).headers,
      manifest: (server) => {
        const known = manifest(server);
        return known?.kind === "cloud" ? known : undefined;
      },
    });
  }

  #upstreamsOptions(): Omit<UpstreamsOptions, "server"> {
    const { policy, log, between, redactor, backlog } = this.#options;
    return {
      ...between,
      room: backlog?.room,
      withoutSecrets: (said) => redactor.clean(said),
      workspace: () => this.#config().workspace,
      home: policy.now.loaded.environment.home,
      limits: () => this.#config().limits,
      seesRoots: (server) => policy.now.judge(toolId(server, "@roots")).kind === "allow",
      mayFollow: (server) => policy.now.judge(toolId(server, "@resources")).kind !== "deny",
      onLog: (server, level, text) => {
        this.#trials.get(server)?.hear(text);
        log[level](text, { server });
      },
      starts: this.starts,
    };
  }

  /** Finds the way to a server of the person's. */
  #waysFrom(shared: Omit<UpstreamsOptions, "server">): UpstreamsOptions["server"] {
    const { policy } = this.#options;
    const { environment } = policy.now.loaded;
    const limits = () => this.#config().limits;
    const filled = new Filled(this.#options);
    const stdio = new StdioServers({
      ...shared,
      limits,
      osLayer: () => this.#config().osLayer,
      grants: (server) => this.#config().grants[server],
      protection: protectedPaths,
      certificates: certificatePaths(environment),
      environment: serverEnvironment(environment),
      installEnvironment: installEnvironment(environment),
      groups: this.groups,
      packages: this.#packages,
    });
    this.#scripts = (own) => stdio.scriptsOf(filled.stdio(own), this.#closing.signal);
    const http = new HttpServers({ fetch: this.fetch, limits, room: shared.room });
    const tried = memoized((trial: Trial) =>
      memoized((server: StdioServer) => ({ ...server, trial }))
    );
    return (name) => {
      const trial = this.#trials.get(name);
      const own = policy.definitionOf(name);
      if (own?.kind === "http") return http.of(filled.http(own));
      if (own?.kind !== "stdio") throw this.#options.servers.unknown(name);
      const server = filled.stdio(own);
      return stdio.of(trial === undefined ? server : tried(trial)(server));
    };
  }

  /** Tells whether a server is one of the person's that speaks MCP. */
  isUpstream(server: string): boolean {
    const kind = this.#options.policy.definitionOf(server)?.kind;
    return kind === "stdio" || kind === "http";
  }

  /** The way out to the network, which is opened when something first goes there. */
  readonly fetch: Fetch = async (url, options) => {
    this.#network ??= import("../remote/guarded_fetch.ts").then(({ GuardedFetch }) =>
      new GuardedFetch()
    );
    return await (await this.#network).fetch(url, options);
  };

  /** Gives the hash of the code that was approved. Without one only what PML ships may run: an own module may have had no file till now. */
  approved(server: string): string | undefined {
    const { policy } = this.#options;
    const own = policy.definitionOf(server) !== undefined;
    return policy.approvedCode(server) ?? (own ? "no code" : undefined);
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }
}
