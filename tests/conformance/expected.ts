/**
 * The checks of the conformance suite that do not pass through PML, each with its reason.
 *
 * @module
 */

import type { Kind } from "./words.ts";

/** Checks that fail for the same reason. */
export interface Expected {
  /** The reason. */
  readonly why: string;
  /** The revision of the server behind PML, if it matters. */
  readonly kind?: Kind;
  /** The ids of the checks. */
  readonly ids: readonly string[];
}

/** The used members of a check's result. */
interface Result {
  readonly id: string;
  readonly status: string;
}

/** The expected failures of clients of 2026-07-28. Clients of 2025-11-25 have none. */
export const EXPECTED: readonly Expected[] = [
  {
    why: "PML answers `roots/list` itself. It asks only clients of 2025-11-25 for their roots.",
    ids: ["sep-2322-list-roots-incomplete", "sep-2322-multiple-inputs-incomplete"],
  },
  {
    why:
      "PML accepts answers only with the state that it sent with its request for input. The check " +
      "sends answers without such a request.",
    ids: ["sep-2322-ignore-unexpected-params"],
  },
  {
    why: "PML waits for a task itself when the client does not declare tasks. The tool runs, so " +
      "there is no reason for an error.",
    kind: "modern",
    ids: ["sep-2663-server-returns-missing-capability-when-required"],
  },
  {
    why: "PML asks the user before it reads an address that the server did not list. The check " +
      "reads one that does not exist, and treats the request for input as a result.",
    ids: ["sep-2164-data-uri", "sep-2164-error-code", "sep-2164-no-empty-contents"],
  },
  {
    why: "The suite itself skips this check.",
    ids: ["tasks-status-notifications"],
  },
  {
    why:
      "A server of an older revision does not name its requests for input. PML generates the names.",
    kind: "legacy",
    ids: ["sep-2322-elicitation-incomplete"],
  },
  {
    why:
      "A server of an older revision receives the capabilities of all its clients once, when it " +
      "starts.",
    kind: "legacy",
    ids: ["sep-2322-respect-client-capabilities"],
  },
  {
    why:
      "A server of an older revision does not have the extension for tasks, so the fixture has " +
      "none of these tools. PML does not turn a call into a task.",
    kind: "legacy",
    ids: [
      "sep-2663-cancel-ack-empty-result",
      "sep-2663-durable-create-strong-consistency",
      "sep-2663-mrtr-synchronous-before-task-creation",
      "sep-2663-result-type-task-on-create",
      "sep-2663-routing-headers-accepted-on-tasks-get",
      "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
      "sep-2663-server-rejects-undeclared-client",
      "sep-2663-server-returns-missing-capability-when-required",
      "sep-2663-tasks-get-status-completed",
      "sep-2663-tasks-get-status-failed",
      "sep-2663-tasks-get-status-input-required",
      "sep-2663-tasks-get-status-working",
      "sep-2663-tool-error-uses-completed-status",
      "tasks-cancel-terminal-idempotent-ack",
      "tasks-immediate-result-shortcut",
      "tasks-mrtr-partial-fulfillment",
      "tasks-mrtr-tasks-update-resumes",
      "tasks-no-early-ttl-expiry",
      "tasks-no-related-task-meta-on-inlined-result",
      "tasks-per-request-meta-opt-in",
      "tasks-request-state-removal-setup",
      "tasks-result-type-complete-on-non-task-responses",
      "tasks-server-directed-creation-no-hint",
      "tasks-wire-field-renames",
    ],
  },
];

/** The checks of client scenarios that do not pass, by the texts of their errors. */
export const EXPECTED_OF_CLIENTS: readonly { readonly why: string; readonly says: RegExp }[] = [
  {
    why: "The revision 2026-07-28 has neither `initialize` nor `notifications/initialized`.",
    says: /^Client did not send a (notifications\/)?initialized? request/,
  },
];

/** Returns the failed checks of client scenarios, without the expected ones. */
export function unexpectedOfClients<T extends Result & { readonly why: string }>(
  checks: readonly T[],
): readonly T[] {
  return checks.filter((one) =>
    !isPassed(one) && !EXPECTED_OF_CLIENTS.some(({ says }) => says.test(one.why))
  );
}

/** Returns whether a check passed. */
export function isPassed({ status }: Result): boolean {
  return status === "SUCCESS" || status === "INFO";
}

/** Returns a line for each check whose result differs between a server and the same behind PML. */
export function differing<T extends Result & { readonly scenario: string; readonly why: string }>(
  directly: readonly T[],
  through: readonly T[],
): readonly string[] {
  const keyOf = ({ scenario, id, status }: T) => `${scenario} ${id} ${status}`;
  const lines = (ones: readonly T[], others: readonly T[], how: string) => {
    const keys = new Set(others.map(keyOf));
    return ones.filter((one) => !keys.has(keyOf(one)))
      .map((one) => `${keyOf(one)} ${how} ${one.why}`);
  };
  return [...lines(directly, through, "directly"), ...lines(through, directly, "through PML")]
    .sort();
}

/**
 * Compares checks with the expected ones. Returns a line for each difference, in both directions.
 */
export function differences<T extends Result>(
  checks: readonly T[],
  { revision, kind, isWhole = true }: {
    readonly revision: string;
    readonly kind: Kind;
    /** Whether all scenarios ran. */
    readonly isWhole?: boolean;
  },
): readonly string[] {
  const expected = new Set(
    EXPECTED.filter((one) => revision === "2026-07-28" && (one.kind ?? kind) === kind)
      .flatMap(({ ids }) => ids),
  );
  const bad = checks.filter((one) => !isPassed(one));
  const failed = new Set(bad.map(({ id }) => id));
  const ran = new Set(checks.map(({ id }) => id));
  return [
    ...bad.filter(({ id }) => !expected.has(id)).map((one) => JSON.stringify(one)),
    ...[...expected].filter((id) => !failed.has(id) && (isWhole || ran.has(id)))
      .map((id) => `${id} passed, or did not run: it is an expected failure`),
  ];
}
