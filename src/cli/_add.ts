/**
 * `pml add`, `pml remove` and `pml list`: the servers of the user and of the workspace.
 *
 * @module
 */

import { serverToSignInAt } from "../oauth/logins.ts";
import { pruneUnused } from "./prune.ts";
import { shownDefinition } from "../config/client_servers.ts";
import { serverText } from "../config/shown.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import {
  type CommandContext,
  prepare,
  type Shown,
  type Typed,
  unchanged,
} from "./_command_context.ts";
import { programsOf } from "../servers/kinds.ts";
import { changeOf, type FileChange } from "./_config_file.ts";
import { misnamed, usage } from "./_failure.ts";
import { stateSaid } from "./_find.ts";
import { findTarget, presentServers, SECTIONS } from "./_import_file.ts";
import { importablePick, keepValues } from "./_import.ts";
import { learn } from "./_learn.ts";
import { ruleRemovals } from "./_rules.ts";
import { login } from "./_login.ts";
import { askTable } from "./_table_question.ts";
import { agrees, needPerson } from "./_terminal.ts";
import { callToTry } from "./_tool_page.ts";
import { tell } from "./out.ts";

const OF_NPM = "npm:";
/** Matches a package or an address, which is not the name of a server. */
const NAMELESS = /^(?:npm:|@)|:\/\//;

/** Adds a server: of a command, of an address, of npm or of a registry. */
export async function add(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words, url } = typed;
  const [title = "", ...command] = NAMELESS.test(words[0] ?? "") ? ["", ...words] : words;
  const [what = "", ...rest] = command;
  const [sign] = /^@|:\/\//.exec(what) ?? [];
  if (sign !== undefined) {
    const how = sign === "@" ? `npm:${what}` : `${title || "NAME"} --url ${what}`;
    throw usage(`Cannot add ${quoted(what)}: it is no name`, `Write \`pml add ${how}\``);
  }
  if (what === "" && url === undefined) return await addOffered(at, typed);
  const isNpm = what.startsWith(OF_NPM);
  const spec = what.slice(OF_NPM.length);
  const name = title || nameOf(spec);
  const [program, ...args] = isNpm ? ["npx", "-y", spec, ...rest] : command;
  const wanted = {
    ...(program !== undefined && { command: program, args }),
    ...(url !== undefined && { url, headers: pairsOf(typed.header, ":") }),
    ...(typed.env !== undefined && { env: pairsOf(typed.env, "=") }),
  };
  const { change, definition, note, found } = await additionOf(at, {
    name,
    said: wanted,
    ...typed,
  });
  if (typed.json) return { value: definition };
  needPerson(`Cannot add ${quoted(name)}`);
  const facts = [change.shown, note].filter(Boolean);
  if (!await agrees(`Add ${name} and start it?`, at, facts)) return unchanged();
  await change.write();
  await at.app.policy.reload();
  const kept = await keepValues(at, found, "as you typed it");
  if (kept.size > 0) tell([...kept.values()].join("\n"));
  const takeOut = async () => {
    const settings = [{ at: ["mcpServers", name] as const, entry: undefined }];
    await (await changeOf(at.app, { workspace: typed.workspace === true, settings })).write();
    await at.app.policy.reload();
  };
  const workspace = typed.workspace === true;
  return await tried(at, { name, isNpm: program === "npx", workspace, takeOut });
}

/** Returns the change that adds a definition, without the secrets in it. */
async function additionOf(
  { app }: CommandContext,
  { name, said, workspace = false }: Typed & {
    readonly name: string;
    readonly said: Readonly<Record<string, unknown>>;
  },
) {
  const path = "the command line";
  const entry = { client: undefined, path, key: [name], name, said, near: 0, disabled: false };
  const target = await findTarget(app, workspace);
  const found = await importablePick(app, [entry], target);
  const { taken: [taken], skipped: [skipped], values } = found;
  if (taken === undefined || taken.name !== name) {
    const why = taken === undefined
      ? skipped?.why
      : `it is not a valid name; a valid one is ${taken.name}`;
    throw usage(`Cannot add ${quoted(name)}: ${why}`, "Look at `pml add --help`");
  }
  const settings = [{ at: ["mcpServers", name] as const, entry: taken.definition }];
  const change = await changeOf(app, { workspace, settings });
  const open = taken.variables.filter(({ isSet }) => !isSet).map((one) => one.name);
  const lines = [
    serverText(shownDefinition(taken), { isOfUser: true }),
    ...open.map((one) =>
      values.has(one)
        ? `The value that you typed is not written: the file names ${one} instead`
        : `It needs ${one}: \`pml key set ${one}\``
    ),
  ];
  return { change, definition: taken.definition, note: lines.join("\n"), found };
}

