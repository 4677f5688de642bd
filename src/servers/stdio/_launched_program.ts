/**
 * The program of a server. It explains failed starts and denied accesses.
 *
 * @module
 */

import type { Program } from "../../sandbox/program.ts";
import type { Denial } from "../client/wire.ts";
import { denialIn } from "./_denial.ts";
import { scriptsHint } from "./install/_scripts.ts";
import type { PresentPackage } from "./install/installs.ts";
import type { TrialOptions } from "./learn.ts";

/** A program that can be started. */
export class LaunchedProgram {
  readonly program: Program;
  readonly #confined: TrialOptions | undefined;
  #server = "";
  #package: PresentPackage | undefined;

  /** Takes the program, and its access if it is confined. */
  constructor(program: Program, confined?: TrialOptions) {
    this.program = program;
    this.#confined = confined;
  }

  /** Sets the server that it is the program of, and the package that it belongs to. */
  setPackage(server: string, present: PresentPackage): void {
    this.#server = server;
    this.#package = present;
  }

  /** Whether it runs with permissions. */
  get isConfined(): boolean {
    return this.#confined !== undefined;
  }

  /** Returns another possible reason if the server is not there. */
  hint(): string | undefined {
    return this.#package && scriptsHint(this.#server, this.#package.waiting());
  }

  /** Returns the permission that a confined server lacks, from its output or its answer. */
  denial(text: string): Denial | undefined {
    return this.#confined && denialIn(text, this.#confined);
  }
}
