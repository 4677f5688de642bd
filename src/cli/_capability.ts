/**
 * `pml capability`: shows what the person saved, saves, renames and deletes, and moves it between
 * machines.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { assertRuns, hidden, ownerOf, unhidden } from "../app/app_capabilities.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, quoted, visible, visibleLines } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { readRegularText, whyUnread } from "../io/regular_file.ts";
import { parseArguments } from "./_arguments.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { askWord, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type Open = Awaited<ReturnType<App["capabilities"]>>;
type Review = Awaited<ReturnType<Open["saving"]["review"]>>;
type Work = (at: CommandContext, typed: Typed) => Promise<Shown>;

/** What there is, by the first word. */
const COMMANDS: Readonly<Record<string, Work>> = {
  list,
  show,
  save,
  rename,
  delete: remove,
  export: exported,
  import: imported,
};
const FILE_MAX = 4_000_000;

/** Runs `pml capability`. */
export async function capability(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [what = "list", ...words] } = typed;
  const command = Object.hasOwn(COMMANDS, what) ? COMMANDS[what] : undefined;
  if (command === undefined) {
    throw usage(
      `Cannot run \`pml capability ${visible(what)}\`: there is no such command`,
      `Use one of ${Object.keys(COMMANDS).join(", ")}`,
    );
  }
  return await command(at, { ...typed, words });
}

async function list({ app }: CommandContext): Promise<Shown> {
  const { capabilities } = await app.capabilities();
  const all = await Promise.all(
    [...capabilities.store.approved()].map(async ([id, hash]) => await told(app, { id, hash })),
  );
  const texts = all.map(({ name, kind, calls, runs, problem }) => {
    const said = problem ?? `calls ${calls?.join(", ") || "no tool"}`;
    return `${name} [${[kind, runs].filter(Boolean).join(", ")}]\n  ${visible(said, 500)}`;
  });
  const note = all.length === 0
    ? "Nothing is saved yet: save with `pml capability save`, or with save_as in a client"
    : "";
  return { value: all, text: texts.join("\n"), note };
}

/** What is told of one capability in a list. */
interface Told {
  readonly name: ToolId;
  readonly hash: string;
  readonly kind?: string;
  readonly description?: string;
  readonly calls?: readonly string[];
  readonly runs?: string;
  /** Why it does not run as it is, or asks. */
  readonly problem?: string;
}

async function told(
  app: App,
  { id, hash }: { readonly id: ToolId; readonly hash: string },
): Promise<Told> {
  const { capabilities } = await app.capabilities();
  const { server } = splitToolId(id);
  const owner = ownerOf(app, server);
  try {
    const { kind, description, toolsUsed } = capabilities.load(id);
    const said = { allow: "runs", ask: "asks", deny: "denied" } as const;
    const stale = await capabilities.remark(id);
    return {
      name: id,
      ...{ kind, hash, ...defined({ description }) },
      calls: Object.keys(toolsUsed),
      runs: said[app.policy.now.judge(id).kind],
      ...defined({ problem: owner === undefined ? stale : hidden(server, owner) }),
    };
  } catch (error) {
    const { code, message } = asPmlError(error);
    return { name: id, hash, problem: `${code}: ${message}` };
  }
}

async function show({ app }: CommandContext, { words: [name] }: Typed): Promise<Shown> {
  const { capabilities } = await app.capabilities();
  const id = named(name, "show");
  const whole = capabilities.load(id);
  const { lines, gone } = await capabilities.changesOf(whole, { isAsked: true });
  const hash = capabilities.store.approved().get(id) ?? "";
  const { problem, runs } = await told(app, { id, hash });
  const changed = [...gone.map((tool) => `${tool} is gone`), ...lines];
  const { kind, text, description, parameters, toolsUsed } = whole;
  return {
    value: {
      ...defined({ name: id, kind, hash, runs }),
      ...{ [kind]: kind === "plan" ? JSON.parse(text) : text },
      ...defined({ description, problem, returns: whole.returns }),
      ...{ parameters, tools_used: toolsUsed, stale: changed },
    },
    text: [
      `${id} [${kind}, ${runs}]`,
      ...(description === undefined ? [] : [visible(description, Infinity)]),
      `hash: ${hash}`,
      `parameters: ${visible(JSON.stringify(parameters.properties ?? {}), Infinity)}`,
      ...Object.entries(toolsUsed).map(([tool, used]) => `calls ${visible(tool)}: ${used}`),
      ...(problem === undefined ? [] : [visible(problem, 500)]),
      ...(changed.length === 0 ? [] : ["Changed since it was saved; a call asks you first:"]),
      ...changed.map((line) => `  ${unhidden(line)}`),
      "",
      visibleLines(text, Infinity),
    ].join("\n"),
  };
}

