/**
 * Logs where PML serves when it starts, and how many tokens the list of tools costs: at the start and
 * after each change of the settings.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Config } from "../config/current_config.ts";

/** Above this number of tokens, a list causes a warning: it takes much of a client's context. */
export const MANY_TOKENS = 10_000;
/**
 * The delay before a list is counted, in milliseconds. Listing starts servers and counting takes time,
 * so clients get their first answers before.
 */
const COUNT_DELAY_MS = 1_000;

/** Logs where this process serves, and the problems of the configuration. */
export function logStart(app: App, endpoint: string): void {
  const { workspace, gateway, ignored } = app.config();
  logNewProblems(app);
  if (ignored.length > 0) {
    app.log.warn("The workspace file is not trusted: run `pml trust`", { ignored });
  }
  app.log.info(`Serving on ${endpoint}`, { workspace, exposure: gateway.exposure });
}

/** Logs the problems of the configuration that the configuration `before` did not have. */
function logNewProblems(app: App, before?: Config): void {
  const { warnings, problem } = app.config();
  for (const warning of warnings) if (!before?.warnings.includes(warning)) app.log.warn(warning);
  // PML also serves with a broken configuration. Each answer then reports the problem.
  if (problem === undefined || problem.message === before?.problem?.message) return;
  app.log.error(`${problem.code}: ${problem.message}`);
}

/**
 * Logs the exposure and its cost, and again after each change of the gateway's settings or the intent.
 * Logs new problems of the configuration. Counts starts of the command, and uses of each exposure, in
 * the PML home.
 */
export function followCost(app: App, command: string): Disposable {
  let lastConfig = app.config();
  let lastKey: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isDisposed = false;
  let start: string | undefined = command;
  const onChange = () => {
    logNewProblems(app, lastConfig);
    lastConfig = app.config();
    const { gateway, intent } = lastConfig;
    const key = JSON.stringify([gateway, intent]);
    if (isDisposed || key === lastKey) return;
    lastKey = key;
    clearTimeout(timer);
    const log = () => {
      countExposure(app, start);
      start = undefined;
      logCost(app).catch((error) => app.log.debug("Cannot count the listed tools", { error }));
    };
    timer = setTimeout(log, COUNT_DELAY_MS);
  };
  app.policy.onChange(onChange);
  onChange();
  return {
    [Symbol.dispose]() {
      isDisposed = true;
      clearTimeout(timer);
    },
  };
}

/** Counts a use of the exposure, and the start if it is given, in the PML home. */
function countExposure(app: App, start: string | undefined): void {
  const { home, workspace, gateway: { exposure }, problem } = app.config();
  // The configuration may be broken because PML refused the path of the home.
  if (problem !== undefined) return;
  import("../audit/usage_counts.ts")
    .then(({ countUsage }) => countUsage(home, { workspace, exposure, ...start && { start } }))
    .catch((error) => app.log.debug("Cannot count the start", { error }));
}

async function logCost(app: App): Promise<void> {
  const { gateway } = app.config();
  const { exposure } = gateway;
  const { Costs } = await import("./costs.ts");
  const { tools, tokens } = await new Costs(app).list(gateway);
  const message = `The list of tools costs a client about ${tokens} tokens (an estimate)`;
  const fields = { exposure, tools };
  if (tokens <= MANY_TOKENS) app.log.info(message, fields);
  else app.log.warn(`${message}: \`pml config --wizard\` recommends a shorter list`, fields);
}
