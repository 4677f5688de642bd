/**
 * A chart over time, and a table with the same numbers for readers who do not see the chart.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Table } from "./table.tsx";
import { Time } from "./text.tsx";

const HEIGHT = 180;
const TABLE_ROWS = 30;
/** A line with fewer values shows points, too, because a single value does not make a line. */
const FEW_VALUES = 30;
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** One line of a chart. */
export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** The variable of CSS with its colour. */
  readonly colour: string;
  readonly dash?: number[];
}

/** Shows a chart. */
export function Chart(
  { title, summary, times, lines }: {
    readonly title: string;
    readonly summary: string;
    /** The time of each value, in milliseconds since 1970. */
    readonly times: readonly number[];
    readonly lines: readonly Line[];
  },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [isDark, setDark] = useState(DARK.matches);
  useEffect(() => {
    const update = () => setDark(DARK.matches);
    DARK.addEventListener("change", update);
    return () => DARK.removeEventListener("change", update);
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const plot = new uPlot(optionsOf(element.clientWidth, lines), dataOf(times, lines), element);
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: HEIGHT })
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, lines.length, isDark]);
  const first = Math.max(0, times.length - TABLE_ROWS);
  return (
    <figure class="card">
      <figcaption>
        <strong>{title}</strong> <span class="calm">{summary}</span>
        {lines.length > 1 && <Legend lines={lines} />}
      </figcaption>
      <div class="chart" ref={box} role="img" aria-label={`${title}: ${summary}`} />
      <details>
        <summary>As a table</summary>
        <Table
          label={`${title}, as a table`}
          columns={[{ name: "Time" }, ...lines.map(({ name }) => ({ name, isNumber: true }))]}
          rows={times.slice(first).map((time, index) => ({
            key: `${time}`,
            cells: [
              <Time key="time" at={time} />,
              ...lines.map(({ values }) => values[first + index] ?? undefined),
            ],
          }))}
        />
      </details>
    </figure>
  );
}

function Legend({ lines }: { readonly lines: readonly Line[] }): VNode {
  return (
    <span class="key">
      {lines.map(({ name, colour, dash }) => (
        <span key={name}>
          <span
            aria-hidden="true"
            class={dash === undefined ? "line" : "line dashed"}
            style={{ borderColor: `var(${colour})` }}
          />
          {name}
        </span>
      ))}
    </span>
  );
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [times.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])];
}

function optionsOf(width: number, lines: readonly Line[]): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour("--calm"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [{ ...axis, values: (_, times) => times.map(timeText) }, { ...axis, size: 56 }],
    series: [
      {},
      ...lines.map((line): uPlot.Series => ({
        label: line.name,
        stroke: colour(line.colour),
        width: 2,
        ...line.dash !== undefined && { dash: line.dash },
        points: { show: line.values.filter((one) => one !== null).length < FEW_VALUES, size: 5 },
      })),
    ],
  };
}

function timeText(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString("en-GB").slice(0, 5);
}
