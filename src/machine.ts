/**
 * What runs on this machine: the modules in the sandbox, and the stdio servers of the person's.
 *
 * @module
 */

import { join } from "node:path";
import protectedPaths from "../config/protected-paths.json" with { type: "json" };
import type { Log } from "./audit/log.ts";
import type { Redactor } from "./audit/redact.ts";
import {
  installEnvironment,
  programEnvironment,
  serverEnvironment,
} from "./config/child_environment.ts";
import type { Config } from "./config/config.ts";
import { expanded } from "./config/expand.ts";
import type { ServerDefinition, StdioDefinition } from "./config/servers.ts";
import type { Call, Outcome } from "./core/call.ts";
import type { Check } from "./core/check.ts";
import { PmlError } from "./core/errors.ts";
import { defined, quoted } from "./core/json.ts";
import type { ListItem, ListName } from "./core/lists.ts";
import { memoized } from "./core/memo.ts";
import { splitToolId, type ToolId, toolId } from "./core/tool_id.ts";
import type { Servers } from "./gateway/servers.ts";
import { Local } from "./local/executor.ts";
import type { Grants } from "./local/grants.ts";
import { type InstalledPackage, installedPackage } from "./local/installs.ts";
import type { Trial } from "./local/learn.ts";
import type { ModuleFiles, ModuleSource } from "./local/module_files.ts";
import { Starts } from "./local/starts.ts";
import { Upstreams, type UpstreamsOptions } from "./local/upstreams.ts";
import type { AtHand, Pins } from "./policy/pins.ts";
import type { Policy } from "./policy/policy.ts";
import { assertIntegrity } from "./registry/integrity.ts";
import { Reaper } from "./sandbox/reaper.ts";

/** What the machine stands in. */
export interface MachineOptions {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly files: ModuleFiles;
  readonly builtins: ReadonlyMap<string, ModuleSource>;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
  /** What stdio servers and clients say to each other. */
  readonly between: Pick<UpstreamsOptions, "told" | "capabilities" | "level">;
}

const NO_ITEMS: readonly ListItem[] = [];

/** Runs what passed the gates; nothing is started before the first call. */
export class Machine implements AsyncDisposable {
  /** Tells the calls that wait how what they wait for comes along. */
  readonly starts: Starts = new Starts();
  readonly #options: MachineOptions;
  readonly #reaper: Reaper;
  readonly #local: Local;
  readonly #upstreams: Upstreams;
  readonly #trials = new Map<string, Trial>();
  /** The packages that definitions stand for, as far as they are installed. */
  readonly #installed = new WeakMap<StdioDefinition, InstalledPackage | "none">();

