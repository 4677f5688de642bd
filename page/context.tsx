/**
 * The view of the tokens that lists of tools cost, and of calls, errors and durations over time.
 *
 * @module
 */

import type { VNode } from "preact";
import type { ContextCosts, MetricsSeries } from "../src/control/api.ts";
import { Chart } from "./chart.tsx";
import { read } from "./http.ts";
import { EmptyNote, LoadedView, useLoaded } from "./parts.tsx";
import { shownRoot, shownWorkspaces, state } from "./store.ts";
import { counted, External, plain } from "./text.tsx";

const REFRESH_MS = 15_000;

/** Shows the view. */
export function ContextView(): VNode {
  const root = shownRoot.value;
  const name = shownWorkspaces.value[0]?.name ?? "";
  // New calls extend the series, so the view loads the series again after `REFRESH_MS`.
  const turn = Math.floor((state.value?.now ?? 0) / REFRESH_MS);
  const [costs] = useLoaded(
    root,
    () => read<ContextCosts>("/api/context", { workspace: root }),
  );
  const [series] = useLoaded(`${turn}`, () => read<MetricsSeries>("/api/metrics"));
  return (
    <>
      <h1>Context</h1>
      {root === undefined
        ? (
          <EmptyNote>
            <p>
              No workspace yet. Run <code>pml init</code> in the folder of your project.
            </p>
          </EmptyNote>
        )
        : (
          <section aria-labelledby="list">
            <h2 id="list">
              The list of tools that a model gets{" "}
              <small>
                of <External text={name} />
              </small>
            </h2>
            <LoadedView loaded={costs}>{(value) => <Costs costs={value} />}</LoadedView>
          </section>
        )}
      <section aria-labelledby="time">
        <h2 id="time">Over time</h2>
        <LoadedView loaded={series}>{(value) => <Series series={value} />}</LoadedView>
      </section>
    </>
  );
}

function Costs({ costs }: { readonly costs: ContextCosts }): VNode {
  const { mode, modes, servers, command } = costs;
  const presentTokens = modes.find((one) => one.mode === mode)?.tokens;
  // The present configuration has its own row only if it is not a preset.
  const presets = modes.filter((one) => one.mode !== "now");
  const shownModes = presets.some((one) => one.mode === mode) ? presets : modes;
  return (
    <>
      <p class="lead">
        Mode{" "}
        <strong>
          <External text={mode} />
        </strong>
        {presentTokens !== undefined && `: ${counted(presentTokens, "token")}`}
      </p>
      <div class="pair">
        <div>
          <h3>Every mode</h3>
          <Bars
            rows={shownModes.map((one) => ({
              name: one.mode,
              tokens: one.tokens,
              note: one.mode === mode ? "in use" : "",
            }))}
            label="Tokens of the list in every mode"
          />
          {command !== undefined && (
            <p class="calm">
              Switch with{" "}
              <code>
                <External text={command} />
              </code>
            </p>
          )}
        </div>
        <div>
          <h3>Every server</h3>
          <Bars
            rows={servers.map((one) => ({
              name: one.name,
              tokens: one.tokens,
              note: counted(one.tools, "tool"),
            }))}
            label="Tokens of each server"
          />
        </div>
      </div>
    </>
  );
}

function Bars(
  { rows, label }: {
    readonly rows: readonly { name: string; tokens: number; note: string }[];
    readonly label: string;
  },
): VNode {
  const maxTokens = Math.max(1, ...rows.map(({ tokens }) => tokens));
  if (rows.length === 0) return <p class="calm">None.</p>;
  return (
    <ul class="bars" aria-label={label}>
      {rows.map(({ name, tokens, note }) => (
        <li key={name}>
          <span>
            <External text={name} /> {note !== "" && <small>{note}</small>}
          </span>
          <span class="number">{tokens.toLocaleString("en-GB")}</span>
          <span class="bar" aria-hidden="true">
            <span style={{ width: `${(100 * tokens / maxTokens).toFixed(2)}%` }} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Series({ series }: { readonly series: MetricsSeries }): VNode {
  const { at, calls, errors, medianMs, resultTokens } = series;
  if (at.length === 0) {
    return (
      <EmptyNote>
        <p>No numbers yet. They begin with the next call of a running PML.</p>
      </EmptyNote>
    );
  }
  const total = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0);
  return (
    <div class="charts">
      <Chart
        title={`Calls and errors`}
        summary={`${counted(total(calls), "call")}, ${counted(total(errors), "error")}`}
        times={at}
        lines={[
          { name: "calls", values: calls, colour: "--accent" },
          { name: "errors", values: errors, colour: "--grave", dash: [4, 3] },
        ]}
      />
      <Chart
        title="Median duration (ms)"
        summary={`now ${plain(`${medianMs.findLast((one) => one !== null) ?? "–"}`)} ms`}
        times={at}
        lines={[{ name: "ms", values: medianMs, colour: "--accent" }]}
      />
      <Chart
        title="Tokens of results"
        summary={counted(total(resultTokens), "token")}
        times={at}
        lines={[{ name: "tokens", values: resultTokens, colour: "--mark" }]}
      />
    </div>
  );
}
