/**
 * `pml add`, `pml remove` and `pml list`: the servers of the user and of the workspace.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, objectOf, quoted, visible, withoutUndefined } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { fqdnOf } from "../registry/fqdn.ts";
import { programsOf } from "../servers/kinds.ts";
import { UnreachedName } from "../servers/unreached_name.ts";
import { CREDENTIALS, toDefinition } from "./_added_definition.ts";
import { addModule, moduleIn } from "./_add_module.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { type FileChange, planChange } from "./_config_file.ts";
import {
  agreesToRemove,
  DefinitionEdit,
  type ExistingEntry,
  findExistingEntry,
  findReplacedEntry,
  offerSignOut,
  removalOf,
  removePins,
  undefinedServer,
  writeRemovals,
} from "./_definition_edit.ts";
import { findWholeUndo } from "./_whole_undo.ts";
import { usage } from "./_failure.ts";
import { stateText } from "./_find.ts";
import { startNewServer } from "./_first_start.ts";
import { shellWord } from "./_shell_word.ts";
import { findTarget, lastEditIndex } from "./_undoable_edits.ts";
import { revertEdits } from "./_import.ts";
import { storedKeysOf, usersOf } from "./_other_value.ts";
import { ruleRemovals } from "./_rules.ts";
import { askValues, storeValues } from "./_server_keys.ts";
import { pruneUnused } from "./prune.ts";
import {
  afterDone,
  agrees,
  askSecret,
  assertTerminal,
  isTerminal,
  stopError,
} from "./_terminal.ts";
import { commandProcess } from "./command_process.ts";
import { tell } from "./out.ts";

/** The state of a server whose tools PML does not have yet, in a list that starts no server. */
const NOT_STARTED = "not started";
const NPM_PREFIX = "npm:";
const HOW_TO_ADD =
  "Name its command, address or package: pml add NAME -- COMMAND, NAME --url URL, or npm:PACKAGE";
/** Matches a first word that is a package or an address, so the user typed no name. */
const PACKAGE_OR_ADDRESS = /^(?:npm:|@)|:\/\//;

/** Adds a server by its command, address, module file, npm package or name in a registry. */
export async function add(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  if (input.undo) return await undoReplacement(context, input);
  const { words, url } = input;
  if (words.length === 0) throw missingName(input);
  const module = moduleIn(input);
  if (module !== undefined) return await addModule(context, module, input);
  const [title = "", ...command] = PACKAGE_OR_ADDRESS.test(words[0] ?? "") ? ["", ...words] : words;
  const [program = "", ...rest] = command;
  const [sign] = /^@|:\/\//.exec(program) ?? [];
  if (sign !== undefined) {
    const correction = sign === "@" ? `npm:${program}` : `${title || "NAME"} --url ${program}`;
    throw usage(
      `Cannot add ${quoted(program)}: it is not a name`,
      `Write \`pml add ${correction}\``,
    );
  }
  // With --replace, --env or --header alone change the definition that exists.
  const isChange = (input.env ?? input.header) !== undefined;
  if (program === "" && url === undefined && !(isChange && !endsWithoutCommand())) {
    return await addNamed(context, input);
  }
  const isAsking = !input.json && isTerminal();
  const addition = await toAddition(context, { title, program, rest, command, input, isAsking });
  const { name, edit, server, facts, workspace, isReplaced } = addition;
  const { path, diff } = edit.change;
  const { definition, keys } = server;
  if (input.json) return { value: { name, path, definition, keys, diff } };
  assertTerminal(`Cannot add ${quoted(name)}`);
  const verb = edit.verb === "add" ? "Add" : "Replace";
  if (!await agrees(`${verb} ${name} and start it?`, context, facts)) return unchanged();
  // Asks all questions before the first change, so that nothing has changed if the user stops.
  const names = await askValues(context, "typed", server.pick);
  const values = await askKeys(context, server);
  await edit.askRemovals();
  await edit.write();
  const allValues = new Map([...server.pick.values, ...values]);
  const stored = await storeValues(context, allValues, [
    ...server.pick.replaced,
    ...names,
    ...values.keys(),
  ]);
  const lines = [
    ...stored.values(),
    ...edit.notes,
    ...isReplaced ? await offerSignOut(context, { name, url }) : [],
  ];
  if (lines.length > 0) tell(lines.join("\n"));
  const revert = () => edit.revert();
  const [undoText] = edit.notes;
  return await startNewServer(context, {
    name,
    isNpm: addition.isPackage,
    workspace,
    revert,
    undoText,
  });
}

