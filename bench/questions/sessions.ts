/**
 * Creates the sessions for counting questions: random servers and calls, equal in each run.
 *
 * @module
 */

import { type ToolId, toolId } from "../../src/core/tool_id.ts";
import type { ToolDefinition } from "../../src/protocol/tool.ts";
import { objectOf } from "../../src/core/json.ts";
import { type Effect, EFFECTS, type Effects, LYING_EFFECTS } from "./effects.ts";
import {
  CALLS,
  MIX,
  PART_CALLS,
  SEED,
  SERVERS,
  SESSIONS,
  weightOf,
  WITH_PROMPTS,
  WITH_RESOURCES,
} from "./mix.ts";

/** A tool of a session. */
export interface SessionTool {
  readonly id: ToolId;
  readonly definition: ToolDefinition;
  readonly effect: Effect;
  /** The effect that the user sees; for a server that lies, the effect that it claims. */
  readonly claim: Effect;
}

/** A server of a session. */
export interface SessionServer {
  readonly name: string;
  readonly tools: readonly SessionTool[];
}

/** The servers and calls of one session. A call without a tool is for resources or prompts. */
export interface Session {
  readonly servers: readonly SessionServer[];
  readonly calls: readonly { readonly id: ToolId; readonly tool?: SessionTool }[];
}

/** Returns the sessions, with or without the two servers that lie. */
export function drawSessions({ areLying = false } = {}): readonly Session[] {
  const random = numbersFrom(SEED);
  const honest = serversOf("server_tools.json", EFFECTS, { isLying: false });
  const lying = areLying
    ? serversOf("lying_server_tools.json", LYING_EFFECTS, { isLying: true })
    : [];
  return Array.from({ length: SESSIONS }, () => {
    const count = SERVERS.least + Math.floor(random() * (SERVERS.most - SERVERS.least + 1));
    const chosen = shuffle(honest, random).slice(0, count - lying.length);
    return sessionOf([...chosen, ...lying], random);
  });
}

function sessionOf(servers: readonly SessionServer[], random: () => number): Session {
  const ranked = servers.map(({ tools }) => shuffle(tools, random));
  const calls: Session["calls"][number][] = [];
  while (calls.length < CALLS) {
    const effect = pick(MIX, random);
    const capableServers = ranked.map((tools) => tools.filter((tool) => tool.effect === effect))
      .filter((tools) => tools.length > 0);
    const tools = capableServers[Math.floor(random() * capableServers.length)];
    // If no server has a tool with this effect, draws another effect.
    if (tools === undefined) continue;
    const tool = pick(tools.map((tool, rank) => [tool, weightOf(rank)] as const), random);
    calls.push({ id: tool.id, tool });
  }
  const parts = servers.flatMap(({ name }) => [
    ...times(WITH_RESOURCES.includes(name) ? PART_CALLS.resources : 0, toolId(name, "@resources")),
    ...times(WITH_PROMPTS.includes(name) ? PART_CALLS.prompts : 0, toolId(name, "@prompts")),
  ]);
  return { servers, calls: shuffle([...calls, ...parts.map((id) => ({ id }))], random) };
}

function serversOf(
  file: string,
  effects: Readonly<Record<string, Effects>>,
  { isLying }: { readonly isLying: boolean },
): readonly SessionServer[] {
  const path = new URL(`../../tests/fixtures/${file}`, import.meta.url);
  const servers: Readonly<Record<string, { readonly tools: readonly ToolDefinition[] }>> = JSON
    .parse(Deno.readTextFileSync(path));
  return Object.entries(servers).map(([name, { tools }]) => ({
    name,
    tools: tools.map((definition) => {
      const effect = effects[name]?.[definition.name];
      if (effect === undefined) throw new Error(`${name}:${definition.name} is not in the table`);
      const claim = isLying ? claimOf(definition) : effect;
      return { id: toolId(name, definition.name), definition, effect, claim };
    }),
  }));
}

function claimOf(definition: ToolDefinition): Effect {
  const { destructiveHint, readOnlyHint } = objectOf(definition.annotations);
  if (destructiveHint === true) return "destructive";
  return readOnlyHint === true ? "read" : "write";
}

function times<T>(count: number, value: T): readonly T[] {
  return Array.from({ length: count }, () => value);
}

/** Picks a random value; `weighted` contains the weights. */
function pick<T>(weighted: readonly (readonly [T, number])[], random: () => number): T {
  const whole = weighted.reduce((sum, [, weight]) => sum + weight, 0);
  let position = random() * whole;
  for (const [value, weight] of weighted) {
    position -= weight;
    if (position < 0) return value;
  }
  const last = weighted.at(-1);
  if (last === undefined) throw new RangeError("nothing to pick");
  return last[0];
}

function shuffle<T>(values: readonly T[], random: () => number): readonly T[] {
  return values.map((value) => ({ value, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value);
}

/** Returns a generator of numbers from 0 to 1 (mulberry32), because `Math.random` has no seed. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
