/**
 * `pml learn`: runs a server under Deno's permissions, and proposes the smallest grants that it
 * works with.
 *
 * @module
 */

import { resolve } from "node:path";
import type { App } from "../app/app.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, quoted, visible } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { programOf, remoteOf } from "../servers/kinds.ts";
import { parseId, parseObject } from "./_arguments.ts";
import { answered } from "./_call.ts";
import { usage } from "./_failure.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { DataCopies, dataLines } from "./_learn_data.ts";
import { type Proposal, proposal } from "./_learn_file.ts";
import { exampleCommand, readingCall, type TrialCall } from "./_learn_examples.ts";
import { askUntrusted } from "./_trust.ts";
import { resultText } from "./_result.ts";
import { agrees, isTerminal } from "./_terminal.ts";
import { noPackage } from "./_upgrade.ts";
import { tell } from "./out.ts";

type Trial = Awaited<ReturnType<Awaited<ReturnType<App["callPath"]>>["machine"]["tryOut"]>>;
type Grants = Trial["grants"];
type Lesson = ReturnType<Trial["lesson"]>;

/** The grants and variables that a server runs with. */
interface TrialSettings {
  readonly grants: Grants;
  /** Variables that are set in addition to those of its definition. */
  readonly set: Lesson["env"];
}

/** The result of a trial: its last round, and the call to try if none was tried. */
interface Trials {
  readonly last: TrialRound;
  readonly calls: readonly TrialCall[];
}

/** The result of one attempt to run the server. */
interface TrialRound extends Lesson, TrialSettings {
  /** The error messages of what did not work. */
  readonly failures: readonly string[];
  /** The tools that worked, and the tools that were not called. */
  readonly tried: readonly string[];
  readonly untried: readonly string[];
  /** The tools of the server. */
  readonly tools: readonly ToolDefinition[];
  /** Whether all tools that worked are annotated as read-only. */
  readonly onlyRead: boolean;
}

/**
 * The maximum number of rounds of one trial. Each round may show another thing that the server
 * needs.
 */
const ROUNDS = 20;
/** The longest call that is offered, in characters. */
const LONGEST_CALL = 500;

/** Tries a server, and writes the grants that it needs if a user at a terminal agrees. */
export async function learn(at: CommandContext, { words: [name = "", ...words], json }: Typed) {
  const calls = readCalls(words, { name, servers: at.app.servers });
  const server = await serverOf(name, at);
  const asks = !json && isTerminal();
  const copies = new DataCopies();
  let isWritten = false;
  try {
    const trials = await triedWith(server, { at, calls, asks, copies });
    const { output, question, change } = await resultOf(at.app, server, trials);
    if (change?.write === undefined) return output;
    if (!asks) return { ...output, note: `${output.note}. Run it in a terminal to write this` };
    const facts = [output.text, ...copies.facts];
    if (!await agrees(question, at, facts)) return unchanged(output.value);
    await change.write();
    isWritten = true;
    const copied = copies.paths.map((path) => `${path}: copied`);
    return { ...output, text: [`${output.value.path}: changed`, ...copied].join("\n"), note: "" };
  } finally {
    if (!isWritten) copies.undo();
  }
}

/** The output of a trial, and the change that it proposes: only if a tool worked. */
interface TrialResult {
  readonly output: Shown & { readonly text: string; readonly value: { readonly path: string } };
  readonly question: string;
  readonly change?: Proposal;
}

async function resultOf(
  app: App,
  server: ServerDefinition,
  { last, calls }: Trials,
): Promise<TrialResult> {
  const { name } = server;
  const { grants, set, tools, onlyRead, ...about } = last;
  const isTried = tools.length === 0 || last.tried.length > 0;
  const planned = await proposal(app, { server, grants, set });
  const example = await exampleCommand(app, { server: name, tools, calls });
  const value = {
    ...{ server: name, grants, set, ...about, only_read: onlyRead, path: planned.path },
    diff: isTried ? planned.diff : "",
    ...defined({ example }),
  };
  const described = [describeRound(last), ...dataLines(last.data)];
  if (last.failures.length > 0) {
    const note = "The trial failed. Nothing was changed";
    const output = { value, text: described.join("\n"), note, code: 1 };
    return { output, question: "" };
  }
  if (!isTried) {
    const note = "Nothing is proposed, because no tool was tried";
    const text = [
      ...described,
      ...example ? [`Try a call, such as:\n  ${visible(example, 2_000)}`] : [],
    ];
    return { output: { value, text: text.join("\n"), note }, question: "" };
  }
  // The data folder belongs to one workspace, and the definition to all.
  const isShared = Object.keys(set).length > 0 && planned.path === app.loaded().person.path;
  const worked = calls.map(({ id, arguments: args }) => `${id} ${JSON.stringify(args)}`);
  const question = [
    ...worked.length === 0 ? [] : [`\nIt works with: ${visible(worked.join(", "), 1_000)}`],
    ...example ? [`To try other tools, answer no:\n  ${visible(example, 2_000)}`] : [],
    `Write this into ${planned.path}?`,
  ].join("\n");
  const shared = isShared ? ["Each workspace gets its own data folder"] : [];
  const text = [...described, planned.text, ...shared].join("\n");
  const output = { value, text, note: "Nothing was changed" };
  return { output, question, change: planned };
}

