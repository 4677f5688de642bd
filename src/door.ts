/**
 * The one door: every call goes through these gates, whichever way it came. The only file that ever
 * holds the ungated call. It is loaded by the first call, so that a start is soon over.
 *
 * @module
 */

import { join } from "node:path";
import protectedPaths from "../config/protected-paths.json" with { type: "json" };
import { auditGate } from "./audit/gate.ts";
import { Journal, type JournalRecord } from "./audit/journal.ts";
import type { Log } from "./audit/log.ts";
import type { Redactor } from "./audit/redact.ts";
import { readKeyFile } from "./cloud/key.ts";
import { cloudCall } from "./cloud/rpc.ts";
import type { Config } from "./config/config.ts";
import type { Environment } from "./config/env.ts";
import { expanded } from "./config/expand.ts";
import type { StdioDefinition } from "./config/servers.ts";
import { serverText } from "./config/shown.ts";
import { type Call, type CallTool, type Gate, type Question, through } from "./core/call.ts";
import { type Check, check } from "./core/check.ts";
import { deadlineGate } from "./core/deadline.ts";
import { PmlError } from "./core/errors.ts";
import { defined, type JsonObject, quoted } from "./core/json.ts";
import { memoized } from "./core/memo.ts";
import { Running } from "./core/running.ts";
import { splitToolId, type ToolId } from "./core/tool_id.ts";
import type { ToolDefinition } from "./core/tool.ts";
import { schemaGate, type Schemas } from "./gateway/schemas.ts";
import type { Servers } from "./gateway/servers.ts";
import { Local } from "./local/executor.ts";
import { Upstreams } from "./local/upstreams.ts";
import type { ModuleFiles, ModuleSource } from "./local/module_files.ts";
import { Approvals } from "./permissions/approvals.ts";
import { type AskedAll, askForAll } from "./permissions/ask_all.ts";
import { askGate, type AskGateOptions, judgeGate, refuseGate } from "./permissions/gate.ts";
import type { Subject } from "./permissions/subject.ts";
import { trustGate } from "./permissions/trust_gate.ts";
import type { Policy } from "./policy/policy.ts";
import { assertIntegrity, definitionHash, integrityGate } from "./registry/integrity.ts";
import { makeRouter } from "./router/router.ts";
import { getToolRouting } from "./router/routing.ts";
import { Reaper } from "./sandbox/reaper.ts";

/** What the door stands in. */
export interface DoorOptions {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly schemas: Schemas;
  readonly files: ModuleFiles;
  readonly builtins: ReadonlyMap<string, ModuleSource>;
  readonly log: Log;
  readonly redactor: Redactor;
  /** Told when a server says that its tools have changed. */
  readonly toolsChanged: (server: string) => void;
}

/** The way of every call, and what it needs: questions, modules, the journal. */
export class Door implements AsyncDisposable {
  /** Runs a call through every gate. */
  readonly callTool: CallTool;
  /** The open questions, and those that wait for `pml approve`. */
  readonly approvals: Approvals;
  readonly #options: DoorOptions;
  readonly #local: Local;
  readonly #upstreams: Upstreams;
  readonly #reaper: Reaper;
  readonly #cloud: CallTool;
  readonly #running = new Running(() => this.#config().limits);
  #journal: Journal | undefined;

  /** Opens the door; nothing is started before the first call. */
  constructor(options: DoorOptions) {
    const { policy, log } = options;
    this.#options = options;
    this.approvals = new Approvals(policy.now.loaded.environment.home, {
      warn: (message) => log.warn(message),
      ttl: policy.now.config.limits.approvalMs,
    });
    this.#cloud = cloudCall(() => this.#key());
    const { home } = policy.now.loaded.environment;
    this.#reaper = new Reaper(join(home, "sandbox", `${Deno.pid}-`));
    this.#local = this.#openLocal();
    this.#upstreams = this.#openUpstreams();
    this.callTool = this.#gated();
  }

