/**
 * A button that asks the user to type a word, as the command on a terminal does, for actions that need
 * more than one click.
 *
 * @module
 */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Done } from "../src/control/api.ts";
import { Entry } from "./entry.tsx";
import { sendAction } from "./http.ts";
import { ActionButton } from "./parts.tsx";
import { announce } from "./store.ts";
import { External, plain } from "./text.tsx";
import { wantedWord } from "./waiting.tsx";

/** A button for an action that may ask for a word. */
export function WordButton(
  { path, body, children, label, kind = "quiet", onDone }: {
    readonly path: string;
    readonly body: object;
    readonly children: string;
    readonly label?: string;
    readonly kind?: "main" | "quiet" | "grave";
    readonly onDone?: () => void;
  },
): VNode {
  const [wanted, setWanted] = useState<{ readonly word: string; readonly why: string }>();
  const [word, setWord] = useState("");
  const send = async () => {
    try {
      const { done, text, undo } = await sendAction<Done>(path, {
        ...body,
        ...wanted !== undefined && { word },
      });
      announce(text, { isError: !done, undo });
      if (!done) return;
      setWanted(undefined);
      setWord("");
      onDone?.();
    } catch (error) {
      const next = wantedWord(error);
      if (next === undefined || !(error instanceof Error)) throw error;
      setWanted({ word: next, why: error.message });
    }
  };
  if (wanted === undefined) {
    return <ActionButton action={send} label={label} kind={kind}>{children}</ActionButton>;
  }
  return (
    <span class="word">
      <span>
        <External text={wanted.why} />
      </span>
      <Entry name="word" value={word} onValue={setWord}>
        Type <code>{plain(wanted.word)}</code>
      </Entry>
      <ActionButton action={send} label={label} kind="grave" disabled={word !== wanted.word}>
        {children}
      </ActionButton>
      <button type="button" class="quiet" onClick={() => setWanted(undefined)}>Cancel</button>
    </span>
  );
}
