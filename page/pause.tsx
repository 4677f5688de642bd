/**
 * The button that pauses a workspace or ends its pause.
 *
 * @module
 */

import type { VNode } from "preact";
import type { Done, Workspace } from "../src/control/api.ts";
import { sendAction } from "./http.ts";
import { ActionButton } from "./parts.tsx";
import { announce } from "./store.ts";
import { plain } from "./text.tsx";

/** Shows a button to pause a workspace, or to resume it if it is paused. */
export function PauseButton({ workspace }: { readonly workspace: Workspace }): VNode {
  const { root, name, isPaused } = workspace;
  const [path, word] = isPaused ? ["/api/resume", "Resume"] : ["/api/pause", "Pause"];
  const send = async () => {
    const { done, text, undo } = await sendAction<Done>(path, { workspace: root });
    announce(text, { isError: !done, undo });
  };
  return (
    <ActionButton action={send} label={`${word} ${plain(name)}`} kind={isPaused ? "main" : "quiet"}>
      {word}
    </ActionButton>
  );
}
