/**
 * The packages that stdio servers are, as they are pinned.
 *
 * @module
 */

import type { ServerDefinition, StdioDefinition } from "../config/servers.ts";
import type { Check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import type { ModuleFiles } from "../modules/module_files.ts";
import type { AtHand, CodeAtHand, Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import { type InstalledPackage, installedPackage, waitingScripts } from "../stdio/installs.ts";
import type { PackagePins, StdioServer } from "../stdio/stdio_servers.ts";

/** Knows what is installed for a definition, and holds it to what is pinned. */
export class Packages implements PackagePins {
  readonly #policy: Policy;
  readonly #pins: Pins;
  readonly #hands = new WeakMap<AtHand, AtHand>();
  readonly #installed = new WeakMap<StdioDefinition, InstalledPackage | "none">();

  /** Takes what holds. */
  constructor({ policy, pins }: { readonly policy: Policy; readonly pins: Pins }) {
    this.#policy = policy;
    this.#pins = pins;
  }

  /** Gives a server as it is pinned; undefined for what ships with PML. */
  handOf(server: string): AtHand | undefined {
    const own = this.#policy.definitionOf(server);
    if (own?.kind === "stdio") return this.#handOf(own, this.#packageOf(own));
    // Other code of a module does not run.
    return own && this.#handOf(own, defined({ integrity: this.#policy.approvedCode(server) }));
  }

  /** Gives a server as a file has it, whether that is trusted or not; nothing is started. */
  atHand(own: ServerDefinition, files: Pick<ModuleFiles, "integrityOf">): AtHand {
    const { moduleBytes } = this.#policy.now.config.limits;
    const code = own.kind === "stdio" ? this.#packageOf(own) : defined({
      integrity: own.kind === "deno" ? files.integrityOf(own, moduleBytes) : undefined,
    });
    return this.#handOf(own, code ?? {});
  }

  /** Gives the exact version that is pinned for a server. */
  async versionOf(server: StdioServer): Promise<string | undefined> {
    await this.#pins.state();
    return this.#pinnedVersion(definitionOf(server));
  }

  /** Throws if a package is not the pinned one. */
  async check(server: StdioServer, installed: InstalledPackage): Promise<void> {
    const own = definitionOf(server);
    this.#installed.set(own, installed);
    const stale = await this.#pins.unapproved(this.#handOf(own, installed));
    if (stale === undefined) return;
    const why = stale.facts.map((fact) => fact.trim()).join("; ");
    throw new PmlError(stale.code, `Cannot start ${quoted(own.name)}: ${why}`, {
      hint: "Call it again, or run `pml lock update`: the question to the person comes with it",
    });
  }

  /** Names the packages whose install scripts did not run; nothing is started. */
  checks(): readonly Check[] {
    const { home, servers } = this.#policy.now.config;
    return servers.flatMap((own) => {
      if (own.kind !== "stdio") return [];
      const { name } = own;
      const waiting = waitingScripts(own, { home, version: this.#pinnedVersion(own) });
      return waiting.map(({ spec, scripts }) => ({
        name: `scripts of ${quoted(spec)}`,
        ok: true,
        said: `${Object.keys(scripts).join(", ")} did not run, for ${quoted(name)}`,
        hint: `If it needs them, run \`pml install ${name}\``,
      }));
    });
  }

  #handOf(own: ServerDefinition, code: CodeAtHand = {}): AtHand {
    const adopted = this.#policy.adopted(own.name);
    if (adopted === undefined || adopted.definition !== own) return this.#pins.handOf(own, code);
    const { hand } = adopted;
    // The version is that of the registry; what its command installed is looked at too.
    const { integrity = hand.pinned.integrity } = code;
    if (integrity === hand.pinned.integrity) return hand;
    const known = this.#hands.get(hand);
    if (known !== undefined && known.pinned.integrity === integrity) return known;
    const whole = { ...hand, pinned: { ...hand.pinned, ...defined({ integrity }) } };
    this.#hands.set(hand, whole);
    return whole;
  }

  #packageOf(own: StdioDefinition): InstalledPackage | undefined {
    const known = this.#installed.get(own);
    if (known !== undefined) return known === "none" ? undefined : known;
    const { home } = this.#policy.now.config;
    const found = installedPackage(own, { home, version: this.#pinnedVersion(own) });
    this.#installed.set(own, found ?? "none");
    return found;
  }

  /** Gives the version that is pinned, if that was for this very command. */
  #pinnedVersion(own: StdioDefinition): string | undefined {
    const pinned = this.#pins.pinned(own.name);
    // The version of a registry's entry is not that of the package.
    const isIt = pinned?.source === "private" &&
      JSON.stringify(pinned?.command) === JSON.stringify([own.command, ...own.args]);
    return isIt ? pinned?.version : undefined;
  }
}

function definitionOf({ definition }: StdioServer): StdioDefinition {
  return definition as StdioDefinition; // that which its values were filled into
}
