/**
 * A change of `config.yaml` or of the workspace file. The user first sees the removed and added lines.
 * A written file stays trusted if it was trusted before.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import { type CommandContext, type CommandOutput, unchanged } from "./_command_context.ts";
import {
  createFile,
  findTarget,
  replaceFile,
  type TargetFile,
  textWith,
} from "./_undoable_edits.ts";
import { diffLines } from "./_files.ts";
import { assertTerminal, confirmWord } from "./_terminal.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { tell } from "./out.ts";

/** A change of a file that is not written yet. */
export interface FileChange {
  readonly path: string;
  /** The removed and added lines; empty if nothing changes. */
  readonly diff: string;
  /** The path and the lines, as text for the user. */
  readonly shown: string;
  /** The whole new text. */
  readonly text: string;
  readonly write: () => Promise<void>;
}

/** Returns the change of a file. Throws if it is a workspace file that the user does not trust. */
export async function planChange(
  app: App,
  { workspace, settings }: {
    readonly workspace: boolean;
    readonly settings: readonly YamlSetting[];
  },
): Promise<FileChange> {
  const target = await findTarget(app, workspace);
  const { path, found } = target;
  if (workspace) await assertTrusted(app, target);
  const text = await textWith(target, settings);
  const write = () =>
    app.policy.store.whileEditing(path, async () => {
      if (found === undefined) return await createFile(app, { path, text });
      const trusted = await app.policy.store.isTrusted(path, sha256(found.text));
      if (workspace) await assertTrusted(app, target);
      await replaceFile(app, { path, found, text, trusted });
    });
  // Does not create a file only to remove something from it.
  const hasNoChange = found === undefined && settings.every(({ entry }) => entry === undefined);
  const diff = hasNoChange ? "" : diffLines(found?.text ?? "", text).join("\n");
  return { path, diff, shown: `${path}\n${diff}`, text, write };
}

/**
 * Sets one value in the user's `config.yaml`, and returns the path of this file. Creates the file if
 * it is missing.
 */
export async function setForPerson(
  app: App,
  { keys, value }: { readonly keys: YamlSetting["at"]; readonly value: unknown },
): Promise<string> {
  const settings = [{ at: keys, entry: value }];
  const { path, diff, write } = await planChange(app, { workspace: false, settings });
  if (diff !== "") await write();
  return path;
}

/** Shows a change, and writes it if the user types "write". */
export async function confirmChange(
  { signal }: CommandContext,
  {
    change: { path, diff, shown, write },
    details = "",
    about,
    json = false,
    also,
    reach,
    isRemoval,
  }: {
    readonly change: FileChange;
    /** If the change is a rule: where it is written, and where it applies. */
    readonly reach?: string;
    /** Whether the change removes a rule. */
    readonly isRemoval?: boolean;
    /** More lines that the user sees before the answer. */
    readonly details?: string | undefined;
    /** Members of the JSON output, in addition to the path and the diff. */
    readonly about: object;
    /** Whether to print the change as JSON, and not to write it. */
    readonly json?: boolean | undefined;
    /** The end of the error without a terminal: see `assertTerminal()`. */
    readonly also?: string;
  },
): Promise<CommandOutput> {
  const value = { path, ...about, diff };
  if (json) return { value };
  if (diff === "") {
    return { value, text: details, note: `${path} has this already: nothing was changed` };
  }
  assertTerminal(`Cannot write to ${path}`, also);
  tell(shown);
  if (details !== "") tell(details);
  const where = reach && `${isRemoval ? "removed from the rules" : "written"} ${reach}`;
  if (where !== undefined) tell(`This is ${where}`);
  if (!await confirmWord("write", "write exactly this", signal)) return unchanged(value);
  await write();
  return { value, text: where === undefined ? `${path}: written` : capitalized(where) };
}

/** Throws if the user does not trust the present content of a workspace file. */
export async function assertTrusted(app: App, { path, found }: TargetFile): Promise<void> {
  if (found === undefined) return;
  const hash = sha256(found.text);
  // PML_TRUST trusts a file only with the content that PML read.
  const isLoaded = app.config().trusted && app.loaded().file?.hash === `sha256-${hash}`;
  if (isLoaded || await app.policy.store.isTrusted(path, hash)) return;
  const message = `Cannot write to ${quoted(path, 400)}: it is not the file that was trusted`;
  throw new PmlError("WORKSPACE_UNTRUSTED", message, {
    hint: "Look at it and trust it with `pml trust`, then try again",
  });
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