function missingName({ url, header }: CommandInput): PmlError {
  const more = header === undefined ? "" : " --header …";
  return usage(
    "Cannot add: the name of the server is missing",
    url === undefined ? HOW_TO_ADD : `Write \`pml add NAME --url ${shellWord(url)}${more}\``,
  );
}

/** A server to add. */
export interface Addition {
  readonly name: string;
  readonly edit: DefinitionEdit;
  readonly server: Awaited<ReturnType<typeof toDefinition>>;
  /** The change and the facts about the server, for the user. */
  readonly facts: readonly string[];
  readonly workspace: boolean;
  readonly isReplaced: boolean;
  /** Whether npx starts it. */
  readonly isPackage: boolean;
}

/** Returns the edit that adds the typed package, command or address. */
export async function toAddition(
  context: CommandContext,
  { title = "", program: typedProgram = "", rest = [], command = [], input, isAsking = false }: {
    readonly title?: string;
    /** The program, or `npm:` and the name of a package. */
    readonly program?: string;
    /** The arguments of the package. */
    readonly rest?: readonly string[];
    /** The program with its arguments. */
    readonly command?: readonly string[];
    readonly input: CommandInput;
    /** Whether to ask about a typed key if PML has another value of its name. */
    readonly isAsking?: boolean;
  },
): Promise<Addition> {
  const { url } = input;
  const isNpm = typedProgram.startsWith(NPM_PREFIX);
  const spec = typedProgram.slice(NPM_PREFIX.length);
  const name = title || nameFromPackage(spec);
  const [program, ...args] = isNpm ? ["npx", "-y", spec, ...rest] : command;
  const existing = await findReplacedEntry(context, name, input);
  const present = program === undefined && url === undefined
    ? changeableEntry(name, existing, input)
    : {};
  const hasAddress = (url ?? present.url) !== undefined;
  assertPassable(name, input, hasAddress);
  const headers = { ...objectOf(present.headers), ...parseHeaders(input.header) };
  const fields = {
    ...present,
    ...(program !== undefined && { command: program, args }),
    ...(url !== undefined && { url }),
    ...(hasAddress && { headers }),
    ...(input.env !== undefined && {
      env: { ...objectOf(present.env), ...parsePairs(input.env, "=") },
    }),
  };
  const workspace = existing?.workspace ?? input.workspace === true;
  const server = await toDefinition(context, { name, fields, workspace, existing, isAsking });
  const entry = { ...present, ...server.definition };
  const edit = await DefinitionEdit.of(context, {
    ...{ name, workspace, existing, section: "mcpServers", entry },
  });
  return {
    ...{ name, edit, server, workspace },
    facts: [edit.change.shown, ...edit.facts, ...server.lines],
    isReplaced: existing !== undefined,
    isPackage: (program ?? present.command) === "npx" && present.confine !== true,
  };
}

/** Throws if a program would get headers, or a server at an address variables. */
function assertPassable(name: string, { env, header }: CommandInput, hasAddress: boolean): void {
  if (hasAddress && env !== undefined) {
    throw usage(
      `Cannot pass variables to ${quoted(name)}: it runs at its address, not on this machine`,
      "Pass a key with --header",
    );
  }
  if (!hasAddress && header !== undefined) {
    throw usage(
      `Cannot send headers to ${quoted(name)}: it is a program`,
      "Pass a key with --env",
    );
  }
}

/** Returns the definition that `--env` or `--header` change. Throws if there is none. */
function changeableEntry(
  name: string,
  existing: ExistingEntry | undefined,
  { replace = false }: CommandInput,
): JsonObject {
  if (existing?.section === "mcpServers") return existing.entry;
  const tried = `Cannot ${replace ? "change" : "add"} ${quoted(name)}`;
  if (existing !== undefined) {
    throw usage(`${tried}: it is a module`, "`env` of its grants names its variables");
  }
  throw replace ? usage(`${tried}: no file of yours defines it`, HOW_TO_ADD) : usage(
    `${tried}: its command or address is missing`,
    `${HOW_TO_ADD}. With --replace, --env and --header change a server that you have`,
  );
}

/** Returns whether the command line ends with `--`. */
function endsWithoutCommand(): boolean {
  return commandProcess().args.at(-1) === "--";
}

