/**
 * Finds the rules that match no server, tool or argument here, often because of a typing error.
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
  readonly sentence: string;
  /** The part of the sentence that follows the rule and its file. */
  readonly note: string;
}

/** Returns the rules of the user and the workspace that match no known server or tool. */
export function unmetRules(app: App): readonly UnmetRule[] {
  const { config: { rules } } = app.policy.now;
  const unmet = RULE_LISTS.flatMap((list) =>
    rules[list].filter(({ source }) => source !== DEFAULTS_SOURCE)
      .flatMap((line) => unmetRule(app, line, list) ?? [])
  );
  return [...unmet, ...rules.allow.flatMap((line) => uncoveredRule(app, line) ?? [])];
}

/** Returns the note of an allow rule in the user's file that does not cover the server that it names. */
function uncoveredRule(app: App, line: RuleLine): UnmetRule | undefined {
  const reason = whyUncovered(app, line);
  if (reason === undefined) return undefined;
  return unmet(line, `does not apply here: ${reason}`);
}

/** Returns why an allow rule does not cover the server that it names; undefined if it does. */
export function whyUncovered(app: App, { pattern, source }: RuleLine): string | undefined {
  if (pattern.kind === "any" || source !== app.loaded().userConfig.path) return undefined;
  const id = `${pattern.server}:${"tool" in pattern ? pattern.tool : "*"}` as ToolId;
  const { users } = app.policy.now;
  const url = registryOf(app, id);
  return users.whyUncovered(id) ?? (url && users.whyRegistryUncovered(url));
}

/**
 * Loads the catalogs of the registries if the workspace names one of them, so that `whyUncovered()`
 * also knows servers that are not approved yet. Sends no name to a registry.
 */
export async function readOffers(app: App): Promise<void> {
  const { users, config: { registries } } = app.policy.now;
  if (registries.every(({ url }) => users.whyRegistryUncovered(url) === undefined)) return;
  // Calls report a broken lock, so it does not stop a rule.
  const servers = await app.registries().catch(() => undefined);
  await servers?.offers.update();
}

/** Returns the URL of the registry that has the server of a tool, as far as PML has loaded it. */
function registryOf({ registryServers }: App, id: ToolId): string | undefined {
  const { server } = splitToolId(id);
  return registryServers?.sourceOf(server) ?? registryServers?.sourceOf(id);
}

/** Returns a rule with the reason why it has no effect; undefined if it may have one. */
export function unmetRule(
  app: App,
  line: RuleLine,
  list: RuleList,
): UnmetRule | undefined {
  const { pattern } = line;
  if (pattern.kind === "any") return undefined;
  const { server } = pattern;
  const states = app.servers.states();
  // The cloud's own tools have this name; the cloud lists them only with a key.
  const isServer = server === "pml" || states.some(({ name }) => name === server) ||
    app.policy.now.known(server) ||
    app.policy.fileThatDisables(server) !== undefined ||
    registryOf(app, `${server}:${"tool" in pattern ? pattern.tool : "*"}` as ToolId) !== undefined;
  if (!isServer) {
    const names = states.map(({ name }) => name);
    const otherwise = ". A registry may have it";
    return unmet(line, `names no server here${suggestion(server, { names, otherwise })}`);
  }
  const tools = app.catalog.toolsOf(server).map(({ id }) => splitToolId(id).tool);
  if (pattern.kind === "server" || tools.length === 0) return undefined;
  if (pattern.kind === "reads") {
    const readers = readersOf(app, server);
    if (readers.length > 0) return undefined;
    return unmet(line, readersText(server, readers));
  }
  if (pattern.tool.startsWith("@")) return undefined;
  const id = toolId(server, pattern.tool);
  const definition = app.catalog.get(id)?.own;
  if (definition === undefined) {
    const near = suggestion(pattern.tool, { names: tools, before: `${server}:` });
    return unmet(line, `names no tool of ${quoted(server)}${near}`);
  }
  const properties = objectOf(definition.inputSchema.properties);
  const names = Object.keys(properties);
  const unknown = pattern.kind === "conditions" && names.length > 0
    ? pattern.conditions.find(({ name }) => !names.includes(name))
    : undefined;
  if (unknown !== undefined) {
    return unmet(line, `names no argument of ${quoted(id)}${suggestion(unknown.name, { names })}`);
  }
  const structured = pattern.kind === "conditions" && list === "allow"
    ? pattern.conditions.find(({ name }) =>
      ["array", "object"].includes(textOf(objectOf(properties[name]).type))
    )
    : undefined;
  if (structured === undefined) return undefined;
  const why = `its argument ${quoted(structured.name)} is a list or an object, which no pattern ` +
    "matches: name all arguments as JSON";
  return unmet(line, `never applies: ${why}`);
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

function unmet({ pattern: { text }, source }: RuleLine, note: string): UnmetRule {
  return { sentence: `The rule ${quoted(text, 200)} in ${quoted(source, 400)} ${note}`, note };
}

/** Returns the end of a sentence about an unknown name: the nearest one, if there is one. */
function suggestion(name: string, { names, before = "", otherwise = "" }: {
  readonly names: readonly string[];
  readonly before?: string;
  readonly otherwise?: string;
}): string {
  const near = nearName(name, names);
  return near === undefined ? otherwise : `. Did you mean ${quoted(before + near)}?`;
}
