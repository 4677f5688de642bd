/**
 * Writes the definition of a server into a file of the user, or replaces an earlier definition. If the
 * user wants that, the rules, grants, pins and sign-ins of the earlier server are removed with it.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { sha256 } from "../core/hash.ts";
import { type JsonObject, objectOf, quoted, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import type { CommandContext, CommandInput } from "./_command_context.ts";
import { assertTrusted, type FileChange, planChange } from "./_config_file.ts";
import { findWholeUndo } from "./_whole_undo.ts";
import { unknownNameError, usage } from "./_failure.ts";
import { fileNotChanged } from "./_files.ts";
import {
  editFile,
  findTarget,
  parseTarget,
  type SectionName,
  SECTIONS,
  type ServerRules,
  type TargetFile,
  textWith,
} from "./_undoable_edits.ts";
import { type RuleRemoval, ruleRemovals } from "./_rules.ts";
import { agrees } from "./_terminal.ts";

/** A definition of a server in a file of the user. */
export interface ExistingEntry {
  /** Whether the workspace's file has it. */
  readonly workspace: boolean;
  readonly path: string;
  readonly section: SectionName;
  /** The name in the file, which may differ from the server's name. */
  readonly title: string;
  readonly entry: JsonObject;
}

/**
 * Finds the definition of a server in the user's file or the workspace's; `existing` is undefined if
 * neither defines it. `names` contains the names of all servers of the files. Throws if both files
 * define it. `tried` is the verb for this error.
 */
export async function findExistingEntry(
  app: App,
  name: string,
  { workspace, tried }: { readonly workspace: boolean | undefined; readonly tried: string },
): Promise<{ readonly existing: ExistingEntry | undefined; readonly names: readonly string[] }> {
  const entries: ExistingEntry[] = [];
  const names: string[] = [];
  for (const isWorkspace of workspace === undefined ? [false, true] : [workspace]) {
    const target = await findTarget(app, isWorkspace);
    const value = objectOf(await parseTarget(target));
    const all = SECTIONS.flatMap((section) =>
      Object.entries(objectOf(value[section])).map(([title, entry]) => ({
        workspace: isWorkspace,
        path: target.path,
        section,
        title,
        entry: objectOf(entry),
      }))
    );
    names.push(...all.map(({ title }) => title));
    const match = all.find(({ title }) => title === name || serverSlug(title) === name);
    if (match !== undefined) entries.push(match);
  }
  const [existing, other] = entries;
  if (existing !== undefined && other !== undefined) {
    throw usage(
      `Cannot ${tried} ${quoted(name)}: both ${existing.path} and ${other.path} define it`,
      "Choose it with --workspace or --no-workspace",
    );
  }
  return { existing, names };
}

/** Returns the definition that `--replace` replaces; undefined without this option or a definition. */
export async function findReplacedEntry(
  { app }: CommandContext,
  name: string,
  { replace, workspace }: CommandInput,
): Promise<ExistingEntry | undefined> {
  if (replace !== true) return undefined;
  return (await findExistingEntry(app, name, { workspace, tried: "replace" })).existing;
}

/** Returns the settings that remove a definition from its file. */
export function removalOf({ section, title }: ExistingEntry): readonly YamlSetting[] {
  return [{ at: [section, title], entry: undefined }];
}

/** A definition to write, and where to write it. */
interface NewDefinition {
  readonly name: string;
  readonly section: SectionName;
  readonly entry: object;
  readonly workspace: boolean;
  /** The definition to replace. */
  readonly existing?: ExistingEntry | undefined;
  /** More settings of the same file, such as grants. */
  readonly more?: readonly YamlSetting[];
}

