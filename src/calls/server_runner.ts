/**
 * Passes checked calls to their servers, and requests of servers to the client.
 *
 * @module
 */

import type { CallContext } from "./context.ts";
import type { CallRunner, CallUse, UseNotes } from "./pipeline.ts";
import type { Outcome } from "../protocol/call.ts";
import type { Schemas } from "./schemas.ts";
import type { Logins } from "../oauth/logins.ts";
import { sendToClient } from "./server_requests.ts";
import type { Lists } from "../servers/lists/lists.ts";
import { findMismatch, skillMismatchError } from "./skill_results.ts";
import { turnTime } from "../io/waiting.ts";

/** Sends calls to their servers. */
export class ServerRunner implements CallRunner {
  readonly #uses: UseNotes | undefined;
  readonly #logins: Logins;
  readonly #schemas: Schemas;
  readonly #lists: Pick<Lists, "expire">;

  /** Takes the collaborators. `uses` gets each call of a tool that its server got. */
  constructor(
    { logins, schemas, lists }: {
      readonly logins: Logins;
      readonly schemas: Schemas;
      readonly lists: Pick<Lists, "expire">;
    },
    uses?: UseNotes,
  ) {
    this.#logins = logins;
    this.#schemas = schemas;
    this.#lists = lists;
    this.#uses = uses;
  }

  /** Records a call that its server got. */
  noteUse(use: CallUse): void {
    this.#uses?.note(use);
  }

  /** Sends a call to its server, or a request of a server to the client. */
  run(call: CallContext): Promise<Outcome> {
    // guard: asked-by-server
    if (call.via === "server") return sendToClient(call);
    if (call.method === "tools/list") return listTools(call);
    if (call.method !== undefined && call.tool === "@skills") return this.#readSkill(call);
    const definition = call.method === undefined ? call.definition() : undefined;
    // The server compares its tool with the definition that the checks used, so load it first.
    if (definition instanceof Promise) return definition.then(() => this.#send(call));
    return this.#send(call);
  }

  /**
   * Signs the user in if the error requires it. Returns whether the call can be repeated.
   */
  signIn(call: CallContext, error: unknown): Promise<boolean> {
    return this.#logins.signInAfterError(call, { error, since: call.sentAt });
  }

  /** Returns a result that clients can use. */
  checkResult({ id, server }: CallContext, outcome: Outcome): Outcome {
    return this.#schemas.checkResult(outcome, id, server);
  }

  /**
   * Sends a request about a skill, and compares the result with the entry that the user approved.
   * If they differ, the skill may have changed: lists the skills again and restarts all checks,
   * once.
   */
  async #readSkill(call: CallContext): Promise<Outcome> {
    const definition = await call.definition();
    const outcome = await this.#send(call);
    const problem = findMismatch(definition, call, outcome);
    if (problem === undefined) return outcome;
    if (!call.isSkillRenewed) {
      call.isSkillRenewed = true;
      this.#lists.expire(call.server.name, ["skills"]);
      call.restartChecks();
    }
    // guard: skill-bytes
    throw skillMismatchError(call, problem);
  }

  #send(call: CallContext): Promise<Outcome> {
    call.sentAt = turnTime();
    return call.server.call(call);
  }
}

async function listTools({ server }: CallContext): Promise<Outcome> {
  await server.list("tools");
  return { kind: "result", result: { content: [] } };
}
