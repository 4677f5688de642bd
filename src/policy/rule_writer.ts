/**
 * Adds rules to the workspace file or to the user's file atomically. A trusted file stays trusted.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../core/errors.ts";
import { objectOf, quoted } from "../core/json.ts";
import { RULES_FILE_MAX } from "../core/pattern.ts";
import { type PlainFile, readPlain, writeWhole } from "../io/private_files.ts";
import { type AddedRules, newText, type RuleLists, textWithRules } from "./_rule_text.ts";
import { listSettings, movedRules, type RuleList } from "./rule_lists.ts";
import { hashOf, type TrustStore } from "./trust.ts";
import { loadYaml } from "../config/yaml.ts";

export type { RuleLists } from "./_rule_text.ts";

/** Adds rules to workspace files. */
export class WorkspaceRules {
  readonly #trusted: TrustStore;
  readonly #defaults: RuleLists;
  readonly #isListed: boolean;

  /**
   * Takes the default rules, which are written if a file has no `permissions`, and whether
   * `PML_TRUST` lists the file. A listed file is trusted with any content.
   */
  constructor(trusted: TrustStore, defaults: RuleLists, isListed = false) {
    this.#trusted = trusted;
    this.#defaults = defaults;
    this.#isListed = isListed;
  }

  /**
   * Adds rules to `allow` in the file at this real path in one edit, and removes the same rules
   * from `ask`; or adds rules to `deny`. Creates and trusts a missing file. Throws
   * WORKSPACE_UNTRUSTED if the file is not trusted.
   */
  async add(file: string, added: AddedRules): Promise<void> {
    if (await Deno.realPath(dirname(file)) !== dirname(file)) throw notTrustedError(file);
    await this.#trusted.whileEditing(file, async () => {
      const before = readPlain(file);
      await (before === undefined ? this.#create(file, added) : this.#edit(file, before, added));
    });
  }

  async #create(file: string, added: AddedRules): Promise<void> {
    const bytes = new TextEncoder().encode(newText(added, this.#defaults));
    // The trust is saved first: a crash between the two writes leaves only trust in bytes that PML
    // made itself.
    await this.#trusted.trust({ path: file, hash: hashOf(bytes), servers: {} });
    await writeWhole(file, { bytes, mode: 0o644, expected: "nothing" });
  }

  async #edit(file: string, before: PlainFile, added: AddedRules): Promise<void> {
    const from = hashOf(before.bytes);
    // guard: always-trusted
    if (!this.#isListed && !await this.#trusted.isTrusted(file, from)) throw notTrustedError(file);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(before.bytes);
    const bytes = new TextEncoder().encode(await textWithRules(text, added, this.#defaults));
    const to = hashOf(bytes);
    if (to === from) return;
    // Every call would fail if the file became too long to read.
    if (bytes.length > RULES_FILE_MAX) throw tooLongError(file, bytes.length);
    const write = () => writeWhole(file, { bytes, mode: before.mode, expected: before.bytes });
    await this.#trusted.whileWriting(file, { from, to }, write);
  }
}

/** Adds rules to a list of the user's file in one edit, and removes them from the other lists. */
export async function addUserRules(
  file: string,
  { rules, list, trusted }: {
    readonly rules: readonly string[];
    readonly list: RuleList;
    readonly trusted: TrustStore;
  },
): Promise<void> {
  await trusted.whileEditing(file, async () => {
    const plain = readPlain(file);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
      .decode(plain?.bytes ?? new Uint8Array());
    const [{ yamlWith }, yaml] = await Promise.all([
      import("../config/yaml_text.ts"),
      loadYaml(),
    ]);
    const { permissions } = objectOf(yaml.parse(text));
    const before = objectOf(permissions);
    const settings = listSettings(before, movedRules(before, rules, list));
    if (settings.length === 0) return;
    const bytes = new TextEncoder().encode(await yamlWith(text, { path: file, settings }));
    if (bytes.length > RULES_FILE_MAX) throw tooLongError(file, bytes.length);
    const mode = plain?.mode ?? 0o600;
    await writeWhole(file, { bytes, mode, expected: plain?.bytes ?? "nothing" });
  });
}

function notTrustedError(file: string): PmlError {
  return new PmlError(
    "WORKSPACE_UNTRUSTED",
    `Cannot write the rules to ${quoted(file, 400)}: it is not trusted with this content`,
    { hint: "Review the file, trust it with `pml trust`, then try again" },
  );
}

function tooLongError(file: string, bytes: number): PmlError {
  const what = `Cannot write the rules to ${quoted(file, 400)}: it would have ${bytes} bytes`;
  return new PmlError("CONFIG_INVALID", what, {
    hint: `Remove unused rules to keep it below ${RULES_FILE_MAX} bytes`,
  });
}