/** A definition that is not written yet. */
export class DefinitionEdit {
  readonly #context: CommandContext;
  readonly #options: NewDefinition;
  readonly #target: TargetFile;
  readonly #settings: readonly YamlSetting[];
  /** The change of the file as the user sees it, without removed rules and grants. */
  readonly change: FileChange;
  #backup: string | undefined;
  /** The settings that remove rules and grants from the same file. */
  #removals: readonly YamlSetting[] = [];
  /** The change of the file with these settings; undefined without such settings. */
  #wholeChange: FileChange | undefined;
  /** The changes that remove rules and grants from the other file. */
  #otherChanges: readonly FileChange[] = [];
  /** The rules and grants that the edit removes from both files. */
  #ended: readonly ServerRules[] = [];
  /** The rules and grants of the replaced server that the user keeps. */
  #keptRules: readonly ServerRules[] = [];

  private constructor(
    context: CommandContext,
    { options, target, settings, change }: {
      readonly options: NewDefinition;
      readonly target: TargetFile;
      readonly settings: readonly YamlSetting[];
      readonly change: FileChange;
    },
  ) {
    this.#context = context;
    this.#options = options;
    this.#target = target;
    this.#settings = settings;
    this.change = change;
  }

  /** Reads the file, and returns the edit. Throws if it is a workspace file that is not trusted. */
  static async of(context: CommandContext, options: NewDefinition): Promise<DefinitionEdit> {
    const { name, section, entry, workspace, existing, more = [] } = options;
    const isMoved = existing !== undefined &&
      (existing.section !== section || existing.title !== name);
    const settings = [
      ...isMoved ? removalOf(existing) : [],
      { at: [section, name], entry } as const,
      ...more,
    ];
    const target = await findTarget(context.app, workspace);
    const change = await planChange(context.app, { workspace, settings });
    if (change.text !== await textWith(target, settings)) {
      throw fileNotChanged(target.path, "it was changed meanwhile");
    }
    return new DefinitionEdit(context, { options, target, settings, change });
  }

