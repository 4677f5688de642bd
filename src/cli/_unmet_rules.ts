/**
 * Finds the rules that name nothing here, which are often mistyped.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { DEFAULTS_SOURCE, type RuleLine } from "../config/rules.ts";
import { objectOf, quoted, textOf } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import type { Pattern } from "../core/pattern.ts";
import { splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { RULE_LISTS, type RuleList } from "../policy/rule_lists.ts";
import { readersOf, readersText } from "./_readers.ts";

/**
 * A rule that names no server, no tool of a known server, or no argument of a known tool, or that
 * covers no tool.
 */
export interface UnmetRule {
  /** A sentence for the user. */
  readonly said: string;
  /** Whether there is a name like it, so that it was probably mistyped. */
  readonly isNear: boolean;
}

/** Returns the rules of the user and the workspace that match no known server or tool. */
export function unmetRules(app: App): readonly UnmetRule[] {
  const { config: { rules } } = app.policy.now;
  const unmet = RULE_LISTS.flatMap((list) =>
    rules[list].filter(({ source }) => source !== DEFAULTS_SOURCE)
      .flatMap((line) => unmetRule(app, line, list) ?? [])
  );
  return [...unmet, ...rules.allow.flatMap((line) => uncovered(app, line) ?? [])];
}

/** Returns an allow rule of the user's file that does not cover the server that it names. */
function uncovered(app: App, line: RuleLine): UnmetRule | undefined {
  const reason = whyUncovered(app, line);
  if (reason === undefined) return undefined;
  const { pattern: { text }, source } = line;
  const rule = `The rule ${quoted(text, 200)} in ${quoted(source, 400)}`;
  return { said: `${rule} does not apply here: ${reason}`, isNear: false };
}

/** Returns why an allow rule does not cover the server that it names; undefined if it does. */
export function whyUncovered(app: App, { pattern, source }: RuleLine): string | undefined {
  if (pattern.kind === "any" || source !== app.loaded().person.path) return undefined;
  const tool = "tool" in pattern ? pattern.tool : "*";
  return app.policy.now.users.whyUncovered(`${pattern.server}:${tool}` as ToolId);
}

/** Returns the unknown name in a rule; undefined if it matches something. */
export function unmetRule(
  app: App,
  { pattern, source }: RuleLine,
  list: RuleList,
): UnmetRule | undefined {
  if (pattern.kind === "any") return undefined;
  const { server, text } = pattern;
  const states = app.servers.states();
  // The cloud's own tools have this name; the cloud lists them only with a key.
  const isServer = server === "pml" || states.some(({ name }) => name === server) ||
    app.policy.now.known(server) ||
    app.policy.disabledIn(server) !== undefined;
  const rule = `The rule ${quoted(text, 200)} in ${quoted(source, 400)}`;
  if (!isServer) {
    const names = states.map(({ name }) => name);
    return unmet(`${rule} names no server here`, {
      name: server,
      names,
      otherwise: ". A registry may have it",
    });
  }
  const tools = app.catalog.toolsOf(server).map(({ id }) => splitToolId(id).tool);
  if (pattern.kind === "server" || tools.length === 0) return undefined;
  if (pattern.kind === "reads") {
    const readers = readersOf(app, server);
    if (readers.length > 0) return undefined;
    return { said: `${rule} ${readersText(server, readers)}`, isNear: false };
  }
  if (pattern.tool.startsWith("@")) return undefined;
  const id = toolId(server, pattern.tool);
  const own = app.catalog.get(id)?.own;
  if (own === undefined) {
    return unmet(`${rule} names no tool of ${quoted(server)}`, {
      name: pattern.tool,
      names: tools,
      before: `${server}:`,
    });
  }
  const properties = objectOf(own.inputSchema.properties);
  const names = Object.keys(properties);
  const lost = pattern.kind === "conditions" && names.length > 0
    ? pattern.conditions.find(({ name }) => !names.includes(name))
    : undefined;
  if (lost !== undefined) {
    return unmet(`${rule} names no argument of ${quoted(id)}`, { name: lost.name, names });
  }
  const structured = pattern.kind === "conditions" && list === "allow"
    ? pattern.conditions.find(({ name }) =>
      ["array", "object"].includes(textOf(objectOf(properties[name]).type))
    )
    : undefined;
  if (structured === undefined) return undefined;
  const why = `its argument ${quoted(structured.name)} is a list or an object, which no pattern ` +
    "matches: name all arguments as JSON";
  return { said: `${rule} never applies: ${why}`, isNear: false };
}

/** Returns the deny rule that covers all calls that another rule would allow. */
export function denyingRule(app: App, pattern: Pattern): RuleLine | undefined {
  return app.policy.now.config.rules.deny.find(({ pattern: deny }) => {
    if (deny.kind === "any") return true;
    if (pattern.kind === "any" || deny.server !== pattern.server) return false;
    if (deny.kind === "server") return true;
    return deny.kind === "exact" && "tool" in pattern && deny.tool === pattern.tool;
  });
}

function unmet(
  rule: string,
  { name, names, before = "", otherwise = "" }: {
    readonly name: string;
    readonly names: readonly string[];
    readonly before?: string;
    readonly otherwise?: string;
  },
): UnmetRule {
  const near = nearName(name, names);
  const more = near === undefined ? otherwise : `. Did you mean ${quoted(before + near)}?`;
  return { said: rule + more, isNear: near !== undefined };
}
