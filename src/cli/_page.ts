/**
 * `pml page`: serves the page of a PML home to the user's browser on this machine.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import type { App } from "../app/app.ts";
import { readEnvironment } from "../config/env.ts";
import { pathExists } from "../config/workspace.ts";
import { whenAborted } from "../io/waiting.ts";
import { PageData } from "../page/page_data.ts";
import {
  type PageLink,
  removeOpeners,
  requestLink,
  serveLinks,
  writeOpener,
} from "../page/page_files.ts";
import { PageRoutes } from "../page/routes.ts";
import { PageServer } from "../page/server.ts";
import { openInBrowser } from "./browser.ts";
import { type CommandInput, warnIgnored } from "./_command_context.ts";
import { report } from "./_failure.ts";
import { CliPageActions } from "./_page_actions.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";
import { parsePort } from "./_port.ts";
import { catchRejections, logError } from "./_serving.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter } from "./command_process.ts";
import { print, tell } from "./out.ts";

const USAGE_HINT = "See `pml page --help`";
/** Files that container runtimes create in a container. */
const CONTAINER_FILES = ["/.dockerenv", "/run/.containerenv"];

/**
 * Serves the page until a signal comes, or until its last tab has been closed for some time. Returns
 * the exit code.
 */
export async function page(input: CommandInput): Promise<number> {
  using signals = new Signals();
  const { openApp } = await import("../app/app.ts");
  let onRejection = (_: Error) => {};
  using _ = catchRejections((error) => onRejection(error));
  try {
    const port = input.port === undefined ? 0 : parsePort(input.port, USAGE_HINT);
    const { cwd, variables } = commandProcess();
    const environment = readEnvironment(variables, cwd);
    await using app = await openApp({ cwd, environment, write: logWriter() });
    onRejection = (error) => logError(app, error);
    warnIgnored(app);
    const { home, workspace } = app.config();
    const opensBrowser = input.open !== false && hasBrowser(environment.get);
    const running = await requestLink(home, opensBrowser);
    if (running !== undefined) {
      printLink(running, { app, input, isNew: false });
      return 0;
    }
    await using apps = new WorkspaceApps(app, signals.signal);
    const actions = new CliPageActions(apps);
    await using data = new PageData(home, actions, workspace);
    await using server = await PageServer.open(new PageRoutes(actions, data), port);
    const createLink = async (hasFile: boolean): Promise<PageLink> => {
      const url = server.link();
      return hasFile ? { url, file: await writeOpener(home, url) } : { url };
    };
    await data.start();
    await removeOpeners(home);
    const links = await serveLinks(home, createLink);
    // Another page may have started at the same time.
    const otherPage = links === undefined ? await requestLink(home, opensBrowser) : undefined;
    if (otherPage !== undefined) {
      printLink(otherPage, { app, input, isNew: false });
      return 0;
    }
    if (!app.policy.isCurrent()) await app.policy.refresh();
    printLink(await createLink(opensBrowser), { app, input, isNew: true });
    await Promise.race([server.idle, whenAborted(signals.signal)]);
    links?.close();
    await removeOpeners(home);
  } catch (error) {
    return report(error, input.json ? ["--json"] : []);
  }
  return signals.exitCode === 143 ? 0 : signals.exitCode ?? 0;
}

/** Returns whether a browser on this machine can show the page to the user. */
export function hasBrowser(
  get: (name: string) => string | undefined,
  os = Deno.build.os,
): boolean {
  if (get("SSH_CONNECTION") !== undefined || get("SSH_TTY") !== undefined) return false;
  if (os === "windows" || os === "darwin") return true;
  if (get("container") !== undefined || CONTAINER_FILES.some(pathExists)) return false;
  return get("DISPLAY") !== undefined || get("WAYLAND_DISPLAY") !== undefined;
}

/** Shows a link, or opens it in the browser. */
function printLink(
  { url, file }: PageLink,
  { app, input, isNew }: {
    readonly app: App;
    readonly input: CommandInput;
    readonly isNew: boolean;
  },
): void {
  const { origin, port } = new URL(url);
  const isOpened = file !== undefined && openInBrowser(pathToFileURL(file).href, app.loaded());
  if (input.json) {
    return print(
      JSON.stringify({ origin, running: !isNew, opened: isOpened, ...!isOpened && { url } }),
    );
  }
  const running = isNew ? "PML's page runs at" : "PML's page runs already, at";
  tell(`${running} ${origin}${isNew ? " (Ctrl-C ends it)" : ""}`);
  if (isOpened) {
    tell("Your browser opens it. If it does not, `pml page --no-open` prints a link");
    return;
  }
  tell("Open this link within a minute. It works once; `pml page` again makes a new one:");
  print(url);
  const { get } = app.loaded().environment;
  const [, , machine] = (get("SSH_CONNECTION") ?? "").split(" ");
  const user = get("USER");
  if (machine !== undefined) {
    tell("If your browser is on another machine, first run this there, and keep it open:");
    print(`ssh -N -L ${port}:127.0.0.1:${port} ${user === undefined ? "" : `${user}@`}${machine}`);
  } else if (input.open !== false) {
    tell(`In a container, forward its port ${port} to port ${port} of 127.0.0.1 on your machine`);
  }
}
