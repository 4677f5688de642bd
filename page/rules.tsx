/**
 * The view of the rules and session answers of a workspace, the names of its keys, its identities, and
 * its settings.
 *
 * @module
 */

import type { VNode } from "preact";
import type { RuleRow, Settings } from "../src/control/api.ts";
import { read } from "./http.ts";
import { EmptyNote, LoadedView, Rule, useLoaded } from "./parts.tsx";
import { shownRoot, shownWorkspaces } from "./store.ts";
import { Table } from "./table.tsx";
import { External, plain, Time } from "./text.tsx";
import { WordButton } from "./word.tsx";

/** Shows the view. */
export function RulesView(): VNode {
  const root = shownRoot.value;
  const name = shownWorkspaces.value[0]?.name ?? "";
  const [rules, reload] = useLoaded(
    root,
    () => read<readonly RuleRow[]>("/api/rules", { workspace: root }),
  );
  const [settings] = useLoaded(root, () => read<Settings>("/api/settings", { workspace: root }));
  if (root === undefined) {
    return (
      <>
        <h1>Rules and settings</h1>
        <EmptyNote>
          <p>
            No workspace yet. Run <code>pml init</code> in the folder of your project.
          </p>
        </EmptyNote>
      </>
    );
  }
  return (
    <>
      <h1>
        Rules and settings{" "}
        <small>
          of <External text={name} />
        </small>
      </h1>
      <section aria-labelledby="rules">
        <h2 id="rules">Rules and session answers</h2>
        <LoadedView loaded={rules}>
          {(rows) =>
            rows.length === 0
              ? (
                <EmptyNote>
                  <p>No rules. PML asks for every call that needs an approval.</p>
                </EmptyNote>
              )
              : <Rules rows={rows} root={root} onChange={reload} />}
        </LoadedView>
        <p class="calm">
          Add one with <code>pml allow</code>, <code>pml ask</code> or <code>pml deny</code>.
        </p>
      </section>
      <LoadedView loaded={settings}>{(value) => <SettingsParts settings={value} />}</LoadedView>
    </>
  );
}

function Rules(
  { rows, root, onChange }: {
    readonly rows: readonly RuleRow[];
    readonly root: string;
    readonly onChange: () => void;
  },
): VNode {
  const columns = [
    { name: "Rule" },
    { name: "Effect" },
    { name: "From" },
    { name: "Last used" },
    { name: "Actions", isUnseen: true },
  ];
  return (
    <Table
      label="Rules and session answers"
      columns={columns}
      rows={[...rows].sort((one, other) => Number(other.canRemove) - Number(one.canRemove)).map((
        { rule, effect, from, lastUsed, canRemove },
      ) => ({
        key: `${effect} ${rule} ${from}`,
        cells: [
          <Code key="rule" text={rule} />,
          <Rule key="effect" of={effect} />,
          <External key="from" text={from} />,
          lastUsed === undefined ? undefined : <Time key="used" at={lastUsed} />,
          !canRemove ? undefined : (
            <WordButton
              key="remove"
              path="/api/rules/remove"
              body={{ workspace: root, rule }}
              label={`Remove the rule ${plain(rule)}`}
              kind="grave"
              onDone={onChange}
            >
              Remove
            </WordButton>
          ),
        ],
      }))}
    />
  );
}

function Code({ text }: { readonly text: string }): VNode {
  return (
    <code>
      <External text={text} />
    </code>
  );
}

function SettingsParts({ settings }: { readonly settings: Settings }): VNode {
  const columns = [{ name: "Setting" }, { name: "Value" }, { name: "From" }];
  return (
    <>
      <div class="pair">
        <Keys keys={settings.keys} />
        <section aria-labelledby="identities">
          <h2 id="identities">Identities</h2>
          {settings.identities.length === 0 && <p class="calm">None.</p>}
          <ul class="plain">
            {settings.identities.map((name) => (
              <li key={name}>
                <External text={name} />
              </li>
            ))}
          </ul>
        </section>
      </div>
      <section aria-labelledby="settings">
        <h2 id="settings">Settings</h2>
        <Table
          label="Settings"
          columns={columns}
          rows={settings.settings.map(({ key, value, from }) => ({
            key,
            cells: [
              <Code key="key" text={key} />,
              value === "" ? undefined : <External key="value" text={value} />,
              <External key="from" text={from} />,
            ],
          }))}
        />
        <p class="calm">
          Change one with <code>pml config set SETTING VALUE</code>.
        </p>
      </section>
    </>
  );
}

function Keys({ keys }: { readonly keys: Settings["keys"] }): VNode {
  return (
    <section aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      {keys.length === 0 && <p class="calm">No server needs a key.</p>}
      <ul class="plain">
        {keys.map(({ name, isSet }) => (
          <li key={name}>
            <Code text={name} /> {isSet ? "✓ set" : "– missing"}
          </li>
        ))}
      </ul>
      <p class="calm">
        Values are never shown. Set one with <code>pml key set NAME</code>.
      </p>
    </section>
  );
}
