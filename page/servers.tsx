/**
 * The servers of the shown workspaces, their actions, and the forms that add more.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ServerRow, Workspace } from "../src/control/api.ts";
import { AddForm } from "./add.tsx";
import { EmptyNote, ProblemNote, State } from "./parts.tsx";
import { addressOf, route, shownWorkspaces, state } from "./store.ts";
import { Block, counted, External, plain, size } from "./text.tsx";
import { WordButton } from "./word.tsx";

const ACTION_NAMES: Readonly<Record<ServerRow["actions"][number], string>> = {
  restart: "Restart",
  stop: "Stop",
  disable: "Disable",
  enable: "Enable",
  "sign-in": "Sign in",
  remove: "Remove",
};

/** Shows the view. */
export function ServersView(): VNode {
  const shown = shownWorkspaces.value;
  return (
    <>
      <h1>Servers</h1>
      {shown.length === 0 && (
        <EmptyNote>
          <p>
            No workspace yet. Run <code>pml init</code> in the folder of your project.
          </p>
        </EmptyNote>
      )}
      {shown.map((workspace) => <Section key={workspace.root} workspace={workspace} />)}
    </>
  );
}

function Section({ workspace }: { readonly workspace: Workspace }): VNode {
  const { root, name, servers, problems } = workspace;
  return (
    <section aria-label={`Servers of ${plain(name)}`}>
      <h2>
        <External text={name} />{" "}
        <small>
          <External text={root} />
        </small>
      </h2>
      {problems.map((problem, at) => <ProblemNote key={at} problem={problem} />)}
      {servers.length === 0
        ? (
          <EmptyNote>
            <p>No servers. Import those of a client, or add one.</p>
          </EmptyNote>
        )
        : (
          <ul class="servers">
            {servers.map((server) => (
              <li key={server.name}>
                <Server server={server} root={root} />
              </li>
            ))}
          </ul>
        )}
      <AddForm workspace={workspace} isOpen={route.value.params.get("add") === root} />
    </section>
  );
}

function Server({ server, root }: { readonly server: ServerRow; readonly root: string }): VNode {
  const { name, state: health, problem, stderr } = server;
  const { params } = route.value;
  const isWanted = params.get("server") === name && params.get("workspace") === root;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isWanted) box.current?.scrollIntoView({ block: "nearest" });
  }, [isWanted]);
  return (
    <article class={isWanted ? "card selected" : "card"} ref={box} aria-label={plain(name)}>
      <header>
        <h3>
          <External text={name} />
        </h3>
        <State of={health} />
      </header>
      <ServerFacts server={server} root={root} />
      {problem !== undefined && <ProblemNote problem={{ message: problem }} />}
      {stderr !== undefined && stderr !== "" && (
        <details open={health === "failed"}>
          <summary>The end of its stderr</summary>
          <Block text={stderr} label={`stderr of ${plain(name)}`} />
        </details>
      )}
      <Actions server={server} root={root} />
    </article>
  );
}

function ServerFacts(
  { server, root }: { readonly server: ServerRow; readonly root: string },
): VNode {
  const { name, kind, origin, tools, processes = 0, memoryBytes } = server;
  return (
    <p class="facts">
      <span>
        <External text={kind} />
      </span>
      <span>
        <External text={origin} />
      </span>
      {tools !== undefined && (
        <span>
          <a href={addressOf("tools", { workspace: root, server: name })}>
            {counted(tools, "tool")}
          </a>
        </span>
      )}
      {processes > 0 && (
        <span>
          {processes} {processes === 1 ? "process" : "processes"}
        </span>
      )}
      {memoryBytes !== undefined && <span>{size(memoryBytes)}</span>}
    </p>
  );
}

function Actions(
  { server, root }: { readonly server: ServerRow; readonly root: string },
): VNode | null {
  const { name, actions } = server;
  const process = state.value?.processes.find((one) => one.workspace === root)?.id;
  if (actions.length === 0) return null;
  return (
    <p class="actions">
      {actions.map((action) => (
        <WordButton
          key={action}
          path="/api/server"
          body={{ workspace: root, name, action, ...process !== undefined && { process } }}
          label={`${ACTION_NAMES[action]} ${plain(name)}`}
          kind={action === "remove" ? "grave" : "quiet"}
        >
          {ACTION_NAMES[action]}
        </WordButton>
      ))}
    </p>
  );
}
