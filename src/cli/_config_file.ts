/**
 * A change of `config.yaml` or of the workspace file that nobody agreed to yet: shown as lines that
 * go and come, then written with the trust that the file has.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import type { CommandContext, Shown } from "./_command_context.ts";
import { findTarget, make, replace, type Target, textWith } from "./_import_file.ts";
import { changed } from "./_learn_file.ts";
import { askWord, needPerson } from "./_terminal.ts";
import type { Setting } from "./_yaml_text.ts";
import { tell } from "./out.ts";

/** A change of a file. */
export interface Change {
  readonly path: string;
  /** The lines that go and those that come; empty where nothing changes. */
  readonly diff: string;
  readonly write: () => Promise<void>;
}

/** Says how a file changes; a workspace file has to be the one that the person trusts. */
export async function changeOf(
  app: App,
  { workspace, settings }: { readonly workspace: boolean; readonly settings: readonly Setting[] },
): Promise<Change> {
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
  // A file is not made to take something out of it.
  const isNone = found === undefined && settings.every(({ entry }) => entry === undefined);
  return { path, diff: isNone ? "" : changed(found?.text ?? "", text).join("\n"), write };
}

/** Sets what stands under keys; gives the path of the file, which is made where there is none. */
export async function setForPerson(
  app: App,
  { keys, value }: { readonly keys: Setting["at"]; readonly value: unknown },
): Promise<string> {
  const settings = [{ at: keys, entry: value }];
  const { path, diff, write } = await changeOf(app, { workspace: false, settings });
  if (diff !== "") await write();
  return path;
}

/** Shows a change, and writes it at the person's typed word. */
export async function agreed(
  { signal }: CommandContext,
  { change, command, said = "", value }: {
    readonly change: Change;
    /** What is typed to come here again. */
    readonly command: string;
    /** What else the person has to know. */
    readonly said?: string;
    readonly value: unknown;
  },
): Promise<Shown> {
  const { path, diff, write } = change;
  if (diff === "") {
    return { value, text: said, note: `${path} says so already: nothing was changed` };
  }
  needPerson(`Cannot write to ${path}`, command);
  tell(`${path}\n${diff}`);
  if (said !== "") tell(said);
  if (await askWord('Type "write" to write exactly this', signal) !== "write") {
    return { value, text: "Nothing was changed", code: 1 };
  }
  await write();
  return { value, text: `${path}: written` };
}

async function assertTrusted(app: App, { path, found }: Target): Promise<void> {
  if (found === undefined) return;
  const hash = sha256(found.text);
  // What PML_TRUST lists is trusted as it was read.
  const counts = app.config().trusted && app.loaded().file?.hash === `sha256-${hash}`;
  if (counts || await app.policy.store.isTrusted(path, hash)) return;
  const message = `Cannot write to ${quoted(path, 400)}: it is not the file that was trusted`;
  throw new PmlError("WORKSPACE_UNTRUSTED", message, {
    hint: "Look at it and trust it with `pml trust`, then try again",
  });
}
