/**
 * The rules that one answer wrote for several tools of a server. Such a rule ends if its tool no
 * longer only reads, or becomes destructive, according to its hints.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { memberOf, objectOf } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ToolId } from "../core/tool_id.ts";
import { readPlainText, writePrivate } from "../io/private_files.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { readingOf } from "./tool_reading.ts";

/** The effect of a tool, as far as its definition shows it. */
export interface ShownEffect {
  /** Whether it only reads, by `readingOf()`. */
  readonly reads: boolean;
  /** Whether its server says that it destroys. */
  readonly destroys: boolean;
}

/** A tool that an answer covers, with the effect that the user was shown. */
export interface CoveredTool {
  readonly id: ToolId;
  readonly effect: ShownEffect;
}

/** The rule that allows a call, and the file that contains it. */
export interface FileRule {
  readonly rule: string;
  readonly source: string;
}

/** The reason why PML asks although a rule allows the call. */
export const ENDED =
  "an answer for several tools allowed it when its server called it less harmful; this rule ended";

/**
 * The least harmful effect. It replaces a record that cannot be read, so that each more harmful
 * tool asks again.
 */
const LEAST_HARMFUL: ShownEffect = { reads: true, destroys: false };

/**
 * Returns the effect of a tool that its definition shows: the same object for the same definition.
 */
export const effectOf: (definition: ToolDefinition) => ShownEffect = memoized((definition) => ({
  reads: readingOf(definition).reads,
  destroys: objectOf(definition.annotations).destructiveHint === true,
}));

/** The folder `shown` in a PML home: one file for each rule of an answer for several tools. */
export class MultiToolRules {
  readonly #folder: string;
  /** For each definition, the keys of the rules that still allow its tool. */
  readonly #valid = memoized((_definition: ToolDefinition) => new Set<string>());

  /** Takes the PML home; reads nothing. */
  constructor(home: string) {
    this.#folder = join(home, "shown");
  }

  /**
   * Records the tools of an answer, before its rules are written. Throws if a file is not writable.
   */
  async add(source: string, tools: readonly CoveredTool[]): Promise<void> {
    for (const { id, effect } of tools) {
      await writePrivate(this.#path({ rule: id, source }), { rule: id, source, ...effect });
    }
  }

  /** Returns whether an answer for several tools wrote a rule. */
  has(rule: FileRule): boolean {
    return this.recordOf(rule) !== undefined;
  }

  /** Restores what `recordOf()` returned for the allow rules of a file. */
  async restore(
    source: string,
    rules: readonly string[],
    effects: Readonly<Record<string, ShownEffect>>,
  ): Promise<void> {
    for (const rule of rules) {
      const effect = memberOf(effects, rule);
      if (effect === undefined) await this.remove({ rule, source });
      else await writePrivate(this.#path({ rule, source }), { rule, source, ...effect });
    }
  }

  /** Removes the record of a rule, because the user answered about its tool alone. */
  async remove(rule: FileRule): Promise<void> {
    await Deno.remove(this.#path(rule)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }

  /**
   * Returns whether a rule no longer allows its tool: an answer for several tools wrote it, and
   * since then the tool has changed to do more than read, or to destroy. Even if the user approved
   * the changed definition, each call needs an answer.
   */
  hasEnded(rule: FileRule, definition: ToolDefinition): boolean {
    const now = effectOf(definition);
    if (now.reads) return false;
    const key = JSON.stringify([rule.source, rule.rule]);
    const valid = this.#valid(definition);
    if (valid.has(key)) return false;
    const before = this.recordOf(rule);
    // guard: hint-flip
    if (before !== undefined && (before.reads || now.destroys && !before.destroys)) return true;
    valid.add(key);
    return false;
  }

  /** Returns the effect that the user saw; undefined for a rule about one tool. */
  recordOf(rule: FileRule): ShownEffect | undefined {
    const path = this.#path(rule);
    try {
      const text = readPlainText(path);
      if (text === undefined) return undefined;
      const { reads, destroys } = objectOf(JSON.parse(text));
      return typeof reads === "boolean" && typeof destroys === "boolean"
        ? { reads, destroys }
        : LEAST_HARMFUL;
    } catch {
      return LEAST_HARMFUL;
    }
  }

  #path({ rule, source }: FileRule): string {
    return join(this.#folder, `${sha256(JSON.stringify([source, rule]))}.json`);
  }
}
