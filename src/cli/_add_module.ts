/**
 * `pml add FILE`: adds a module of the workspace to `.pml.json`. The same answer of the user approves
 * the code of the module.
 *
 * @module
 */

import { basename, dirname, extname, relative } from "node:path";
import type { Authors } from "../authoring/authors.ts";
import { openAuthors } from "../authoring/open_authors.ts";
import { serverText } from "../config/workspace_lines.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, textOf, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { infoAfterLinks, isInside, realPathIfAny } from "../io/path_info.ts";
import { accessOf, permissionsBeyond } from "../policy/grants.ts";
import { permissionLines } from "../policy/permission_lines.ts";
import type { ModuleMeta, Permissions } from "../protocol/tool.ts";
import { MODULE } from "../servers/module/kind.ts";
import type { ModuleCode } from "../servers/module/module_files.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
  unchanged,
} from "./_command_context.ts";
import { DefinitionEdit, type ExistingEntry, findExistingEntry } from "./_definition_edit.ts";
import { usage } from "./_failure.ts";
import { startNewServer } from "./_first_start.ts";
import { agrees, assertTerminal, confirmWord, isTerminal } from "./_terminal.ts";
import { askUntrusted } from "./_trust.ts";
import { shellWord } from "./_shell_word.ts";
import { typedPath } from "./command_process.ts";
import { tell } from "./out.ts";

/** The file of a module as the user typed it, and the name that the user typed for it. */
interface ModuleInput {
  readonly file: string;
  readonly title: string | undefined;
}

/** Matches the name of a file with code. */
const CODE_FILE = /\.[cm]?[jt]s$/;

/**
 * Returns the module of the words `FILE` or `NAME FILE`; undefined for other words, and for an
 * executable file after a name, which is a program.
 */
