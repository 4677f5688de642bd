/**
 * Shows calls as rows. Only the rows in view are in the document, so that a list of 10,000 calls
 * scrolls as fast as a short one.
 *
 * @module
 */

import type { RefObject, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CallRow } from "../src/control/api.ts";
import { CallState } from "./parts.tsx";
import { addressOf, shownWorkspaces } from "./store.ts";
import { duration, External, size, Time } from "./text.tsx";

/** The heights of a row in pixels. On a narrow screen, a row has two lines. */
const [WIDE_ROW, NARROW_ROW] = [34, 58];
const NARROW = matchMedia("(max-width: 44rem)");
/** The number of rows in the document above and below the visible ones. */
const SPARE_ROWS = 12;
const COLUMNS = ["Time", "Tool", "State", "Duration", "Result", "Client"];

/** Shows calls. A long list scrolls, and `onEnd` is called at its end to load older calls. */
export function CallTable(
  { calls, label, selected, onEnd, isLong = false }: {
    readonly calls: readonly CallRow[];
    readonly label: string;
    readonly selected?: string | undefined;
    readonly onEnd?: () => void;
    readonly isLong?: boolean;
  },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState(-1);
  const rowHeight = useRowHeight();
  const rows = { box, count: calls.length, rowHeight, isLong, onEnd };
  const { indexes, look } = useRowsInView(rows);
  // A row with the focus stays in the document, so that the focus is not lost.
  if (focused >= 0 && focused < calls.length && !indexes.includes(focused)) indexes.push(focused);
  const move = (event: KeyboardEvent) => {
    const next = nextRowIndex(focused, event.key);
    if (next < 0 || next >= calls.length) return;
    event.preventDefault();
    setFocused(next);
    const link = `[data-at="${next}"] a`;
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(link)?.focus());
  };
  return (
    <div
      class={isLong ? "calls long" : "calls"}
      role="table"
      aria-label={label}
      aria-rowcount={calls.length + 1}
    >
      <div role="rowgroup" class="head">
        <div role="row" aria-rowindex={1}>
          {COLUMNS.map((name) => <span role="columnheader" key={name}>{name}</span>)}
        </div>
      </div>
      <div
        class="rows"
        role="rowgroup"
        ref={box}
        onScroll={look}
        onKeyDown={move}
        onFocusOut={() => setFocused(-1)}
      >
        {isLong && <div role="presentation" style={{ height: `${calls.length * rowHeight}px` }} />}
        {indexes.map((at) => {
          const call = calls[at];
          if (call === undefined) return null;
          const top = isLong ? at * rowHeight : undefined;
          const common = { at, call, top, isSelected: call.id === selected };
          return <Row key={call.id} {...common} onFocus={() => setFocused(at)} />;
        })}
      </div>
    </div>
  );
}

/** Returns the index of the row to which an arrow key moves the focus, or -1. */
function nextRowIndex(focused: number, key: string): number {
  if (focused < 0) return -1;
  return key === "ArrowDown" ? focused + 1 : key === "ArrowUp" ? focused - 1 : -1;
}

/** Returns the indexes of the visible rows. `look` reads the position of the list again. */
function useRowsInView({ box, count, rowHeight, isLong, onEnd }: {
  readonly box: RefObject<HTMLElement | null>;
  readonly count: number;
  readonly rowHeight: number;
  readonly isLong: boolean;
  readonly onEnd: (() => void) | undefined;
}): { readonly indexes: number[]; readonly look: () => void } {
  const [[top, height], setView] = useState([0, 0]);
  const first = isLong ? Math.max(0, Math.floor(top / rowHeight) - SPARE_ROWS) : 0;
  const end = Math.ceil((top + height) / rowHeight) + SPARE_ROWS;
  const last = isLong ? Math.min(count, end) : count;
  const look = () => {
    const { scrollTop, clientHeight } = box.current ?? { scrollTop: 0, clientHeight: 0 };
    setView([scrollTop, clientHeight]);
  };
  useEffect(() => {
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (isLong && height > 0 && last >= count) onEnd?.();
  }, [last >= count, count, height]);
  return {
    indexes: Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at),
    look,
  };
}

function Row(
  { call, at, isSelected, top, onFocus }: {
    readonly call: CallRow;
    readonly at: number;
    readonly isSelected: boolean;
    readonly top: number | undefined;
    readonly onFocus: () => void;
  },
): VNode {
  const { id, workspace, server, tool, ms, resultBytes, client, identity, code } = call;
  const shown = shownWorkspaces.value;
  const workspaceName = shown.length > 1 && shown.find(({ root }) => root === workspace)?.name;
  const caller = [client, identity].filter((one) => one !== undefined).join(" as ");
  return (
    <div
      role="row"
      aria-rowindex={at + 2}
      data-at={at}
      class={isSelected ? "row selected" : "row"}
      style={top === undefined ? {} : { transform: `translateY(${top}px)` }}
    >
      <span role="cell" class="when">
        <Time at={call.at} />
      </span>
      <span role="cell" class="what">
        <a
          href={addressOf("activity", { workspace, call: id })}
          aria-current={isSelected ? "true" : undefined}
          onFocus={onFocus}
        >
          <External text={server === "" ? tool : `${server}:${tool}`} />
        </a>
      </span>
      <span role="cell" class="how">
        <CallState call={call} /> {code !== undefined && (
          <small>
            <External text={code} />
          </small>
        )}
      </span>
      <span role="cell" class="number">{ms === undefined ? "" : duration(ms)}</span>
      <span role="cell" class="number">{resultBytes === undefined ? "" : size(resultBytes)}</span>
      <span role="cell" class="who">
        <External text={[caller, workspaceName].filter(Boolean).join(" in ")} />
      </span>
    </div>
  );
}

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const update = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", update);
    return () => NARROW.removeEventListener("change", update);
  }, []);
  return isNarrow ? NARROW_ROW : WIDE_ROW;
}