/** Adds a server of a registry. The user typed only its name. */
async function addNamed(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { words: [title = ""] } = input;
  if (endsWithoutCommand()) {
    throw usage(`Cannot add ${quoted(title)}: there is no command after --`, HOW_TO_ADD);
  }
  if (!input.replace) return await addOffered(context, input);
  throw usage(
    `Cannot replace ${quoted(title)}: the new definition is missing`,
    `Write it after the name: -- COMMAND, --url URL, npm:PACKAGE or the file of a module`,
  );
}

/** Asks for the keys of a definition that are not set. Returns the values to store. */
async function askKeys(
  context: CommandContext,
  { keys, pick }: Awaited<ReturnType<typeof toDefinition>>,
): Promise<ReadonlyMap<string, string>> {
  const values = new Map<string, string>();
  for (const { name } of keys.filter((key) => !key.set && !pick.values.has(key.name))) {
    if (!await agrees(`${name} is not set. Store its value in PML now?`, context)) continue;
    const value = await askSecret(`The value of ${name}`, context.signal);
    if (value === undefined) throw stopError();
    if (value !== "") values.set(name, value);
  }
  return values;
}

/** Reverts the last `pml add --replace`. */
async function undoReplacement(
  context: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const { workspace = false } = input;
  const target = await findTarget(context.app, workspace);
  const index = lastEditIndex(context.app, target.path, "replacement");
  if (index >= 0) {
    return await revertEdits(context, [await findWholeUndo(context.app, target, { index })], {
      tried: "Cannot undo the replacement",
      input,
    });
  }
  throw usage(
    `Cannot undo: there is no \`pml add --replace\` in ${target.path} to undo`,
    "`--workspace` undoes one in .pml.json; `pml remove` removes a server",
  );
}

/** Adds a server that a registry offers, after a yes of the user. */
async function addOffered(
  context: CommandContext,
  { words: [name = ""] }: CommandInput,
): Promise<CommandOutput> {
  const { version, name: server } = fqdnOf(name) ?? {};
  if (version !== undefined) {
    throw usage(
      `Cannot add ${quoted(name)}: PML uses the newest version that a registry has`,
      `Run \`pml add ${server}\``,
    );
  }
  const registries = await context.app.registries();
  const findUnapproved = () =>
    registries.findUnapproved(name, { signal: context.signal, isAllowed: false, isNamed: true });
  const approval = await findUnapproved().catch((error) => {
    if (!(error instanceof UnreachedName)) throw error;
    const { code, message, hint = "", detail } = error;
    throw new PmlError(code, message, {
      hint: `${hint}. ${HOW_TO_ADD}`,
      cause: error,
      ...withoutUndefined({ detail }),
    });
  });
  if (approval === undefined && registries.find(name) === undefined) {
    throw usage(
      `Cannot add ${quoted(name)}: no registry has it`,
      HOW_TO_ADD,
    );
  }
  if (approval !== undefined) {
    assertTerminal(`Cannot add ${quoted(name)}`, "");
    if (!await agrees(`Use ${name} in this workspace?`, context, approval.facts)) {
      return unchanged();
    }
    await approval.accept();
    await findUnapproved();
  }
  const revert = async () => await (await context.app.pins()).remove([name]);
  return await startNewServer(context, { name, isNpm: false, workspace: true, revert });
}

/** Removes the definition of a server. */
export async function remove(
  context: CommandContext,
  { words: [name = ""], workspace, json }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const change = await removalFrom(app, name, workspace);
  const slug = serverSlug(name);
  if (json) {
    const removals = await ruleRemovals(app, slug);
    const parts = [...new Set(removals.flatMap(({ parts }) => parts))];
    return { value: { name, path: change.path, diff: change.diff, parts } };
  }
  assertTerminal(`Cannot remove ${quoted(name)}`);
  if (!await agrees(`Remove ${name}?`, context, [change.shown])) return unchanged();
  const keys = storedKeysOf(app, slug);
  await change.write();
  await app.policy.reload();
  const done = [`${change.path}: changed`];
  const ruleFiles = await afterDone(context.signal, done, () => removeRules(context, slug));
  await removePins(app, slug);
  const pruned = await pruneUnused(app);
  const note = [
    ...pruned.length === 0
      ? []
      : [`Also removed, because no other server uses it: ${pruned.join(", ")}`],
    ...keys.filter((key) => usersOf(app, key).length === 0).map((key) =>
      `No server here needs your key ${key} now; \`pml key remove ${key}\` removes it`
    ),
  ].join("\n");
  return {
    value: { name, path: change.path, rules: ruleFiles, pruned },
    text: [...new Set([change.path, ...ruleFiles])].map((path) => `${path}: changed`).join("\n"),
    note,
  };
}

