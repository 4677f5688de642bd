/**
 * `pml init`: sets up a workspace for the client, and the person's key.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { KEY_FILE } from "../config/keys.ts";
import { defaultRules } from "../config/rules.ts";
import { exists, FILE_NAME } from "../config/workspace.ts";
import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { type ClientEdit, editClientText } from "./_client_file.ts";
import { usage } from "./_failure.ts";
import { backUp, type Found, place, readInside } from "./_files.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { make } from "./_import_file.ts";
import { askReply, askSecret, isTerminal } from "./_terminal.ts";

const CLIENT_FILE = ".mcp.json";
const TODO = "Your client does not start PML yet: give it the command `pml stdio`";

/** What became of a file, and why. */
interface Step {
  readonly path: string;
  readonly changed: boolean;
  readonly said: string;
  /** What the person has to do before it works. */
  readonly todo?: string;
}

/** The client's file as it is, if it is, and what it needs. */
interface Client {
  readonly path: string;
  readonly found: Found | undefined;
  readonly edit: ClientEdit | undefined;
}

interface Asking extends CommandContext {
  readonly ask: boolean;
}

/** Sets up the workspace; a second run changes nothing. */
export async function init(at: CommandContext, { yes = false }: Typed): Promise<Shown> {
  if (!yes && !isTerminal()) {
    throw usage("Cannot set up: there is no terminal to ask on", "Take the defaults with --yes");
  }
  const { root } = at.app.loaded().workspace;
  const asking = { ...at, ask: !yes };
  // Everything is read and checked before anything is written.
  const client = await readClient(root);
  const steps = [
    await keepKey(asking),
    await writeClient(client, asking),
    await writeWorkspace(at.app),
  ];
  return {
    value: { workspace: root, steps },
    text: steps.map(({ path, said }) => `${path}: ${said}`).join("\n"),
    note: noteOf(steps, root),
  };
}

/** Says what comes next; a client that does not know PML yet comes before all else. */
function noteOf(steps: readonly Step[], root: string): string {
  const todos = steps.flatMap(({ todo = [] }) => todo);
  if (todos.length > 0) return `\n${todos.join("\n")}`;
  const changed = steps.some((step) => step.changed);
  return changed ? `\nNow start your client in ${root}` : "Nothing was changed";
}

async function readClient(root: string): Promise<Client> {
  const path = join(root, CLIENT_FILE);
  const found = await readInside(root, CLIENT_FILE);
  return { path, found, edit: await editClientText(found?.text ?? "{}\n", path) };
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
  // It is somebody's own, whatever it starts, and this is no place to judge it.
  if (before !== undefined) {
    const said = `left as it is, for it has another server "pml": ${visible(before, 2_000)}`;
    return { path, changed: false, said, todo: `${TODO}, under another name` };
  }
  if (ask && await askReply(`Add PML to ${path}?`, { signal }) !== "Yes") {
    return { path, changed: false, said: "left as it is", todo: TODO };
  }
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

/** The key lies in the PML home, never in the workspace. */
async function keepKey({ app, ask, signal }: Asking): Promise<Step> {
  const { home } = app.config();
  const path = join(home, KEY_FILE);
  if (app.loaded().environment.apiKey !== undefined) {
    return { path, changed: false, said: "not needed: PML_API_KEY is set" };
  }
  if (exists(path)) return { path, changed: false, said: "holds a key already" };
  const asked = "PML_API_KEY for cloud tools (Enter to skip: local tools only)";
  const key = ask ? await askSecret(asked, signal) : "";
  if (key === undefined) {
    throw new PmlError("CANCELLED", "Cannot set up: you broke off", {
      hint: "Nothing was written",
    });
  }
  if (key === "") {
    return { path, changed: false, said: "not made, for there is no key: local tools only" };
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw usage("Cannot keep the key: it holds blanks or other characters", "Paste only the key");
  }
  const text = `${key}\n`;
  await app.policy.store.whileEditing(path, () => place(path, { text, mode: 0o600 }));
  return { path, changed: true, said: "keeps your key, readable for you alone" };
}
