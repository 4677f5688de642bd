/**
 * `pml capability`: lists, shows, saves, renames, deletes, exports and imports capabilities.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  assertValid,
  escapeInvisible,
  exportForm,
  findNameOwner,
  hiddenWarning,
} from "../app/app_capabilities.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject, type Json, quoted, visible, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseExact } from "../core/exact_json.ts";
import { readRegularText, whyUnread } from "../io/regular_file.ts";
import { capabilityJudge } from "../policy/capability_rules.ts";
import { parseArguments } from "./_arguments.ts";
import { EFFECTS } from "./_call_effect.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { subcommandOf, usage } from "./_failure.ts";
import { agrees, assertTerminal } from "./_terminal.ts";
import { typedPath } from "./command_process.ts";

type OpenCapabilities = Awaited<ReturnType<App["capabilities"]>>;
type Prepared = ReturnType<OpenCapabilities["saving"]["prepare"]>;
/** The context of a subcommand: the open capabilities, and the typed words. */
interface CapabilityContext extends CommandContext, OpenCapabilities {
  readonly input: CommandInput;
  /** The first word: a name or a file. It is not checked: an invalid name is reported as not found. */
  readonly first: ToolId;
  readonly second: string | undefined;
}
type Subcommand = (context: CapabilityContext) => CommandOutput | Promise<CommandOutput>;
/** The maximum size of a file of code, a plan or a capability, in bytes. */
const FILE_MAX = 4_000_000;

/** Runs `pml capability`. */
export async function capability(
  context: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const words = input.words.length === 0 ? ["list"] : input.words;
  const run = subcommandOf<Subcommand>("capability", words, {
    list: [list, 0],
    show: [show, 1],
    save: [save, 1],
    rename: [rename, 2],
    delete: [remove, 1],
    export: [
      ({ capabilities: { store }, first }) => ({ value: exportForm(first, store.load(first)) }),
      1,
    ],
    import: [
      (context) => {
        const { saving, first, second } = context;
        return confirmSave(context, saving.parse(parseFile(readFile(first), first), second));
      },
      1,
      2,
    ],
  });
  const [, first = "", second] = words;
  const openCapabilities = await context.app.capabilities();
  return await run({ ...context, ...openCapabilities, input, first: first as ToolId, second });
}

async function list(context: CapabilityContext): Promise<CommandOutput> {
  const ids = [...context.capabilities.store.readApproved().keys()];
  const all = await Promise.all(ids.map((id) => describeCapability(context, id)));
  const texts = all.map(({ name, kind, calls, runs, problem }) => {
    const description = problem ?? `calls ${calls?.join(", ") || "no tool"}`;
    return `${name} [${[kind, runs].filter(Boolean).join(", ")}]\n  ${visible(description, 500)}`;
  });
  const note = all.length === 0
    ? "Nothing is saved yet: use `pml capability save`, or save_as"
    : "";
  return { value: { capabilities: all }, text: texts.join("\n"), note };
}

/** A capability in a list. */
interface ListedCapability {
  readonly name: ToolId;
  readonly hash: string | undefined;
  readonly kind?: string;
  readonly description?: string;
  readonly calls?: readonly string[];
  readonly runs?: string;
  /** Why the capability does not run, or asks first. */
  readonly problem?: string;
}

async function describeCapability(
  { app, capabilities }: CapabilityContext,
  id: ToolId,
): Promise<ListedCapability> {
  const hash = capabilities.store.readApproved().get(id);
  try {
    const { kind, description, toolsUsed } = capabilities.store.load(id);
    const { server } = splitToolId(id);
    const owner = findNameOwner(app, server);
    const problem = owner === undefined
      ? await capabilities.staleNote(id)
      : hiddenWarning(server, owner);
    const runs = { allow: "runs", ask: "asks", deny: "denied" }[app.policy.now.judge(id).kind];
    const calls = Object.keys(toolsUsed);
    return { name: id, hash, kind, calls, runs, ...withoutUndefined({ description, problem }) };
  } catch (error) {
    const { code, message } = asPmlError(error);
    return { name: id, hash, problem: `${code}: ${message}` };
  }
}

async function show(context: CapabilityContext): Promise<CommandOutput> {
  const { capabilities, saving, first: id } = context;
  const whole = capabilities.store.load(id);
  const { stale, facts } = await saving.describe(whole);
  const { calls: _, ...about } = await describeCapability(context, id);
  const { kind, text, parameters, toolsUsed } = whole;
  const content = { [kind]: kind === "plan" ? parseExact(text) : text };
  return {
    value: { ...about, ...content, parameters, tools_used: toolsUsed, stale },
    text: [
      `${id} [${kind}, ${about.runs}]`,
      ...[about.problem ?? [], facts].flat().map(escapeInvisible),
    ].join("\n"),
  };
}

