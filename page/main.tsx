/**
 * The program of the page that `pml page` serves: the navigation, the messages, and one view.
 *
 * @module
 */

import { type ComponentChildren, render, type VNode } from "preact";
import { useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import { ActivityView } from "./activity.tsx";
import { ContextView } from "./context.tsx";
import { Choice } from "./entry.tsx";
import { EndedBanner, Overview } from "./overview.tsx";
import { ProblemNote } from "./parts.tsx";
import { RulesView } from "./rules.tsx";
import { ServersView } from "./servers.tsx";
import {
  addressOf,
  chosenWorkspace,
  connection,
  notice,
  route,
  start,
  state,
  type View,
  waiting,
  workspaces,
} from "./store.ts";
import { External, plain } from "./text.tsx";
import { ToolsView } from "./tools.tsx";
import { WaitingAnnouncer } from "./waiting.tsx";

const VIEWS: Readonly<Record<View, { readonly name: string; readonly view: () => VNode }>> = {
  overview: { name: "Overview", view: Overview },
  servers: { name: "Servers", view: ServersView },
  tools: { name: "Tools", view: ToolsView },
  activity: { name: "Activity", view: ActivityView },
  context: { name: "Context", view: ContextView },
  rules: { name: "Rules", view: RulesView },
};

/** The picture of the tab. */
const ICON = document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href;

function App(): VNode {
  const { view } = route.value;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // This runs before the view is painted. If it ran later, it could take the focus from a field.
  useLayoutEffect(() => {
    // The focus moves to a new view, but not when the page opens.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    scrollTo(0, 0);
  }, [view]);
  if (connection.value.kind === "signed-out") return <SignedOut />;
  const Current = VIEWS[view].view;
  return (
    <>
      <a class="skip" href="#main" onClick={skipTo(main)}>Skip to the content</a>
      <Header view={view} />
      <WaitingAnnouncer />
      <main id="main" class="wide" tabIndex={-1} ref={main} aria-label={VIEWS[view].name}>
        <ConnectionBanner />
        <EndedBanner />
        <ViewErrors key={view}>
          <Current />
        </ViewErrors>
      </main>
      <Notices />
    </>
  );
}

/** Shows a failure of a view in its place, so that the rest of the page still works. */
function ViewErrors({ children }: { readonly children: ComponentChildren }): VNode {
  const [error] = useErrorBoundary();
  if (error === undefined) return <>{children}</>;
  const message = error instanceof Error ? error.message : String(error);
  return <ProblemNote problem={{ message: `This view has failed: ${message}` }} />;
}

function skipTo(main: { readonly current: HTMLElement | null }): (event: Event) => void {
  return (event) => {
    event.preventDefault(); // the fragment is the view
    main.current?.focus();
  };
}

function Header({ view }: { readonly view: View }): VNode {
  const count = waiting.value.length;
  return (
    <header class="top">
      <div class="wide">
        <a class="brand" href={addressOf("overview")}>
          <img src={ICON} alt="" width="22" height="22" />PML
        </a>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([key, { name }]) => (
            <a
              key={key}
              href={addressOf(key as View)}
              aria-current={key === view ? "page" : undefined}
            >
              {name}
              {key === "overview" && count > 0 && (
                <span class="count">
                  {count}
                  <span class="unseen">{count === 1 ? "question waits" : "questions wait"}</span>
                </span>
              )}
            </a>
          ))}
        </nav>
        {workspaces.value.length > 1 && (
          <Choice
            name="workspace"
            kind="choice"
            value={workspaces.value.some(({ root }) => root === chosenWorkspace.value)
              ? chosenWorkspace.value
              : ""}
            onValue={(root) => chosenWorkspace.value = root}
            options={[
              ["", "All workspaces"],
              ...workspaces.value.map(({ root, name }) => [root, plain(name)] as const),
            ]}
          >
            <span class="unseen">Workspace</span>
          </Choice>
        )}
      </div>
    </header>
  );
}

function ConnectionBanner(): VNode | null {
  if (connection.value.kind !== "lost") return null;
  return (
    <div class="banner" role="alert">
      <p>
        <strong>
          The page has lost its connection to <code>pml page</code>.
        </strong>{" "}
        The command may have ended. The values below are old, and all actions are off. The page
        tries to connect again; to start it anew, run <code>pml page</code>.
      </p>
    </div>
  );
}

function SignedOut(): VNode {
  const now = connection.value;
  const reason = now.kind === "signed-out" ? now.reason : "";
  const hint = now.kind === "signed-out" ? now.hint : undefined;
  return (
    <main class="wide problem">
      <h1>Sign in to PML's page</h1>
      <p role="alert">
        <External text={reason} />
      </p>
      {hint !== undefined && (
        <p>
          <External text={hint} />
        </p>
      )}
      <p>
        Run this in a terminal. It opens the page with a new link, which works once and for a
        minute.
      </p>
      <pre role="group" aria-label="Command">pml page</pre>
    </main>
  );
}

function Notices(): VNode {
  const now = notice.value;
  return (
    <div class="notices">
      <div role="status" aria-live="polite">
        {now !== undefined && !now.isError && <NoticeText />}
      </div>
      <div role="alert">{now?.isError && <NoticeText />}</div>
    </div>
  );
}

function NoticeText(): VNode {
  const now = notice.value;
  return (
    <div class={now?.isError ? "notice wrong" : "notice"}>
      <p>
        <External text={now?.text ?? ""} />
        {now?.undo !== undefined && (
          <>
            {" "}
            Undo:{" "}
            <code>
              <External text={now.undo} />
            </code>
          </>
        )}
      </p>
      <button type="button" class="quiet" onClick={() => notice.value = undefined}>Close</button>
    </div>
  );
}

const root = document.getElementById("page");
if (root !== null) {
  render(<App />, root);
  start();
}
if (state.value === undefined) document.title = "PML";
