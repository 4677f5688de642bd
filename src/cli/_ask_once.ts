/**
 * `pml init --ask-once`: configures clients to run PML's tools without a question, so that only PML
 * asks. Writes only files of this user, never a file that a team shares.
 *
 * @module
 */

import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { App } from "../app/app.ts";
import {
  type ClientFile,
  type ClientName,
  parseClientJson,
  permissionFiles,
} from "../config/clients.ts";
import { messageOf } from "../core/errors.ts";
import { isObject, type JsonObject, memberOf, objectOf, textsOf } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import {
  CLAUDE_RULE,
  type ClientEdit,
  NAME,
  readPmlEntry,
  withListText,
  withMembers,
} from "./_client_file.ts";
import { allowingMembers, type ClientEntryValue } from "./_client_form.ts";
import {
  type ClientSetup,
  editText,
  placeOf,
  readClientTarget,
  type SetupContext,
  type SetupStep,
} from "./_client_setup.ts";
import { editFile, type TargetFile } from "./_undoable_edits.ts";
import { agrees } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The clients that `--ask-once` can configure but that cannot show PML's questions. */
const WITHOUT_QUESTIONS: readonly ClientName[] = ["gemini", "qwen"];
/** The clients that ignore the user's own entry in a project that has an entry of the same name. */
const PROJECT_HIDES_OWN: readonly ClientName[] = ["gemini", "qwen"];
/** The name of a tool that no rule names, to read the decision of the rules about such tools. */
const UNNAMED_TOOL = "a-tool-that-no-rule-names";
/** The server that an allow rule `*` never covers. */
const NEVER_COVERED = "shell";

/** The edit of a client's file that allows PML's tools. */
interface Allowance {
  readonly target: TargetFile;
  /** The edit; undefined if the client allows the tools already. */
  readonly edit: ClientEdit | undefined;
}

/** The reason why a client stays as it is. */
interface Refusal {
  readonly path: string;
  readonly why: string;
}

/**
 * Allows PML's tools in the file of a client, after it showed the change and asked where required.
 * Returns undefined if there is nothing to report.
 */
export async function allowTools(
  setup: ClientSetup,
  context: SetupContext,
  { isWanted, isOffered }: {
    /** Whether the user typed `--ask-once`. The step then states the reason if nothing changes. */
    readonly isWanted: boolean;
    /** Whether to offer it to a user who did not type `--ask-once`; true if this run connects the client. */
    readonly isOffered: boolean;
  },
): Promise<SetupStep | undefined> {
  const { client } = setup;
  const allowance = await tryAllowance(setup, context);
  if (isWanted && "why" in allowance) {
    return { path: allowance.path, changed: false, message: `left as it is: ${allowance.why}` };
  }
  const mayAsk = context.mayAsk && !context.isDryRun;
  if ("why" in allowance || !isWanted && !(mayAsk && isOffered)) return undefined;
  const { target: { path }, edit } = allowance;
  if (edit === undefined) {
    if (!isWanted) return undefined;
    return { path, changed: false, message: `${client} allows PML's tools already` };
  }
  const change = editText(edit);
  if (context.isDryRun) return { path, changed: false, message: `would get ${change}` };
  if (mayAsk) {
    tell(`\n${offerText(setup)}\n${path} gets ${change}`);
    if (!await agrees(`Let ${client} run PML's tools unasked?`, context)) {
      const answer = `left as it is: ${client} asks before each call to PML`;
      return { path, changed: false, message: answer };
    }
  }
  await Deno.mkdir(dirname(path), { recursive: true });
  await editFile(context.app, allowance.target, { text: edit.text, mode: 0o600 });
  return { path, changed: true, message: allowedText(setup, allowance.target) };
}

