/**
 * Changes of files that the page makes after the user typed a word: rules and servers.
 *
 * @module
 */

import type { Done, ServerAction } from "../control/api.ts";
import { messageOf } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { RULE_LISTS } from "../policy/rule_lists.ts";
import { sessionAnswersIn } from "../policy/session_files.ts";
import { PageFailure } from "../page/failure.ts";
import { removalFrom } from "./_add.ts";
import { openInBrowser } from "./browser.ts";
import { type CommandContext, recordAction } from "./_command_context.ts";
import type { WorkspaceApps } from "./_workspace_apps.ts";
import { type FileChange, planChange } from "./_config_file.ts";
import {
  findExistingEntry,
  removePins,
  undefinedServer,
  writeRemovals,
} from "./_definition_edit.ts";
import { endAnswers } from "./_rule_list.ts";
import { planRuleRemoval, ruleRemovals } from "./_rules.ts";

/** The word that a terminal asks for before it writes a file. */
const WRITE_WORD = "write";

/** Removes a rule from its file, or ends the answer for a session. */
export async function removePageRule(
  context: CommandContext,
  { rule, effect, word }: {
    readonly rule: string;
    readonly effect?: string;
    readonly word?: string;
  },
): Promise<Done> {
  if (effect === "session") return await endAnswer(context, rule);
  const lists = RULE_LISTS.filter((list) => effect === undefined || list === effect);
  const removal = await planRuleRemoval(context.app, { rule, lists });
  await writeConfirmed(context, removal.change, {
    word,
    more: `This is removed from the rules ${removal.reach}`,
  });
  await recordAction(context, "rule removed", { rule: removal.rule, channel: "page" });
  return { done: true, text: `Removed from the rules ${removal.reach}` };
}

async function endAnswer(context: CommandContext, rule: string): Promise<Done> {
  const { home, workspace } = context.app.config();
  const answers = (await sessionAnswersIn(home, context.app.log))
    .filter((one) => one.rule === rule && one.workspace === workspace);
  await endAnswers(context, answers);
  return answers.length === 0
    ? { done: false, text: "This answer has ended already" }
    : { done: true, text: `${quoted(rule, 200)} asks again from now on` };
}

/** Removes, disables or enables a server, or signs in at it. */
export async function changeServer(
  context: CommandContext,
  { name, action, word }: ServerAction,
  apps: Pick<WorkspaceApps, "hold">,
): Promise<Done> {
  const { app } = context;
  if (action === "sign-in") return await signIn(context, name, apps);
  if (action === "remove") {
    const change = await removalFrom(app, name);
    const title = `Removes ${quoted(name)}, with its rules and grants`;
    await writeConfirmed(context, change, { word, more: title });
    // A later server of the same name would get the remaining rules and grants.
    const paths = await writeRemovals(app, await ruleRemovals(app, serverSlug(name)));
    await removePins(app, serverSlug(name));
    await recordAction(context, "server removed", { server: name, channel: "page" });
    const files = [...new Set([change.path, ...paths])].join(", ");
    return { done: true, text: `${name} was removed, with its rules and grants: ${files}` };
  }
  const isOn = action === "enable";
  const { existing, names } = await findExistingEntry(app, name, {
    workspace: undefined,
    tried: action,
  });
  if (existing === undefined) throw undefinedServer(app, name, names);
  const { section, title, workspace } = existing;
  const entry = isOn ? undefined : true;
  const change = await planChange(app, {
    workspace,
    settings: [{ at: [section, title, "disabled"], entry }],
  });
  await writeConfirmed(context, change, {
    word,
    more: `${isOn ? "Enables" : "Disables"} ${quoted(name)}`,
  });
  await recordAction(context, `server ${isOn ? "enabled" : "disabled"}`, {
    server: name,
    channel: "page",
  });
  return { done: true, text: `${name} is ${isOn ? "enabled" : "disabled"} in ${change.path}` };
}

/** Writes a change if the user typed the word. Otherwise throws an error that shows it and the word. */
async function writeConfirmed(
  { app }: CommandContext,
  { diff, shown, write }: FileChange,
  { word, more }: { readonly word: string | undefined; readonly more?: string },
): Promise<void> {
  // guard: page-write-word
  if (word !== WRITE_WORD) {
    const message = [shown, more, `Type "${WRITE_WORD}" to write exactly this`].filter(Boolean)
      .join(
        "\n",
      );
    throw new PageFailure(400, "WORD_NEEDED", { message, hint: WRITE_WORD });
  }
  if (diff !== "") await write();
  await app.policy.reload();
}

/** Opens the sign-in of a server in the browser, as `pml login` does. */
async function signIn(
  context: CommandContext,
  name: string,
  apps: Pick<WorkspaceApps, "hold">,
): Promise<Done> {
  const { app, signal } = context;
  const { logins } = await app.callPath();
  const login = await logins.begin(name, { scopes: undefined, signal });
  const use = apps.hold(context);
  void login.done.catch((error) => app.log.warn(messageOf(error)))
    .finally(() => login[Symbol.asyncDispose]())
    .finally(() => use[Symbol.dispose]());
  const isOpened = openInBrowser(login.url, app.loaded());
  return {
    done: true,
    text: isOpened
      ? `Sign in at ${login.host}, in the window that your browser opens`
      : `Open this address to sign in at ${login.host}: ${login.url}`,
  };
}