async function save(context: CapabilityContext): Promise<CommandOutput> {
  const { saving, first: name, input: { code, plan, parameter = [], description } } = context;
  if ((code === undefined) === (plan === undefined)) {
    throw usage(
      "Cannot save: wanted a name, and --code FILE or --plan FILE",
      "Look at `pml capability --help`",
    );
  }
  const file = code ?? plan ?? "";
  const kind = code === undefined ? "plan" : "code";
  const parameters = parseArguments(parameter, { base: {}, schema: {} });
  const text = readFile(file);
  if (kind === "plan") parseFile(text, file);
  const saveAs = { name, parameters, ...withoutUndefined({ description }) };
  return await confirmSave(context, saving.prepare(saveAs, { kind, text }));
}

/** Shows a whole capability, and saves it if the user agrees. */
async function confirmSave(context: CapabilityContext, prepared: Prepared): Promise<CommandOutput> {
  await assertValid(context.app, prepared.capability);
  const review = await context.saving.review(prepared);
  const { id, hash, facts } = review;
  const value = { name: id, hash, facts };
  if (context.input.json) return { value };
  return await confirm(context, "save", {
    ...{ value, facts: facts.map(escapeInvisible), run: () => context.saving.accept(review) },
    done: `Saved: call it as ${id}`,
  });
}

async function rename(context: CapabilityContext): Promise<CommandOutput> {
  const { app, capabilities, saving, first: from, second = "" } = context;
  const { store } = capabilities;
  const to = saving.parseName(second);
  const shownHash = store.readApproved().get(from);
  const { kind } = store.load(from);
  const { judge } = app.policy.now;
  // Without a rule for the new name, the rules for the tools that the capability calls decide.
  const toolsOf = (id: ToolId) => id === to ? capabilities.toolsOf(from) : undefined;
  const judgeRenamed = capabilityJudge({ toolsOf }, judge, judge);
  return await confirm(context, "rename", {
    value: { from, to },
    facts: [
      `"${to}" is then this ${kind}. No rule for "${from}" applies to it`,
      `Effect of a call by its new name: ${EFFECTS[judgeRenamed(to).kind]}`,
    ],
    run: () => store.rename(from, { to, shownHash }),
    done: `Renamed: call it as ${to}`,
  });
}

async function remove(context: CapabilityContext): Promise<CommandOutput> {
  const { capabilities: { store }, first: id, input: { yes } } = context;
  // Does not load the capability, so that one with a broken file can be deleted.
  store.assertApproved(id);
  const shownHash = store.readApproved().get(id);
  const run = () => store.rename(id, { shownHash });
  const action = { value: { deleted: id }, facts: [`"${id}"`], run, done: `Deleted: ${id}` };
  return await confirm(context, "delete", { ...action, isAgreed: yes });
}

/** An action that the user confirms on the terminal. */
interface ConfirmedAction {
  readonly value: unknown;
  readonly facts: readonly string[];
  readonly run: () => Promise<void>;
  /** The text that reports the finished action. */
  readonly done: string;
  /** Whether the user has agreed already. */
  readonly isAgreed?: boolean | undefined;
}

/** Runs an action if the user confirms it on the terminal. `verb` names the action. */
async function confirm(
  { signal, first }: CapabilityContext,
  verb: string,
  { value, facts, run, done, isAgreed = false }: ConfirmedAction,
): Promise<CommandOutput> {
  if (!isAgreed) {
    // guard: capability-person
    assertTerminal(`Cannot ${verb} ${quoted(first, 400)}`, "");
    const question = `${verb.charAt(0).toUpperCase()}${verb.slice(1)} exactly this?`;
    if (!await agrees(question, { signal }, facts)) return unchanged(value);
  }
  await run();
  return { value, text: done };
}

function readFile(file: string): string {
  try {
    return readRegularText(typedPath(file), { most: FILE_MAX, links: true });
  } catch (error) {
    throw usage(`Cannot read ${quoted(file, 400)}: ${whyUnread(error)}`, "Give the path of a file");
  }
}

function parseFile(text: string, file: string): Record<string, Json> {
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    // Reported below.
  }
  if (isObject(value)) return value as Record<string, Json>; // it was parsed from JSON
  throw new PmlError("BAD_ARGUMENTS", `Cannot use ${quoted(file, 400)}: it is not a JSON object`, {
    hint: "Give the file of a plan, or a file that `pml capability export` wrote",
  });
}
