/**
 * `pml config show`: what holds, where it comes from, what is odd about it, and what it costs.
 *
 * @module
 */

import type { App } from "../app.ts";
import { visible } from "../core/json.ts";
import { costsText, measure } from "./_config_costs.ts";
import { type Value, valuesOf, warningsOf } from "./_config_values.ts";
import { prepare, type Shown, type Visit } from "./_house.ts";

/** Shows everything; servers whose tools are unknown are asked for them. */
export async function showConfig({ app }: Visit): Promise<Shown> {
  await prepare(app, undefined);
  const values = valuesOf(app);
  const tokens = await measure(app);
  const fullTokens = tokens.modes.find(({ name }) => name === "full_proxy")?.tokens ?? 0;
  const tools = app.catalog.list().map(({ id }) => id);
  const warnings = warningsOf(app, { tools, fullTokens });
  return {
    value: { values: Object.fromEntries(values.map(entryOf)), warnings, tokens },
    text: [
      ...values.map((value) => lineOf(value, app)),
      ...warnings.map((said) => `warning: ${visible(said, 400)}`),
      "",
      costsText(tokens),
    ].join("\n"),
  };
}

function entryOf({ key, value = null, ...rest }: Value): readonly [string, unknown] {
  return [key, { value, ...rest }];
}

function lineOf({ key, value, from, ignored }: Value, app: App): string {
  const but = ignored === undefined
    ? ""
    : `; ${shown(ignored)} in ${app.loaded().file?.path} is ignored: it is not trusted`;
  return `${key.padEnd(WIDTH)} ${shown(value)}  (${from}${but})`;
}

function shown(value: unknown): string {
  return value === undefined ? "none" : visible(JSON.stringify(value), 400);
}

/** The longest key, and a blank. */
const WIDTH = 38;
