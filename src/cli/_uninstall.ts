/**
 * `pml uninstall`: shows PML's files on this machine, and removes them if the user agrees.
 *
 * @module
 */

import { join } from "node:path";
import { namesInKeyring, removeFromKeyring } from "../oauth/outside_keys.ts";
import { fileSize } from "../core/amounts.ts";
import { memberOf, visible } from "../core/json.ts";
import { infoAt, isGone } from "../io/place.ts";
import { namesIn, unlessGone } from "../io/private_files.ts";
import { clientStates, undoSetups } from "./_client_setup.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { agrees, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

/**
 * The files that PML writes into its home, by the name before the first dot. Other files stay.
 */
const KEPT: Readonly<Record<string, string>> = {
  answered: "questions that were answered",
  api_key: "your PML_API_KEY",
  approved: "calls that you approved",
  cache: "what registries answered",
  capabilities: "capabilities that you saved",
  clients: "clients that used PML",
  config: "your settings, servers and rules",
  data: "data of servers",
  declared: "capabilities that servers declared",
  embedder: "what search by meaning needs",
  hub_routing: "which servers run in the cloud",
  imports: "copies for `--undo`",
  journal: "the journal of calls",
  key_sources: "where your other keys are",
  keys: "your keys",
  lists: "lists of tools",
  locks: "locks",
  logs: "stderr of servers",
  memory: "memory of tool use",
  meta: "what modules say of themselves",
  models: "embedding models",
  names: "names of the tools of servers",
  notified: "when a notification was last shown",
  pending: "calls that wait for you",
  pins: "servers and tools that you approved",
  read: "descriptions of tools that you read",
  replicas: "what processes of `pml serve` share",
  sampling: "what models used today",
  sandbox: "files of running sandboxes",
  serve_token: "the token of `pml serve`",
  servers: "installed packages",
  sessions: "answers until a client disconnects",
  shown: "tools that your answers for several tools covered",
  sign_ins: "sign-ins at servers",
  signed_in: "sign-ins at servers",
  trust: "files that you trust",
  types: "types of tools",
  unresponsive: "servers that do not answer a running PML",
  valid: "which of your files were checked",
  windows: "open windows",
};

/** The reason why a file stays. */
const REASON = "not a file of PML, or written since";

/** Shows PML's files, and removes them. */
export async function uninstall(at: CommandContext, { json }: Typed): Promise<Shown> {
  const { app } = at;
  const { home } = app.config();
  const keptFiles = [];
  const others: string[] = [];
  for (const name of await namesIn(home)) {
    const what = memberOf(KEPT, name.split(".", 1)[0] ?? "");
    const path = join(home, name);
    if (what === undefined) others.push(path);
    else keptFiles.push({ path, what, bytes: await bytesOf(path) });
  }
  const keyring = namesInKeyring(home, app.log);
  const clients = (await clientStates(app)).filter(({ startsPml }) => startsPml)
    .map(({ client }) => client);
  const value = { home, kept: keptFiles, keyring, others, clients };
  if (json) return { value };
  if (keptFiles.length + clients.length === 0) {
    return { value, text: `PML keeps nothing in ${home}` };
  }
  needPerson("Cannot remove the files of PML");
  for (const { path, what, bytes } of keptFiles) {
    tell(`${visible(path)}: ${what}, ${fileSize(bytes)}`);
  }
  if (keyring.length > 0) tell(`In the keyring: ${keyring.join(", ")}`);
  if (clients.length > 0) tell(`These clients start PML: ${clients.join(", ")}`);
  const facts = [
    "Your projects keep their files, .pml.json and pml.lock",
    "End every PML that runs first",
  ];
  if (!await agrees("Remove all of this for good?", at, facts)) {
    return { value, text: "Nothing was removed", code: 1 };
  }
  const undone = clients.length === 0 ? [] : [
    (await undoSetups(at, { words: [], yes: true }).catch(() => undefined))?.text ??
      `Remove the entry "pml" from the files of ${clients.join(", ")}`,
  ];
  // The journal records this before it is removed, and is not created again.
  await (await app.callPath())[Symbol.asyncDispose]();
  // Before the files that name them.
  const failures: string[] = [];
  for (const name of keyring) {
    await removeFromKeyring(app, name).catch(({ message }) => failures.push(message));
  }
  for (const path of [...keptFiles.map(({ path }) => path), join(home, "journal")]) {
    await Deno.remove(path, { recursive: true }).catch((error) => {
      if (!isGone(error)) failures.push(error.message);
    });
  }
  // Another PML may have written files that the user has not seen.
  const names = await namesIn(home);
  if (names.length === 0) await Deno.remove(home).catch(unlessGone);
  const lines = [
    ...failures,
    ...undone,
    "Removed",
    ...names.map((name) => `Left: ${visible(join(home, name))} (${REASON})`),
    "Remove the program: deno uninstall -g pml, or npm uninstall -g @casys/pml",
  ];
  return { value, text: lines.join("\n"), code: failures.length === 0 ? 0 : 1 };
}

/** Returns the bytes of a file or a folder. Files that another PML removes meanwhile count 0. */
async function bytesOf(path: string): Promise<number> {
  const { isDirectory = false, size = 0 } = infoAt(path) ?? {};
  if (!isDirectory) return size;
  let bytes = 0;
  for (const name of await namesIn(path)) bytes += await bytesOf(join(path, name));
  return bytes;
}
