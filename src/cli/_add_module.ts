/**
 * `pml add FILE`: adds a module of the workspace to `.pml.json`, and approves its code with the same
 * answer.
 *
 * @module
 */

import { basename, dirname, extname, relative } from "node:path";
import type { Authors } from "../authoring/authors.ts";
import { authorsOf } from "../authoring/open_authors.ts";
import { serverText } from "../config/shown.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, textOf, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { followedInfo, isInside, realPathIfAny } from "../io/place.ts";
import { accessOf, permissionsBeyond } from "../policy/grants.ts";
import { permissionLines } from "../policy/permission_lines.ts";
import type { ModuleMeta, Permissions } from "../protocol/tool.ts";
import { MODULE } from "../servers/module/kind.ts";
import type { ModuleCode } from "../servers/module/module_files.ts";
import {
  type CommandContext,
  recordAction,
  type Shown,
  type Typed,
  unchanged,
} from "./_command_context.ts";
import { DefinitionEdit, type PresentEntry, presentEntry } from "./_definition_edit.ts";
import { usage } from "./_failure.ts";
import { startFirst } from "./_first_start.ts";
import { agrees, isTerminal, isTyped, needPerson } from "./_terminal.ts";
import { askUntrusted } from "./_trust.ts";
import { shellWord } from "./_shell_word.ts";
import { typedPath } from "./command_process.ts";
import { tell } from "./out.ts";

/** A module that the user named, and the name for it. */
interface TypedModule {
  readonly file: string;
  readonly title: string | undefined;
}

const CODE = /\.[cm]?[jt]s$/;

/**
 * Returns the module that the words name: `FILE`, or `NAME FILE`; undefined if they name something
 * else. A file that can be run is a program.
 */
