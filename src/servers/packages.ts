/**
 * Finds the installed packages of servers, compares them with their pins, and computes the
 * identities that approvals cover.
 *
 * @module
 */

import type { ServerPackages } from "./host.ts";
import type { ProgramDefinition, ServerDefinition } from "./kind.ts";
import { moduleOf, programOf, programsOf } from "./kinds.ts";
import type { CheckReport } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import { isOwnPin, type ServerIdentity } from "../policy/server_identity.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { Pins, ServerCode } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { installedPackage } from "./stdio/install/installed.ts";
import type { InstalledPackage } from "./stdio/install/installs.ts";
import type { PackagePins } from "./stdio/program_host.ts";

/**
 * Finds the installed packages of servers by their definitions, and compares them with their pins.
 */
export class Packages implements PackagePins, ServerPackages {
  readonly #policy: Policy;
  readonly #pins: Pins;
  /** The identities of servers of registries, by their definitions. */
  readonly #identities = new WeakMap<ServerDefinition, ServerIdentity>();
  /** For each of these identities, the identity with the hash of the installed package. */
  readonly #withInstalled = new WeakMap<ServerIdentity, ServerIdentity>();
  #installed = new WeakMap<ProgramDefinition, InstalledPackage | "none">();

  /** Reads nothing yet. */
  constructor({ policy, pins }: { readonly policy: Policy; readonly pins: Pins }) {
    this.#policy = policy;
    this.#pins = pins;
  }

  /** Adds the identity of a registry's server. */
  addIdentity(definition: ServerDefinition, identity: ServerIdentity): void {
    this.#identities.set(definition, identity);
  }

  /** Returns the identity that an approval of a server covers. */
  identityOf(definition: ServerDefinition): ServerIdentity {
    const program = programOf(definition);
    if (program !== undefined) return this.#identityOf(definition, this.#packageOf(program));
    return this.#identityOf(
      definition,
      withoutUndefined({ integrity: this.#policy.approvedCode(definition.name) }),
    );
  }

  /** Returns the identity of a server with the code that its file contains now, approved or not. */
  presentIdentityOf(
    definition: ServerDefinition,
    files: Pick<ModuleFiles, "integrityOf">,
  ): ServerIdentity {
    const module = moduleOf(definition);
    if (module === undefined) return this.identityOf(definition);
    const { moduleBytes } = this.#policy.now.config.limits;
    return this.#identityOf(
      definition,
      withoutUndefined({ integrity: files.integrityOf(module, moduleBytes) }),
    );
  }

  /** Returns the exact version that is pinned for a command. */
  async versionOf(definition: ProgramDefinition): Promise<string | undefined> {
    await this.#pins.state();
    return this.#pinnedVersion(definition);
  }

  /** Throws if an installed package differs from the pinned one. */
  async check(definition: ProgramDefinition, installed: InstalledPackage): Promise<void> {
    // guard: package-by-definition
    this.#installed.set(definition, installed);
    const stale = await this.#pins.findUnapproved(this.#identityOf(definition, installed));
    if (stale === undefined) return;
    const why = stale.facts.map((fact) => fact.trim()).join("; ");
    throw new PmlError(stale.code, `Cannot start ${quoted(definition.name)}: ${why}`, {
      hint: "Call it again, or run `pml lock update`",
    });
  }

  /** Sets the installed package of a server. Returns the new identity and the earlier package. */
  setInstalled(
    definition: ProgramDefinition,
    installed: InstalledPackage,
  ): { readonly identity: ServerIdentity; readonly before: InstalledPackage | undefined } {
    const before = this.#packageOf(definition);
    // Clears the packages of other definition objects, which may be for the same command.
    this.#installed = new WeakMap([[definition, installed]]);
    return { identity: this.#identityOf(definition, installed), before };
  }

  /** Returns the version of a server's package that is installed; undefined if none is. */
  async presentVersion(definition: ProgramDefinition): Promise<string | undefined> {
    await this.#pins.state();
    return this.#packageOf(definition)?.version;
  }

  /** Returns a check that names packages whose install scripts did not run. Starts nothing. */
  async checks(): Promise<readonly CheckReport[]> {
    const { waitingScripts } = await import("./stdio/install/waiting_scripts.ts");
    const { home, servers } = this.#policy.now.config;
    return programsOf(servers).flatMap((definition) => {
      const { name } = definition;
      const waiting = waitingScripts(definition, home, this.#pinnedVersion(definition));
      return waiting.map(({ spec, scripts }) => ({
        name: `scripts of ${quoted(spec)}`,
        ok: true,
        message: `${Object.keys(scripts).join(", ")} did not run, for ${quoted(name)}`,
        hint: `If it needs them, run \`pml install ${name}\``,
      }));
    });
  }

  #identityOf(definition: ServerDefinition, code: ServerCode = {}): ServerIdentity {
    const identity = this.#identities.get(definition);
    if (identity === undefined) return this.#pins.identityOf(definition, code);
    // The version is that of the registry's entry. Only the hash of the installed package is added.
    const { integrity = identity.pinned.integrity } = code;
    if (integrity === identity.pinned.integrity) return identity;
    const cacheEntry = this.#withInstalled.get(identity);
    if (cacheEntry !== undefined && cacheEntry.pinned.integrity === integrity) return cacheEntry;
    const whole = {
      ...identity,
      pinned: { ...identity.pinned, ...withoutUndefined({ integrity }) },
    };
    this.#withInstalled.set(identity, whole);
    return whole;
  }

  #packageOf(definition: ProgramDefinition): InstalledPackage | undefined {
    const cacheEntry = this.#installed.get(definition);
    if (cacheEntry !== undefined) return cacheEntry === "none" ? undefined : cacheEntry;
    const { home } = this.#policy.now.config;
    const installed = installedPackage(definition, home, this.#pinnedVersion(definition));
    this.#installed.set(definition, installed ?? "none");
    return installed;
  }

  /** Returns the pinned version, if the pin is for exactly this command. */
  #pinnedVersion({ name, command, args }: ProgramDefinition): string | undefined {
    const pinned = this.#pins.pinOf(name);
    // The pin of a registry's server contains the version of the entry, not of the package.
    const isOfCommand = pinned !== undefined && isOwnPin(pinned) &&
      JSON.stringify(pinned.command) === JSON.stringify([command, ...args]);
    return isOfCommand ? pinned.version : undefined;
  }
}