  /** Gives the tools of a server. */
  async toolsOf(server: string): Promise<readonly ToolDefinition[]> {
    if (this.#isStdio(server)) return await this.#upstreams.toolsOf(server);
    return (await this.#local.load(server)).definitions;
  }

  /** Says in plain sentences what a tool of a module may do; nothing of other tools. */
  async permissionsOf(id: ToolId): Promise<readonly string[]> {
    const { server, tool } = splitToolId(id);
    const { kind } = this.#options.policy.definitionOf(server) ?? { kind: "deno" };
    return kind === "deno" ? await this.#local.permissionsOf(server, tool) : [];
  }

  /** Asks once for several calls, or gives what lets each pass. */
  askForAll(calls: readonly Call[]): Promise<AskedAll> {
    return askForAll(calls, this.#asking());
  }

  /** Leaves a question for `pml approve`, and gives the error that says so. */
  async leave(question: Question): Promise<PmlError> {
    const left = await this.approvals.leave(question.handle);
    const code = question.otherwise ?? "APPROVAL_REQUIRED";
    const or = code === "APPROVAL_REQUIRED" ? "" : " (or `pml trust`)";
    const where = JSON.stringify(this.#config().workspace);
    const what = left?.subjects.map(({ tool }) => tool).join(", ") ?? "this";
    return new PmlError(code, `Cannot run ${quoted(what, 400)} without the person's approval`, {
      hint: `Nothing was run. Ask the person to run \`pml approve\`${or} on a terminal in ` +
        `${where}, then make exactly this call again`,
      ...(left === undefined ? {} : { detail: { approval: left.id } }),
    });
  }

  /** Tries what calls need on this machine: the sandbox and the journal. */
  async checks(): Promise<readonly Check[]> {
    return [
      ...await this.#local.checks(),
      await check(
        "journal",
        "a record can be written",
        () => this.#records().write({ kind: "event", event: "checked" }),
      ),
    ];
  }

  /** Ends every child and server, then the journal. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#local, this.#upstreams].map((open) => open[Symbol.asyncDispose]()));
    await this.#reaper[Symbol.asyncDispose]();
    // Each call has an end, and the journal tells it.
    await this.#running.over();
    this.#journal?.[Symbol.dispose]();
  }

  /** The order of the house, readable aloud. */
  #gated(): CallTool {
    const { policy, schemas } = this.#options;
    const asking = this.#asking();
    const judge = () => policy.now.judge;
    const router = makeRouter({
      routingOf: (server) => this.#routingOf(server),
      local: async (call) => {
        const isStdio = this.#isStdio(splitToolId(call.id).server);
        const run = isStdio ? this.#upstreams.call(call) : this.#local.call(call);
        return await run.catch((error) => this.#withoutSecrets(error));
      },
      cloud: this.#cloud,
    });
    return through([
      this.#running.gate,
      judgeGate(judge),
      auditGate(this.#records()),
      this.#problemGate(),
      refuseGate(),
      trustGate({
        ...asking,
        judge,
        workspace: () => this.#config().workspace,
        unapproved: (call) => policy.unapproved(splitToolId(call.id).server),
      }),
      // The look may have found that the person trusted the file elsewhere meanwhile.
      judgeGate(judge),
      schemaGate(schemas, (call) => this.#definitionOf(call)),
      askGate(asking),
      integrityGate({
        // A command was approved as it was shown, with the file that names it.
        approved: (server) => this.#isStdio(server) ? undefined : this.#approved(server),
        atHand: (server) => this.#local.identify(server).integrity,
      }),
      deadlineGate(() => {
        const { callMs, callMaxMs } = this.#config().limits;
        return { callMs, capMs: callMaxMs };
      }),
    ], router.call);
  }

  /** Errors repeat what a module said, and it may have said a key that it was given. */
  #withoutSecrets(error: unknown): never {
    if (!(error instanceof PmlError)) throw error;
    const { code, message, hint, detail } = error;
    const { redactor } = this.#options;
    const facts = Object.entries(detail ?? {}).map(([name, fact]) =>
      [name, typeof fact === "string" ? redactor.redact(fact) : fact] as const
    );
    const told = defined({ hint, detail: detail && Object.fromEntries(facts) });
    throw new PmlError(code, redactor.redact(message), { ...told, cause: error });
  }

  #asking(): AskGateOptions {
    const { policy } = this.#options;
    return {
      approvals: this.approvals,
      subjectOf: (call) => this.#subjectOf(call),
      alwaysOffered: (call) => policy.alwaysOffered(call),
      always: (call) => policy.always(call),
      record: ({ event, call, detail }) => {
        // Details are plain JSON: names, hashes and lines of text.
        const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
        return this.#records().write({ kind: "event", event, actor: call.actor, about });
      },
    };
  }

  async #subjectOf(call: Call): Promise<Subject> {
    const { policy } = this.#options;
    const definition = await this.#definitionOf(call);
    const own = policy.definitionOf(splitToolId(call.id).server);
    return {
      tool: call.id,
      arguments: call.arguments,
      definition: definitionHash(definition),
      rules: policy.now.rules(),
      actor: call.actor,
      workspace: this.#config().workspace,
      facts: [
        own === undefined ? "a module that ships with PML, in the sandbox" : serverText(own),
        ...(await this.permissionsOf(call.id)).map((line) => `It ${line}`),
      ],
    };
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
            approved: this.#approved(source.name),
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
    const { policy, log, redactor, toolsChanged } = this.#options;
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
      return { name, command, ...given, cwd, tools, confine };
    });
    return new Upstreams({
      server: (name) => {
        const own = policy.definitionOf(name);
        if (own?.kind !== "stdio") throw this.#options.servers.unknown(name);
        return filled(own);
      },
      workspace: () => this.#config().workspace,
      grants: (server) => this.#config().grants[server],
      protection: protectedPaths,
      environment: serverEnvironment(environment),
      installEnvironment: taken(INSTALLING, get),
      home: environment.home,
      limits: () => this.#config().limits,
      groups: this.#reaper,
      onLog: (server, level, text) => log[level](text, { server }),
      onToolsChanged: toolsChanged,
    });
  }

  #isStdio(server: string): boolean {
    return this.#options.policy.definitionOf(server)?.kind === "stdio";
  }