/** Tries a server. If no call is named, it offers one to a tool that reads. */
async function triedWith(
  server: ServerDefinition,
  { at, calls, asks, copies }: {
    readonly at: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly asks: boolean;
    readonly copies: DataCopies;
  },
): Promise<Trials> {
  const last = await tried(server, { at, calls, asks, copies });
  const isOver = calls.length > 0 || last.failures.length > 0 || !asks;
  const reading = isOver ? undefined : await readingCall(at.app, server.name, last.tools);
  if (reading === undefined) return { last, calls };
  const { id, arguments: args } = reading;
  const call = visible(`${id} ${JSON.stringify(args)}`, Infinity);
  // Its arguments come from the server, and the user must see all of them.
  // guard: example-shown
  if (call.length > LONGEST_CALL) return { last, calls };
  const facts = [toldTried(last)];
  if (!await agrees(`\nTry ${call} now? The tool only reads`, at, facts)) return { last, calls };
  const all = [reading];
  return { last: await tried(server, { at, calls: all, asks, copies }), calls: all };
}

/**
 * Runs the server with its present grants, then with those that the user adds, until it works or
 * the user stops.
 */
async function tried(
  { name }: ServerDefinition,
  { at, calls, asks, copies }: {
    readonly at: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly asks: boolean;
    readonly copies: DataCopies;
  },
): Promise<TrialRound> {
  let settings: TrialSettings = { grants: at.app.config().grants[name] ?? {}, set: {} };
  for (let rounds = 1;; rounds++) {
    const [round, more, withUnseen] = await oneRound(name, { at, calls, settings });
    const isWorking = round.failures.length === 0;
    const names = Object.keys({ ...round.missing, ...round.env });
    const isUnseen: boolean = isWorking && calls.length > 0 && round.unseen.length > 0;
    const isOver = isWorking ? !isUnseen : names.length === 0;
    if (isOver || !asks || rounds >= ROUNDS) return round;
    const variables = Object.keys(round.env).length === 0 ? "" : " and its own folder";
    const question = isUnseen
      ? "\nTry again and also let it read the data that it did not see?"
      : `\nTry again and also allow what it was denied${variables}?`;
    const isMore = await agrees(question, at, [describeRound(round)]);
    if (!isMore) return round;
    settings = isUnseen ? withUnseen : more;
    if (!isUnseen) await copies.offer(at, round.data);
  }
}

async function oneRound(
  name: string,
  { at, calls, settings }: {
    readonly at: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly settings: TrialSettings;
  },
): Promise<readonly [TrialRound, more: TrialSettings, withUnseen: TrialSettings]> {
  const { app } = at;
  const { grants, set } = settings;
  const { machine } = await app.callPath();
  const trial = await machine.tryOut(name, { grants, env: set });
  tell(`Trying ${quoted(name)}, confined to ${app.config().workspace}${beyond(settings)}`);
  const failures: string[] = [];
  const tried: string[] = [];
  let tools: readonly ToolDefinition[] = [];
  const attempt = async (what: string, work: () => Promise<string | undefined>) => {
    const failure = await work().catch((error) => failureOf(error, trial));
    if (failure !== undefined) {
      failures.push(`${what}: ${visible(failure.replaceAll("\n", " "), 1_200)}`);
    }
    return failure === undefined;
  };
  await attempt("its start", async () => {
    tools = await app.directory.at(name).list("tools") as unknown as readonly ToolDefinition[];
    return undefined;
  });
  for (const call of failures.length === 0 ? calls : []) {
    const isDone = await attempt(call.id, async () => {
      const result = await answered(call, at);
      const text = resultText(result);
      trial.hear(text);
      const isDenied = /Requires \w+ access|NotCapable/.test(text);
      return result.isError === true || isDenied ? text : undefined;
    });
    if (isDone) tried.push(call.id);
  }
  const lesson = trial.lesson();
  const idOf = (tool: ToolDefinition) => `${name}:${tool.name}`;
  const untried = tools.map(idOf).filter((id) => !calls.some((call) => call.id === id));
  const onlyRead = tools.filter((tool) => tried.includes(idOf(tool)))
    .every(({ annotations }) => isObject(annotations) && annotations.readOnlyHint === true);
  const round = { ...lesson, ...settings, failures, tried, untried, onlyRead, tools };
  const more = { grants: trial.with(lesson.missing), set: { ...set, ...lesson.env } };
  const isUnseen = (path: string) => lesson.unseen.includes(resolve(app.config().workspace, path));
  const { read = [], write = [] } = lesson.missing;
  const unseen = { read: read.filter(isUnseen), write: write.filter(isUnseen) };
  const lists = Object.entries(unseen).filter(([, list]) => list.length > 0);
  return [round, more, { grants: trial.with(Object.fromEntries(lists)), set }];
}

