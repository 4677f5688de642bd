/**
 * Runs plans and code, which make many calls in one request. The first plan or code loads this
 * module.
 *
 * @module
 */

import { NO_CLIENT, type Outcome, textResult, type ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError, shownPlace } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { Capability } from "../servers/capability/capability.ts";
import type { Selector } from "../servers/module/select_children.ts";
import type { CapabilityRuns } from "./capabilities.ts";
import { runCapability } from "./capability_run.ts";
import type { CapabilityCall } from "./capability_call.ts";
import { runCode } from "./code.ts";
import { type CodeToolParts, executeCode, UNSAVED, withSaved } from "./code_tool.ts";
import { answerIntent, type IntentHost, withPlan } from "./intents.ts";
import { LargeResults } from "./large_results.ts";
import { parsePlan } from "./plan.ts";
import { type PlanRequest, Plans, type PlansParts } from "./plans.ts";
import { Results, type ResultSource } from "./results.ts";
import { Run } from "./run.ts";
import { WaitingRuns } from "./waiting_runs.ts";
import type { WorkflowRequest } from "./workflow_request.ts";

/** The collaborators of `Workflow`. */
export interface WorkflowParts
  extends Omit<PlansParts, "results" | "waiting">, Omit<CodeToolParts, "waiting"> {
  /** Creates plans from intents. */
  readonly intents: IntentHost;
  /** Selects parts of results. */
  readonly selector: Selector;
  /** Returns the decision of the rules about a call. */
  judge(id: ToolId, args: JsonObject): Pick<Verdict, "kind">;
}

/** Runs plans and code. */
export class Workflow implements CapabilityRuns {
  /** Outputs of runs and large results, cached for a limited time. */
  readonly results: Results;
  /** Stores large results in `results`, and reads parts of them. */
  readonly largeResults: LargeResults;
  /** Runs plans. */
  readonly plans: Plans;
  readonly #parts: WorkflowParts & PlansParts;

  /** Creates an instance. Starts nothing. */
  constructor(parts: WorkflowParts) {
    const { policy } = parts;
    const isDenied = ({ id, arguments: args }: ResultSource) =>
      parts.judge(id, args).kind === "deny";
    this.results = new Results(policy, Date.now, isDenied);
    this.largeResults = new LargeResults(this.results, parts);
    this.#parts = { ...parts, waiting: new WaitingRuns(policy), results: this.results };
    this.plans = new Plans(this.#parts);
  }

  /** Runs code: the meta-tool `execute_code`. */
  async runCode(request: WorkflowRequest): Promise<Outcome> {
    return await executeCode(request, this.#parts);
  }

  /** Starts a sandbox child for code that is expected soon. */
  prepareSandbox(): void {
    this.#parts.children.prepareNext();
  }

  /** Throws if code or a plan is invalid. Runs no part of it. */
  async assertValid({ kind, text }: Pick<Capability, "kind" | "text">): Promise<void> {
    if (kind === "plan") {
      const { planTasks: most } = this.#parts.policy.config.limits;
      parsePlan(parseExact(text), { maxTasks: most, params: {} });
      return;
    }
    const { signal } = new AbortController();
    const { callTool } = this.#parts;
    const run = new Run({
      id: "check",
      via: "code",
      actor: "local",
      depth: 0,
      maxCalls: 0,
      callTool,
      signal,
      client: NO_CLIENT,
    });
    // A function without a call is compiled, but does not run.
    const code = `async () => {\n${text}\n};\nreturn null;`;
    const result = await runCode({ code, run }, this.#parts);
    if (result.kind === "value") return;
    const { name, message, line, column } = result.failure;
    const place = line && ` (${shownPlace("code", { line: line - 1, column })})`;
    throw new PmlError(
      "BAD_ARGUMENTS",
      `Cannot parse the code: ${name}: ${message}${place ?? ""}`,
      {
        hint: "Correct the code, and try it with execute_code",
      },
    );
  }

  /** Runs a saved capability. */
  async runCapability(capability: Capability, call: CapabilityCall): Promise<ToolResult> {
    return await runCapability(capability, call, this.#parts);
  }

  /** Runs a plan, or creates one from an intent: the meta-tool `execute_workflow`. */
  async runPlan(request: WorkflowRequest): Promise<Outcome> {
    const { arguments: { plan, resume, read, intent }, actor, signal } = request;
    if (typeof read === "string") {
      const { text } = await this.largeResults.read({ uri: read, actor, signal });
      return { kind: "result", result: textResult(text) };
    }
    if (typeof intent === "string") {
      if (plan !== undefined || resume !== undefined) throw planAndIntent();
      const answer = await answerIntent({ ...request, intent }, this.#parts.intents);
      if (answer.kind === "answered") return answer.outcome;
      return withPlan(await this.#run({ ...request, plan: answer.plan }), answer);
    }
    // The arguments were checked against the schema.
    const options = { plan: plan as JsonObject | undefined, resume: resume as string | undefined };
    return await this.#run({ ...request, ...options });
  }

  /** Runs a plan, and saves it as a capability if requested. */
  async #run(
    { arguments: { save_as: saveAs }, ...request }:
      & PlanRequest
      & Pick<WorkflowRequest, "arguments">,
  ): Promise<Outcome> {
    const storage = saveAs === undefined
      ? undefined
      : (await this.#parts.opener.capabilities()).saving;
    const prepare = (args: JsonObject) =>
      saveAs && storage?.prepare(saveAs, { kind: "plan", text: JSON.stringify(args) });
    // Throws before the run if the plan cannot be saved.
    const prepared = request.plan && prepare(request.plan);
    const { result, isDone, plan: { json } } = await this.plans.run(request);
    if (storage === undefined) return { kind: "result", result };
    const save = async (): Promise<JsonObject> => {
      // The plan of a resumed run is known only after the run.
      const capability = isDone && (prepared || prepare(json));
      return capability ? await storage.save(capability, [], request) : UNSAVED;
    };
    // If saving fails, the result of the run must still be returned.
    const saved = await save().catch((error) => {
      const { code, message } = asPmlError(error);
      return { saved: false, error: { code, message } };
    });
    return { kind: "result", result: withSaved(result, saved) };
  }
}

function planAndIntent(): PmlError {
  return new PmlError("BAD_ARGUMENTS", "Cannot run the request: it has both a plan and an intent", {
    hint: "Send only one of `plan`, `intent` and `resume`",
  });
}
