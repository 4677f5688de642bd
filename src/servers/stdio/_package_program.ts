/**
 * The program of a package. It explains failed starts and denied accesses in error messages.
 *
 * @module
 */

import type { Program } from "../../sandbox/program.ts";
import type { Denial } from "../client/wire.ts";
import { denialIn, withRemark } from "./_denial.ts";
import { scriptsHint } from "./install/_scripts.ts";
import type { PackageInstallation } from "./install/installs.ts";
import type { TrialOptions } from "./learn.ts";
import type { ServerProgram } from "./own_program.ts";

/** The program of an installed package. */
export class PackageProgram implements ServerProgram {
  readonly program: Program;
  readonly #confined: TrialOptions | undefined;
  #server = "";
  #package: PackageInstallation | undefined;

  /** `confined` has the access of the program if it is confined, to explain denied accesses. */
  constructor(program: Program, confined?: TrialOptions) {
    this.program = program;
    this.#confined = confined;
  }

  /** Sets the name of the server, and the package that contains the program. */
  setPackage(server: string, present: PackageInstallation): void {
    this.#server = server;
    this.#package = present;
  }

  hint(): string | undefined {
    return this.#package && scriptsHint(this.#server, this.#package.findWaitingScripts());
  }

  denial(text: string): Denial | undefined {
    return this.#confined && denialIn(text, this.#confined);
  }

  withExplanation(message: unknown): unknown {
    return this.#confined === undefined ? message : withRemark(message, this);
  }
}
