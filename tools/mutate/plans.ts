/**
 * What holds plans, and the one question for several calls.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

const ASKING = "src/permissions/ask_all_test.ts";
const ATTACKS = "tests/attacks/plans_test.ts";
const PLANS = "src/workflow/plans_test.ts";

/** The guards of plans. */
export const PLAN_GUARDS: readonly Mutant[] = [
  {
    name: "ask-all-read",
    guard: "A yes to several calls covers nothing that came into a file later",
    file: "ask_all.ts",
    find: "before === undefined || said?.read !== read()",
    put: "before === undefined || read() === undefined",
    test: ASKING,
    filter: "askForAll() asks again about calls whose files changed since the yes",
  },
  {
    name: "ask-all-look",
    guard: "A yes to a look at several servers is no yes to the calls",
    file: "ask_all.ts",
    find: "return before.unapproved.isLook !== true;",
    put: "return true;",
    test: ASKING,
    filter: "askForAll() asks again about calls that were shown for a look only",
  },
  {
    name: "ask-all-same",
    guard: "A yes to several calls covers each as it was shown",
    file: "ask_all.ts",
    find: "return digestOf([{ ...before.subject, rules: subject.rules }]) === digestOf([subject]);",
    put: "return true;",
    test: ASKING,
    filter: "askForAll() asks again about a call that is another one since the yes",
  },
  {
    name: "ask-all-yes",
    guard: "Nothing is approved before the yes to the question for several calls",
    file: "ask_all.ts",
    find: "await askPerson(opens, options);",
    put: "askPerson(opens, options).catch(() => {});",
    test: ASKING,
    filter: "askForAll() refuses all calls on a no, and approves nothing",
  },
  {
    name: "ask-all-ten",
    guard: "A client shows at most ten calls in one question",
    file: "approvals.ts",
    find: "|| subjects.length > MOST_CALLS;",
    put: ";",
    test: "src/permissions/approvals_test.ts",
    filter: "one question lists up to ten calls in a client, and more in a terminal only",
  },
  {
    name: "plan-judged",
    guard: "Nothing of a plan runs before each of its steps was judged",
    file: "_judging.ts",
    find: "if (error !== undefined && task !== undefined) problems.push({ task: task.id, error });",
    put: "if (error === null) problems.push({ task: task?.id ?? '', error });",
    test: ATTACKS,
    filter: "A plan with a denied step runs nothing, and asks nothing, on 2025-11-25 (PM8)",
  },
  {
    name: "plan-judged-open",
    guard: "A step whose arguments are not known is judged by what is known of them",
    file: "ahead.ts",
    find: "if (open.size > 0) return await this.#checkOpen(call, open);",
    put: "if (open.size > 0) return true;",
    test: ATTACKS,
    filter: "A plan with a denied step runs nothing, and asks nothing, on 2025-11-25 (PM8)",
  },
  {
    name: "plan-asked",
    guard: "Nothing of a plan runs before the one question is answered with yes",
    file: "_judging.ts",
    find: "const answers = await options.ask(known.map(({ call }) => call));",
    put:
      "const answers = await options.ask(known.map(({ call }) => call)).catch(() => new Map<string, Answer>());",
    test: PLANS,
    filter: "Plans.run() runs nothing of a plan that is refused, and asks about nothing (PM8)",
  },
  {
    name: "plan-done",
    guard: "A task that is done runs no more when its plan goes on",
    file: "_plan_run.ts",
    find: 'if (kept.outputs.has(task.id)) return { state: "done", isEarlier: true };',
    put: "",
    test: PLANS,
    filter: "Plans.run() calls a tool for each element, and again only for those that failed",
  },
  {
    name: "plan-step-done",
    guard: "An element of a task that is done runs no more when its plan goes on",
    file: "_plan_run.ts",
    find: "if (kept.outputs.has(key)) return undefined;",
    put: "",
    test: PLANS,
    filter: "Plans.run() calls a tool for each element, and again only for those that failed",
  },
  {
    name: "plan-same",
    guard: "A plan goes on only where what is done of it is the same",
    file: "plans.ts",
    find: "if (before !== undefined) assertSame(plan, before);",
    put: "",
    test: PLANS,
    filter:
      "Plans.run() goes on only with the same tasks, for the same identity, and not twice at once",
  },
  {
    name: "plan-busy",
    guard: "A plan does not go on twice at once",
    file: "results.ts",
    find: "if (run.isBusy) {",
    put: "if (run.size < 0) {",
    test: PLANS,
    filter:
      "Plans.run() goes on only with the same tasks, for the same identity, and not twice at once",
    fails: /Promise resolution is still pending/,
  },
  {
    name: "kept-identity",
    guard: "What is kept is there for its identity alone",
    file: "results.ts",
    find: "if (run?.actor === actor) return run;",
    put: "if (run !== undefined) return run;",
    test: "src/workflow/results_test.ts",
    filter: "Results keeps an output for its identity, and for its time",
  },
  {
    name: "kept-bytes",
    guard: "What is kept stays within its limit",
    file: "results.ts",
    find: "return this.#size + size <= keptBytes;",
    put: "return keptBytes > 0;",
    test: "src/workflow/results_test.ts",
    filter: "Results removes what is oldest for what is new, and never a run that is under way",
  },
  {
    name: "plan-elements",
    guard: "The elements of all tasks together are capped",
    file: "_plan_run.ts",
    find: "if (this.#total > known.most) throw tooMany(this.#total, known.most);",
    put: "",
    test: PLANS,
    filter: "Plans.run() caps what `for_each` makes of outputs, and what runs at once",
  },
  {
    name: "plan-cycle",
    guard: "Tasks that need each other do not run",
    file: "plan.ts",
    find: "if (ordered.length === tasks.length) return ordered;",
    put: "if (ordered.length >= 0) return ordered;",
    test: "src/workflow/plan_test.ts",
    filter: "parsePlan() names all that is wrong, with the task (RX7)",
  },
  {
    name: "plan-pointer",
    guard: "A reference takes members of the output alone, and nothing of the platform",
    file: "_refs.ts",
    find: "return Object.hasOwn(value, key) ? value[key] : undefined;",
    put: "return value[key];",
    test: "src/workflow/plan_test.ts",
    filter: "partAt() follows a JSON pointer and says what there is where it ends",
  },
  {
    name: "plan-taken",
    guard: "References cannot multiply what they take beyond the size of a request",
    file: "plan.ts",
    find: "if (taken > mostTaken) throw tooLarge(mostTaken);",
    put: "",
    test: "src/workflow/plan_test.ts",
    filter: "stepsOf() gives a call for each element, as far as they are known",
  },
];
