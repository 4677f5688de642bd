/**
 * `pml init`: sets up a workspace for the client, and the person's key.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { App } from "../app.ts";
import { defaultRules } from "../config/rules.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { type ClientEdit, editClientText, newClientText } from "./_client_file.ts";
import { usage } from "./_failure.ts";
import { backUp, createFile, type Found, isThere, readInside, replaceFile } from "./_files.ts";
import { type Visit, visit } from "./_house.ts";
import { askSecret, askYes, isTerminal } from "./_terminal.ts";
import { print, printJson, tell } from "./out.ts";

/** The options of `pml init`. */
export interface InitOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** What was done with a file, or why nothing was. */
interface Step {
  readonly path: string;
  readonly done: "created" | "changed" | "unchanged" | "skipped";
  readonly said: string;
}

/** What the client's file is, and what it needs. */
type ClientPlan =
  | { readonly kind: "create"; readonly path: string }
  | {
    readonly kind: "edit";
    readonly path: string;
    readonly found: Found;
    readonly edit: ClientEdit;
  };

const CLIENT_FILE = ".mcp.json";
const KEY_FILE = "api_key";

/** Sets up the workspace; a second run changes nothing. */
export async function init({ yes = false, json = false }: InitOptions): Promise<number> {
  if (!yes && !isTerminal()) {
    throw usage("Cannot set up: there is no terminal to ask on", "Take the defaults with --yes");
  }
  return await visit(async (at) => {
    const { root } = at.app.loaded().workspace;
    // Everything is read and checked before anything is written.
    const plan = await planClient(root);
    const asking = { ...at, ask: !yes };
    const steps = [
      await keepKey(asking),
      await writeClient(plan, asking),
      await writeWorkspace(at.app),
    ];
    if (json) printJson({ workspace: root, steps });
    else {
      for (const { path, said } of steps) print(`${path}: ${said}`);
      const idle = steps.every(({ done }) => done === "unchanged" || done === "skipped");
      tell(idle ? "Nothing was changed" : `\nNow start your client in ${root}`);
    }
    return 0;
  }, { trusting: true });
}

interface Asking extends Visit {
  readonly ask: boolean;
}

async function planClient(root: string): Promise<ClientPlan> {
  const path = join(root, CLIENT_FILE);
  const found = await readInside(root, CLIENT_FILE);
  if (found === undefined) return { kind: "create", path };
  return { kind: "edit", path, found, edit: await editClientText(decoded(found), path) };
}

async function writeClient(plan: ClientPlan, asking: Asking): Promise<Step> {
  const { path } = plan;
  if (plan.kind === "create") {
    await createFile(path, { text: newClientText(), mode: 0o644 });
    return { path, done: "created", said: "created, with PML as a server" };
  }
  const { edit, found } = plan;
  if (edit.kind === "same") return { path, done: "unchanged", said: "has PML already" };
  if (!await mayEdit(edit, { ...asking, path })) {
    return { path, done: "skipped", said: "left as it is" };
  }
  const backup = await backUp(found);
  await replaceFile(found, edit.text);
  return { path, done: "changed", said: `PML was added; the file before is ${backup}` };
}

/** Another entry of the name "pml" is somebody's own: it only goes where a person says so. */
async function mayEdit(
  edit: Exclude<ClientEdit, { readonly kind: "same" }>,
  { ask, path, signal }: Asking & { readonly path: string },
): Promise<boolean> {
  if (edit.kind === "add") return !ask || await askYes(`Add PML to ${path}?`, signal);
  tell(`warning: ${path} has another server "pml": ${visible(edit.before, 2_000)}`);
  return ask && await askYes("Put PML in its place?", signal);
}

async function writeWorkspace(app: App): Promise<Step> {
  const { root, file } = app.loaded().workspace;
  const path = join(root, FILE_NAME);
  if (file !== undefined) {
    const said = app.config().trusted
      ? "is there already"
      : "is there, and not trusted: run `pml trust`";
    return { path, done: "unchanged", said };
  }
  const text = workspaceText();
  const hash = createHash("sha256").update(text).digest("hex");
  // Trusted first: these bytes are PML's own, and a crash in between leaves only the record.
  await app.policy.store.trust({ path, hash, servers: {} });
  await createFile(path, { text, mode: 0o644 });
  return { path, done: "created", said: "created with the default rules, and trusted" };
}

function workspaceText(): string {
  const { allow, ask, deny } = defaultRules();
  const texts = (rules: typeof allow) => rules.map(({ pattern }) => pattern.text);
  const permissions = { allow: texts(allow), ask: texts(ask), deny: texts(deny) };
  return `${JSON.stringify({ version: 1, workspace: ".", permissions }, null, 2)}\n`;
}

/** The key lies in the PML home, never in the workspace. */
async function keepKey({ app, ask, signal }: Asking): Promise<Step> {
  const { apiKey } = app.loaded().environment;
  const { home } = app.config();
  const path = join(home, KEY_FILE);
  if (apiKey !== undefined) {
    return { path, done: "unchanged", said: "not needed: PML_API_KEY is set in the environment" };
  }
  if (await isThere(path)) return { path, done: "unchanged", said: "holds a key already" };
  const asked = "PML_API_KEY for cloud tools (Enter to skip: local tools only)";
  const key = ask ? await askSecret(asked, signal) : "";
  if (key === undefined) throw brokenOff();
  if (key === "") return { path, done: "skipped", said: "no key: local tools only" };
  if (!/^[\x21-\x7e]{1,4096}$/.test(key)) {
    throw usage("Cannot keep the key: it holds blanks or other characters", "Paste only the key");
  }
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  await createFile(path, { text: `${key}\n`, mode: 0o600 });
  return { path, done: "created", said: "keeps your key, readable for you alone" };
}

function brokenOff(): PmlError {
  return new PmlError("CANCELLED", "Cannot set up: you broke off", { hint: "Nothing was written" });
}

function decoded({ path, bytes }: Found): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new PmlError("CONFIG_INVALID", `Cannot add PML to "${path}": it is not UTF-8`, {
      hint: "Nothing was changed; mend the file, then run `pml init` again",
      cause,
    });
  }
}
