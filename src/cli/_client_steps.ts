/**
 * The next step for each client after `pml init`: the confirmations that the client wants from its
 * user, and the options for a run without a terminal.
 *
 * @module
 */

import type { ClientName } from "../config/clients.ts";

const CODEX_RUN = 'codex exec -c mcp_servers.pml.default_tools_approval_mode=approve "…"';

/** A connected client. */
interface ConnectedClient {
  readonly client: ClientName;
  /** Whether the edited file is the user's own, and not part of a project. */
  readonly isOwn: boolean;
  /** Whether the client runs PML's tools without a question. */
  readonly isAllowed: boolean;
}

/** Returns the next step for a client, in one line. `root` is the folder to start the client in. */
export function nextStep({ client, isOwn, isAllowed }: ConnectedClient, root: string): string {
  switch (client) {
    case "claude-code": {
      const run = `claude -p "…"${isAllowed ? "" : " --allowedTools mcp__pml"}`;
      return isOwn
        ? `claude-code: start \`claude\`; a run without a terminal is \`${run}\``
        : `claude-code: start \`claude\` in ${root} once, trust the folder and approve the server ` +
          `pml; then a run without a terminal is \`${run}\``;
    }
    case "cline":
      return 'cline: start `cline -i`; a run without a terminal is `cline "…"`';
    case "codex":
      return isOwn
        ? `codex: start \`codex\`; a run without a terminal is \`${
          isAllowed ? 'codex exec "…"' : CODEX_RUN
        }\`, where only PML asks`
        : `codex: start \`codex\` in ${root} once and trust the folder, or it ignores this file; for ` +
          "`codex exec`, run `pml init --client codex --user`, too: it makes a run wait for PML";
    case "continue":
      return 'continue: start `cn`; a run without a terminal is `cn --auto -p "…"`';
    case "copilot":
      return "copilot: start `copilot`, and trust the folder when it asks; a run without a terminal " +
        'is `copilot -p "…" --allow-tool pml`';
    case "gemini":
      return `gemini: start \`gemini\` in ${root} once and trust the folder; a run without a terminal ` +
        `is \`gemini -p "…"${isAllowed ? "" : " --approval-mode yolo"}\``;
    case "qwen":
      return `qwen: start \`qwen\` in ${root} once; a run without a terminal is ` +
        `\`qwen -p "…"${isAllowed ? "" : " --yolo"}\``;
    default:
      return `${client}: start it in ${root}`;
  }
}
