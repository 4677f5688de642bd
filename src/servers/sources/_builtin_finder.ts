/**
 * Finds the code of servers that ship with PML.
 *
 * @module
 */

import type { ModuleUse } from "../module/loader.ts";
import type { ModuleSource } from "../module/module_files.ts";
import type { Policy } from "../../policy/policy.ts";
import type { FoundServer } from "../host.ts";
import type { ServerListing, SourceFinder } from "../source.ts";
import { NothingToApprove } from "./nothing_to_approve.ts";

/** Finds the code of built-ins. */
export class BuiltinFinder implements SourceFinder {
  readonly #modules: ReadonlyMap<string, ModuleSource>;
  readonly #policy: Policy;
  readonly #approval = new NothingToApprove("Built into PML");

  /** `modules` has the code of the built-ins by name; the policy contains the grants. */
  constructor(modules: ReadonlyMap<string, ModuleSource>, policy: Policy) {
    this.#modules = modules;
    this.#policy = policy;
  }

  /** Returns a built-in. */
  find({ name, kind }: ServerListing): FoundServer {
    return { approval: this.#approval, kind, use: () => this.#use(name) };
  }

  #use(name: string): ModuleUse {
    const source = this.#modules.get(name);
    if (source === undefined) throw new Error(`no built-in is called ${name}`);
    return { source, expectedHash: undefined, grants: this.#policy.now.config.grants[name] };
  }
}
