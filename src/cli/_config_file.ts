/**
 * A change of `config.yaml` or of the workspace file. It is first shown as removed and added lines.
 * When it is written, the file keeps the trust that it had.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import { type CommandContext, type Shown, unchanged } from "./_command_context.ts";
import { findTarget, make, replace, type TargetFile, textWith } from "./_import_file.ts";
import { changed } from "./_files.ts";
import { isTyped, needPerson } from "./_terminal.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { tell } from "./out.ts";

/** A change of a file that is not written yet. */
export interface FileChange {
  readonly path: string;
  /** The removed and added lines; empty if nothing changes. */
  readonly diff: string;
  /** The path with the lines, as the user is shown them. */
  readonly shown: string;
  /** The whole new text. */
  readonly text: string;
  readonly write: () => Promise<void>;
}

/**
 * Returns how a file would change. Throws if it is a workspace file that the user does not trust.
 */
export async function changeOf(
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
      if (found === undefined) return await make(app, { path, text });
      const trusted = await app.policy.store.isTrusted(path, sha256(found.text));
      if (workspace) await assertTrusted(app, target);
      await replace(app, { path, found, text, trusted });
    });
  // No file is made only to remove something from it.
  const isNone = found === undefined && settings.every(({ entry }) => entry === undefined);
  const diff = isNone ? "" : changed(found?.text ?? "", text).join("\n");
  return { path, diff, shown: `${path}\n${diff}`, text, write };
}

/**
 * Sets one value in the user's `config.yaml` and returns its path. Makes the file if there is
 * none.
 */
export async function setForPerson(
  app: App,
  { keys, value }: { readonly keys: YamlSetting["at"]; readonly value: unknown },
): Promise<string> {
  const settings = [{ at: keys, entry: value }];
  const { path, diff, write } = await changeOf(app, { workspace: false, settings });
  if (diff !== "") await write();
  return path;
}

/** Shows a change, and writes it if the user types "write". */
export async function agreed(
  { signal }: CommandContext,
  { change: { path, diff, shown, write }, said = "", about, json = false, also, reach, isRemoval }:
    {
      readonly change: FileChange;
      /** Where a rule is written, and where it applies. */
      readonly reach?: string;
      /** Whether the change removes a rule. */
      readonly isRemoval?: boolean;
      /** More lines that the user must see before the answer. */
      readonly said?: string | undefined;
      /** The other members of the JSON output, next to the file and its change. */
      readonly about: object;
      /** Whether the value is only shown. */
      readonly json?: boolean | undefined;
      /** As `needPerson` takes it. */
      readonly also?: string;
    },
): Promise<Shown> {
  const value = { path, ...about, diff };
  if (json) return { value };
  if (diff === "") {
    return { value, text: said, note: `${path} has this already: nothing was changed` };
  }
  needPerson(`Cannot write to ${path}`, also);
  tell(shown);
  if (said !== "") tell(said);
  const where = reach && `${isRemoval ? "removed from the rules" : "written"} ${reach}`;
  if (where !== undefined) tell(`This is ${where}`);
  if (!await isTyped("write", "write exactly this", signal)) return unchanged(value);
  await write();
  return { value, text: where === undefined ? `${path}: written` : capitalized(where) };
}

/** Throws if a workspace file is not trusted as it is. */
export async function assertTrusted(app: App, { path, found }: TargetFile): Promise<void> {
  if (found === undefined) return;
  const hash = sha256(found.text);
  // A file that PML_TRUST lists is trusted only with the content that was read at the start.
  const counts = app.config().trusted && app.loaded().file?.hash === `sha256-${hash}`;
  if (counts || await app.policy.store.isTrusted(path, hash)) return;
  const message = `Cannot write to ${quoted(path, 400)}: it is not the file that was trusted`;
  throw new PmlError("WORKSPACE_UNTRUSTED", message, {
    hint: "Look at it and trust it with `pml trust`, then try again",
  });
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