/** Returns the change that removes the definition of a server. Throws if no file defines it. */
export async function removalFrom(
  app: App,
  name: string,
  workspace?: boolean,
): Promise<FileChange> {
  const { existing, names } = await findExistingEntry(app, name, { workspace, tried: "remove" });
  if (existing === undefined) throw undefinedServer(app, name, names);
  return await planChange(app, { workspace: existing.workspace, settings: removalOf(existing) });
}

/**
 * Offers to remove the rules and grants of a removed server, because they would apply to the next
 * server with its name. Returns the changed files.
 */
async function removeRules(context: CommandContext, name: string): Promise<readonly string[]> {
  const removals = await ruleRemovals(context.app, name);
  if (removals.length === 0 || !await agreesToRemove(context, name, { removals })) return [];
  return await writeRemovals(context.app, removals);
}

/**
 * Lists the servers, where each is defined, and its state: `ready` if PML has its tools, from this run
 * or an earlier one. Starts no server.
 */
export async function listServers({ app }: CommandContext): Promise<CommandOutput> {
  await app.servers.lists.prepareCached();
  await app.servers.noteUnreached();
  const { file, userConfig } = app.loaded();
  const pathOf = (name: string) => {
    const { definition } = app.directory.get(name);
    return [file, userConfig].find((each) => each?.servers.some((server) => server === definition))
      ?.path;
  };
  const unconfined = programsOf(app.config().servers).filter(({ countsAsUnconfined }) =>
    countsAsUnconfined
  )
    .map(({ name }) => name);
  const servers = app.servers.states().map(({ name, kind, origin, state, why }) => ({
    name,
    kind,
    origin,
    state: state === "unknown" ? NOT_STARTED : state,
    why,
    ...(unconfined.includes(name) && { confined: false }),
    path: pathOf(name),
  }));
  const lines = servers.map(({ name, kind, origin, state, path, why, confined }) => {
    return `${name.padEnd(20)} ${kind.padEnd(7)} ${path === undefined ? origin : visible(path)}, ${
      stateText({ state, ...withoutUndefined({ why }) })
    }${confined === false ? ", unconfined: only Deno limits its grants" : ""}`;
  });
  const isAnyUnlisted = servers.some(({ state }) => state === NOT_STARTED);
  return {
    value: { servers },
    text: lines.join("\n"),
    note: isAnyUnlisted ? "`pml tools SERVER` starts a server and lists its tools" : "",
  };
}

/** Returns the name of a server for a package: `@scope/server-files@1` is `files`. */
function nameFromPackage(spec: string): string {
  const bare = spec.replace(/^(@[^/]+\/)?/, "").replace(/@.*$/, "");
  if (bare !== "") {
    return serverSlug(bare.replace(/^(?:mcp-)?server-|-mcp(?:-server)?$|^mcp-/g, ""));
  }
  throw usage(
    `Cannot add ${quoted(spec)}: it is not a package`,
    "Write npm:NAME or npm:@SCOPE/NAME",
  );
}

/** Parses headers. A text without a name, such as `Bearer KEY`, is the header `Authorization`. */
function parseHeaders(texts: readonly string[] = []): Readonly<Record<string, string>> {
  const named = texts.map((text) => CREDENTIALS.test(text) ? `Authorization: ${text}` : text);
  const headers = parsePairs(named, ":");
  for (const [name, value] of Object.entries(headers)) {
    if (value !== "" && !/^(?:Bearer|Basic)$/i.test(value)) continue;
    throw usage(
      `Cannot use the header ${quoted(name)}: it has no value`,
      "Write it in single quotes: a shell replaces ${NAME} in double quotes",
    );
  }
  return headers;
}

function parsePairs(texts: readonly string[] = [], sign: string): Readonly<Record<string, string>> {
  return Object.fromEntries(texts.map((text) => {
    const position = text.indexOf(sign);
    if (position > 0) return [text.slice(0, position).trim(), text.slice(position + 1).trim()];
    throw usage(
      `Cannot read ${quoted(text.slice(0, 20))}: it has no "${sign}"`,
      `Write NAME${sign}VALUE`,
    );
  }));
}
