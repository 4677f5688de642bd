/**
 * `pml init`: sets up a workspace for the client, and stores the person's key.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { defaultRules } from "../config/rules.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { type ClientEdit, editClientText, ENTRY, HTTP_ENTRY } from "./_client_file.ts";
import { usage } from "./_failure.ts";
import { backUp, place, readInside, type TextFile } from "./_files.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { make } from "./_import_file.ts";
import { askReply, isTerminal } from "./_terminal.ts";

const CLIENT_FILE = ".mcp.json";
const TODO = "Your client does not start PML yet: give it the command `pml stdio`";

const SERVE = `
Run \`pml serve\` in this folder; it says where its token is. The client needs the token in PML_TOKEN`;

/** One file, whether it was changed, and why. */
interface Step {
  readonly path: string;
  readonly changed: boolean;
  readonly said: string;
  /** What the person still has to do. */
  readonly todo?: string;
}

/** The client's file, if it exists, and the edit that it needs. */
interface Client {
  readonly path: string;
  readonly found: TextFile | undefined;
  readonly edit: ClientEdit | undefined;
}

/** The context of a step, and whether it may ask the person. */
interface Asking extends CommandContext {
  readonly ask: boolean;
}

/** Sets up the workspace. A second run changes nothing. */
export async function init(
  at: CommandContext,
  { yes = false, http = false }: Typed,
): Promise<Shown> {
  if (!yes && !isTerminal()) {
    throw usage("Cannot set up: there is no terminal to ask on", "Take the defaults with --yes");
  }
  const { root, found } = at.app.loaded().workspace;
  if (found === "default") {
    throw usage(
      "Cannot set up: the current folder is no project",
      "Run it in your project's folder",
    );
  }
  const asking = { ...at, ask: !yes };
  // All files are read and checked before one is written.
  const client = await readClient(root, http);
  const steps = [
    await writeClient(client, asking),
    await writeWorkspace(at.app),
  ];
  return {
    value: { workspace: root, steps },
    text: steps.map(({ path, said }) => `${path}: ${said}`).join("\n"),
    note: noteOf(steps, root) + (http ? SERVE : ""),
  };
}

/** Returns the next step for the person. An open task comes before the note to start the client. */
function noteOf(steps: readonly Step[], root: string): string {
  const todos = steps.flatMap(({ todo = [] }) => todo);
  if (todos.length > 0) return `\n${todos.join("\n")}`;
  const changed = steps.some((step) => step.changed);
  return changed ? `\nNow start your client in ${root}` : "Nothing was changed";
}

async function readClient(root: string, http: boolean): Promise<Client> {
  const path = join(root, CLIENT_FILE);
  const found = await readInside(root, CLIENT_FILE);
  return {
    path,
    found,
    edit: await editClientText(found?.text ?? "{}\n", path, http ? HTTP_ENTRY : ENTRY),
  };
}

async function writeClient(
  { path, found, edit }: Client,
  { app: { policy: { store } }, ask, signal }: Asking,
): Promise<Step> {
  if (edit === undefined) return { path, changed: false, said: "has PML already" };
  const { text, before } = edit;
  if (found === undefined) {
    await store.whileEditing(path, () => place(path, { text, mode: 0o644 }));
    return { path, changed: true, said: "created, with PML as a server" };
  }
  // Somebody else wrote this entry. PML does not replace it, whatever it starts.
  if (before !== undefined) {
    const said = `left as it is, because it has another server "pml": ${visible(before, 2_000)}`;
    return { path, changed: false, said, todo: `${TODO}, under another name` };
  }
  const reply = ask ? await askReply(`Add PML to ${path}?`, { signal }) : "Yes";
  if (reply === "cancelled") {
    throw new PmlError("CANCELLED", "Cannot set up: you stopped it", {
      hint: "Nothing was written",
    });
  }
  if (reply !== "Yes") return { path, changed: false, said: "left as it is", todo: TODO };
  const backup = await store.whileEditing(found.path, async () => {
    const copy = await backUp(found);
    await place(found.path, { text, mode: found.mode, over: found.text });
    return copy;
  });
  return { path, changed: true, said: `PML was added; the file before is ${backup}` };
}

async function writeWorkspace(app: App): Promise<Step> {
  const { root, file } = app.loaded().workspace;
  const path = join(root, FILE_NAME);
  if (file !== undefined) {
    const but = app.config().trusted ? "" : ", and not trusted: run `pml trust`";
    return { path, changed: false, said: `is there already${but}` };
  }
  await app.policy.store.whileEditing(path, () => make(app, { path, text: workspaceText() }));
  return { path, changed: true, said: "created with the default rules, and trusted" };
}

function workspaceText(): string {
  const { allow, ask, deny } = defaultRules();
  const texts = (rules: typeof allow) => rules.map(({ pattern }) => pattern.text);
  const permissions = { allow: texts(allow), ask: texts(ask), deny: texts(deny) };
  return `${JSON.stringify({ version: 1, workspace: ".", permissions }, null, 2)}\n`;
}
