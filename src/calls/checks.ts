/**
 * The table of checks. A new check is a file in `checks/`, and a line of `CHECKS`.
 *
 * @module
 */

import type { MultiToolRules } from "../policy/multi_tool_rules.ts";
import type { Policy } from "../policy/policy.ts";
import { approved, effectIsUnchanged } from "./checks/approval.ts";
import { argumentsAreAcceptable, type ArgumentSchemas } from "./checks/arguments.ts";
import type { Check } from "./checks/check.ts";
import { notPaused } from "./checks/pause.ts";
import { completionNeedsNoQuestion, notificationNeedsNoQuestion } from "./checks/unasked.ts";
import { configIsValid, notDenied } from "./checks/rules.ts";
import { withinRate } from "./checks/rate.ts";
import { serverIsTrusted } from "./checks/trust.ts";
import type { ApprovalHost } from "./decisions.ts";

/** The collaborators of checks. */
export interface CheckServices {
  readonly policy: Policy;
  /** The schemas of the arguments of tools. */
  readonly schemas: ArgumentSchemas;
  /** The approvals, and the facts that they bind to. */
  readonly asking: ApprovalHost;
  /** The rules that an answer wrote for several tools. */
  readonly multiTool: MultiToolRules;
}

/** Every check. The order is part of the security model (docs/security-model.md). */
export const CHECKS: readonly ((services: CheckServices) => Check)[] = [
  ({ policy }) => configIsValid(policy),
  ({ policy }) => notPaused(policy),
  ({ policy }) => withinRate(policy),
  () => notDenied,
  () => completionNeedsNoQuestion,
  () => notificationNeedsNoQuestion,
  ({ asking }) => serverIsTrusted(asking),
  ({ multiTool, asking }) => effectIsUnchanged(multiTool, asking),
  ({ schemas }) => argumentsAreAcceptable(schemas),
  ({ asking }) => approved(asking),
];