  /** Gives a variable of the environment, which from then on shows in no log. */
  #secret(name: string): string | undefined {
    const { policy, redactor } = this.#options;
    const value = policy.now.loaded.environment.get(name);
    if (value !== undefined) redactor.register(value);
    return value;
  }

  /** Without a hash only what PML ships may run: an own module may have had no file till now. */
  #approved(server: string): string | undefined {
    const { policy } = this.#options;
    const own = policy.definitionOf(server) !== undefined;
    return policy.now.trust.approved.get(server) ?? (own ? "no code" : undefined);
  }

  #config(): Config {
    return this.#options.policy.now.config;
  }

  #routingOf(server: string): "local" | "cloud" {
    const { builtins, policy } = this.#options;
    const here = builtins.has(server) || policy.definitionOf(server) !== undefined;
    return here ? "local" : getToolRouting(server);
  }

  async #definitionOf(call: Call): Promise<ToolDefinition> {
    const { server } = splitToolId(call.id);
    // What cannot be reached is said before anybody is asked about it.
    if (this.#routingOf(server) === "cloud") await this.#cloud(call);
    return await this.#options.servers.definition(call.id);
  }

  #key(): string | undefined {
    const { policy, redactor } = this.#options;
    const { apiKey, home } = policy.now.loaded.environment;
    const key = apiKey ?? readKeyFile(home);
    if (key !== undefined) redactor.register(key);
    return key;
  }

  #problemGate(): Gate {
    return (next) => async (call) => {
      const { problem } = this.#config();
      if (problem !== undefined) throw problem;
      return await next(call);
    };
  }

  /** The journal is opened by the first call: a start that serves none writes nothing. */
  #records(): Pick<Journal, "write" | "note"> {
    const { redactor, log } = this.#options;
    const open = () => {
      const { home, limits } = this.#config();
      this.#journal ??= Journal.open(home, {
        redactor,
        fileBytes: limits.journalBytes,
        filesKept: limits.journalFiles,
        onFailure: (error) => log.error(error.message),
      });
      return this.#journal;
    };
    return {
      write: async (record: JournalRecord) => await open().write(record),
      note: (record: JournalRecord) => open().note(record),
    };
  }
}

/** What the programs of modules find in their environment. */
function programEnvironment({ get, userHome }: Environment): Readonly<Record<string, string>> {
  return { ...taken(["LANG", "TZ", "TERM", "PATH"], get), HOME: userHome };
}

/** How npm is told to reach its registry. */
const INSTALLING = [
  ...["NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CACHE"],
  ...["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"],
];

/** What every server of the person's finds in its environment. */
function serverEnvironment({ get, userHome }: Environment): Readonly<Record<string, string>> {
  const names = ["LANG", "LC_ALL", "TZ", "TERM", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR"];
  return { ...taken(names, get), HOME: userHome };
}

function taken(
  names: readonly string[],
  get: Environment["get"],
): Readonly<Record<string, string>> {
  const found = names.map((name) => [name, get(name)] as const);
  return Object.fromEntries(found.filter((one): one is [string, string] => one[1] !== undefined));
}
