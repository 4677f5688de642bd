/**
 * `pml init --ask-once`: has clients run PML's tools without their own question, so that PML alone
 * asks. It writes only the user's own files.
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
import { messageOf, PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, memberOf, objectOf, textsOf } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { type ClientEdit, NAME, presentEntry, withListed, withMembers } from "./_client_file.ts";
import { allowingMembers, type ClientEntryValue } from "./_client_form.ts";
import {
  type ClientSetup,
  placeOf,
  type SetupContext,
  type SetupStep,
  targetOf,
} from "./_client_setup.ts";
import { editFile, type TargetFile } from "./_import_file.ts";
import { askReply } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The permission rule of Claude Code for every tool of PML's entry. */
const RULE = `mcp__${NAME}`;
/** The clients of this table that cannot show PML's questions. */
const ASKS_NOTHING: readonly ClientName[] = ["gemini", "qwen"];
/** The clients that ignore the user's own entry in a project that has one of the same name. */
const HIDES_OWN: readonly ClientName[] = ["gemini", "qwen"];
/** A tool that no rule names. */
const UNNAMED = "a-tool-that-no-rule-names";
/** The server that an allow rule `*` never covers. */
const UNCOVERED = "shell";

/** The edit by which a client allows PML's tools. */
interface Allowance {
  readonly target: TargetFile;
  /** The edit; undefined if the client allows them already. */
  readonly edit: ClientEdit | undefined;
}

/** The reason why a client stays as it is. */
interface Refusal {
  readonly path: string;
  readonly why: string;
}

/**
 * Has a client allow PML's tools, after showing the change and asking where required. Returns
 * undefined if there is nothing to report.
 */
export async function allowTools(
  setup: ClientSetup,
  at: SetupContext,
  { isWanted, isOffered }: {
    /** Whether the user named `--ask-once`: the step then has the reason if nothing changes. */
    readonly isWanted: boolean;
    /** Whether the user is asked if they did not name it: in the run that connects the client. */
    readonly isOffered: boolean;
  },
): Promise<SetupStep | undefined> {
  const { client } = setup;
  const allowance = await allowanceOf(at.app, setup);
  if (isWanted && "why" in allowance) {
    return { path: allowance.path, changed: false, message: `left as it is: ${allowance.why}` };
  }
  const mayAsk = at.ask && !at.dry;
  if ("why" in allowance || !isWanted && !(mayAsk && isOffered)) return undefined;
  const { target: { path }, edit } = allowance;
  if (edit === undefined) {
    if (!isWanted) return undefined;
    return { path, changed: false, message: `${client} allows PML's tools already` };
  }
  const lines = edit.added.map((line) => `  + ${line}`).join("\n");
  if (at.dry) return { path, changed: false, message: `would get these lines\n${lines}` };
  if (mayAsk) {
    tell(`\n${meaningOf(setup)}\n${path} gets these lines:\n${lines}`);
    if (!await isAgreed(client, at)) {
      const answer = `left as it is: ${client} asks before each call of PML`;
      return { path, changed: false, message: answer };
    }
  }
  await Deno.mkdir(dirname(path), { recursive: true });
  await editFile(at.app, allowance.target, { text: edit.text, mode: 0o600 });
  return { path, changed: true, message: doneText(setup, allowance.target) };
}

async function isAgreed(client: ClientName, { signal }: SetupContext): Promise<boolean> {
  const reply = await askReply(`Let ${client} run PML's tools unasked?`, { signal });
  if (reply !== "cancelled") return reply === "Yes";
  throw new PmlError("CANCELLED", "Cannot set up: you stopped it", {
    hint: "`pml init --undo` reverts its changes",
  });
}

function doneText({ client, isOwn }: ClientSetup, { found }: TargetFile): string {
  const where = ASKS_NOTHING.includes(client) ? ", on a terminal with `pml approve`" : "";
  const keepOut = found === undefined && !isOwn
    ? "; the file is yours alone, so keep it out of the repository"
    : "";
  return `${client} allows PML's tools, so only PML asks${where}${keepOut}`;
}

/** Returns the meaning of the offer, for the user. */
function meaningOf({ client, isOwn }: ClientSetup): string {
  const terminal = ASKS_NOTHING.includes(client)
    ? ` ${client} cannot show PML's questions: you answer them on a terminal, with \`pml approve\`.`
    : "";
  const name = isOwn && !HIDES_OWN.includes(client)
    ? ` This applies to the name "${NAME}" in each of your projects.`
    : "";
  return `${client} asks before each call of PML, too, and its "always" covers every tool behind ` +
    `PML. If it allows PML's tools, PML alone asks, by your rules.${terminal}${name}`;
}

/** Whether a client asks before each call of PML, too. */
export interface AskState {
  /** Whether it runs PML's tools unasked. */
  readonly isAllowed: boolean;
  /** The command that changes this; undefined if PML cannot, or does not. */
  readonly command: string | undefined;
}

/** Returns whether a client asks, and how the user can change that. */
export async function askState(
  setup: ClientSetup,
  { app }: Pick<SetupContext, "app">,
): Promise<AskState> {
  const allowance = await allowanceOf(app, setup);
  if ("why" in allowance) return { isAllowed: false, command: undefined };
  if (allowance.edit === undefined) return { isAllowed: true, command: undefined };
  const { client, isOwn } = setup;
  const own = ` --client ${client} --user`;
  // Without `--client`, `pml init` connects Claude Code in a project.
  return { isAllowed: false, command: `pml init${isOwn ? own : ""} --ask-once` };
}

