/**
 * The tools of a server whose texts the user has not read yet.
 *
 * @module
 */

import { pageFacts } from "../calls/page_tools.ts";
import { visible } from "../core/json.ts";
import { definitionLines } from "../policy/definition_texts.ts";
import { unhidden } from "../policy/trust_subject.ts";
import { definitionHash } from "../policy/integrity.ts";
import type { App } from "../app/app.ts";

/** Texts of tools that reach models, and the effect of a yes to them. */
export interface UnreadTools {
  /** The lines to show; none if the user has read all of them. */
  readonly lines: readonly string[];
  /** Records that the user has read and approved them. */
  readonly accept: () => Promise<void>;
}

/** Returns the texts of a server's tools that reach models and that the user has not read. */
export async function unreadTools(app: App, server: string): Promise<UnreadTools> {
  const { approvals } = await app.callPath();
  const unread = app.catalog.toolsOf(server)
    .map(({ tool }) => ({ tool, hash: definitionHash(tool), lines: definitionLines(tool) }))
    .filter(({ hash, lines }) => lines.length > 0 && !approvals.hasRead(hash));
  const { servers, policy: { now: { judge } } } = app;
  const pages = unread.length === 0 ? [] : pageFacts(server, { servers, judge }).map(unhidden);
  return {
    lines: [
      ...unread.flatMap(({ tool, lines }) => [
        `\n${visible(tool.name, 200)}`,
        ...lines.map((line) => `  ${unhidden(line)}`),
      ]),
      ...pages.length === 0 ? [] : ["", ...pages],
    ],
    accept: () => approvals.markRead(unread.map(({ hash }) => hash)),
  };
}
