/**
 * Creates the servers of kind `stdio`, and installs their packages.
 *
 * @module
 */

import type { ProgramDefinition } from "../kind.ts";
import { memoized } from "../../core/memo.ts";
import type { UpstreamServer } from "../client/wire.ts";
import type {
  CommandValues,
  NewestPackage,
  ServerPrograms,
  ServerScripts,
} from "./_server_programs.ts";
import { ServerLog } from "../server_log.ts";
import { StdioRevisions } from "./_revisions.ts";
import { packageIfAny } from "./_package_command.ts";
import { OwnProgram, prepareStart } from "./own_program.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";

export type { NewestPackage, ServerScripts };

/** Creates and caches servers that are programs. */
export class StdioServers {
  /**
   * Returns a server: the same one for the same object of values. `DefinitionValues.stdio` returns
   * the same object until a value changes.
   */
  readonly of: (server: StdioValues) => UpstreamServer = memoized((server) =>
    this.#serverOf(server)
  );
  readonly #host: ProgramHost;
  #programs: ServerPrograms | undefined;

  /** Starts nothing yet. */
  constructor(host: ProgramHost) {
    this.#host = host;
  }

  /** Loads the code that starts the given programs. Starts nothing. */
  async prepare(programs: readonly ProgramDefinition[], closing: AbortSignal): Promise<void> {
    const needsPrograms = programs.some((program) =>
      program.confine || packageIfAny(program) !== undefined
    );
    await Promise.all([import("./stdio_wire.ts"), needsPrograms && this.#loadPrograms(closing)]);
  }

  /**
   * Installs the package of a server. Returns the install scripts of the package and its
   * dependencies that did not run.
   */
  async scriptsOf(server: StdioValues, closing: AbortSignal): Promise<ServerScripts> {
    return await (await this.#loadPrograms(closing)).scriptsOf(server);
  }

  /** Returns the names of the servers whose command installs a package. */
  packagedNames(servers: readonly ProgramDefinition[]): readonly string[] {
    return servers.filter((server) => packageIfAny(server) !== undefined).map(({ name }) => name);
  }

  /**
   * Looks up the newest version of a server's package. Returns undefined if the command of the
   * server installs no npm package.
   */
  async newestOf(server: CommandValues, closing: AbortSignal): Promise<NewestPackage | undefined> {
    return await (await this.#loadPrograms(closing)).newestOf(server);
  }

  /** Loads the code that finds and installs programs, which calls of modules do not need. */
  async #loadPrograms(closing: AbortSignal): Promise<ServerPrograms> {
    const { ServerPrograms } = await import("./_server_programs.ts");
    return this.#programs ??= new ServerPrograms(this.#host, closing);
  }

  #serverOf(server: StdioValues): UpstreamServer {
    const host = this.#host;
    const { name, tools, definition, trial, confine } = server;
    const key = JSON.stringify(server);
    return {
      name,
      tools,
      definition,
      // The lists of a trial are not stored.
      hasFiles: trial === undefined,
      // A confined server is started again if its grants change.
      version: () => key + (confine ? JSON.stringify(host.grants(name) ?? null) : ""),
      prepare: async (closing) => {
        const { StdioWire } = await import("./stdio_wire.ts");
        const settings = prepareStart(server, host);
        const program = OwnProgram.of(settings, host) ??
          await (await this.#loadPrograms(closing)).programOf(settings);
        return (events) => {
          const { home } = host;
          const log = new ServerLog(home, name);
          const revisions = trial === undefined ? new StdioRevisions(home, server) : undefined;
          return new StdioWire({ name, program, log, revisions }, host, events);
        };
      },
    };
  }
}
