/**
 * Small parts of all views: states, buttons, problems, and lists that never move under the pointer.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallRow, Problem, ServerRow } from "../src/control/api.ts";
import { announceError, isConnected, waiting } from "./store.ts";
import { counted, External } from "./text.tsx";

/** A symbol and a word for each state, so that a user can tell states apart without colours. */
const STATES: Readonly<Record<CallRow["state"] | ServerRow["state"], readonly [string, string]>> = {
  running: ["◐", "running"],
  asking: ["?", "asks you"],
  done: ["✓", "done"],
  failed: ["✕", "failed"],
  refused: ["⊘", "refused"],
  cancelled: ["–", "cancelled"],
  idle: ["○", "idle"],
  starting: ["◔", "starting"],
  disabled: ["–", "disabled"],
  "sign-in": ["?", "needs a sign-in"],
  key: ["?", "needs a key"],
};

/** Shows a state of a call or a server. */
export function State({ of: name }: { readonly of: keyof typeof STATES }): VNode {
  const [symbol, word] = STATES[name];
  return (
    <span class={`state ${name}`}>
      <span aria-hidden="true">{symbol}</span> {word}
    </span>
  );
}

/** Shows the client and the identity of a call, as two facts. */
export function Caller(
  { of: { client, identity } }: { readonly of: Pick<CallRow, "client" | "identity"> },
): VNode {
  return (
    <>
      {client !== undefined && (
        <span>
          from <External text={client} />
        </span>
      )}
      {identity !== undefined && (
        <span>
          identity <External text={identity} />
        </span>
      )}
    </>
  );
}

/** Shows the state of a call. The question of a call that asked may no longer wait. */
export function CallState({ call }: { readonly call: CallRow }): VNode {
  const isWaiting = waiting.value.some((one) =>
    one.workspace === call.workspace && one.server === call.server && one.tool === call.tool
  );
  if (call.state !== "asking" || isWaiting) return <State of={call.state} />;
  return (
    <span class="state cancelled">
      <span aria-hidden="true">?</span> asked you
    </span>
  );
}

/** Shows the decision of a rule. */
export function Rule({ of: rule }: { readonly of: string }): VNode {
  return <span class={`rule ${rule}`}>{rule}</span>;
}

/** A button that starts an action, and shows that the action runs. */
export function ActionButton(
  { children, action, kind = "quiet", disabled = false, label }: {
    readonly children: ComponentChildren;
    readonly action: () => Promise<unknown>;
    readonly kind?: "main" | "quiet" | "grave";
    readonly disabled?: boolean;
    /** The name for screen readers, if the text of the button is not clear alone. */
    readonly label?: string;
  },
): VNode {
  const [isBusy, setBusy] = useState(false);
  const isOff = disabled || isBusy || !isConnected.value;
  const click = () => {
    if (isOff) return;
    setBusy(true);
    action().catch(announceError).finally(() => setBusy(false));
  };
  return (
    <button
      type="button"
      class={kind}
      aria-disabled={isOff}
      aria-label={label}
      onClick={click}
    >
      {children}
      {isBusy ? "…" : ""}
    </button>
  );
}

/** Shows a problem with its file, line and hint. */
export function ProblemNote({ problem }: { readonly problem: Problem }): VNode {
  const { code, message, hint, file, line } = problem;
  const place = file === undefined ? undefined : line === undefined ? file : `${file}:${line}`;
  return (
    <div class="warning">
      {code !== undefined && (
        <strong>
          <External text={code} />
        </strong>
      )} {place !== undefined && (
        <code>
          <External text={place} />
        </code>
      )} <External text={message} />
      {hint !== undefined && (
        <div>
          <External text={hint} />
        </div>
      )}
    </div>
  );
}

/** A value that is loaded when `key` changes. */
export type Loaded<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string };

/**
 * Loads a value, and loads it again when `key` changes. An undefined key loads nothing. Returns the
 * value, and a function that loads it again.
 */
