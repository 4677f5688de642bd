/**
 * The view of calls while they run, with filters, and of the story of one call.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CallRow } from "../src/control/api.ts";
import { CallTable } from "./call_table.tsx";
import { Choice, Entry } from "./entry.tsx";
import { read } from "./http.ts";
import { EmptyNote, MoreButton, ProblemNote, useStillRows } from "./parts.tsx";
import { PauseButton } from "./pause.tsx";
import {
  announceError,
  chosenWorkspace,
  onCall,
  route,
  shownWorkspaces,
  state,
  workspaces,
} from "./store.ts";
import { Story } from "./story.tsx";
import { counted, plain } from "./text.tsx";

const PAGE_SIZE = 500;
const TYPING_MS = 250;
const CALL_STATES: readonly CallRow["state"][] = [
  "running",
  "asking",
  "done",
  "failed",
  "refused",
  "cancelled",
];

/** The filters of the list. An empty text does not filter. */
interface Filters {
  readonly workspace: string;
  readonly server: string;
  readonly state: string;
  readonly text: string;
}

const NO_FILTERS = { server: "", state: "", text: "" };

/** The loaded calls, the newest first. */
interface Loaded {
  readonly calls: readonly CallRow[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
}

/** Shows the view. */
export function ActivityView(): VNode {
  const { params } = route.value;
  const id = params.get("call");
  const root = params.get("workspace");
  return (
    <>
      <header class="title">
        <h1>Activity</h1>
        {shownWorkspaces.value.map((one) => (
          <span key={one.root} class="pauses">
            {one.isPaused ? "Paused: " : ""}
            {shownWorkspaces.value.length > 1 ? plain(one.name) : ""}{" "}
            <PauseButton workspace={one} />
          </span>
        ))}
      </header>
      {state.value?.journalProblem !== undefined && (
        <ProblemNote
          problem={{ message: `The journal cannot be read: ${state.value.journalProblem}` }}
        />
      )}
      <div class={id === null ? "" : "split"}>
        <div class="list">
          <Calls selected={id} />
        </div>
        {id !== null && root !== null && <Story key={id} id={id} root={root} />}
      </div>
    </>
  );
}

function Calls({ selected }: { readonly selected: string | null }): VNode {
  const [filters, setFilters] = useState<Omit<Filters, "workspace">>(NO_FILTERS);
  const workspace = chosenWorkspace.value;
  const { calls, hasMore, isLoading, loadMore } = useCalls({ ...filters, workspace });
  const box = useRef<HTMLDivElement>(null);
  const rows = () => box.current?.querySelector(".rows");
  const still = useStillRows(calls, { key: ({ id }) => id, isHeld: (rows()?.scrollTop ?? 0) > 0 });
  const showNew = () => {
    still.show();
    rows()?.scrollTo(0, 0);
  };
  const isEmpty = calls.length === 0 && !isLoading;
  return (
    <div ref={box}>
      <FilterForm filters={filters} onFilters={setFilters} />
      <div class="more">
        <p class="calm" role="status">
          {isLoading ? "Loading…" : counted(calls.length, "call")}
          {hasMore ? ", older ones come as you scroll" : ""}
        </p>
        <MoreButton more={still.more} word="call" show={showNew} />
      </div>
      {isEmpty && (
        <EmptyNote>
          <p>No calls here. Calls of your clients appear as they run.</p>
        </EmptyNote>
      )}
      {!isEmpty && (
        <div {...still.hold}>
          <CallTable
            calls={still.rows}
            label="Calls"
            selected={selected ?? undefined}
            onEnd={() => hasMore && loadMore()}
            isLong
          />
        </div>
      )}
    </div>
  );
}

function FilterForm(
  { filters, onFilters }: {
    readonly filters: Omit<Filters, "workspace">;
    readonly onFilters: (change: (old: Omit<Filters, "workspace">) => typeof filters) => void;
  },
): VNode {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => onFilters((old) => ({ ...old, text })), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const servers = shownWorkspaces.value.flatMap((one) => one.servers.map(({ name }) => name));
  const names = [...new Set(servers)].sort();
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <Choice
        name="server"
        value={filters.server}
        onValue={(server) => onFilters((old) => ({ ...old, server }))}
        options={[["", "all"], ...names.map((name) => [name, plain(name)] as const)]}
      >
        Server
      </Choice>
      <Choice
        name="state"
        value={filters.state}
        onValue={(state) => onFilters((old) => ({ ...old, state }))}
        options={[["", "all"], ...CALL_STATES.map((one) => [one, one] as const)]}
      >
        State
      </Choice>
      <Entry name="text" isSearch kind="grow" value={text} onValue={setText}>Text</Entry>
    </form>
  );
}

/** Loads the calls that match filters, and older ones on demand. Adds calls that begin. */
function useCalls(filters: Filters): Loaded & { readonly loadMore: () => void } {
  const key = JSON.stringify(filters);
  const [loaded, setLoaded] = useState<Loaded>({ calls: [], hasMore: false, isLoading: true });
  const currentKey = useRef(key);
  currentKey.current = key;
  const load = (before?: number) => {
    setLoaded((old) => ({ ...old, isLoading: true }));
    const { workspace, server, state, text } = filters;
    const query = {
      workspace: workspace || undefined,
      server: server || undefined,
      state: state || undefined,
      text: text || undefined,
      before,
      limit: PAGE_SIZE,
    };
    read<{ calls: readonly CallRow[]; more: boolean }>("/api/calls", query).then((answer) => {
      if (currentKey.current !== key) return;
      setLoaded((old) => ({
        calls: before === undefined ? answer.calls : mergeRows(old.calls, answer.calls),
        hasMore: answer.more,
        isLoading: false,
      }));
    }).catch((error) => {
      if (currentKey.current === key) {
        setLoaded((old) => ({ ...old, hasMore: false, isLoading: false }));
      }
      announceError(error);
    });
  };
  useEffect(() => load(), [key]);
  useEffect(() =>
    onCall((row) => {
      setLoaded((old) => {
        const at = old.calls.findIndex(({ id }) => id === row.id);
        if (at >= 0) return { ...old, calls: old.calls.with(at, row) };
        return matchesFilters(row, filters) ? { ...old, calls: [row, ...old.calls] } : old;
      });
    }), [key]);
  const loadMore = () => {
    const oldest = loaded.calls.at(-1)?.at;
    if (!loaded.isLoading && oldest !== undefined) load(oldest);
  };
  return { ...loaded, loadMore };
}

function mergeRows(before: readonly CallRow[], older: readonly CallRow[]): readonly CallRow[] {
  const loadedIds = new Set(before.map(({ id }) => id));
  return [...before, ...older.filter(({ id }) => !loadedIds.has(id))];
}

function matchesFilters(row: CallRow, { workspace, server, state, text }: Filters): boolean {
  const isAnyWorkspace = workspace === "" ||
    !workspaces.peek().some(({ root }) => root === workspace);
  return (isAnyWorkspace || row.workspace === workspace) &&
    (server === "" || row.server === server) &&
    (state === "" || row.state === state) &&
    (text === "" ||
      `${row.server}:${row.tool} ${row.client ?? ""}`.toLowerCase().includes(text.toLowerCase()));
}
