/**
 * Writes the definition of a server into a file of the user, also in place of an earlier one. The
 * rules, grants, pins and sign-ins of the earlier server end with it if the user wants that.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { sha256 } from "../core/hash.ts";
import { type JsonObject, objectOf, quoted, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import type { CommandContext, Typed } from "./_command_context.ts";
import { assertTrusted, changeOf, type FileChange } from "./_config_file.ts";
import { misnamed, usage } from "./_failure.ts";
import { fileNotChanged } from "./_files.ts";
import {
  editFile,
  findTarget,
  findUndo,
  type SectionName,
  SECTIONS,
  type TargetFile,
  textWith,
  valueIn,
} from "./_import_file.ts";
import { type RuleRemoval, ruleRemovals } from "./_rules.ts";
import { agrees } from "./_terminal.ts";

/** A definition of a server in a file of the user. */
export interface PresentEntry {
  /** Whether the workspace's file has it. */
  readonly workspace: boolean;
  readonly path: string;
  readonly section: SectionName;
  /** The name in the file, which may differ from the server's name. */
  readonly title: string;
  readonly entry: JsonObject;
}

/**
 * Finds the definition of a server in the user's file or in the workspace's; undefined if there is
 * none. `names` has the names of all servers of the files. Throws if both files define it.
 */
export async function presentEntry(
  app: App,
  name: string,
  { workspace, tried }: { readonly workspace: boolean | undefined; readonly tried: string },
): Promise<{ readonly present: PresentEntry | undefined; readonly names: readonly string[] }> {
  const entries: PresentEntry[] = [];
  const names: string[] = [];
  for (const place of workspace === undefined ? [false, true] : [workspace]) {
    const target = await findTarget(app, place);
    const value = objectOf(await valueIn(target));
    const all = SECTIONS.flatMap((section) =>
      Object.entries(objectOf(value[section])).map(([title, entry]) => ({
        workspace: place,
        path: target.path,
        section,
        title,
        entry: objectOf(entry),
      }))
    );
    names.push(...all.map(({ title }) => title));
    const own = all.find(({ title }) => title === name || serverSlug(title) === name);
    if (own !== undefined) entries.push(own);
  }
  const [present, other] = entries;
  if (present !== undefined && other !== undefined) {
    throw usage(
      `Cannot ${tried} ${quoted(name)}: both ${present.path} and ${other.path} define it`,
      "Choose it with --workspace or --no-workspace",
    );
  }
  return { present, names };
}

/** Returns the definition that `--replace` replaces; undefined without the option, or if there is none. */
export async function replacedEntry(
  { app }: CommandContext,
  name: string,
  { replace, workspace }: Typed,
): Promise<PresentEntry | undefined> {
  if (replace !== true) return undefined;
  return (await presentEntry(app, name, { workspace, tried: "replace" })).present;
}

/** Returns the settings that remove a definition from its file. */
export function removalOf({ section, title }: PresentEntry): readonly YamlSetting[] {
  return [{ at: [section, title], entry: undefined }];
}

/** A definition to write, and its place. */
interface NewDefinition {
  readonly name: string;
  readonly section: SectionName;
  readonly entry: object;
  readonly workspace: boolean;
  /** The definition that is replaced. */
  readonly present?: PresentEntry | undefined;
  /** More settings of the same file, such as grants. */
  readonly more?: readonly YamlSetting[];
}

/** A definition that is not written yet. */
export class DefinitionEdit {
  readonly #at: CommandContext;
  readonly #options: NewDefinition;
  readonly #target: TargetFile;
  readonly #settings: readonly YamlSetting[];
  /** The change, as the user is shown it. */
  readonly change: FileChange;
  #backup: string | undefined;
  #removals: readonly RuleRemoval[] = [];

  private constructor(
    at: CommandContext,
    { options, target, settings, change }: {
      readonly options: NewDefinition;
      readonly target: TargetFile;
      readonly settings: readonly YamlSetting[];
      readonly change: FileChange;
    },
  ) {
    this.#at = at;
    this.#options = options;
    this.#target = target;
    this.#settings = settings;
    this.change = change;
  }

  /** Reads the file, and returns the edit. Throws if it is a workspace file without trust. */
  static async of(at: CommandContext, options: NewDefinition): Promise<DefinitionEdit> {
    const { name, section, entry, workspace, present, more = [] } = options;
    const isMoved = present !== undefined &&
      (present.section !== section || present.title !== name);
    const settings = [
      ...isMoved ? removalOf(present) : [],
      { at: [section, name], entry } as const,
      ...more,
    ];
    const target = await findTarget(at.app, workspace);
    const change = await changeOf(at.app, { workspace, settings });
    if (change.text !== await textWith(target, settings)) {
      throw fileNotChanged(target.path, "it was changed meanwhile");
    }
    return new DefinitionEdit(at, { options, target, settings, change });
  }

