/**
 * Starts a new server, and shows the table of its tools and the next step.
 *
 * @module
 */

import { serverToSignInAt } from "../oauth/logins.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { startHint } from "./_failure.ts";
import { type CommandContext, type CommandOutput, prepare, unchanged } from "./_command_context.ts";
import { findExistingEntry } from "./_definition_edit.ts";
import { askFirstKey } from "./_first_key.ts";
import { learn } from "./_learn.ts";
import { login } from "./_login.ts";
import { hasLog } from "./_logs.ts";
import { askTable } from "./_table_question.ts";
import { afterDone, agrees } from "./_terminal.ts";
import { callToTry } from "./_tool_page.ts";
import { tell } from "./out.ts";

/** Starts a new server, asks about its tools, and shows the next step. */
export async function startNewServer(
  context: CommandContext,
  { name, isNpm, workspace, revert, undoText = `\`pml remove ${name}\` removes it` }: {
    readonly name: string;
    readonly isNpm: boolean;
    /** Whether to write the rules of the server into the workspace file. */
    readonly workspace: boolean;
    /** Removes the server again, if the user does not want to keep it. */
    readonly revert: () => Promise<void>;
    /** A text how to undo the edit; by default with `pml remove`. */
    readonly undoText?: string | undefined;
  },
): Promise<CommandOutput> {
  await start(context, name, { workspace, undoText });
  const tools = context.app.catalog.toolsOf(name);
  const table = await afterDone(
    context.signal,
    [`${name} stays configured, and each tool asks; ${undoText}`],
    () => askTable(context, { servers: [name], workspace }),
  );
  if (table.kind === "declined") {
    await revert();
    return { ...unchanged(), text: `${name} was not added` };
  }
  const text = `${name} has ${counted(tools.length, "tool")}`;
  const written = table.kind === "accepted" ? table.written : "Each call asks you";
  if (isNpm) {
    await afterDone(context.signal, [`${name} stays configured. ${written}`], async () => {
      if (!await agrees(`${text}\nTry whether it can run confined?`, context)) return;
      const learned = await learn(context, { words: [name] });
      tell([learned.text, learned.note].filter(Boolean).join("\n"));
    });
  }
  const [first] = tools;
  const trial = first && await callToTry(first.tool, `${name}:${visible(first.tool.name, 60)}`);
  const note = `${trial ?? ""}\n${written}. \`pml allow ${name}\` lets all of its tools run`;
  return {
    value: { name, tools: tools.map(({ tool }) => tool.name) },
    text: isNpm ? "" : text,
    note,
  };
}

/**
 * Starts a server, after a sign-in or with a key of the user if it needs one. An error has the file of
 * the definition and `undoText` in its hint.
 */
async function start(
  context: CommandContext,
  name: string,
  { workspace, undoText }: { readonly workspace: boolean; readonly undoText: string },
): Promise<void> {
  const { app } = context;
  // An earlier start of this server may have failed, and the user has corrected its definition.
  app.servers.lists.forgetLateStarts(name);
  try {
    await prepareWithKeys(context, name, workspace);
  } catch (error) {
    const failure = asPmlError(error);
    const { code, message } = failure;
    const hint = startHint(failure);
    const kind = app.servers.states().find((state) => state.name === name)?.kind;
    const isDown = code === "UPSTREAM_DOWN" && hasLog(kind);
    const logs = isDown ? `\`pml logs ${name}\` shows its output. ` : "";
    const { existing } = await findExistingEntry(app, name, { workspace, tried: "find" });
    const stays = `${name} stays configured${
      existing === undefined ? "" : `, in ${existing.path}`
    }`;
    throw new PmlError(code, message, {
      hint: `${hint === undefined ? "" : `${hint}. `}${logs}${stays}; ${undoText}`,
      cause: error,
    });
  }
}

/**
 * Starts a server. If the server needs keys or a sign-in, asks for them and starts the server again.
 * Throws the error of the last start if the user enters no key.
 */
async function prepareWithKeys(
  context: CommandContext,
  name: string,
  workspace: boolean,
): Promise<void> {
  try {
    await prepare(context, name);
  } catch (cause) {
    const error = asPmlError(cause);
    if (serverToSignInAt(error) !== undefined) {
      if (!await signIn(context, name)) throw cause;
      return await prepare(context, name);
    }
    if (!await askFirstKey(context, { name, workspace, error })) throw cause;
    await prepareWithKeys(context, name, workspace);
  }
}

/** Offers a sign-in at a server. Returns whether the user signed in. */
async function signIn(context: CommandContext, name: string): Promise<boolean> {
  const question = `You must sign in to ${name}. Open its page in your browser now?`;
  if (!await agrees(question, context)) return false;
  await login(context, { words: [name] });
  return true;
}
