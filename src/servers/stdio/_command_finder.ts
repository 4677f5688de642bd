/**
 * Finds the files of the programs that commands start.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { findProgram, searchPath, withEnding } from "../../sandbox/search_path.ts";
import type { ProgramFinder } from "./install/installs.ts";
import type { ProgramHost, StdioValues } from "./program_host.ts";

/** The PATH of servers, and the workspace, whose folders are not searched. */
type FinderHost = Pick<ProgramHost, "serverEnvironment" | "workspace">;

/** Returns the folders in which PML searches for programs. */
export function searchFolders({ serverEnvironment, workspace }: FinderHost): readonly string[] {
  return searchPath(serverEnvironment.PATH, workspace);
}

/** Finds the programs that the command of a server uses. */
export class CommandFinder implements ProgramFinder {
  readonly #host: FinderHost;
  readonly #server: Pick<StdioValues, "name" | "cwd">;
  readonly #command: string;

  /** `command` may be a path. */
  constructor(host: FinderHost, server: Pick<StdioValues, "name" | "cwd">, command: string) {
    this.#host = host;
    this.#server = server;
    this.#command = command;
  }

  /**
   * Finds another program, such as npm: next to the command if the command is a path, otherwise on
   * PATH.
   */
  find(program: string): string {
    const beside = resolve(this.#server.cwd, join(dirname(this.#command), program));
    const where = { path: [dirname(beside)], workspace: this.#host.workspace };
    const file = /[\\/]/.test(this.#command) ? findProgram(program, where) : undefined;
    return file ?? this.#pathOf(program);
  }

  /** Finds the command itself. */
  findCommand(): string {
    return this.#pathOf(this.#command);
  }

  #pathOf(command: string): string {
    const { name, cwd } = this.#server;
    // A path may be in the workspace: the user wrote it and saw it in the approval request.
    if (/[\\/]/.test(command)) return withEnding(resolve(cwd, command));
    const where = { path: searchFolders(this.#host), workspace: this.#host.workspace };
    const file = findProgram(command, where);
    if (file !== undefined) return file;
    const why = `command ${quoted(command, 300)} is not on PATH`;
    throw new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(name)}: ${why}`, {
      hint: "Install it, or give its absolute path",
    });
  }
}
