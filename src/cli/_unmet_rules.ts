/**
 * Finds the rules that name nothing here, which are often mistyped.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { DEFAULTS_SOURCE, type RuleLine } from "../config/rules.ts";
import { quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";

/** A rule that names no server, or no tool of a known server. */
export interface UnmetRule {
  /** A sentence for the person. */
  readonly said: string;
  /** Whether there is a name like it, so that it was probably mistyped. */
  readonly isNear: boolean;
}

/** Returns the rules of the person and the workspace that name nothing among what is known now. */
export function unmetRules(app: App): readonly UnmetRule[] {
  const { config: { rules } } = app.policy.now;
  const lines = [...rules.deny, ...rules.ask, ...rules.allow];
  return lines.filter(({ source }) => source !== DEFAULTS_SOURCE)
    .flatMap((line) => unmetRule(app, line) ?? []);
}

/** Returns what a rule does not name; undefined if it names something. */
export function unmetRule(app: App, { pattern, source }: RuleLine): UnmetRule | undefined {
  if (pattern.kind === "any") return undefined;
  const { server, text } = pattern;
  const states = app.servers.states();
  const isServer = states.some(({ name }) => name === server) || app.policy.now.known(server) ||
    app.policy.disabledIn(server) !== undefined;
  const rule = `The rule ${quoted(text, 200)} in ${quoted(source, 400)}`;
  if (!isServer) {
    const near = nearName(server, states.map(({ name }) => name));
    const why = near === undefined ? "A registry may have it" : `Did you mean ${quoted(near)}?`;
    return { said: `${rule} names no server here. ${why}`, isNear: near !== undefined };
  }
  const tools = app.catalog.toolsOf(server).map(({ tool: { name } }) => name);
  const isTool = pattern.kind === "server" || pattern.tool.startsWith("@") ||
    tools.length === 0 || tools.includes(pattern.tool);
  if (isTool) return undefined;
  const near = nearName(pattern.tool, tools);
  const meant = near === undefined ? "" : `. Did you mean ${quoted(`${server}:${near}`)}?`;
  return { said: `${rule} names no tool of ${quoted(server)}${meant}`, isNear: near !== undefined };
}
