/**
 * Runs Windows programs in a folder that `setup.ts` has set up.
 *
 * @module
 */

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "../../tests/kit/pml_command.ts";

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));

/** The options of a run. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The current folder, a path of this machine on `C:`. */
  readonly cwd?: string;
  readonly input?: string;
  /** The time limit, in seconds. */
  readonly seconds?: number;
}

/** The exit code and output of a program. */
export interface ProgramEnd {
  /** 124 if it took too long. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Windows, simulated by Wine. Ends its programs when it is disposed. */
export class Wine implements AsyncDisposable {
  readonly #folder: string;

  /** Creates an instance for a folder that is set up. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The path of `C:` on this machine. */
  get drive(): string {
    return join(this.#folder, "root/opt/prefix/drive_c");
  }

  /** Converts a path of this machine on `C:` to a Windows path. */
  windowsPath(path: string): string {
    return `C:\\${relative(this.drive, path).replaceAll("/", "\\")}`;
  }

  /** Returns the command of this machine that starts a Windows program. */
  command(program: string, ...args: readonly string[]): Command {
    return [join(this.#folder, "win"), program, ...args];
  }

  /** Returns the command of this machine that starts PML as a Windows program. */
  pml(...args: readonly string[]): Command {
    // Without --quiet, Deno's progress fills lines of Wine's console, which shows its codes as text.
    return this.command("deno.exe", "run", "--quiet", "-A", "Z:\\pml\\mod.ts", ...args);
  }

  /** Returns the variables that every command needs, with `env`. */
  environment(
    { env = {}, cwd = this.drive }: Pick<RunOptions, "env" | "cwd">,
  ): Record<string, string> {
    const { PATH = "", HOME = "/root", NPM_CONFIG_REGISTRY } = Deno.env.toObject();
    return {
      ...{ PATH, HOME, PML_CHECKOUT: CHECKOUT },
      ...NPM_CONFIG_REGISTRY === undefined ? {} : { NPM_CONFIG_REGISTRY },
      WIN_CWD: `/${relative(join(this.#folder, "root"), cwd)}`,
      ...env,
    };
  }

  /** Runs a command to its end. */
  async run(
    command: Command,
    { input, seconds = 120, ...options }: RunOptions = {},
  ): Promise<ProgramEnd> {
    const child = new Deno.Command("timeout", {
      args: ["--kill-after=5", String(seconds), ...command],
      env: this.environment(options),
      clearEnv: true,
      stdin: input === undefined ? "null" : "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    if (input !== undefined) {
      const writer = child.stdin.getWriter();
      await writer.write(new TextEncoder().encode(input)).catch(() => {}); // it ended already
      await writer.close().catch(() => {});
    }
    const { code, stdout, stderr } = await child.output();
    if (code === 124) await this.end();
    const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes).replaceAll("\r\n", "\n");
    return { code, stdout: textOf(stdout), stderr: textOf(stderr) };
  }

  /** Ends all programs. */
  async end(): Promise<void> {
    const env = ["env", "WINEPREFIX=/opt/prefix", "XDG_RUNTIME_DIR=/tmp"];
    await new Deno.Command("chroot", {
      args: [join(this.#folder, "root"), ...env, "/usr/lib/wine/wineserver64", "-k"],
      stdout: "null",
      stderr: "null",
    }).output();
  }

  /** Ends all programs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