async function allowanceOf(app: App, setup: ClientSetup): Promise<Allowance | Refusal> {
  // The client is connected already, so a file that cannot be edited is no failure.
  return await lookAt(app, setup).catch((error) => ({ path: setup.path, why: messageOf(error) }));
}

async function lookAt(app: App, setup: ClientSetup): Promise<Allowance | Refusal> {
  const { client, path, isOwn } = setup;
  // guard: ask-once-rules
  if (allowsEverything(app)) {
    const allowed = "your rules allow every tool that they do not name";
    return { path, why: `${allowed}, so only the question of ${client} is left` };
  }
  const members = allowingMembers(client);
  if (members === undefined && client !== "claude-code") {
    return { path, why: `PML cannot set this for ${client}; see docs/clients.md` };
  }
  const { target, text } = await afterSetup(setup);
  const isOther = setup.edit?.other !== undefined;
  const present = isOther ? undefined : await presentEntry(text, path, setup.form.at);
  // guard: ask-once-entry
  if (present === undefined || !isOwn && !isOnlyPml(present, setup)) {
    return { path, why: `its entry "${NAME}" has more than PML writes` };
  }
  if (members === undefined) return await ruleIn(app, setup);
  // guard: ask-once-personal
  if (!isOwn) return { path, why: sharedReason(client) };
  return await membersIn(setup, { target, text, present: objectOf(present), members });
}

/** Returns whether the rules ask about no tool that no rule names, and allow some. */
function allowsEverything({ directory, policy }: App): boolean {
  const servers = directory.all().filter(({ name }) => name !== UNCOVERED);
  const kinds = servers.map(({ name }) => policy.now.judge(toolId(name, UNNAMED)).kind);
  return kinds.includes("allow") && !kinds.includes("ask");
}

/** Returns why PML does not write a permission into an entry that a team shares. */
function sharedReason(client: ClientName): string {
  return HIDES_OWN.includes(client)
    ? "a team shares it, and it hides an entry of your own; see docs/clients.md"
    : `a team shares it; \`pml init --client ${client} --user --ask-once\` writes your own file`;
}

/** Returns the file of a client, and its text as it is after the setup. */
async function afterSetup(
  { file, found, edit }: ClientSetup,
): Promise<{ readonly target: TargetFile; readonly text: string }> {
  const target = await targetOf(file);
  // A dry run does not write the edit.
  const isWritten = target.found?.text !== found?.text;
  return { target, text: (isWritten ? undefined : edit?.text) ?? target.found?.text ?? "" };
}

/**
 * Returns whether an entry of a shared file starts PML as PML itself writes it: an `env` or another
 * path could start another program under this name.
 */
function isOnlyPml(present: unknown, { form: { entry } }: ClientSetup): boolean {
  if (!isObject(present)) return false;
  const isEmpty = (value: unknown) => isObject(value) && Object.keys(value).length === 0;
  return Object.entries(present).every(([key, value]) =>
    isDeepStrictEqual(value, memberOf(entry, key)) || key === "env" && isEmpty(value)
  );
}

/** Returns the edit that adds the rule to the personal settings of Claude Code. */
async function ruleIn(app: App, { client, isOwn }: ClientSetup): Promise<Allowance | Refusal> {
  const files = permissionFiles(client, placeOf(app));
  const file = files.find(({ inside }) => (inside === undefined) === isOwn) ?? files[0];
  if (file === undefined) return { path: "", why: "it has no such file" };
  const target = await targetOf(file);
  const { path, found } = target;
  const text = found?.text ?? "{}\n";
  for (const each of files) {
    const { permissions } = objectOf(await settingsIn(each));
    const { allow, ask, deny } = objectOf(permissions);
    const stops = [...textsOf(ask), ...textsOf(deny)].find((rule) => rule.startsWith(RULE));
    if (stops !== undefined) return { path: each.path, why: `its own rules name ${stops}` };
    if (textsOf(allow).some((rule) => rule === RULE || rule === `${RULE}__*`)) {
      return { target, edit: undefined };
    }
  }
  return {
    target,
    edit: await withListed(text, path, { at: ["permissions", "allow"], listed: RULE }),
  };
}

async function settingsIn(file: ClientFile): Promise<unknown> {
  const { path, found } = await targetOf(file);
  return found && await parseClientJson(found.text.replace(/^\uFEFF/, ""), path);
}

/** Returns the edit that adds the members to PML's entry in the user's own file. */
async function membersIn(
  { path, form }: ClientSetup,
  { target, text, present, members }: {
    readonly target: TargetFile;
    readonly text: string;
    readonly present: JsonObject;
    readonly members: ClientEntryValue;
  },
): Promise<Allowance | Refusal> {
  const all = Object.entries(members);
  const [other] = all.find(([key, value]) => ![undefined, value].includes(present[key])) ?? [];
  if (other !== undefined) return { path, why: `its entry "${NAME}" sets ${other}` };
  const missing = all.filter(([key]) => present[key] === undefined);
  if (missing.length === 0) return { target, edit: undefined };
  const edit = await withMembers(text, path, { at: form.at, members: Object.fromEntries(missing) });
  return { target, edit };
}
