/**
 * Counts the questions in sessions for each way of answering. PML's own rules decide each call, and
 * `readingOf()` decides which tools read.
 *
 * @module
 */

import { parsePattern } from "../../src/core/pattern.ts";
import type { ToolId } from "../../src/core/tool_id.ts";
import { splitToolId } from "../../src/core/tool_id.ts";
import { readingOf } from "../../src/policy/tool_reading.ts";
import { type Judge, makeJudge } from "../../src/policy/rules.ts";
import { isAnsweredOnce } from "./mix.ts";
import type { Session, SessionServer, SessionTool } from "./sessions.ts";

/** The widest answer of a user. If it is not offered, the user answers "once". */
export type Answer = "once" | "always" | "session" | "reads" | "all";

/** A way of answering. */
export interface Strategy {
  readonly name: string;
  readonly answer: Answer;
  /** Whether the user first approves a table with the tools of all new servers. */
  readonly hasTable?: boolean;
}

/** The ways of answering, in the order of the table in `docs/benchmarks.md`. */
export const STRATEGIES: readonly Strategy[] = [
  { name: "once", answer: "once" },
  { name: "always for the tool", answer: "always" },
  { name: "for this session", answer: "session" },
  { name: "always for these N that read", answer: "reads" },
  { name: "always for these N", answer: "all" },
  { name: "table, then always for the tool", answer: "always", hasTable: true },
  { name: "table, then always for these N", answer: "all", hasTable: true },
];

/** The counts of one way of answering. */
export interface Counts {
  readonly name: string;
  /** The mean number of questions (and tables) per session. */
  readonly questions: number;
  /** Calls that wrote, destroyed or sent, whose tool was not named in any approved question. */
  readonly unseen: number;
  /** Calls with an effect that ran without a question because their tool counted as reading. */
  readonly asReading: number;
  /** All calls that wrote, destroyed or sent. */
  readonly effects: number;
  /** Calls that destroyed or sent without a question, after a wider answer. */
  readonly covered: number;
}

/** Counts the questions of all sessions for one way of answering. */
export function count(sessions: readonly Session[], strategy: Strategy): Counts {
  const users = sessions.map((session) => {
    const user = new User(session, strategy);
    for (const { id, tool } of session.calls) user.call(id, tool);
    return user;
  });
  const sum = (of: (user: User) => number) => users.reduce((total, user) => total + of(user), 0);
  return {
    name: strategy.name,
    questions: sum(({ questions }) => questions) / sessions.length,
    unseen: sum(({ unseen }) => unseen),
    asReading: sum(({ asReading }) => asReading),
    effects: sum(({ effects }) => effects),
    covered: sum(({ covered }) => covered),
  };
}

/** The user of one session, with the rules that the answers added. */
class User {
  questions = 0;
  unseen = 0;
  asReading = 0;
  effects = 0;
  covered = 0;
  readonly #servers: ReadonlyMap<string, SessionServer>;
  readonly #strategy: Strategy;
  readonly #approved = new Set<string>();
  readonly #rules = new Set<ToolId>();
  readonly #session = new Set<ToolId>();
  /** The tools whose names were in an approved question. */
  readonly #shown = new Set<ToolId>();
  /** The tools that were approved as tools that read. */
  readonly #readers = new Set<ToolId>();
  #judge: Judge = judgeOf([]);

  constructor({ servers }: Session, strategy: Strategy) {
    this.#servers = new Map(servers.map((server) => [server.name, server]));
    this.#strategy = strategy;
    if (strategy.hasTable) this.#acceptTable(servers);
  }

  call(id: ToolId, tool?: SessionTool): void {
    const isEffect = tool !== undefined && tool.effect !== "read";
    if (isEffect) this.effects++;
    const { server } = splitToolId(id);
    if (!this.#approved.has(server)) {
      // The question about a server shows its first call, and no wider answer is offered.
      this.#approved.add(server);
      this.questions++;
      return;
    }
    const isAllowed = this.#judge(id).kind === "allow" || this.#session.has(id);
    if (isAllowed) {
      if (isEffect && !this.#shown.has(id)) this.unseen++;
      if (isEffect && this.#readers.has(id)) this.asReading++;
      if (isEffect && tool.effect !== "write") this.covered++;
      return;
    }
    this.questions++;
    if (tool !== undefined) this.#answer(tool);
    else if (this.#strategy.answer !== "once") this.#allow([id]);
  }

  /** Approves one table for all servers: tools that read are allowed, and other tools ask. */
  #acceptTable(servers: readonly SessionServer[]): void {
    this.questions++;
    for (const { name } of servers) this.#approved.add(name);
    this.#allowReaders(servers.flatMap(({ tools }) => tools));
  }

  #answer(tool: SessionTool): void {
    const { answer } = this.#strategy;
    if (isAnsweredOnce(tool.claim) || answer === "once") return;
    const { tools = [] } = this.#servers.get(splitToolId(tool.id).server) ?? {};
    if (answer === "session") this.#answerForSession(tool);
    else if (answer === "all") this.#allow(tools.map(({ id }) => id));
    else if (answer === "reads" && readingOf(tool.definition).reads) this.#allowReaders(tools);
    else this.#allow([tool.id]);
  }

  #answerForSession({ id, definition }: SessionTool): void {
    // PML does not offer this answer for tools with `destructiveHint`.
    if (definition.annotations?.destructiveHint === true) return;
    this.#session.add(id);
    this.#shown.add(id);
  }

  #allowReaders(tools: readonly SessionTool[]): void {
    const readers = tools.filter(({ definition }) => readingOf(definition).reads)
      .map(({ id }) => id);
    for (const id of readers) this.#readers.add(id);
    this.#allow(readers);
  }

  /** Adds one rule for each tool; the question showed all of them. */
  #allow(ids: readonly ToolId[]): void {
    for (const id of ids) {
      this.#rules.add(id);
      this.#shown.add(id);
    }
    this.#judge = judgeOf([...this.#rules]);
  }
}

function judgeOf(allow: readonly string[]): Judge {
  const rules = allow.map((text) => ({ pattern: parsePattern(text), source: "answers" }));
  // `User` counts the question about a new server itself.
  return makeJudge({ deny: [], ask: [], allow: rules }, { known: () => true });
}
