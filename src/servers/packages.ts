/**
 * The packages of stdio servers, and their pins.
 *
 * @module
 */

import type { ServerPackages } from "./host.ts";
import type { ProgramDefinition, ServerDefinition } from "./kind.ts";
import { moduleOf, programOf, programsOf } from "./kinds.ts";
import type { CheckReport } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import { isOwnPin, type ServerIdentity } from "../policy/server_identity.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { CodeAtHand, Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { installedPackage } from "./stdio/install/installed.ts";
import type { InstalledPackage } from "./stdio/install/installs.ts";
import type { PackagePins } from "./stdio/stdio_servers.ts";

/** Finds the installed packages of definitions, and compares them with their pins. */
export class Packages implements PackagePins, ServerPackages {
  readonly #policy: Policy;
  readonly #pins: Pins;
  /** The identities of servers of registries, by their definitions. */
  readonly #identities = new WeakMap<ServerDefinition, ServerIdentity>();
  readonly #whole = new WeakMap<ServerIdentity, ServerIdentity>();
  #installed = new WeakMap<ProgramDefinition, InstalledPackage | "none">();

  /** Takes the policy and the pins. */
  constructor({ policy, pins }: { readonly policy: Policy; readonly pins: Pins }) {
    this.#policy = policy;
    this.#pins = pins;
  }

  /** Adds the identity of a registry's server. */
  addIdentity(definition: ServerDefinition, identity: ServerIdentity): void {
    this.#identities.set(definition, identity);
  }

  /** Returns the identity that an approval of a server binds to. A module runs no other code. */
  identityOf(own: ServerDefinition): ServerIdentity {
    const program = programOf(own);
    if (program !== undefined) return this.#identityOf(own, this.#packageOf(program));
    return this.#identityOf(own, defined({ integrity: this.#policy.approvedCode(own.name) }));
  }

  /** Returns the identity of a server with the present code of its file, trusted or not. */
  writtenAs(own: ServerDefinition, files: Pick<ModuleFiles, "integrityOf">): ServerIdentity {
    const module = moduleOf(own);
    if (module === undefined) return this.identityOf(own);
    const { moduleBytes } = this.#policy.now.config.limits;
    return this.#identityOf(own, defined({ integrity: files.integrityOf(module, moduleBytes) }));
  }

  /** Returns the exact version that is pinned for a command. */
  async versionOf(own: ProgramDefinition): Promise<string | undefined> {
    await this.#pins.state();
    return this.#pinnedVersion(own);
  }

  /** Throws for a package that is not the pinned one. */
  async check(own: ProgramDefinition, installed: InstalledPackage): Promise<void> {
    // guard: package-by-definition
    this.#installed.set(own, installed);
    const stale = await this.#pins.unapproved(this.#identityOf(own, installed));
    if (stale === undefined) return;
    const why = stale.facts.map((fact) => fact.trim()).join("; ");
    throw new PmlError(stale.code, `Cannot start ${quoted(own.name)}: ${why}`, {
      hint: "Call it again, or run `pml lock update`",
    });
  }

  /** Sets the installed version of a server's package. Returns the version before. */
  take(
    own: ProgramDefinition,
    installed: InstalledPackage,
  ): { readonly identity: ServerIdentity; readonly before: InstalledPackage | undefined } {
    const before = this.#packageOf(own);
    // Clears the packages of other objects, which may have the same definition.
    this.#installed = new WeakMap([[own, installed]]);
    return { identity: this.#identityOf(own, installed), before };
  }

  /** Returns the version of a server's package that is installed and approved. */
  async presentVersion(own: ProgramDefinition): Promise<string | undefined> {
    await this.#pins.state();
    return this.#packageOf(own)?.version;
  }

  /** Returns a check that names packages whose install scripts did not run. Starts nothing. */
  async checks(): Promise<readonly CheckReport[]> {
    const { waitingScripts } = await import("./stdio/install/waiting_scripts.ts");
    const { home, servers } = this.#policy.now.config;
    return programsOf(servers).flatMap((own) => {
      const { name } = own;
      const waiting = waitingScripts(own, home, this.#pinnedVersion(own));
      return waiting.map(({ spec, scripts }) => ({
        name: `scripts of ${quoted(spec)}`,
        ok: true,
        message: `${Object.keys(scripts).join(", ")} did not run, for ${quoted(name)}`,
        hint: `If it needs them, run \`pml install ${name}\``,
      }));
    });
  }

  #identityOf(own: ServerDefinition, code: CodeAtHand = {}): ServerIdentity {
    const identity = this.#identities.get(own);
    if (identity === undefined) return this.#pins.identityOf(own, code);
    // The version is that of the registry. The installed package is compared, too.
    const { integrity = identity.pinned.integrity } = code;
    if (integrity === identity.pinned.integrity) return identity;
    const cacheEntry = this.#whole.get(identity);
    if (cacheEntry !== undefined && cacheEntry.pinned.integrity === integrity) return cacheEntry;
    const whole = { ...identity, pinned: { ...identity.pinned, ...defined({ integrity }) } };
    this.#whole.set(identity, whole);
    return whole;
  }

  #packageOf(own: ProgramDefinition): InstalledPackage | undefined {
    const cacheEntry = this.#installed.get(own);
    if (cacheEntry !== undefined) return cacheEntry === "none" ? undefined : cacheEntry;
    const { home } = this.#policy.now.config;
    const installed = installedPackage(own, home, this.#pinnedVersion(own));
    this.#installed.set(own, installed ?? "none");
    return installed;
  }

  /** Returns the pinned version, if the pin is for exactly this command. */
  #pinnedVersion({ name, command, args }: ProgramDefinition): string | undefined {
    const pinned = this.#pins.pinOf(name);
    // The version of a registry's entry is not that of the package.
    const isIt = pinned !== undefined && isOwnPin(pinned) &&
      JSON.stringify(pinned.command) === JSON.stringify([command, ...args]);
    return isIt ? pinned.version : undefined;
  }
}