  /** Whether the file has this definition already, so that its rules and pins stay. */
  get #isSame(): boolean {
    return this.change.diff === "";
  }

  /** Lines about a definition that is replaced: its settings that the new one does not have. */
  get facts(): readonly string[] {
    const { present, entry } = this.#options;
    if (this.#isSame) return ["The definition stays as it is"];
    const lost = Object.keys(present?.entry ?? {}).filter((key) =>
      !["type", "command", "args", "url", "path", "headers", "env"].includes(key) &&
      !Object.hasOwn(entry, key)
    );
    return lost.length === 0
      ? []
      : [`The new definition does not have: ${visible(lost.join(", "), 400)}`];
  }

  /** The verb for the edit. */
  get does(): "add" | "replace" {
    return this.#options.present === undefined ? "add" : "replace";
  }

  /**
   * Asks what else of the earlier server ends. Call it before `write`, so that the new server never
   * runs by rules that the user removes.
   */
  async askRemovals(): Promise<void> {
    const { name, present } = this.#options;
    if (present === undefined || this.#isSame) return;
    const removals = await ruleRemovals(this.#at.app, name);
    if (removals.length === 0) return;
    if (await agreesToRemove(this.#at, name, removals)) this.#removals = removals;
  }

  /** Writes the definition. Keeps a copy of a file in which a definition is replaced. */
  async write(): Promise<void> {
    const { app } = this.#at;
    const { name, section, workspace, present } = this.#options;
    if (this.#isSame) return;
    if (present === undefined) {
      await this.change.write();
      return await app.policy.reload();
    }
    if (workspace) await assertTrusted(app, this.#target);
    for (const removal of this.#removals.filter((one) => one.workspace !== workspace)) {
      await (await changeOf(app, removal)).write();
    }
    const own = this.#removals.filter((one) => one.workspace === workspace);
    const text = await textWith(this.#target, [
      ...own.flatMap(({ settings }) => settings),
      ...this.#settings,
    ]);
    const { section: from, title } = present;
    const replaced = { name, into: section, section: from, title };
    const { backup } = await editFile(app, this.#target, { text, replaced });
    this.#backup = backup;
    // The new server is pinned by itself, as after `pml remove` and `pml add`.
    await (await app.pins()).remove([name]);
    await app.policy.reload();
  }

  /** Lines about the copy of the file before. */
  get notes(): readonly string[] {
    const { workspace } = this.#options;
    return this.#backup === undefined ? [] : [
      `The file before is ${this.#backup}; \`pml add --undo${
        workspace ? " --workspace" : ""
      }\` brings the earlier definition back`,
    ];
  }

  /** Takes the definition out again, and puts the earlier one back. */
  async takeOut(): Promise<void> {
    const { app } = this.#at;
    const { name, section, workspace, present, more = [] } = this.#options;
    if (this.#isSame) return;
    if (present !== undefined) {
      await (await findUndo(app, await findTarget(app, workspace))).run();
    } else if (this.#target.found === undefined && await this.#isAlone()) {
      // The file was made for the definition.
      const { path, text } = this.change;
      await app.policy.store.move(path, { from: sha256(text), to: [] });
      await Deno.remove(path);
    } else {
      const settings = [
        { at: [section, name], entry: undefined } as const,
        ...more.map(({ at }) => ({ at, entry: undefined })),
      ];
      await (await changeOf(app, { workspace, settings })).write();
    }
    await app.policy.reload();
  }

  /** Returns whether the file has nothing but the definition. */
  async #isAlone(): Promise<boolean> {
    const { found } = await findTarget(this.#at.app, this.#options.workspace);
    return found?.text === this.change.text;
  }
}

/** Shows the rules and grants of a server, and asks whether they end with it. */
export async function agreesToRemove(
  at: CommandContext,
  name: string,
  removals: readonly RuleRemoval[],
): Promise<boolean> {
  const shown = await Promise.all(removals.map(async (one) => (await changeOf(at.app, one)).shown));
  const parts = [...new Set(removals.flatMap(({ parts }) => parts))].join(" and ");
  return await agrees(`Remove the ${parts} of ${name}, too?`, at, shown);
}

/**
 * Offers to sign out at the earlier address of a server that was replaced. A sign-in belongs to its
 * address, so the new server does not use it in any case.
 */
export async function offerSignOut(
  at: CommandContext,
  { name, url }: { readonly name: string; readonly url: string | undefined },
): Promise<readonly string[]> {
  const { logins, machine } = await at.app.callPath();
  const all = await (await machine.signIns()).all();
  const own = url === undefined ? undefined : URL.parse(url)?.href;
  const old = all.filter((one) => one.server === name && URL.parse(one.url)?.href !== own);
  if (old.length === 0) return [];
  const places = old.map((one) => visible(one.url, 300)).join(", ");
  if (!await agrees(`You are signed in at ${places}. Sign out there?`, at)) return [];
  await logins.end(name, at.signal);
  return [`Signed out at ${places}`];
}

/** Returns the error for a name that no file of the user defines. */
export function undefinedServer(app: App, name: string, names: readonly string[]) {
  const why = "no file of yours defines it";
  return app.builtins.has(name)
    ? usage(
      `Cannot remove ${quoted(name)}: ${why}`,
      `It comes with PML; \`pml deny ${name}\` stops it`,
    )
    : misnamed("remove", name, { why, known: names });
}
