/**
 * A stage for tests of the call path: a workspace that a test can change at any time, with servers
 * that the test makes.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Log } from "../audit/log.ts";
import { Metrics } from "../audit/metrics.ts";
import { Redactor } from "../audit/redact.ts";
import { environmentOf } from "../config/env.ts";
import { Keys } from "../config/keys.ts";
import { type Call, NO_CLIENT, type Outcome, textResult } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { KnownServer, type KnownServerOptions, type Listing } from "../servers/known_server.ts";
import type { ListItem } from "../protocol/lists.ts";
import type { Server } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import { Schemas } from "../calls/schemas.ts";
import { NO_CLIENTS } from "../servers/client/_upstreams_host_test.ts";
import { Servers } from "../servers/lists/servers.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { ModuleFiles } from "../servers/module/module_files.ts";
import { type Pins, pinsOf } from "../policy/pins.ts";
import { type ModuleHashes, Policy } from "../policy/policy.ts";
import { Catalog } from "../search/catalog.ts";
import { CallPath } from "./call_path.ts";
import { Directory } from "../servers/directory.ts";
import type { DirectoryListing } from "../servers/source.ts";
import type { RegistryServers } from "../servers/registries/registry_servers.ts";

/** Options of `CallPathStage.open()`. */
export interface CallPathStageOptions {
  /** The workspace file, without its version. */
  readonly pml?: object;
  /** The user's own configuration, as YAML. */
  readonly person?: string;
  /** Other files of the workspace. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether the user trusts the workspace file; by default true. */
  readonly trusted?: boolean;
  readonly builtins?: readonly string[];
  /** Replaces the servers of registries. */
  readonly registries?: Partial<RegistryServers>;
  /** Makes the server for an entry of the directory; undefined if PML itself opens it. */
  readonly open?: (listing: Listing, stage: CallPathStage) => Server | undefined;
  readonly integrityOf?: ModuleHashes["integrityOf"];
  readonly moduleFiles?: ModuleFiles;
}

/** A directory that counts how often it was asked for a server. */
class CountedDirectory extends Directory {
  asked = 0;

  override get(name: string): Server {
    this.asked++;
    return super.get(name);
  }
}

/** The call path of a PML in this process. */
export class CallPathStage implements AsyncDisposable {
  readonly catalog = new Catalog();
  readonly directory: CountedDirectory;
  readonly path: CallPath;
  readonly pins: Pins;
  readonly servers: Servers;
  /** How often the rules judged. */
  judged = 0;
  readonly policy: Policy;
  readonly ws: string;

  private constructor(
    { policy, ws, options }: {
      readonly policy: Policy;
      readonly ws: string;
      readonly options: CallPathStageOptions;
    },
  ) {
    [this.policy, this.ws] = [policy, ws];
    const redactor = new Redactor();
    const warn = () => {};
    const { registries } = options;
    this.servers = new Servers({
      catalog: this.catalog,
      waitMs: () => 1_000,
      onChange: () => {},
      policy,
      keys: { fillArguments: (written) => Promise.resolve({ sent: written, shown: written }) },
    });
    const open = async (listing: DirectoryListing) =>
      options.open?.(listing, this) ?? await this.path.opener.open(listing);
    this.directory = new CountedDirectory({
      policy,
      builtins: new Set(options.builtins),
      // A test implements only the methods that it needs.
      registryServers: registries as RegistryServers | undefined,
      savedCapabilities: undefined,
      serverOpening: () => Promise.resolve({ open }),
    }, redactor);
    this.pins = pinsOf(policy, NO_WARNINGS);
    this.path = new CallPath({
      clients: NO_CLIENTS,
      policy: this.#counted(),
      metrics: new Metrics(),
      pins: this.pins,
      lateParts: {
        capabilities: () => Promise.reject(new Error("there are none")),
        registries: () =>
          registries === undefined
            ? Promise.reject(new Error("no registry is asked"))
            : Promise.resolve(registries as RegistryServers),
        builtinModules: () => Promise.resolve(new Map()),
      },
      servers: this.servers,
      files: options.moduleFiles ?? new ModuleFiles(),
      directory: this.directory,
      keys: new Keys({
        environment: () => policy.now.loaded.environment,
        trustedRoot: () => undefined,
        register: () => {},
        warn,
      }),
      log: new Log(redactor, "error"),
      redactor,
    }, new Schemas());
    this.servers.lists.replace(this.directory.all());
    policy.onChange(() => this.servers.lists.replace(this.directory.all()));
  }