  /** Takes what there is. */
  constructor(options: MachineOptions) {
    this.#options = options;
    const { home } = options.policy.now.loaded.environment;
    this.#reaper = new Reaper(join(home, "sandbox", `${Deno.pid}-`));
    this.#local = this.#openLocal();
    this.#upstreams = this.#openUpstreams();
    options.policy.onChange(() => this.#upstreams.refollow());
  }

  /** Gives a list of a server; modules have tools only. */
  async listOf(server: string, list: ListName): Promise<readonly ListItem[]> {
    return await this.#list(server, list).catch((error) => this.#withoutSecrets(error));
  }

  /** Forgets what a stdio server listed, so that it is asked again. */
  forget(server: string): void {
    this.#upstreams.forget(server);
  }

  /** Tells the running servers which log messages clients want. */
  setLevel(level: string): void {
    this.#upstreams.setLevel(level);
  }

  /** Runs a call, or passes another request on. */
  async call(call: Call): Promise<Outcome> {
    return await this.#run(call).catch((error) => this.#withoutSecrets(error));
  }

  /** Follows a resource for one less. */
  unfollow(followed: { readonly server: string; readonly uri: string }): void {
    this.#upstreams.unfollow(followed);
  }

  /** Says in plain sentences what a tool of a module may do; nothing of other tools. */
  async permissionsOf(id: ToolId): Promise<readonly string[]> {
    const { server, tool } = splitToolId(id);
    const { kind } = this.#options.policy.definitionOf(server) ?? { kind: "deno" };
    return kind === "deno" ? await this.#local.permissionsOf(server, tool) : [];
  }

  /** Gives a server of the person's as it is pinned; undefined for what ships with PML. */
  handOf(server: string): AtHand | undefined {
    const { policy, pins } = this.#options;
    const own = policy.definitionOf(server);
    // Other code of a module does not run.
    const code = () => defined({ integrity: policy.now.trust.approved.get(server) });
    return own && pins.handOf(own, own.kind === "stdio" ? this.#packageOf(own) : code());
  }

  /** Gives a server as a file has it, whether that is trusted or not; nothing is started. */
  atHand(own: ServerDefinition): AtHand {
    const { pins, files } = this.#options;
    const code = () => {
      if (own.kind !== "deno") return own.kind === "stdio" ? this.#packageOf(own) : undefined;
      return defined({ integrity: files.integrityOf(own, this.#config().limits.moduleBytes) });
    };
    return pins.handOf(own, code());
  }

  /** Gives the hash of the code of a module. */
  integrityOf(server: string): string {
    return this.#local.identify(server).integrity;
  }

  /** Has a server run confined from now on, with these grants alone, and keeps what it asks for. */
  async tryOut(server: string, grants: Grants): Promise<Trial> {
    const { policy } = this.#options;
    const { Trial } = await import("./local/learn.ts");
    const { environment } = policy.now.loaded;
    const { workspace } = this.#config();
    const own = policy.definitionOf(server);
    const { env = {}, cwd = workspace } = own?.kind === "stdio" ? own : {};
    const { home, userHome } = environment;
    const where = { name: server, workspace, cwd, home, userHome, protection: protectedPaths };
    const trial = new Trial({
      ...where,
      grants,
      given: [...Object.keys(env), ...Object.keys(serverEnvironment(environment))],
    });
    this.#trials.get(server)?.[Symbol.dispose]();
    this.#trials.set(server, trial);
    return trial;
  }

  /** Tries what modules need on this machine. */
  checks(): Promise<readonly Check[]> {
    return this.#local.checks();
  }

  /** Ends every child and server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#local, this.#upstreams].map((open) => open[Symbol.asyncDispose]()));
    await this.#reaper[Symbol.asyncDispose]();
    for (const trial of this.#trials.values()) trial[Symbol.dispose]();
  }

  async #list(server: string, list: ListName): Promise<readonly ListItem[]> {
    if (this.isStdio(server)) return await this.#upstreams.listOf(server, list);
    if (list !== "tools") return NO_ITEMS;
    return (await this.#local.load(server)).definitions;
  }

  async #run(call: Call): Promise<Outcome> {
    const { server } = splitToolId(call.id);
    if (this.isStdio(server)) return await this.#upstreams.call(call);
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
    // Texts at any depth: what a server answered is among the facts.
    const facts = detail &&
      JSON.parse(
        JSON.stringify(detail),
        (_, fact) => typeof fact === "string" ? redactor.redact(fact) : fact,
      );
    const told = defined({ hint, detail: facts });
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
          assertIntegrity(source.name, {
            approved: this.approved(source.name),
            atHand: found.integrity,
          });
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
      grants: (server) => this.#config().grants[server],
      variable: (name) => this.#secret(name),
      environment: programEnvironment(policy.now.loaded.environment),
      // What modules run from is not for modules to write.
      protection: () => ({ ...protectedPaths, paths: own().map(({ path }) => path) }),
      limits: () => this.#config().limits,
      osLayer: () => this.#config().osLayer,
      groups: this.#reaper,
      onLog: (server, { level, text }) => {
        const serious = level === "error" || level === "warn";
        log[serious ? level : "debug"](text, { server });
      },
    });
  }

  #openUpstreams(): Upstreams {
    const { policy, pins, log, redactor, between } = this.#options;
    const { environment } = policy.now.loaded;
    const { get } = environment;
    // A definition is read anew when its file changes, and the environment never is.
    const filled = memoized((own: StdioDefinition) => {
      const { name, command, tools, cwd = this.#config().workspace, confine = false } = own;
      const from = { get, server: name };
      const env = expanded(own.env, { ...from, what: "env" });
      const args = expanded(Object.fromEntries(own.args.entries()), { ...from, what: "args" });
      for (const secret of [...env.secrets, ...args.secrets]) redactor.register(secret);
      const given = { args: Object.values(args.values), env: env.values };
      return { name, command, ...given, cwd, tools, confine, definition: own };
    });
    const serverOf = (name: string) => {
      const own = policy.definitionOf(name);
      if (own?.kind === "stdio") return filled(own);
      throw this.#options.servers.unknown(name);
    };
    const tried = memoized((trial: Trial) => ({ ...serverOf(trial.name), trial }));
    return new Upstreams({
      server: (name) => {
        const trial = this.#trials.get(name);
        return trial === undefined ? serverOf(name) : tried(trial);
      },
      workspace: () => this.#config().workspace,
      seesRoots: (server) => policy.now.judge(toolId(server, "@roots")).kind === "allow",
      mayFollow: (server) => policy.now.judge(toolId(server, "@resources")).kind !== "deny",
      ...between,
      grants: (server) => this.#config().grants[server],
      protection: protectedPaths,
      environment: serverEnvironment(environment),
      installEnvironment: installEnvironment(environment),
      home: environment.home,
      limits: () => this.#config().limits,
      groups: this.#reaper,
      onLog: (server, level, text) => {
        this.#trials.get(server)?.hear(text);
        log[level](text, { server });
      },
      starts: this.starts,
      packages: {
        versionOf: async (name) => {
          await pins.state();
          return this.#pinnedVersion(name);
        },
        check: (name, installed) => this.#checkPackage(name, installed),
      },
    });
  }

  #packageOf(own: StdioDefinition): InstalledPackage | undefined {
    const known = this.#installed.get(own);
    if (known !== undefined) return known === "none" ? undefined : known;
    const { home } = this.#config();
    const found = installedPackage(own, { home, version: this.#pinnedVersion(own.name) });
    this.#installed.set(own, found ?? "none");
    return found;
  }

  /** Gives the version that is pinned, if that was for this very command. */
  #pinnedVersion(server: string): string | undefined {
    const { policy, pins } = this.#options;
    const own = policy.definitionOf(server);
    const pinned = pins.pinned(server);
    const isIt = own?.kind === "stdio" &&
      JSON.stringify(pinned?.command) === JSON.stringify([own.command, ...own.args]);
    return isIt ? pinned?.version : undefined;
  }

  /** Starts no package but the pinned one. */
  async #checkPackage(server: string, installed: InstalledPackage): Promise<void> {
    const { policy, pins } = this.#options;
    const own = policy.definitionOf(server);
    if (own?.kind !== "stdio") return;
    this.#installed.set(own, installed);
    const stale = await pins.unapproved(pins.handOf(own, installed));
    if (stale === undefined) return;
    const why = stale.facts.map((fact) => fact.trim()).join("; ");
    throw new PmlError(stale.code, `Cannot start ${quoted(server)}: ${why}`, {
      hint: "Call it again, or run `pml lock update`: the question to the person comes with it",
    });
  }

  /** Tells whether a server is one of the person's that speaks MCP on its pipes. */
  isStdio(server: string): boolean {
    return this.#options.policy.definitionOf(server)?.kind === "stdio";
  }

  /** Gives a variable of the environment, which from then on shows in no log. */
  #secret(name: string): string | undefined {
    const { policy, redactor } = this.#options;
    const value = policy.now.loaded.environment.get(name);
    if (value !== undefined) redactor.register(value);
    return value;
  }

  /** Gives the hash of the code that was approved. Without one only what PML ships may run: an own module may have had no file till now. */
  approved(server: string): string | undefined {
    const { policy } = this.#options;
    const own = policy.definitionOf(server) !== undefined;
    return policy.now.trust.approved.get(server) ?? (own ? "no code" : undefined);
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }
}
