/**
 * Form fields: one line of text, and a choice.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";

/** Shows a field with its name. */
export function Entry(
  { name, children, value, onValue, placeholder, isSearch = false, kind = "" }: {
    /** The name of the field in its form. */
    readonly name: string;
    readonly children: ComponentChildren;
    readonly value: string;
    readonly onValue: (value: string) => void;
    readonly placeholder?: string;
    readonly isSearch?: boolean;
    readonly kind?: string;
  },
): VNode {
  const common = {
    ...{ name, value, placeholder, autocomplete: "off", spellcheck: false },
    onInput: (event: InputEvent & { readonly currentTarget: { readonly value: string } }) =>
      onValue(event.currentTarget.value),
  };
  return (
    <label class={kind}>
      <span>{children}</span>
      {isSearch ? <input {...common} type="search" /> : <input {...common} type="text" />}
    </label>
  );
}

/** Shows a choice with its name. */
export function Choice(
  { name, children, value, onValue, options, kind = "" }: {
    readonly name: string;
    readonly children: ComponentChildren;
    readonly value: string;
    readonly onValue: (value: string) => void;
    /** The values with their texts. */
    readonly options: readonly (readonly [string, string])[];
    readonly kind?: string;
  },
): VNode {
  return (
    <label class={kind}>
      <span>{children}</span>
      <select name={name} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {options.map(([one, text]) => <option key={one} value={one}>{text}</option>)}
      </select>
    </label>
  );
}