/** Starts a new server, and shows its tools and what to do next. */
async function tried(
  at: CommandContext,
  { name, isNpm, workspace, takeOut }: {
    readonly name: string;
    readonly isNpm: boolean;
    /** Whether the rules of the server belong into the workspace file. */
    readonly workspace: boolean;
    /** Takes the server out again, if the user does not keep it. */
    readonly takeOut: () => Promise<void>;
  },
): Promise<Shown> {
  try {
    await prepare(at, name).catch(async (error) => {
      const isOpen = serverToSignInAt(asPmlError(error)) !== undefined;
      if (
        !isOpen ||
        !await agrees(`You must sign in to ${name}. Open its page in your browser now?`, at)
      ) throw error;
      await login(at, { words: [name] });
      await prepare(at, name);
    });
  } catch (error) {
    const { code, message, hint } = asPmlError(error);
    throw new PmlError(code, message, {
      hint: `${
        hint === undefined ? "" : `${hint}. `
      }${name} stays configured; \`pml remove ${name}\` takes it out`,
      cause: error,
    });
  }
  const tools = at.app.catalog.toolsOf(name);
  const table = await askTable(at, { servers: [name], workspace });
  if (table.kind === "declined") {
    await takeOut();
    return { ...unchanged(), text: `${name} was not added` };
  }
  const text = `${name} has ${counted(tools.length, "tool")}`;
  if (isNpm && await agrees(`${text}\nTry whether it can run confined?`, at)) {
    const learned = await learn(at, { words: [name] });
    tell([learned.text, learned.note].filter(Boolean).join("\n"));
  }
  const [first] = tools;
  const next = first && await callToTry(first.tool, `${name}:${visible(first.tool.name, 60)}`);
  const written = table.kind === "accepted" ? table.written : "Each call asks you";
  const note = `${next ?? ""}\n${written}. \`pml allow ${name}\` lets all of its tools run`;
  return {
    value: { name, tools: tools.map(({ tool }) => tool.name) },
    text: isNpm ? "" : text,
    note,
  };
}

/** Takes up a server that a registry offers. */
async function addOffered(at: CommandContext, { words: [name = ""] }: Typed): Promise<Shown> {
  const registries = await at.app.registries();
  const look = () =>
    registries.unapproved(name, { signal: at.signal, isAllowed: false, isNamed: true });
  const open = await look();
  if (open === undefined && registries.at(name) === undefined) {
    throw usage(
      `Cannot add ${quoted(name)}: no registry has it`,
      "Say how it starts: pml add NAME -- COMMAND, NAME --url URL, or npm:PACKAGE",
    );
  }
  if (open !== undefined) {
    needPerson(`Cannot add ${quoted(name)}`, "");
    if (!await agrees(`Use ${name} in this workspace?`, at, open.facts)) return unchanged();
    await open.accept();
    await look();
  }
  const takeOut = async () => await (await at.app.pins()).remove([name]);
  return await tried(at, { name, isNpm: false, workspace: true, takeOut });
}

