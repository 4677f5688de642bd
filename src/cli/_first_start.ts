/**
 * Starts a server that was added, and shows the table of its tools and what to do next.
 *
 * @module
 */

import { serverToSignInAt } from "../oauth/logins.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { type CommandContext, prepare, type Shown, unchanged } from "./_command_context.ts";
import { learn } from "./_learn.ts";
import { login } from "./_login.ts";
import { askTable } from "./_table_question.ts";
import { agrees } from "./_terminal.ts";
import { callToTry } from "./_tool_page.ts";
import { tell } from "./out.ts";

/** Starts a new server, and shows its tools and what to do next. */
export async function startFirst(
  at: CommandContext,
  { name, isNpm, workspace, takeOut, undoing }: {
    readonly name: string;
    readonly isNpm: boolean;
    /** Whether the rules of the server belong into the workspace file. */
    readonly workspace: boolean;
    /** Takes the server out again, if the user does not keep it. */
    readonly takeOut: () => Promise<void>;
    /** How to undo the edit; by default `pml remove`. */
    readonly undoing?: string | undefined;
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
    const logs = code === "UPSTREAM_DOWN" ? `\`pml logs ${name}\` shows its output. ` : "";
    throw new PmlError(code, message, {
      hint: `${hint === undefined ? "" : `${hint}. `}${logs}${name} stays configured; ${
        undoing ?? `\`pml remove ${name}\` takes it out`
      }`,
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
