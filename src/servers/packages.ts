/**
 * The packages that stdio servers are, as they are pinned.
 *
 * @module
 */

import type { ServerPackages } from "./host.ts";
import type { ProgramDefinition, ServerDefinition } from "./kind.ts";
import { moduleOf, programOf, programsOf } from "./kinds.ts";
import type { Check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import { isOwnPin, type ServerIdentity } from "../policy/server_identity.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { CodeAtHand, Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { installedPackage } from "./stdio/install/installed.ts";
import type { InstalledPackage } from "./stdio/install/installs.ts";
import type { PackagePins } from "./stdio/stdio_servers.ts";

/** Knows what is installed for a definition, and holds it to what is pinned. */
export class Packages implements PackagePins, ServerPackages {
  readonly #policy: Policy;
  readonly #pins: Pins;
  /** What registries' servers are pinned by, by what defines them here. */
  readonly #found = new WeakMap<ServerDefinition, ServerIdentity>();
  readonly #whole = new WeakMap<ServerIdentity, ServerIdentity>();
  #installed = new WeakMap<ProgramDefinition, InstalledPackage | "none">();

  /** Takes what holds. */
  constructor({ policy, pins }: { readonly policy: Policy; readonly pins: Pins }) {
    this.#policy = policy;
    this.#pins = pins;
  }

  /** Takes note of a registry's server. */
  found(definition: ServerDefinition, identity: ServerIdentity): void {
    this.#found.set(definition, identity);
  }

  /** Returns what an approval of a server binds to. Other code of a module does not run. */
  identityOf(own: ServerDefinition): ServerIdentity {
    const program = programOf(own);
    if (program !== undefined) return this.#identityOf(own, this.#packageOf(program));
    return this.#identityOf(own, defined({ integrity: this.#policy.approvedCode(own.name) }));
  }

  /** Returns the same of a server as a file has it, whether that is trusted or not. */
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

  /** Takes another version of a server's package for the present one, and tells what was before. */
  take(
    own: ProgramDefinition,
    installed: InstalledPackage,
  ): { readonly identity: ServerIdentity; readonly before: InstalledPackage | undefined } {
    const before = this.#packageOf(own);
    // What is known by another object of the same definition is looked up anew.
    this.#installed = new WeakMap([[own, installed]]);
    return { identity: this.#identityOf(own, installed), before };
  }

  /** Returns the version of a server's package that is installed and approved. */
  async presentVersion(own: ProgramDefinition): Promise<string | undefined> {
    await this.#pins.state();
    return this.#packageOf(own)?.version;
  }

  /** Names the packages whose install scripts did not run; nothing is started. */
  async checks(): Promise<readonly Check[]> {
    const { waitingScripts } = await import("./stdio/install/waiting_scripts.ts");
    const { home, servers } = this.#policy.now.config;
    return programsOf(servers).flatMap((own) => {
      const { name } = own;
      const waiting = waitingScripts(own, home, this.#pinnedVersion(own));
      return waiting.map(({ spec, scripts }) => ({
        name: `scripts of ${quoted(spec)}`,
        ok: true,
        said: `${Object.keys(scripts).join(", ")} did not run, for ${quoted(name)}`,
        hint: `If it needs them, run \`pml install ${name}\``,
      }));
    });
  }

  #identityOf(own: ServerDefinition, code: CodeAtHand = {}): ServerIdentity {
    const found = this.#found.get(own);
    if (found === undefined) return this.#pins.identityOf(own, code);
    // The version is that of the registry; what its command installed is looked at too.
    const { integrity = found.pinned.integrity } = code;
    if (integrity === found.pinned.integrity) return found;
    const known = this.#whole.get(found);
    if (known !== undefined && known.pinned.integrity === integrity) return known;
    const whole = { ...found, pinned: { ...found.pinned, ...defined({ integrity }) } };
    this.#whole.set(found, whole);
    return whole;
  }

  #packageOf(own: ProgramDefinition): InstalledPackage | undefined {
    const known = this.#installed.get(own);
    if (known !== undefined) return known === "none" ? undefined : known;
    const { home } = this.#policy.now.config;
    const found = installedPackage(own, home, this.#pinnedVersion(own));
    this.#installed.set(own, found ?? "none");
    return found;
  }

  /** Returns the version that is pinned, if that was for this very command. */
  #pinnedVersion({ name, command, args }: ProgramDefinition): string | undefined {
    const pinned = this.#pins.pinned(name);
    // The version of a registry's entry is not that of the package.
    const isIt = pinned !== undefined && isOwnPin(pinned) &&
      JSON.stringify(pinned.command) === JSON.stringify([command, ...args]);
    return isIt ? pinned.version : undefined;
  }
}