async function save(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [name], code, plan, parameter = [], description } = typed;
  if (name === undefined || (code === undefined) === (plan === undefined)) {
    throw usage("Cannot save: wanted a name, and --code FILE or --plan FILE", "See `--help`");
  }
  const { saving } = await at.app.capabilities();
  const file = code ?? plan ?? "";
  const kind = code === undefined ? "plan" : "code";
  const parameters = parseArguments(parameter, { base: {}, schema: {} });
  const text = textOf(file);
  if (kind === "plan") parsed(text, file);
  await assertRuns(at.app, { kind, text });
  const prepared = saving.prepare({ name, parameters, ...defined({ description }) }, {
    kind,
    text,
  });
  return await agreed(at, { review: await saving.review(prepared, { tools: [] }), ...typed });
}

async function imported(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [file, name] } = typed;
  if (file === undefined) throw usage("Cannot import: wanted a file", "See `--help`");
  const { saving } = await at.app.capabilities();
  const { id, capability } = saving.parse(parsed(textOf(file), file), name);
  await assertRuns(at.app, capability);
  return await agreed(at, { review: await saving.imported(id, capability), ...typed });
}

/** Shows all of a capability, and saves it if the person types the word. */
async function agreed(
  { signal }: CommandContext,
  { review, json }: { readonly review: Review; readonly json?: boolean },
): Promise<Shown> {
  const { id, hash, facts, accept } = review;
  const value = { name: id, hash, facts };
  if (json) return { value };
  needPerson(`Cannot save "${id}"`, "pml capability save");
  for (const fact of facts) tell(unhidden(fact));
  if (await askWord('Type "save" to save exactly this', signal) !== "save") {
    return { value, text: "Not saved: nothing was changed", code: 1 };
  }
  await accept();
  return { value, text: `Saved: call it as ${id}` };
}

async function rename({ app, signal }: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [name, other] } = typed;
  const { capabilities, saving } = await app.capabilities();
  const from = named(name, "rename");
  if (other === undefined) throw usage("Cannot rename: wanted the new name", "See `--help`");
  const to = saving.mayBe(other);
  const { kind } = capabilities.load(from);
  needPerson(`Cannot rename "${from}"`, "pml capability rename");
  tell(
    `"${to}" is then what "${from}" is now (${kind}). Rules that name "${from}" name it no more,`,
  );
  tell(
    `and ${
      app.policy.now.judge(to).kind === "allow" ? "it runs" : "it asks you"
    } by the rules of its new name`,
  );
  if (await askWord('Type "rename" to do so', signal) !== "rename") {
    return { value: { from, to }, text: "Not renamed: nothing was changed", code: 1 };
  }
  await capabilities.store.rename(from, to);
  return { value: { from, to }, text: `Renamed: call it as ${to}` };
}

async function remove({ app, signal }: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [name], yes } = typed;
  const { capabilities } = await app.capabilities();
  const id = named(name, "delete");
  const value = { deleted: id };
  if (yes !== true) {
    needPerson(`Cannot delete "${id}"`, "pml capability delete");
    if (await askWord(`Type "delete" to delete "${id}"`, signal) !== "delete") {
      return { value, text: "Not deleted: nothing was changed", code: 1 };
    }
  }
  await capabilities.store.delete(id);
  return { value, text: `Deleted: ${id}` };
}

async function exported({ app }: CommandContext, { words: [name] }: Typed): Promise<Shown> {
  const { capabilities, saving } = await app.capabilities();
  const id = named(name, "export");
  return { value: saving.exportForm(id, capabilities.load(id)) };
}

function named(name: string | undefined, what: string): ToolId {
  if (name !== undefined) return name as ToolId; // a name that is none is not found
  throw usage(
    `Cannot ${what} a capability: wanted its name`,
    "See them with `pml capability list`",
  );
}

function textOf(file: string): string {
  try {
    return readRegularText(file, { most: FILE_MAX, links: true });
  } catch (error) {
    throw usage(`Cannot read ${quoted(file, 400)}: ${whyUnread(error)}`, "Give the path of a file");
  }
}

function parsed(text: string, file: string): Record<string, Json> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Told below.
  }
  if (isObject(value)) return value as Record<string, Json>; // it came from JSON
  throw new PmlError("BAD_ARGUMENTS", `Cannot use ${quoted(file, 400)}: it is no JSON object`, {
    hint: "Give a plan, or what `pml capability export` wrote",
  });
}
