/**
 * A table that scrolls alone if it is too wide. On a narrow screen, its rows become blocks with the
 * names of the columns before the values.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";

/** A column. */
export interface Column {
  readonly name: string;
  readonly isNumber?: boolean;
  /** Whether its name is for screen readers only. */
  readonly isUnseen?: boolean;
}

/** A row. Its first cell is its heading; an undefined cell is empty. */
export interface TableRow {
  readonly key: string;
  readonly cells: readonly (ComponentChildren | undefined)[];
}

/** Shows a table. */
export function Table(
  { label, caption, columns, rows }: {
    /** The name of the table. */
    readonly label: string;
    /** The visible name, if there is one. */
    readonly caption?: ComponentChildren;
    readonly columns: readonly Column[];
    readonly rows: readonly TableRow[];
  },
): VNode {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <caption class={caption === undefined ? "unseen" : ""}>{caption ?? label}</caption>
        <thead>
          <tr>
            {columns.map(({ name, isNumber, isUnseen }) => (
              <th key={name} scope="col" class={isNumber ? "number" : ""}>
                <span class={isUnseen ? "unseen" : ""}>{name}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, at) => <Cell key={at} column={columns[at]} at={at} cell={cell} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell(
  { column, at, cell }: {
    readonly column: Column | undefined;
    readonly at: number;
    readonly cell: ComponentChildren | undefined;
  },
): VNode {
  if (at === 0) return <th scope="row">{cell}</th>;
  const isEmpty = cell === undefined || cell === "";
  const kind = [column?.isNumber ? "number" : "", isEmpty ? "none" : ""].join(" ").trim();
  return (
    <td class={kind} data-label={column?.isUnseen ? undefined : column?.name}>
      {isEmpty ? "–" : cell}
    </td>
  );
}
