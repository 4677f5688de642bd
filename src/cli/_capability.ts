/**
 * `pml capability`: lists, shows, saves, renames, deletes, exports and imports capabilities.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { assertValid, exportForm, hidden, nameOwner, unhidden } from "../app/app_capabilities.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, quoted, visible } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { parseExact } from "../core/exact_json.ts";
import { readRegularText, whyUnread } from "../io/regular_file.ts";
import { parseArguments } from "./_arguments.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { subcommandOf, usage } from "./_failure.ts";
import { agrees, needPerson } from "./_terminal.ts";
import { typedPath } from "./command_process.ts";

type OpenCapabilities = Awaited<ReturnType<App["capabilities"]>>;
type Prepared = ReturnType<OpenCapabilities["saving"]["prepare"]>;
/** The context of a subcommand: the open capabilities, and its words. */
interface At extends CommandContext, OpenCapabilities {
  readonly typed: Typed;
  /** The first word: a name or a file. A name that is none is not found. */
  readonly first: ToolId;
  readonly second: string | undefined;
}
type Work = (at: At) => Shown | Promise<Shown>;
const FILE_MAX = 4_000_000;

/** Runs `pml capability`. */
export async function capability(at: CommandContext, typed: Typed): Promise<Shown> {
  const words = typed.words.length === 0 ? ["list"] : typed.words;
  const work = subcommandOf<Work>("capability", words, {
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
      (at) => agreed(at, at.saving.parse(parsed(textOf(at.first), at.first), at.second)),
      1,
      2,
    ],
  });
  const [, first = "", second] = words;
  const open = await at.app.capabilities();
  return await work({ ...at, ...open, typed, first: first as ToolId, second });
}

async function list(at: At): Promise<Shown> {
  const ids = [...at.capabilities.store.approved().keys()];
  const all = await Promise.all(ids.map((id) => factsOf(at, id)));
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
interface Told {
  readonly name: ToolId;
  readonly hash: string | undefined;
  readonly kind?: string;
  readonly description?: string;
  readonly calls?: readonly string[];
  readonly runs?: string;
  /** Why it does not run as it is, or asks. */
  readonly problem?: string;
}

async function factsOf({ app, capabilities }: At, id: ToolId): Promise<Told> {
  const hash = capabilities.store.approved().get(id);
  try {
    const { kind, description, toolsUsed } = capabilities.store.load(id);
    const { server } = splitToolId(id);
    const owner = nameOwner(app, server);
    const problem = owner === undefined ? await capabilities.remark(id) : hidden(server, owner);
    const runs = { allow: "runs", ask: "asks", deny: "denied" }[app.policy.now.judge(id).kind];
    const calls = Object.keys(toolsUsed);
    return { name: id, hash, kind, calls, runs, ...defined({ description, problem }) };
  } catch (error) {
    const { code, message } = asPmlError(error);
    return { name: id, hash, problem: `${code}: ${message}` };
  }
}

async function show(at: At): Promise<Shown> {
  const { capabilities, saving, first: id } = at;
  const whole = capabilities.store.load(id);
  const { stale, facts } = await saving.describe(whole);
  const { calls: _, ...about } = await factsOf(at, id);
  const { kind, text, parameters, toolsUsed } = whole;
  const content = { [kind]: kind === "plan" ? parseExact(text) : text };
  return {
    value: { ...about, ...content, parameters, tools_used: toolsUsed, stale },
    text: [
      `${id} [${kind}, ${about.runs}]`,
      ...[about.problem ?? [], facts].flat().map(unhidden),
    ].join("\n"),
  };
}

async function save(at: At): Promise<Shown> {
  const { saving, first: name, typed: { code, plan, parameter = [], description } } = at;
  if ((code === undefined) === (plan === undefined)) {
    throw usage(
      "Cannot save: wanted a name, and --code FILE or --plan FILE",
      "Look at `pml capability --help`",
    );
  }
  const file = code ?? plan ?? "";
  const kind = code === undefined ? "plan" : "code";
  const parameters = parseArguments(parameter, { base: {}, schema: {} });
  const text = textOf(file);
  if (kind === "plan") parsed(text, file);
  const saveAs = { name, parameters, ...defined({ description }) };
  return await agreed(at, saving.prepare(saveAs, { kind, text }));
}

/** Shows all of a capability, and saves it if the user types the word. */
async function agreed(at: At, prepared: Prepared): Promise<Shown> {
  await assertValid(at.app, prepared.capability);
  const review = await at.saving.review(prepared);
  const { id, hash, facts } = review;
  const value = { name: id, hash, facts };
  if (at.typed.json) return { value };
  return await agreedTo(at, "save", {
    ...{ value, facts: facts.map(unhidden), work: () => at.saving.accept(review) },
    done: `Saved: call it as ${id}`,
  });
}

async function rename(at: At): Promise<Shown> {
  const { app, capabilities: { store }, saving, first: from, second = "" } = at;
  const to = saving.mayBe(second);
  const over = store.approved().get(from);
  const { kind } = store.load(from);
  return await agreedTo(at, "rename", {
    value: { from, to },
    facts: [
      `"${to}" is then this ${kind}. No rule for "${from}" applies to it; by its new name`,
      `the rules say: ${app.policy.now.judge(to).kind}`,
    ],
    work: () => store.rename(from, { to, over }),
    done: `Renamed: call it as ${to}`,
  });
}

async function remove(at: At): Promise<Shown> {
  const { capabilities: { store }, first: id, typed: { yes } } = at;
  // A capability whose file is broken can be deleted, so it is not loaded.
  store.assertApproved(id);
  const over = store.approved().get(id);
  const work = () => store.rename(id, { over });
  const request = { value: { deleted: id }, facts: [`"${id}"`], work, done: `Deleted: ${id}` };
  return await agreedTo(at, "delete", { ...request, isAgreed: yes });
}

/** An action that the user confirms by typing a word. */
interface ConfirmedAction {
  readonly value: unknown;
  readonly facts: readonly string[];
  readonly work: () => Promise<void>;
  readonly done: string;
  /** Whether the user has agreed already. */
  readonly isAgreed?: boolean | undefined;
}

/** Runs an action if the user confirms it at the terminal. */
async function agreedTo(
  { signal, first }: At,
  word: string,
  { value, facts, work, done, isAgreed = false }: ConfirmedAction,
): Promise<Shown> {
  if (!isAgreed) {
    // guard: capability-person
    needPerson(`Cannot ${word} ${quoted(first, 400)}`, "");
    const question = `${word.charAt(0).toUpperCase()}${word.slice(1)} exactly this?`;
    if (!await agrees(question, { signal }, facts)) return unchanged(value);
  }
  await work();
  return { value, text: done };
}

function textOf(file: string): string {
  try {
    return readRegularText(typedPath(file), { most: FILE_MAX, links: true });
  } catch (error) {
    throw usage(`Cannot read ${quoted(file, 400)}: ${whyUnread(error)}`, "Give the path of a file");
  }
}

function parsed(text: string, file: string): Record<string, Json> {
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    // Reported below.
  }
  if (isObject(value)) return value as Record<string, Json>; // it came from JSON
  throw new PmlError("BAD_ARGUMENTS", `Cannot use ${quoted(file, 400)}: it is no JSON object`, {
    hint: "Give a plan, or what `pml capability export` wrote",
  });
}