export function useLoaded<T>(
  key: string | undefined,
  load: () => Promise<T>,
): readonly [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<T>>({ kind: "loading" });
  const [reloads, setReloads] = useState(0);
  useEffect(() => {
    if (key === undefined) return;
    let isObsolete = false;
    load().then(
      (value) => isObsolete || setLoaded({ kind: "value", value }),
      (error) => {
        if (isObsolete) return;
        if (error?.status === 401) announceError(error);
        setLoaded({ kind: "failed", message: error instanceof Error ? error.message : `${error}` });
      },
    );
    return () => void (isObsolete = true);
  }, [key, reloads]);
  return [loaded, () => setReloads((before) => before + 1)];
}

/** Shows a loaded value, the failure, or a note while the value loads. */
export function LoadedView<T>(
  { loaded, children }: {
    readonly loaded: Loaded<T>;
    readonly children: (value: T) => ComponentChildren;
  },
): VNode {
  switch (loaded.kind) {
    case "loading":
      return <p class="calm">Loading…</p>;
    case "failed":
      return <ProblemNote problem={{ message: loaded.message }} />;
    case "value":
      return <>{children(loaded.value)}</>;
  }
}

/** Rows of a list. New rows wait while the pointer or the focus is in the list. */
export interface StillRows<T> {
  readonly rows: readonly T[];
  /** The number of rows that wait. */
  readonly more: number;
  /** Shows the rows that wait. */
  readonly show: () => void;
  /** The handlers of the element with the list. */
  readonly hold: Readonly<Record<string, (event: Event) => void>>;
}

/**
 * Keeps the order of rows, and hides new rows, while the pointer or the focus is in the list. Changes
 * of shown rows appear at once.
 */
export function useStillRows<T>(
  rows: readonly T[],
  { key, isHeld = false }: { readonly key: (row: T) => string; readonly isHeld?: boolean },
): StillRows<T> {
  const [isPointerInside, setPointerInside] = useState(false);
  const [hasFocus, setFocus] = useState(false);
  const [turn, setTurn] = useState(0);
  const order = useRef<readonly string[]>([]);
  const isStill = isPointerInside || hasFocus || isHeld;
  return useMemo(() => {
    const byKey = new Map(rows.map((row) => [key(row), row]));
    if (!isStill || order.current.length === 0) order.current = [...byKey.keys()];
    const shown = order.current.flatMap((one) => byKey.get(one) ?? []);
    // Older rows that are loaded later come last, so the shown rows do not move.
    const last = shown.at(-1);
    const end = last === undefined ? -1 : rows.findLastIndex((row) => key(row) === key(last));
    const older = isStill ? rows.slice(end + 1) : [];
    const all = [...shown, ...older];
    order.current = all.map(key);
    const show = () => {
      order.current = [...byKey.keys()];
      setTurn((before) => before + 1);
    };
    const hold = {
      onPointerEnter: () => setPointerInside(true),
      onPointerLeave: () => setPointerInside(false),
      onFocusIn: () => setFocus(true),
      onFocusOut: (event: Event) => {
        const { currentTarget, relatedTarget } = event as FocusEvent;
        const isInside = (currentTarget as Element).contains(relatedTarget as Element | null);
        if (!isInside) setFocus(false);
      },
    };
    return { rows: all, more: rows.length - all.length, show, hold };
  }, [rows, isStill, turn]);
}

/** The button that shows the hidden new rows. */
export function MoreButton(
  { more, word, show }: {
    readonly more: number;
    readonly word: string;
    readonly show: () => void;
  },
): VNode | null {
  if (more === 0) return null;
  return (
    <button type="button" class="quiet" onClick={show}>Show {counted(more, `new ${word}`)}</button>
  );
}

/** A note in place of missing rows, with the next step. */
export function EmptyNote({ children }: { readonly children: ComponentChildren }): VNode {
  return <div class="empty">{children}</div>;
}