  /** Opens a workspace; nothing is called yet. */
  static async open(options: CallPathStageOptions = {}): Promise<CallPathStage> {
    const root = await Deno.realPath(await Deno.makeTempDir());
    const ws = join(root, "ws");
    await Deno.mkdir(ws);
    const { pml = {}, files = {}, trusted = true } = options;
    await Deno.writeTextFile(join(ws, ".pml.json"), JSON.stringify({ version: 1, ...pml }));
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(join(ws, name), text);
    }
    const home = join(root, "home");
    await Deno.mkdir(home, { mode: 0o700 });
    if (options.person !== undefined) {
      await Deno.writeTextFile(join(home, "config.yaml"), options.person);
    }
    const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws };
    const environment = environmentOf({
      ...variables,
      ...(trusted && { PML_TRUST: ws }),
      ...(options.registries === undefined && { PML_REGISTRIES: "none" }),
    });
    const { integrityOf = () => undefined } = options;
    const policy = await Policy.open(environment, { cwd: ws }, {
      builtins: new Set(options.builtins),
      modules: { integrityOf },
      log: NO_WARNINGS,
      redactor: new Redactor(),
    });
    return new CallPathStage({ policy, ws, options });
  }

  /** Puts another workspace file in the place of this one, and has it count. */
  async change(pml: object): Promise<void> {
    await Deno.writeTextFile(join(this.ws, ".pml.json"), JSON.stringify({ version: 1, ...pml }));
    await this.policy.reload();
  }

  /** Calls a tool. */
  async call(server: string, tool: string, change: Partial<Call> = {}): Promise<Outcome> {
    return await this.path.callTool({
      id: toolId(server, tool),
      arguments: {},
      via: "call",
      actor: "local",
      cancellation: Cancellation.of(AbortSignal.timeout(60_000)),
      client: NO_CLIENT,
      callId: crypto.randomUUID(),
      ...change,
    });
  }

  /** Ends the servers and removes the workspace. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.servers[Symbol.dispose]();
    await this.path[Symbol.asyncDispose]();
    await Deno.remove(join(this.ws, ".."), { recursive: true });
  }

  /** The policy, which counts how often its rules are asked about a call. */
  #counted(): Policy {
    return new Proxy(this.policy, {
      get: (policy, key) => {
        const value = Reflect.get(policy, key, policy);
        if (key !== "now") return typeof value === "function" ? value.bind(policy) : value;
        const { judge } = policy.now;
        const counted: typeof judge = (...asked) => {
          this.judged++;
          return judge(...asked);
        };
        return { ...policy.now, judge: counted };
      },
    });
  }
}

/** Options of `OracleServer`. */
export interface OracleOptions extends KnownServerOptions {
  /** Returns the tools each time that they are listed. */
  readonly tools?: () => readonly ToolDefinition[];
  /** Called each time before a definition is returned. */
  readonly onLook?: () => void | Promise<void>;
  /** Called when an approval request for a call is made or its answer is compared. */
  readonly onConsent?: () => void | Promise<void>;
}

/** A server of a kind that PML does not define. It answers without a program or connection. */
export class OracleServer extends KnownServer {
  /** The tools that ran, and the number of requests for a definition. */
  readonly ran: string[] = [];
  looks = 0;
  readonly #options: OracleOptions;

  constructor(options: OracleOptions) {
    super(options);
    this.#options = options;
  }

  override async definitionFor({ id }: Call): Promise<ToolDefinition> {
    this.looks++;
    await this.#options.onLook?.();
    const known = this.#tools().find(({ name }) => id === toolId(this.name, name));
    assert.ok(known !== undefined, `${id} is listed`);
    return known;
  }

  override async permissionLines(): Promise<readonly string[]> {
    await this.#options.onConsent?.();
    return ["may foretell anything"];
  }

  override list(list: string): Promise<readonly ListItem[]> {
    return Promise.resolve(list === "tools" ? this.#tools() as readonly ListItem[] : []);
  }

  override call({ id }: Call): Promise<Outcome> {
    this.ran.push(id);
    return Promise.resolve({ kind: "result", result: textResult("so it is") });
  }

  #tools(): readonly ToolDefinition[] {
    return this.#options.tools?.() ?? ASKS;
  }
}

const ASKS: readonly ToolDefinition[] = [{
  name: "ask",
  description: "Foretells the weather",
  inputSchema: { type: "object" },
}];