export function moduleIn({ words, url, header, env }: CommandInput): ModuleInput | undefined {
  const [first = "", second] = words;
  const file = second ?? first;
  const hasMore = words.length > 2 || [url, header, env].some((option) => option !== undefined);
  if (hasMore || !CODE_FILE.test(file) || /^(?:npm:|@)|:\/\//.test(file)) return undefined;
  const info = infoAfterLinks(typedPath(file));
  if (second !== undefined) {
    const isProgram = info === undefined || ((info.mode ?? 0) & 0o111) !== 0;
    return isProgram ? undefined : { file, title: first };
  }
  // A word that is no file and contains no folder may be the name of a server of a registry.
  return info !== undefined || /[\\/]/.test(file) ? { file, title: undefined } : undefined;
}

/** Checks a module, shows it to the user, and adds it to the workspace file if the user approves. */
export async function addModule(
  context: CommandContext,
  { file, title }: ModuleInput,
  { json, replace, workspace }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const cannot = `Cannot add ${quoted(file, 300)}`;
  if (workspace === false) {
    throw usage(`${cannot}: a module belongs to its workspace`, "Leave out --no-workspace");
  }
  const path = modulePath(context, { file, title });
  const module = await checkModule(context, path, { file, title });
  const name = validName(title ?? module.meta.name, { context, file });
  if (!json) await askTrust(context);
  const entry = { type: MODULE.name, path: relativePath(path, app.policy.rulesFile) };
  const { existing } = await findExistingEntry(app, name, { workspace: true, tried: "replace" });
  if (existing !== undefined && replace !== true) throw presentError(cannot, { existing, entry });
  const { permissions } = module.report;
  const permissionsToGrant = permissionsBeyond(permissions, app.config().workspace);
  const grants = json
    ? undefined
    : await askGrants(context, { name, permissionsToGrant, permissions });
  // The workspace file may have grants of an earlier server of this name, which this edit removes.
  const oldGrants = app.config().grants[name];
  const hasOldGrants = oldGrants !== undefined && existing === undefined;
  const more: YamlSetting[] = [];
  // guard: added-grants
  if (grants !== undefined || hasOldGrants) more.push({ at: ["grants", name], entry: grants });
  const edit = await DefinitionEdit.of(context, {
    ...{ name, section: "private_mcps", entry, workspace: true, existing },
    more,
  });
  const { path: filePath, diff, shown } = edit.change;
  if (json) {
    return { value: { name, path: filePath, definition: entry, asks: permissionsToGrant, diff } };
  }
  assertTerminal(cannot);
  const facts = describeModule(module, {
    ...{ name, path, workspace: app.config().workspace },
    grants: grants ?? (hasOldGrants ? undefined : oldGrants),
  });
  tell([shown, ...edit.facts, ...facts].join("\n"));
  // The user must type a word, as for the trust in the whole file.
  const meaning = `${edit.verb} ${name} and trust exactly this code`;
  if (!await confirmWord("trust", meaning, context.signal)) return unchanged();
  await edit.askRemovals();
  await edit.write();
  // Approves only the shown bytes, so that other content asks again.
  // guard: added-code
  await app.policy.store.approve(filePath, (all) => ({ ...all, [name]: module.code.integrity }));
  await recordAction(context, "trusted", { server: name, facts });
  await app.policy.reload();
  if (edit.notes.length > 0) tell(edit.notes.join("\n"));
  const [undoText] = edit.notes;
  const revert = () => edit.revert();
  return await startNewServer(context, { name, isNpm: false, workspace: true, revert, undoText });
}

/** A module that passed its checks. */
type CheckedModule = Required<Awaited<ReturnType<Authors["checkModule"]>>> & {
  readonly code: ModuleCode;
  readonly meta: ModuleMeta;
};

/** Checks a module, as `pml check` does. Throws if a check fails. */
async function checkModule(
  { app, signal }: CommandContext,
  path: string,
  { file, title }: ModuleInput,
): Promise<CheckedModule> {
  const authors = await openAuthors(app);
  const { report, meta, code } = await authors.checkModule(path, signal, false);
  const failed = report.checks.find(({ state }) => state === "failed");
  if (meta !== undefined && code !== undefined && failed === undefined) {
    return { report, meta, code };
  }
  const checkHint = `\`pml check ${shellWord(file)}\` shows all checks`;
  const hint = failed?.name === "meta" && title !== undefined
    ? `${checkHint}. A program needs its runtime: pml add ${title} -- node ${shellWord(file)}`
    : checkHint;
  const why = failed?.message ?? "it does not load";
  throw new PmlError("CONFIG_INVALID", `Cannot add ${quoted(file, 300)}: ${why}`, { hint });
}

/** Returns the lines that the user approves. */
function describeModule(
  { report: { permissions, checks }, code }: CheckedModule,
  { name, path, grants, workspace }: {
    readonly name: string;
    readonly path: string;
    readonly grants: Partial<Permissions> | undefined;
    readonly workspace: string;
  },
): readonly string[] {
  const server = { kind: MODULE.name, name, path };
  return [
    `server "${name}": ${serverText(server)}`,
    `code of "${name}": ${code.integrity}`,
    ...permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace)
      .map((line) => `It ${line}`),
    ...checks.filter(({ name, state }) => name !== "permissions" && state === "warning")
      .map(({ message }) => `warning: ${visible(message, 400)}`),
  ];
}

/** Returns the error for a name that the workspace file defines already. */
function presentError(
  cannot: string,
  { existing, entry }: {
    readonly existing: ExistingEntry;
    readonly entry: { readonly path: string };
  },
): PmlError {
  const isSame = textOf(existing.entry.path) === entry.path;
  const title = quoted(existing.title);
  return isSame
    ? usage(
      `${cannot}: it is the server ${title} already`,
      "`pml trust` shows whether its code changed",
    )
    : usage(
      `${cannot}: there is a server ${title} already, with another definition`,
      "`--replace` replaces it, after it showed the difference",
    );
}

