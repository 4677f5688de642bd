/**
 * Opens the gateway. It is loaded when the gateway is first needed.
 *
 * @module
 */

import { gatewaySettings } from "../config/gateway_settings.ts";
import { Gateway } from "../gateway/gateway.ts";
import type { Call } from "../protocol/call.ts";
import type { App } from "./app.ts";
import type { CallPath } from "./call_path.ts";

/** Opens the gateway; calls go to the call path, which opens with the first of them. */
export function openGatewayOf(app: App): Gateway {
  const { servers, catalog, metrics, policy, log } = app;
  let path: CallPath | undefined;
  const callFirst = async (call: Call) => await (path = await app.callPath()).callTool(call);
  return new Gateway({
    servers,
    catalog,
    metrics,
    schemas: () => app.schemas(),
    callTool: (call) => path === undefined ? callFirst(call) : path.callTool(call),
    askForAll: async (calls) => await (await app.callPath()).ahead.askForAll(calls),
    workflow: () => app.workflow(),
    observed: async () => await (await import("./app_memory.ts")).observedBy(app),
    leave: async (question) => await (await app.callPath()).leave(question),
    search: async (...args) => await (await app.finder()).search(...args),
    judge: (...args) => policy.now.judge(...args),
    settings: () => gatewaySettings(policy.now.config),
    problem: () => app.config().problem,
    unfollow: (followed) =>
      void app.callPath().then(({ machine }) => machine.unfollow(followed), () => {}),
    setLevel: (level) => app.setLevel(level),
    onList: app.firstList.resolve,
    onLost: (error) => log.warn(error.message),
    onError: (error) => log.debug(error.message),
    log: (level, text, server) => log[level](text, { server }),
  });
}
