/**
 * The tools of a workspace: the search as the model sees it, and one tool with its schema, rule and
 * pin.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SearchAnswer, ToolPage, ToolRow } from "../src/control/api.ts";
import { Choice, Entry } from "./entry.tsx";
import { read } from "./http.ts";
import { EmptyNote, LoadedView, Rule, useLoaded } from "./parts.tsx";
import { addressOf, route, shownRoot, shownWorkspaces, workspaces } from "./store.ts";
import { Block, counted, External, Json, plain } from "./text.tsx";
import { TryTool } from "./try_tool.tsx";

const TYPING_MS = 250;

/** Shows the view. */
export function ToolsView(): VNode {
  const { params } = route.value;
  const root = params.get("workspace") ?? shownRoot.value;
  const workspace = workspaces.value.find((one) => one.root === root);
  const tool = params.get("tool");
  if (root === undefined || workspace === undefined) {
    return (
      <>
        <h1>Tools</h1>
        <EmptyNote>
          <p>
            No workspace yet. Run <code>pml init</code> in the folder of your project.
          </p>
        </EmptyNote>
      </>
    );
  }
  const server = params.get("server") ?? workspace.servers[0]?.name ?? "";
  return (
    <>
      <h1>
        Tools {shownWorkspaces.value.length > 1 && (
          <small>
            of <External text={workspace.name} />
          </small>
        )}
      </h1>
      <div class={tool === null ? "" : "split"}>
        <div class="list">
          <Finder key={root} root={root} server={server} selected={tool} />
        </div>
        {tool !== null && <Tool key={`${root} ${tool}`} root={root} server={server} id={tool} />}
      </div>
    </>
  );
}

function Finder(
  { root, server, selected }: {
    readonly root: string;
    readonly server: string;
    readonly selected: string | null;
  },
): VNode {
  const [text, setText] = useState("");
  const [query, setQuery] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQuery(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const servers = workspaces.value.find((one) => one.root === root)?.servers ?? [];
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Entry
          name="query"
          isSearch
          kind="grow"
          value={text}
          placeholder="create an issue"
          onValue={setText}
        >
          Search as the model does
        </Entry>
        <Choice
          name="server"
          value={server}
          onValue={(name) => {
            setText("");
            location.hash = addressOf("tools", { workspace: root, server: name });
          }}
          options={servers.map(({ name }) => [name, plain(name)])}
        >
          Server
        </Choice>
      </form>
      {query === ""
        ? <ServerTools key={server} root={root} server={server} selected={selected} />
        : <SearchResults root={root} query={query} server={server} selected={selected} />}
    </>
  );
}

function ServerTools(
  { root, server, selected }: {
    readonly root: string;
    readonly server: string;
    readonly selected: string | null;
  },
): VNode {
  const [loaded] = useLoaded(
    server === "" ? undefined : `${root} ${server}`,
    () => read<readonly ToolRow[]>("/api/tools", { workspace: root, server }),
  );
  if (server === "") {
    return (
      <EmptyNote>
        <p>
          No servers. <a href={addressOf("servers", { add: root })}>Add one</a>.
        </p>
      </EmptyNote>
    );
  }
  return (
    <LoadedView loaded={loaded}>
      {(tools) =>
        tools.length === 0
          ? (
            <EmptyNote>
              <p>This server has no tools, or has not listed them yet.</p>
            </EmptyNote>
          )
          : (
            <ToolList
              tools={tools}
              root={root}
              server={server}
              selected={selected}
              label={`Tools of ${plain(server)}`}
            />
          )}
    </LoadedView>
  );
}

function SearchResults(
  { root, query, server, selected }: {
    readonly root: string;
    readonly query: string;
    readonly server: string;
    readonly selected: string | null;
  },
): VNode {
  const [loaded] = useLoaded(
    `${root} ${query}`,
    () => read<SearchAnswer>("/api/search", { workspace: root, query }),
  );
  return (
    <LoadedView loaded={loaded}>
      {({ text, tokens, hits }) => (
        <>
          <p class="calm" role="status">
            {counted(hits.length, "tool")}, {counted(tokens, "token")} for the model
          </p>
          <ToolList
            tools={hits}
            root={root}
            server={server}
            selected={selected}
            label="Tools that the search finds"
          />
          <details>
            <summary>The answer that the model gets</summary>
            <Block text={text} label="The answer that the model gets" />
          </details>
        </>
      )}
    </LoadedView>
  );
}

function ToolList(
  { tools, root, server, selected, label }: {
    readonly tools: readonly ToolRow[];
    readonly root: string;
    readonly server: string;
    readonly selected: string | null;
    readonly label: string;
  },
): VNode {
  return (
    <ul class="tools" aria-label={label}>
      {tools.map(({ id, description, rule }) => (
        <li key={id} class={id === selected ? "selected" : ""}>
          <a
            href={addressOf("tools", { workspace: root, server, tool: id })}
            aria-current={id === selected ? "true" : undefined}
          >
            <External text={id} />
          </a>
          <Rule of={rule} />
          <p>
            <External text={description} />
          </p>
        </li>
      ))}
    </ul>
  );
}

function Tool(
  { root, server, id }: {
    readonly root: string;
    readonly server: string;
    readonly id: string;
  },
): VNode {
  const [loaded] = useLoaded(
    `${root} ${id}`,
    () => read<ToolPage>("/api/tool", { workspace: root, id }),
  );
  return (
    <section class="detail" aria-label={`Tool ${plain(id)}`}>
      <header>
        <h2>
          <External text={id} />
        </h2>
        <a href={addressOf("tools", { workspace: root, server })}>Close</a>
      </header>
      <LoadedView loaded={loaded}>{(tool) => <ToolFacts tool={tool} root={root} />}</LoadedView>
    </section>
  );
}

function ToolFacts({ tool, root }: { readonly tool: ToolPage; readonly root: string }): VNode {
  const { description, rule, why, signature, pin, difference } = tool;
  return (
    <>
      <p>
        <External text={description} />
      </p>
      <Block text={signature} label="Signature" />
      <TryTool tool={tool} workspace={root} />
      <h3>
        Rule <Rule of={rule} />
      </h3>
      <Block text={why} label="Why this rule applies" />
      {pin !== undefined && (
        <>
          <h3>Pin</h3>
          <p>
            <External text={pin} />
          </p>
        </>
      )}
      {difference !== undefined && (
        <>
          <p class="warning">
            <strong>Its definition has changed since it was pinned.</strong>
          </p>
          <Block text={difference} label="Difference of the definition" diff />
        </>
      )}
      <details>
        <summary>Schema of the arguments</summary>
        <Json value={tool.inputSchema} label="Schema of the arguments" />
      </details>
      {tool.outputSchema !== undefined && (
        <details>
          <summary>Schema of the result</summary>
          <Json value={tool.outputSchema} label="Schema of the result" />
        </details>
      )}
      {tool.annotations !== undefined && (
        <details>
          <summary>Annotations</summary>
          <Json value={tool.annotations} label="Annotations" />
        </details>
      )}
    </>
  );
}