/** Returns the real path of a module. Throws if it is not in the workspace. */
function modulePath({ app }: CommandContext, { file, title }: ModuleInput): string {
  const cannot = `Cannot add ${quoted(file, 300)}`;
  const path = realPathIfAny(typedPath(file));
  if (path === undefined || infoAfterLinks(path)?.isFile !== true) {
    throw usage(`${cannot}: there is no such file`, "Write the path of a module, as ./mcp/x.ts");
  }
  const { workspace } = app.config();
  const { rulesFile } = app.policy;
  // guard: added-module-outside
  if (!isInside(workspace, path)) {
    const name = title ?? basename(path, extname(path));
    const entry = { [name]: { type: MODULE.name, path: relativePath(path, rulesFile) } };
    throw usage(
      `${cannot}: it is outside the workspace ${quoted(workspace, 300)}`,
      `Move it into the workspace, or write into ${rulesFile}, then run \`pml trust\`: ` +
        `"private_mcps": ${visible(JSON.stringify(entry), 1_000)}`,
    );
  }
  return path;
}

/** Returns the name of a module. Throws if it is not valid, or is the name of a built-in server. */
function validName(
  title: string,
  { context, file }: { readonly context: CommandContext; readonly file: string },
): string {
  const cannot = `Cannot add ${quoted(file, 300)} as ${quoted(title)}`;
  const name = serverSlug(title);
  if (name !== title) throw usage(`${cannot}: it is not a valid name`, `A valid one is ${name}`);
  if (!context.app.builtins.has(name)) return name;
  throw usage(
    `${cannot}: it is the name of a built-in server`,
    `Choose a name: pml add NAME ${shellWord(file)}`,
  );
}

/**
 * Asks the user to trust an untrusted workspace file first, because PML trusts the file that it writes,
 * with all of its other content.
 */
async function askTrust(context: CommandContext): Promise<void> {
  const unapproved = await context.app.policy.findUnapproved();
  if (unapproved?.code !== "WORKSPACE_UNTRUSTED" || !isTerminal()) return;
  tell("PML adds the module to the workspace file, which is not trusted yet:");
  if (await askUntrusted(context, unapproved) !== undefined) return;
  throw new PmlError("WORKSPACE_UNTRUSTED", "Cannot add: the workspace file is not trusted", {
    hint: "Look at it with `pml trust`",
  });
}

/**
 * Asks whether to grant a module the permissions that need a grant. Returns the granted permissions;
 * undefined if none are granted.
 */
async function askGrants(
  { app, signal }: CommandContext,
  { name, permissionsToGrant, permissions }: {
    readonly name: string;
    readonly permissionsToGrant: Partial<Permissions>;
    readonly permissions: Permissions;
  },
): Promise<Partial<Permissions> | undefined> {
  if (!isTerminal() || Object.keys(permissionsToGrant).length === 0) return undefined;
  const { workspace } = app.config();
  const linesWith = (grants: Partial<Permissions> | undefined) =>
    permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace);
  const withoutGrants = linesWith(undefined);
  const lines = linesWith(permissionsToGrant).filter((line) => !withoutGrants.includes(line));
  const facts = [
    `${name} requests permissions beyond the workspace. With a grant, it:`,
    ...lines.map((line) => `  ${line}`),
    ...await keyLines(app, permissionsToGrant.env ?? []),
  ];
  return await agrees("Grant it all of that?", { signal }, facts) ? permissionsToGrant : undefined;
}

async function keyLines(
  app: CommandContext["app"],
  names: readonly string[],
): Promise<readonly string[]> {
  if (names.length > 0) await app.keys.waitForOutside();
  return names.filter((name) => name !== "*").map((name) => {
    const from = app.keys.find(name)?.from;
    return from === undefined
      ? `  ${visible(name)} is not set: \`pml key set ${visible(name)}\``
      : `  ${visible(name)} is set, in ${from}`;
  });
}

/** Returns a path relative to the folder of the workspace file. */
function relativePath(path: string, rulesFile: string): string {
  const result = relative(dirname(rulesFile), path).replaceAll("\\", "/");
  return result.startsWith("../") ? result : `./${result}`;
}
