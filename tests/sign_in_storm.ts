/**
 * Many PMLs on one home that are signed in at one server, whose tokens expire again and again, and
 * of which some are killed at any moment: each expiry is one refresh, and no sign-in is lost.
 *
 * @module
 */

import assert from "node:assert/strict";
import { toldCode } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import type { OAuthRequest } from "./kit/oauth_endpoints.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { signIn } from "./kit/sign_in.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** How large the storm is. */
export interface StormOptions {
  readonly processes: number;
  readonly expiries: number;
  /** How many processes are killed, spread over the expiries; every second in a refresh. */
  readonly kills: number;
  /** Called after each expiry. */
  readonly onRound?: (round: number) => void;
}

/** What came of it. */
export interface Stormed {
  readonly refreshes: number;
  readonly reuses: number;
  readonly calls: number;
  readonly kills: number;
  /** Kills while the authorization server held the answer to the refresh of anybody. */
  readonly killsInRefresh: number;
  readonly violations: readonly string[];
  readonly isRevoked: boolean;
  readonly seconds: number;
}

/** Lets the tokens expire, has all processes call at once, and counts. */
export async function storm(options: StormOptions): Promise<Stormed> {
  const since = performance.now();
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url: mcp.url } },
    },
  });
  const { code, stdout, stderr } = await signIn(ws, "far");
  assert.equal(code, 0, stdout + stderr);
  await using crowd = new Crowd(ws, server);
  await crowd.open(options.processes);
  let calls = await crowd.call();
  for (let round = 0; round < options.expiries; round++) {
    server.tokens.expire();
    const each = options.expiries / options.kills;
    const isDue = Math.floor(round / each) !== Math.floor((round + 1) / each);
    if (isDue) crowd.killOne(crowd.kills % 2 === 0 ? "refresh" : "any");
    calls += await crowd.call();
    assert.equal(server.tokens.refreshes, round + 1, `after the expiry ${round + 1}`);
    options.onRound?.(round + 1);
  }
  await crowd.close();
  const { refreshes, reuses, families } = server.tokens;
  return {
    ...{ refreshes, reuses, calls, kills: crowd.kills, killsInRefresh: crowd.killsInRefresh },
    violations: server.violations,
    isRevoked: families.some(({ isRevoked }) => isRevoked),
    seconds: (performance.now() - since) / 1_000,
  };
}

/** The processes. */
class Crowd implements AsyncDisposable {
  kills = 0;
  killsInRefresh = 0;
  readonly #ws: Workspace;
  readonly #server: AuthorizationServer;
  readonly #killed = new Set<RawStdio>();
  #running: RawStdio[] = [];
  /** Ends the process that is due. */
  #due: (() => Promise<unknown>) | undefined;

  constructor(ws: Workspace, server: AuthorizationServer) {
    this.#ws = ws;
    this.#server = server;
  }

  /** Starts processes until there are so many. */
  async open(count: number): Promise<void> {
    const more = Array.from(
      { length: count - this.#running.length },
      () => new RawStdio(this.#ws, { era: "2026-07-28" }),
    );
    this.#running.push(...more);
    for (const one of more) await one.open();
  }

  /** Has one process killed in the next round: while the answer to a refresh is held, or later. */
  killOne(when: "refresh" | "any"): void {
    const victim = this.#running[this.kills++ % this.#running.length];
    if (victim === undefined) return;
    this.#due = async () => {
      this.#due = undefined;
      this.#killed.add(victim);
      await victim.kill();
    };
    const { options } = this.#server;
    options.after = async ({ form }: OAuthRequest, answer: Response) => {
      if (form.get("grant_type") !== "refresh_token") return answer;
      options.after = undefined;
      if (when !== "refresh" || this.#due === undefined) return answer;
      this.killsInRefresh++;
      await this.#due();
      return answer;
    };
  }

  /** Has all processes call at once. All that are not killed are answered. Returns how many. */
  async call(): Promise<number> {
    const count = this.#running.length;
    const calls = this.#running.map((one) =>
      one.callTool("call", { tool: "far:meta", arguments: {} }).then(
        (answer) => ({ one, answer }),
        () => ({ one, answer: undefined }),
      )
    );
    // Not in a refresh: as soon as the first one was answered.
    void Promise.race(calls).then(() => this.#due?.());
    const answers = await Promise.all(calls);
    await this.#due?.();
    for (const { one, answer } of answers) {
      if (answer === undefined) assert.ok(this.#killed.has(one), "a process ended by itself");
      else assert.equal(toldCode(answer), undefined, textOf(answer));
    }
    this.#running = this.#running.filter((one) => !this.#killed.has(one));
    await this.open(count);
    return answers.filter(({ answer }) => answer !== undefined).length;
  }

  /** Hangs up on all. */
  async close(): Promise<void> {
    for (const one of this.#running) assert.equal((await one.close()).code, 0, one.stderr);
    this.#running = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((one) => one[Symbol.asyncDispose]()));
  }
}