  /** Whether the file has this definition already, so that its rules and pins stay. */
  get #isSame(): boolean {
    return this.change.diff === "";
  }

  /** Lines about a replacement: the settings that the new definition does not have. */
  get facts(): readonly string[] {
    const { existing, entry } = this.#options;
    if (this.#isSame) return ["The definition stays as it is"];
    const missing = Object.keys(existing?.entry ?? {}).filter((key) =>
      !["type", "command", "args", "url", "path", "headers", "env"].includes(key) &&
      !Object.hasOwn(entry, key)
    );
    return missing.length === 0
      ? []
      : [`The new definition does not have: ${visible(missing.join(", "), 400)}`];
  }

  /** The verb for the edit. */
  get verb(): "add" | "replace" {
    return this.#options.existing === undefined ? "add" : "replace";
  }

  /**
   * Asks whether to remove the rules and grants of an earlier server of this name, also of one that the
   * user removed before. Call it before `write()`, so that the new server never runs by these rules.
   */
  async askRemovals(): Promise<void> {
    const { name, existing } = this.#options;
    if (this.#isSame) return;
    const all = await ruleRemovals(this.#context.app, name);
    const removals = existing === undefined
      ? all.flatMap((removal) => this.#withoutOwnGrants(removal))
      : all;
    if (removals.length === 0) return;
    const question = existing === undefined ? oldRulesQuestion : undefined;
    // guard: added-rules
    if (await agreesToRemove(this.#context, name, { removals, question })) {
      await this.#prepare(removals);
      return;
    }
    this.#keptRules = removals.map(({ ended }) => ended);
  }

  /**
   * Prepares the removal of the rules and grants of an earlier server of this name without a question:
   * the caller shows the returned texts to the user before `write()`.
   */
  async prepareRemovals(): Promise<readonly string[]> {
    const { name, existing } = this.#options;
    if (existing !== undefined || this.#isSame) return [];
    const all = await ruleRemovals(this.#context.app, name);
    const removals = all.flatMap((removal) => this.#withoutOwnGrants(removal));
    await this.#prepare(removals);
    return await removalTexts(this.#context.app, removals);
  }

  /**
   * Prepares the removals that `write()` makes. A removal contains whole lists of rules from the present
   * files, so `write()` fails if a rule is written before it.
   */
  async #prepare(removals: readonly RuleRemoval[]): Promise<void> {
    const { app } = this.#context;
    const { workspace } = this.#options;
    this.#ended = removals.map(({ ended }) => ended);
    const others = removals.filter((removal) => removal.workspace !== workspace);
    this.#otherChanges = await Promise.all(others.map((removal) => planChange(app, removal)));
    this.#removals = removals.filter((removal) => removal.workspace === workspace)
      .flatMap(({ settings }) => settings);
    if (this.#removals.length === 0) return;
    const settings = [...this.#removals, ...this.#settings];
    this.#wholeChange = await planChange(app, { workspace, settings });
  }

  /** Returns a removal without its grants if the edit itself writes the grants of the server. */
  #withoutOwnGrants(removal: RuleRemoval): readonly RuleRemoval[] {
    const { workspace, more = [] } = this.#options;
    const writesGrants = removal.workspace === workspace &&
      more.some(({ at: [section] }) => section === "grants");
    if (!writesGrants) return [removal];
    const parts = removal.parts.filter((part) => part !== "grants");
    const settings = removal.settings.filter(({ at: [section] }) => section !== "grants");
    const ended = { ...removal.ended, grants: {} };
    return parts.length === 0 ? [] : [{ workspace, parts, settings, ended }];
  }

  /** Writes the definition. Keeps a copy of the file if it replaces a definition. */
  async write(): Promise<void> {
    const { app } = this.#context;
    const { name, section, workspace, existing } = this.#options;
    if (this.#isSame) return;
    if (existing !== undefined && workspace) await assertTrusted(app, this.#target);
    for (const change of this.#otherChanges) await change.write();
    if (existing === undefined) {
      await (this.#wholeChange ?? this.change).write();
      return await app.policy.reload();
    }
    const text = await textWith(this.#target, [...this.#removals, ...this.#settings]);
    const { section: from, title } = existing;
    const replaced = { name, into: section, section: from, title };
    const allPins = await app.pins();
    // The undo restores them: without pins, a tool that changed meanwhile would look new.
    const pins = await allPins.recordOf(name);
    const about = { replaced, ended: this.#ended, keptRules: this.#keptRules, pins };
    const { backup } = await editFile(app, this.#target, { text, ...about });
    this.#backup = backup;
    // Removes the pins of the old server, as `pml remove` does. The new server gets its own.
    await allPins.remove([name]);
    await app.policy.reload();
  }

  /** Lines about the copy of the old file. */
  get notes(): readonly string[] {
    const { workspace } = this.#options;
    return this.#backup === undefined ? [] : [
      `The file before is ${this.#backup}; \`pml add --undo${
        workspace ? " --workspace" : ""
      }\` brings the earlier definition back`,
    ];
  }

  /** Removes the definition again, and restores the earlier one. */
  async revert(): Promise<void> {
    const { app } = this.#context;
    const { name, section, workspace, existing, more = [] } = this.#options;
    if (this.#isSame) return;
    if (existing !== undefined) {
      await (await findWholeUndo(app, await findTarget(app, workspace))).run();
    } else if (this.#target.found === undefined && await this.#isOnlyContent()) {
      // The edit created the file.
      const { path, text } = this.change;
      await app.policy.store.move(path, { from: sha256(text), to: [] });
      await Deno.remove(path);
    } else {
      const settings = [
        { at: [section, name], entry: undefined } as const,
        ...more.map(({ at }) => ({ at, entry: undefined })),
      ];
      await (await planChange(app, { workspace, settings })).write();
    }
    await app.policy.reload();
  }

  /** Returns whether the file contains only the definition. */
  async #isOnlyContent(): Promise<boolean> {
    const { found } = await findTarget(this.#context.app, this.#options.workspace);
    return found?.text === this.change.text;
  }
}

/** Shows the rules and grants of a server, and asks whether to remove them. */
export async function agreesToRemove(
  context: CommandContext,
  name: string,
  { removals, question = removalQuestion }: {
    readonly removals: readonly RuleRemoval[];
    readonly question?: ((parts: string, name: string) => string) | undefined;
  },
): Promise<boolean> {
  const shown = await changeTexts(context.app, removals);
  const parts = [...new Set(removals.flatMap(({ parts }) => parts))].join(" and ");
  return await agrees(question(parts, name), context, shown);
}

/**
 * Asks about the rules and grants that exist already for the names of new servers. Returns the names
 * whose rules and grants the user wants to remove.
 */
export async function askOldRules(
  context: CommandContext,
  names: readonly string[],
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const name of names) {
    const removals = await ruleRemovals(context.app, name);
    if (removals.length === 0) continue;
    if (await agreesToRemove(context, name, { removals, question: oldRulesQuestion })) {
      removed.push(name);
    }
  }
  return removed;
}

/** Removes the rules and grants of servers. Returns the changed files, and the removed rules. */
export async function removeRules(
  app: App,
  names: readonly string[],
): Promise<{ readonly paths: readonly string[]; readonly ended: readonly ServerRules[] }> {
  const paths: string[] = [];
  const ended: ServerRules[] = [];
  // One after another, because the removals of one server change the lists of the next.
  for (const name of names) {
    const removals = await ruleRemovals(app, name);
    // guard: imported-rules
    paths.push(...await writeRemovals(app, removals));
    ended.push(...removals.map((one) => one.ended));
  }
  return { paths, ended };
}

/** Removes the pins of a server that no file defines any longer, so that a later one gets its own. */
export async function removePins(app: App, name: string): Promise<void> {
  if (!app.directory.isTaken(name)) await (await app.pins()).remove([name]);
}

/** Removes rules and grants. Returns the changed files. */
export async function writeRemovals(
  app: App,
  removals: readonly RuleRemoval[],
): Promise<readonly string[]> {
  const changes = await Promise.all(removals.map((removal) => planChange(app, removal)));
  for (const { write } of changes) await write();
  await app.policy.reload();
  return changes.map(({ path }) => path);
}

/** Returns texts about rules and grants of earlier servers that are removed. */
export async function removalTexts(
  app: App,
  removals: readonly RuleRemoval[],
): Promise<readonly string[]> {
  if (removals.length === 0) return [];
  const shown = await changeTexts(app, removals);
  return ["These rules and grants of an earlier server with this name are removed:", ...shown];
}

async function changeTexts(
  app: App,
  removals: readonly RuleRemoval[],
): Promise<readonly string[]> {
  return await Promise.all(removals.map(async (removal) => (await planChange(app, removal)).shown));
}

/** Returns the question about the rules of a server that the user removes. */
function removalQuestion(parts: string, name: string): string {
  return `Remove the ${parts} of ${name}, too?`;
}

/** Returns the question about rules for the name of a new server. */
function oldRulesQuestion(parts: string, name: string): string {
  return `You have ${parts} for an earlier server ${name}. They also apply to the new one. Remove them?`;
}

/**
 * Offers to sign out at the earlier address of a replaced server. The new server cannot use the old
 * sign-in, because a sign-in belongs to its address.
 */
export async function offerSignOut(
  context: CommandContext,
  { name, url }: { readonly name: string; readonly url: string | undefined },
): Promise<readonly string[]> {
  const { logins, machine } = await context.app.callPath();
  const all = await (await machine.signIns()).all();
  const newUrl = url === undefined ? undefined : URL.parse(url)?.href;
  const oldSignIns = all.filter((signIn) =>
    signIn.server === name && URL.parse(signIn.url)?.href !== newUrl
  );
  if (oldSignIns.length === 0) return [];
  const addresses = oldSignIns.map((signIn) => visible(signIn.url, 300)).join(", ");
  if (!await agrees(`You are signed in at ${addresses}. Sign out there?`, context)) return [];
  await logins.end(name, context.signal);
  return [`Signed out at ${addresses}`];
}

/** Returns the error for a name that no file of the user defines. */
export function undefinedServer(app: App, name: string, names: readonly string[]) {
  const why = "no file of yours defines it";
  return app.builtins.has(name)
    ? usage(
      `Cannot remove ${quoted(name)}: ${why}`,
      `It comes with PML; \`pml deny ${name}\` stops it`,
    )
    : unknownNameError("remove", name, { why, known: names });
}