export function moduleIn({ words, url, header, env }: Typed): TypedModule | undefined {
  const [first = "", second] = words;
  const file = second ?? first;
  const hasMore = words.length > 2 || [url, header, env].some((one) => one !== undefined);
  if (hasMore || !CODE.test(file) || /^(?:npm:|@)|:\/\//.test(file)) return undefined;
  const info = followedInfo(typedPath(file));
  if (second !== undefined) {
    const isProgram = info === undefined || ((info.mode ?? 0) & 0o111) !== 0;
    return isProgram ? undefined : { file, title: first };
  }
  // A name without a folder may be that of a server of a registry.
  return info !== undefined || /[\\/]/.test(file) ? { file, title: undefined } : undefined;
}

/** Adds a module to the workspace file, after it was checked, shown and approved. */
export async function addModule(
  at: CommandContext,
  { file, title }: TypedModule,
  { json, replace, workspace }: Typed,
): Promise<Shown> {
  const { app } = at;
  const cannot = `Cannot add ${quoted(file, 300)}`;
  if (workspace === false) {
    throw usage(`${cannot}: a module belongs to its workspace`, "Leave out --no-workspace");
  }
  const path = modulePath(at, { file, title });
  const module = await checked(at, path, { file, title });
  const name = nameFor(title ?? module.meta.name, { at, file });
  if (!json) await trustFirst(at);
  const entry = { type: MODULE.name, path: written(path, app.policy.rulesFile) };
  const { present } = await presentEntry(app, name, { workspace: true, tried: "replace" });
  if (present !== undefined && replace !== true) throw presentAlready(cannot, { present, entry });
  const { permissions } = module.report;
  const beyond = permissionsBeyond(permissions, app.config().workspace);
  const grants = json ? undefined : await grantsFor(at, { name, beyond, permissions });
  // The workspace file may grant something to this name already.
  const before = app.config().grants[name];
  const isLeft = before !== undefined && present === undefined;
  const more: YamlSetting[] = [];
  // guard: added-grants
  if (grants !== undefined || isLeft) more.push({ at: ["grants", name], entry: grants });
  const edit = await DefinitionEdit.of(at, {
    ...{ name, section: "private_mcps", entry, workspace: true, present },
    more,
  });
  const { path: into, diff, shown } = edit.change;
  if (json) return { value: { name, path: into, definition: entry, asks: beyond, diff } };
  needPerson(cannot);
  const facts = factsOf(module, {
    ...{ name, path, workspace: app.config().workspace },
    grants: grants ?? (isLeft ? undefined : before),
  });
  tell([shown, ...edit.facts, ...facts].join("\n"));
  // As for the whole file: trust needs a word.
  const does = `${edit.does} ${name} and trust exactly this code`;
  if (!await isTyped("trust", does, at.signal)) return unchanged();
  await edit.askRemovals();
  await edit.write();
  // Only the bytes that were shown are approved: another content asks again.
  // guard: added-code
  await app.policy.store.approve(into, (all) => ({ ...all, [name]: module.code.integrity }));
  await recordAction(at, "trusted", { server: name, facts });
  await app.policy.reload();
  if (edit.notes.length > 0) tell(edit.notes.join("\n"));
  const [undoing] = edit.notes;
  const takeOut = () => edit.takeOut();
  return await startFirst(at, { name, isNpm: false, workspace: true, takeOut, undoing });
}

/** A module without mistakes. */
type CheckedModule = Required<Awaited<ReturnType<Authors["checkModule"]>>> & {
  readonly code: ModuleCode;
  readonly meta: ModuleMeta;
};

/** Checks a module, as `pml check` does. Throws if a check fails. */
async function checked(
  { app, signal }: CommandContext,
  path: string,
  { file, title }: TypedModule,
): Promise<CheckedModule> {
  const authors = await authorsOf(app);
  const { report, meta, code } = await authors.checkModule(path, { types: false, signal });
  const failed = report.checks.find(({ state }) => state === "failed");
  if (meta !== undefined && code !== undefined && failed === undefined) {
    return { report, meta, code };
  }
  const look = `\`pml check ${shellWord(file)}\` shows all of it`;
  const hint = failed?.name === "meta" && title !== undefined
    ? `${look}. A program needs its runtime: pml add ${title} -- node ${shellWord(file)}`
    : look;
  const why = failed?.message ?? "it does not load";
  throw new PmlError("CONFIG_INVALID", `Cannot add ${quoted(file, 300)}: ${why}`, { hint });
}

/** Returns the lines that the user approves. */
function factsOf(
  { report: { permissions, checks }, code }: CheckedModule,
  { name, path, grants, workspace }: {
    readonly name: string;
    readonly path: string;
    readonly grants: Partial<Permissions> | undefined;
    readonly workspace: string;
  },
): readonly string[] {
  const own = { kind: MODULE.name, name, path };
  return [
    `server "${name}": ${serverText(own)}`,
    `code of "${name}": ${code.integrity}`,
    ...permissionLines(permissions, accessOf(permissions, { workspace, grants }), workspace)
      .map((line) => `It ${line}`),
    ...checks.filter(({ name, state }) => name !== "permissions" && state === "warning")
      .map(({ message }) => `warning: ${visible(message, 400)}`),
  ];
}

function presentAlready(
  cannot: string,
  { present, entry }: { readonly present: PresentEntry; readonly entry: { readonly path: string } },
): PmlError {
  const isSame = textOf(present.entry.path) === entry.path;
  const title = quoted(present.title);
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
function modulePath({ app }: CommandContext, { file, title }: TypedModule): string {
  const cannot = `Cannot add ${quoted(file, 300)}`;
  const path = realPathIfAny(typedPath(file));
  if (path === undefined || followedInfo(path)?.isFile !== true) {
    throw usage(`${cannot}: there is no such file`, "Write the path of a module, as ./mcp/x.ts");
  }
  const { workspace } = app.config();
  const { rulesFile } = app.policy;
  // guard: added-module-outside
  if (!isInside(workspace, path)) {
    const name = title ?? basename(path, extname(path));
    const entry = { [name]: { type: MODULE.name, path: written(path, rulesFile) } };
    throw usage(
      `${cannot}: it is outside the workspace ${quoted(workspace, 300)}`,
      `Move it into the workspace, or write into ${rulesFile}, then run \`pml trust\`: ` +
        `"private_mcps": ${visible(JSON.stringify(entry), 1_000)}`,
    );
  }
  return path;
}

function nameFor(
  title: string,
  { at, file }: { readonly at: CommandContext; readonly file: string },
): string {
  const cannot = `Cannot add ${quoted(file, 300)} as ${quoted(title)}`;
  const name = serverSlug(title);
  if (name !== title) throw usage(`${cannot}: it is not a valid name`, `A valid one is ${name}`);
  if (!at.app.builtins.has(name)) return name;
  throw usage(
    `${cannot}: PML has a server of that name built in`,
    `Choose a name: pml add NAME ${shellWord(file)}`,
  );
}

/** Asks about a workspace file that is not trusted, because the change would keep its content. */
async function trustFirst({ app, signal }: CommandContext): Promise<void> {
  const open = await app.policy.unapproved();
  if (open?.code !== "WORKSPACE_UNTRUSTED" || !isTerminal()) return;
  tell("The module belongs into the workspace file, which is not trusted yet:");
  if (await askUntrusted(open, signal)) return;
  throw new PmlError("WORKSPACE_UNTRUSTED", "Cannot add: the workspace file is not trusted", {
    hint: "Look at it with `pml trust`",
  });
}

/** Asks whether a module gets the permissions that need a grant. Returns its grants. */
async function grantsFor(
  { app, signal }: CommandContext,
  { name, beyond, permissions }: {
    readonly name: string;
    readonly beyond: Partial<Permissions>;
    readonly permissions: Permissions;
  },
): Promise<Partial<Permissions> | undefined> {
  if (!isTerminal() || Object.keys(beyond).length === 0) return undefined;
  const { workspace } = app.config();
  const granted = permissionLines(
    permissions,
    accessOf(permissions, { workspace, grants: beyond }),
    workspace,
  );
  const without = permissionLines(
    permissions,
    accessOf(permissions, { workspace, grants: undefined }),
    workspace,
  );
  const lines = granted.filter((line) => !without.includes(line));
  const facts = [
    `${name} asks for more than the workspace. With a grant, it:`,
    ...lines.map((line) => `  ${line}`),
    ...await keyLines(app, beyond.env ?? []),
  ];
  return await agrees("Grant it all of that?", { signal }, facts) ? beyond : undefined;
}

async function keyLines(
  app: CommandContext["app"],
  names: readonly string[],
): Promise<readonly string[]> {
  if (names.length > 0) await app.keys.looked();
  return names.filter((name) => name !== "*").map((name) => {
    const from = app.keys.find(name)?.from;
    return from === undefined
      ? `  ${visible(name)} is not set: \`pml key set ${visible(name)}\``
      : `  ${visible(name)} is set, in ${from}`;
  });
}

/** Returns a path as the workspace file has it. */
function written(path: string, rulesFile: string): string {
  const near = relative(dirname(rulesFile), path).replaceAll("\\", "/");
  return near.startsWith("../") ? near : `./${near}`;
}