function allowedText({ client, isOwn }: ClientSetup, { found }: TargetFile): string {
  const where = WITHOUT_QUESTIONS.includes(client) ? ", on a terminal with `pml approve`" : "";
  const keepOut = found === undefined && !isOwn
    ? "; the file is yours alone, so keep it out of the repository"
    : "";
  return `${client} allows PML's tools, so only PML asks${where}${keepOut}`;
}

/** Explains the offer to the user. */
function offerText({ client, isOwn }: ClientSetup): string {
  const terminal = WITHOUT_QUESTIONS.includes(client)
    ? ` ${client} cannot show PML's questions: you answer them on a terminal, with \`pml approve\`.`
    : "";
  const name = isOwn && !PROJECT_HIDES_OWN.includes(client)
    ? ` This applies to any server with the name "${NAME}", in all of your projects.`
    : "";
  return `${client} also asks you before each call to PML. If you answer "always" there, it no ` +
    `longer asks about any tool behind PML. You can let ${client} call PML without asking: then ` +
    `only PML asks, by your rules.${terminal}${name}`;
}

/** Whether a client itself asks before each call of a PML tool, as far as PML can read this. */
export interface AskState {
  /** Whether PML found that the client runs PML's tools without a question. */
  readonly isAllowed: boolean;
  /** The command that allows PML's tools; undefined if they are allowed or PML cannot allow them. */
  readonly command: string | undefined;
}

/** Returns whether a client asks, and how the user can change that. */
export async function readAskState(
  setup: ClientSetup,
  context: Pick<SetupContext, "app" | "isDryRun">,
): Promise<AskState> {
  const allowance = await tryAllowance(setup, context);
  if ("why" in allowance) return { isAllowed: false, command: undefined };
  if (allowance.edit === undefined) return { isAllowed: true, command: undefined };
  const { client, isOwn } = setup;
  const options = ` --client ${client} --user`;
  // If the file is not the user's own, `findAllowance()` returns an edit for Claude Code only, which
  // `pml init` connects without `--client`.
  return { isAllowed: false, command: `pml init${isOwn ? options : ""} --ask-once` };
}

async function tryAllowance(
  setup: ClientSetup,
  context: Pick<SetupContext, "app" | "isDryRun">,
): Promise<Allowance | Refusal> {
  // The client is connected already, so `pml init` succeeds even if this file cannot be edited.
  return await findAllowance(setup, context).catch((error) => ({
    path: setup.path,
    why: messageOf(error),
  }));
}

async function findAllowance(
  setup: ClientSetup,
  { app, isDryRun }: Pick<SetupContext, "app" | "isDryRun">,
): Promise<Allowance | Refusal> {
  const { client, path, isOwn } = setup;
  // guard: ask-once-rules
  if (allowsUnnamedTools(app)) {
    const allowed = "your rules allow every tool that they do not name";
    return { path, why: `${allowed}, so only ${client} asks` };
  }
  const members = allowingMembers(client);
  if (members === undefined && client !== "claude-code") {
    return { path, why: `PML cannot set this for ${client}` };
  }
  if (setup.edit?.other !== undefined) return { path, why: `it has another server "${NAME}"` };
  const { target, text } = await readAfterSetup(setup, isDryRun);
  const existing = await readPmlEntry(text, path, setup.form.at);
  if (existing === undefined) return { path, why: `it has no entry "${NAME}"` };
  // guard: ask-once-entry
  if (!isOwn && !hasOnlyPmlMembers(existing, setup)) {
    return { path, why: `its entry "${NAME}" differs from the one that PML writes` };
  }
  if (members === undefined) return await ruleEdit(app, setup);
  // guard: ask-once-personal
  if (!isOwn) return { path, why: sharedReason(client) };
  return await membersEdit(setup, { target, text, existing: objectOf(existing), members });
}

/**
 * Returns whether the rules allow tools that they do not name on at least one server, and ask about
 * such tools on no server. `shell` does not count.
 */