/**
 * Returns the message of a failure that the server caused. Throws a failure that the user or the
 * rules caused, which ends the trial.
 */
function failureOf(error: unknown, trial: Trial): string {
  const { code, message, detail } = asPmlError(error);
  if (/^(?:APPROVAL|PERMISSION|UNKNOWN|BAD_|KEY|WORKSPACE)/.test(code)) throw error;
  trial.hear(`${message} ${JSON.stringify(detail ?? {}).replaceAll('\\"', '"')}`);
  return message;
}

async function serverOf(name: string, { app, signal }: CommandContext): Promise<ServerDefinition> {
  const open = await app.policy.unapproved(name);
  if (open !== undefined) {
    tell(`This trial runs ${quoted(name)} confined. It needs trust in the whole file:`);
    if (!isTerminal() || !await askUntrusted(open, signal)) {
      const message = `Cannot try ${quoted(name)}: the workspace file is not trusted`;
      throw new PmlError("WORKSPACE_UNTRUSTED", message, { hint: "Look at it with `pml trust`" });
    }
  }
  const own = app.config().servers.find((one) => one.name === name);
  const program = own && programOf(own);
  if (program !== undefined) return program;
  const forbidding = app.policy.forbidden(name);
  if (forbidding !== undefined) throw forbidding.error;
  if (own === undefined && !app.builtins.has(name)) {
    throw noPackage(name, { app, what: "try" });
  }
  const why = own !== undefined && remoteOf(own) !== undefined
    ? "it is a remote server, so there is nothing to confine"
    : "it always runs in the sandbox";
  throw usage(`Cannot try ${quoted(name)}: ${why}`, "`pml list` shows the kind of each server");
}

/** Reads the calls to try. Each is a tool, followed by its arguments as JSON if it needs any. */
function readCalls(
  words: readonly string[],
  { name, servers }: { readonly name: string; readonly servers: App["servers"] },
): readonly TrialCall[] {
  const calls: TrialCall[] = [];
  for (const word of words) {
    const last = calls.at(-1);
    if (last && word.startsWith("{")) {
      last.arguments = parseObject(word);
      continue;
    }
    const id = parseId(word, servers);
    if (splitToolId(id).server !== name) {
      throw usage(`Cannot try ${quoted(id)}: it is not a tool of ${quoted(name)}`, "Leave it out");
    }
    calls.push({ id, arguments: {} });
  }
  return calls;
}

function beyond({ grants, set }: TrialSettings): string {
  const lines = linesOf(grants);
  const granted = lines.length === 0 ? ", with no grant" : `, with the grants: ${lines.join("; ")}`;
  const variables = Object.entries(set).map(([name, value]) => `, with ${name}=${value}`);
  return visible(granted + variables.join(""), 3_000);
}

function linesOf(grants: Grants): readonly string[] {
  return Object.entries(grants).map(([kind, list]) => `${kind} ${visible(list.join(", "), 2_000)}`);
}

function describeRound(round: TrialRound): string {
  const { failures, missing, left, variables, env, unseen } = round;
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
  const worked = failures.length === 0;
  return [
    ...(worked ? [toldTried(round)] : section("What failed:", failures)),
    ...section(worked ? "It worked without:" : "It was denied:", linesOf(missing)),
    ...section(
      "It did not see these, which exist. If they are its data, it begins without them:",
      worked ? unseen.map((path) => visible(path, 400)) : [],
    ),
    ...section("Left out:", left),
    ...section(
      'It read variables that are not set for it (set them under "env" of its definition):',
      variables.length === 0 ? [] : [visible(variables.slice(0, 20).join(", "), 1_000)],
    ),
    ...section(
      "It writes into its package folder. This sets a separate folder:",
      Object.keys(env).length === 0 ? [] : [`"env": ${visible(JSON.stringify(env), 1_000)}`],
    ),
  ].join("\n");
}

/** Returns a text that lists the tools that worked, and promises nothing about others. */
function toldTried({ tried, untried, onlyRead }: TrialRound): string {
  const others = untried.length === 0 ? "" : ` Not tried: ${untried.slice(0, 20).join(", ")}.`;
  if (tried.length === 0) return `It starts. No tool was tried.${others}`;
  const more = onlyRead ? " Tools that write may need more." : "";
  return `It starts, and these tools worked: ${tried.join(", ")}.${more}${others}`;
}