/** Removes the definition of a server. */
export async function remove(
  at: CommandContext,
  { words: [name = ""], workspace }: Typed,
): Promise<Shown> {
  const { app } = at;
  const changes: FileChange[] = [];
  const known: string[] = [];
  for (const isWorkspace of workspace === undefined ? [false, true] : [workspace]) {
    const target = await findTarget(app, isWorkspace);
    const present = await presentServers(target);
    known.push(...Object.keys(present));
    const title = Object.keys(present).find((one) => one === name || serverSlug(one) === name);
    if (title === undefined) continue;
    const settings = SECTIONS.map((section) => ({
      at: [section, title] as const,
      entry: undefined,
    }));
    changes.push(await changeOf(app, { workspace: isWorkspace, settings }));
  }
  const [change, other] = changes;
  if (change === undefined) {
    const why = "no file of yours defines it";
    throw app.builtins.has(name)
      ? usage(
        `Cannot remove ${quoted(name)}: ${why}`,
        `It comes with PML; \`pml deny ${name}\` stops it`,
      )
      : misnamed("remove", name, { why, known });
  }
  if (other !== undefined) {
    throw usage(
      `Cannot remove ${quoted(name)}: both ${change.path} and ${other.path} define it`,
      "Choose it with --workspace or --no-workspace",
    );
  }
  needPerson(`Cannot remove ${quoted(name)}`, "");
  if (!await agrees(`Remove ${name}?`, at, [change.shown])) return unchanged();
  await change.write();
  await app.policy.reload();
  const rulesOf = await removeRules(at, serverSlug(name));
  const pruned = await pruneUnused(app);
  const note = pruned.length === 0
    ? ""
    : `Removed with it, for nothing names it: ${pruned.join(", ")}`;
  return {
    value: { name, path: change.path, rules: rulesOf, pruned },
    text: [change.path, ...rulesOf].map((path) => `${path}: changed`).join("\n"),
    note,
  };
}

/**
 * Offers to remove the rules of a server that was removed: another server of that name would run by
 * them. Returns the changed files.
 */
async function removeRules(at: CommandContext, name: string): Promise<readonly string[]> {
  const changes = await ruleRemovals(at.app, name);
  if (changes.length === 0) return [];
  const lines = changes.map(({ shown }) => shown);
  if (!await agrees(`Remove the rules of ${name}, too?`, at, lines)) return [];
  for (const { write } of changes) await write();
  await at.app.policy.reload();
  return changes.map(({ path }) => path);
}

/** Lists the servers: where each is defined, and whether it may run. Nothing is started. */
export function listServers({ app }: CommandContext): Promise<Shown> {
  const { file, person } = app.loaded();
  const pathOf = (name: string) => {
    const { definition } = app.directory.at(name);
    return [file, person].find((each) => each?.servers.some((own) => own === definition))?.path;
  };
  const unheld = programsOf(app.config().servers).filter((one) => one.isUnheld)
    .map(({ name }) => name);
  const servers = app.servers.states().map(({ name, kind, origin, state, why }) => ({
    name,
    kind,
    origin,
    state,
    why,
    ...(unheld.includes(name) && { confined: false }),
    path: pathOf(name),
  }));
  const lines = servers.map(({ name, kind, origin, state, path, why, confined }) => {
    const how = state === "unknown" ? "" : `, ${stateSaid({ state, why })}`;
    return `${name.padEnd(20)} ${kind.padEnd(7)} ${
      path === undefined ? origin : visible(path)
    }${how}${confined === false ? ", unconfined: nothing but Deno bounds its grants" : ""}`;
  });
  return Promise.resolve({ value: { servers }, text: lines.join("\n") });
}

/** Returns the name of a server for a package: `@scope/server-files@1` is `files`. */
function nameOf(spec: string): string {
  const bare = spec.replace(/^(@[^/]+\/)?/, "").replace(/@.*$/, "");
  if (bare !== "") {
    return serverSlug(bare.replace(/^(?:mcp-)?server-|-mcp(?:-server)?$|^mcp-/g, ""));
  }
  throw usage(`Cannot add ${quoted(spec)}: it is no package`, "Write npm:NAME or npm:@SCOPE/NAME");
}

function pairsOf(said: readonly string[] = [], sign: string): Readonly<Record<string, string>> {
  return Object.fromEntries(said.map((one) => {
    const at = one.indexOf(sign);
    if (at > 0) return [one.slice(0, at).trim(), one.slice(at + 1).trim()];
    throw usage(
      `Cannot read ${quoted(one.slice(0, 20))}: it has no "${sign}"`,
      `Write NAME${sign}VALUE`,
    );
  }));
}
