/**
 * The packages that stdio servers are, as they are pinned.
 *
 * @module
 */

import type { ServerDefinition, StdioDefinition } from "./config/servers.ts";
import { PmlError } from "./core/errors.ts";
import { defined, quoted } from "./core/json.ts";
import { type InstalledPackage, installedPackage } from "./local/installs.ts";
import type { ModuleFiles } from "./local/module_files.ts";
import type { PackagePins } from "./local/stdio_servers.ts";
import type { AtHand } from "./policy/pins.ts";
import type { Policy } from "./policy/policy.ts";

/** Knows what is installed for a definition, and holds it to what is pinned. */
export class Packages implements PackagePins {
  readonly #policy: Policy;
  readonly #installed = new WeakMap<StdioDefinition, InstalledPackage | "none">();

  /** Takes what holds. */
  constructor(policy: Policy) {
    this.#policy = policy;
  }

  /** Gives a server as it is pinned; undefined for what ships with PML. */
  handOf(server: string): AtHand | undefined {
    const own = this.#policy.definitionOf(server);
    return own && this.#policy.handOf(own, own.kind === "stdio" ? this.#packageOf(own) : undefined);
  }

  /** Gives a server as a file has it, whether that is trusted or not; nothing is started. */
  atHand(own: ServerDefinition, files: Pick<ModuleFiles, "integrityOf">): AtHand {
    const { moduleBytes } = this.#policy.now.config.limits;
    const code = own.kind === "stdio" ? this.#packageOf(own) : defined({
      integrity: own.kind === "deno" ? files.integrityOf(own, moduleBytes) : undefined,
    });
    return this.#policy.handOf(own, code);
  }

  /** Gives the exact version that is pinned for a server. */
  async versionOf(server: string): Promise<string | undefined> {
    await this.#policy.pins.state();
    return this.#pinnedVersion(server);
  }

  /** Starts no package but the pinned one. */
  async check(server: string, installed: InstalledPackage): Promise<void> {
    const policy = this.#policy;
    const own = policy.definitionOf(server);
    if (own?.kind !== "stdio") return;
    this.#installed.set(own, installed);
    const stale = await policy.pins.unapproved(policy.handOf(own, installed));
    if (stale === undefined) return;
    const why = stale.facts.map((fact) => fact.trim()).join("; ");
    throw new PmlError(stale.code, `Cannot start ${quoted(server)}: ${why}`, {
      hint: "Call it again, or run `pml lock update`: the question to the person comes with it",
    });
  }

  #packageOf(own: StdioDefinition): InstalledPackage | undefined {
    const known = this.#installed.get(own);
    if (known !== undefined) return known === "none" ? undefined : known;
    const { home } = this.#policy.now.config;
    const found = installedPackage(own, { home, version: this.#pinnedVersion(own.name) });
    this.#installed.set(own, found ?? "none");
    return found;
  }

  /** Gives the version that is pinned, if that was for this very command. */
  #pinnedVersion(server: string): string | undefined {
    const own = this.#policy.definitionOf(server);
    const pinned = this.#policy.pins.pinned(server);
    // The version of a registry's entry is not that of the package.
    const isIt = own?.kind === "stdio" && pinned?.source === "private" &&
      JSON.stringify(pinned?.command) === JSON.stringify([own.command, ...own.args]);
    return isIt ? pinned?.version : undefined;
  }
}
