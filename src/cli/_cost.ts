/**
 * Logs how PML serves when it starts, and the tokens of the list of tools: at the start and after each
 * change of the settings.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Config } from "../config/current_config.ts";

/**
 * A list with more tokens than this gets a warning, because it takes much of a client's context.
 */
export const MANY_TOKENS = 10_000;
/** Listing starts servers and counting takes time, so both wait until the first answers are out. */
const LATER_MS = 1_000;

/** Logs how this process serves, and the problems of the configuration. */
export function logStart(app: App, on: string): void {
  const { workspace, gateway, ignored } = app.config();
  logWrong(app);
  if (ignored.length > 0) {
    app.log.warn("The workspace file is not trusted: run `pml trust`", { ignored });
  }
  app.log.info(`Serving on ${on}`, { workspace, exposure: gateway.exposure });
}

/** Logs the new problems of the configuration. */
function logWrong(app: App, before?: Config): void {
  const { warnings, problem } = app.config();
  for (const warning of warnings) if (!before?.warnings.includes(warning)) app.log.warn(warning);
  // The server starts with a broken configuration, too, and reports the problem in each answer.
  if (problem === undefined || problem.message === before?.problem?.message) return;
  app.log.error(`${problem.code}: ${problem.message}`);
}

/**
 * Logs the exposure and its cost now, and again when the gateway's settings or the intent change. Logs
 * new problems of the configuration.
 */
export function followCost(app: App): Disposable {
  let lastConfig = app.config();
  let lastText: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const look = () => {
    logWrong(app, lastConfig);
    lastConfig = app.config();
    const { gateway, intent } = lastConfig;
    const key = JSON.stringify([gateway, intent]);
    if (isOver || key === lastText) return;
    lastText = key;
    clearTimeout(timer);
    const log = () =>
      logCost(app).catch((error) => app.log.debug("Cannot count the listed tools", { error }));
    timer = setTimeout(log, LATER_MS);
  };
  app.policy.onChange(look);
  look();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

async function logCost(app: App): Promise<void> {
  const { gateway } = app.config();
  const { exposure } = gateway;
  const { Costs } = await import("./costs.ts");
  const { tools, tokens } = await new Costs(app).list(gateway);
  const message = `The list of tools costs a client about ${tokens} tokens (an estimate)`;
  const fields = { exposure, tools };
  if (tokens <= MANY_TOKENS) app.log.info(message, fields);
  else app.log.warn(`${message}: \`pml config --wizard\` compares what lists less`, fields);
}