function allowsUnnamedTools({ directory, policy }: App): boolean {
  const servers = directory.all().filter(({ name }) => name !== NEVER_COVERED);
  const kinds = servers.map(({ name }) => policy.now.judge(toolId(name, UNNAMED_TOOL)).kind);
  return kinds.includes("allow") && !kinds.includes("ask");
}

/** Returns why PML does not write a permission into an entry that a team shares. */
function sharedReason(client: ClientName): string {
  return PROJECT_HIDES_OWN.includes(client)
    ? "a team shares it, and it hides an entry of your own"
    : `a team shares it; \`pml init --client ${client} --user --ask-once\` writes your own file`;
}

/** Returns the file of a client, and its text after the setup. */
async function readAfterSetup(
  { file, edit }: ClientSetup,
  isDryRun: boolean,
): Promise<{ readonly target: TargetFile; readonly text: string }> {
  const target = await readClientTarget(file);
  const text = target.found?.text ?? "";
  // Only a dry run needs the text of the edit. Other runs have written it, unless the user declined.
  // guard: ask-once-declined
  if (!isDryRun) return { target, text };
  return { target, text: edit?.text ?? text };
}

/**
 * Returns whether an entry of a shared file has no members but those that PML writes, and perhaps an
 * empty `env`: with variables or another path, it could start another program under this name.
 */
function hasOnlyPmlMembers(existing: unknown, { form: { entry } }: ClientSetup): boolean {
  if (!isObject(existing)) return false;
  const isEmpty = (value: unknown) => isObject(value) && Object.keys(value).length === 0;
  return Object.entries(existing).every(([key, value]) =>
    isDeepStrictEqual(value, memberOf(entry, key)) || key === "env" && isEmpty(value)
  );
}

/** Returns the edit that adds the rule to the personal settings of Claude Code. */
async function ruleEdit(app: App, { client, isOwn }: ClientSetup): Promise<Allowance | Refusal> {
  const files = permissionFiles(client, placeOf(app));
  const file = files.find(({ inside }) => (inside === undefined) === isOwn) ?? files[0];
  if (file === undefined) return { path: "", why: "it has no such file" };
  const target = await readClientTarget(file);
  const { path, found } = target;
  const text = found?.text ?? "{}\n";
  for (const each of files) {
    const { permissions } = objectOf(await settingsIn(each));
    const { allow, ask, deny } = objectOf(permissions);
    const stoppingRule = [...textsOf(ask), ...textsOf(deny)].find((rule) =>
      rule.startsWith(CLAUDE_RULE)
    );
    if (stoppingRule !== undefined) {
      return { path: each.path, why: `its own rules already ask about or deny ${stoppingRule}` };
    }
    if (textsOf(allow).some((rule) => rule === CLAUDE_RULE || rule === `${CLAUDE_RULE}__*`)) {
      return { target, edit: undefined };
    }
  }
  return {
    target,
    edit: await withListText(text, path, { at: ["permissions", "allow"], listed: CLAUDE_RULE }),
  };
}

async function settingsIn(file: ClientFile): Promise<unknown> {
  const { path, found } = await readClientTarget(file);
  return found && await parseClientJson(found.text.replace(/^\uFEFF/, ""), path);
}

/** Returns the edit that adds the members to PML's entry in the user's own file. */
async function membersEdit(
  { path, form }: ClientSetup,
  { target, text, existing, members }: {
    readonly target: TargetFile;
    readonly text: string;
    readonly existing: JsonObject;
    readonly members: ClientEntryValue;
  },
): Promise<Allowance | Refusal> {
  const all = Object.entries(members);
  const [other] = all.find(([key, value]) => ![undefined, value].includes(existing[key])) ?? [];
  if (other !== undefined) return { path, why: `its entry "${NAME}" sets ${other}` };
  const missing = all.filter(([key]) => existing[key] === undefined);
  if (missing.length === 0) return { target, edit: undefined };
  const edit = await withMembers(text, path, { at: form.at, members: Object.fromEntries(missing) });
  return { target, edit };
}
