/**
 * The change that `pml learn` proposes for the file that defines a server, as removed and added lines.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { planChange } from "./_config_file.ts";
import { diffLines } from "./_files.ts";
import { findDefinition, textWith } from "./_undoable_edits.ts";

type Machine = Awaited<ReturnType<App["callPath"]>>["machine"];
type Grants = Parameters<Machine["tryOut"]>[1]["grants"];

/** A proposed change of a file. */
export interface Proposal {
  readonly path: string;
  readonly diff: string;
  /** The change as text, or the instructions to change the file by hand. */
  readonly text: string;
  /** Writes the change; undefined if nothing changes, or no file of the user defines the server. */
  readonly write: (() => Promise<void>) | undefined;
}

/** Returns the change that confines a server to these grants and sets these variables. */
export async function proposeChange(
  app: App,
  { server, grants, set }: {
    readonly server: ServerDefinition;
    readonly grants: Grants;
    readonly set: Readonly<Record<string, string>>;
  },
): Promise<Proposal> {
  const { name } = server;
  const { workspace, target: { path, found }, title, section } = await findDefinition(app, server);
  if (found === undefined || section === undefined) {
    const env = Object.keys(set).length === 0 ? "" : `, "env": ${JSON.stringify(set)}`;
    const entry = JSON.stringify({ [name]: grants });
    const text = `Its definition is not in ${path}. Add to it: "confine": true${env}` +
      (Object.keys(grants).length === 0 ? "" : `, and to .pml.json: "grants": ${entry}`);
    return { path, diff: "", text, write: undefined };
  }
  const settings = [
    { at: [section, title, "confine"] as const, entry: true },
    ...Object.entries(set).map(([variable, entry]) => ({
      at: [section, title, "env", variable] as const,
      entry,
    })),
    ...(Object.keys(grants).length === 0 ? [] : [{ at: ["grants", name] as const, entry: grants }]),
  ];
  let { text } = found;
  const diffs: string[] = [];
  for (const setting of settings) {
    const after = await textWith({ path, found: { ...found, text } }, [setting]);
    diffs.push(...diffLines(text, after));
    text = after;
  }
  const { write } = await planChange(app, { workspace, settings });
  const diff = diffs.join("\n");
  if (diff === "") return { path, diff, text: `${path} has this already`, write: undefined };
  return { path, diff, text: `${path}\n${diff}`, write };
}
