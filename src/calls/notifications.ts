/**
 * Shows desktop notifications about calls that wait for `pml approve`. A notification does not
 * contain the arguments of a call, because lock screens show it.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { dirname, join } from "node:path";
import type { LoadedConfig } from "../config/config.ts";
import { messageOf } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { readCache, writeCache } from "../io/cache_files.ts";
import { stampAt } from "../io/path_info.ts";
import { withLock } from "../io/private_files.ts";
import { findOutside, outsideEnvironment } from "../oauth/keyring.ts";
import type { PendingApproval } from "../policy/approvals.ts";
import { killGroup, startProcess } from "../sandbox/process.ts";

/**
 * A program that shows a notification. Texts are arguments or variables, and never part of a
 * script.
 */
export interface NotifyingProgram {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The title and the text of a notification. */
export interface Notice {
  readonly title: string;
  readonly text: string;
}

/** Logs why a notification was not shown. */
interface DebugLog {
  debug(message: string): void;
}

/** The minimum time between two notifications of a PML home, in milliseconds. */
const PAUSE_MS = 10_000;
/** How long the program may run before it is killed, in milliseconds. */
const PROGRAM_MS = 10_000;
/** The maximum number of tools that one notification names. */
const TOOLS_MAX = 3;
const NAME_MAX = 80;
const PATH_MAX = 200;
/** The maximum number of recorded approval requests that have had a notification. */
const SHOWN_MAX = 1_000;
/** The address with which users turn off the session bus. */
const NO_BUS = "disabled:";

const OSASCRIPT = [
  ...["-e", "on run argv"],
  ...["-e", "display notification (item 2 of argv) with title (item 1 of argv)"],
  ...["-e", "end run"],
];
/** Shows a toast whose texts are variables of the environment. */
const POWERSHELL = `
$ErrorActionPreference = 'Stop'
$null = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent('ToastText02')
$texts = $xml.GetElementsByTagName('text')
$null = $texts.Item(0).AppendChild($xml.CreateTextNode($env:PML_NOTICE_TITLE))
$null = $texts.Item(1).AppendChild($xml.CreateTextNode($env:PML_NOTICE_TEXT))
$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
$toast = New-Object Windows.UI.Notifications.ToastNotification $xml
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($app).Show($toast)
`;

/**
 * Notifies the user of calls that wait for an approval, at most once in ten seconds for all
 * processes of a PML home.
 */
export class Notifications {
  readonly #loaded: () => LoadedConfig;
  readonly #home: string;
  readonly #log: DebugLog;
  readonly #shown = new Set<string>();

  /** Takes a function that returns the current configuration, the PML home and the log. */
  constructor(loaded: () => LoadedConfig, home: string, log: DebugLog) {
    this.#loaded = loaded;
    this.#home = home;
    this.#log = log;
  }

  /** Shows a notification, if this machine can. The caller does not wait for it. */
  notify(pending: PendingApproval): void {
    const { id, subjects, isRepeated = false } = pending;
    // guard: notify-identity
    if (subjects.some(({ actor }) => actor !== "local")) return;
    // A client may repeat the call while it waits, and later make the same call again.
    if (isRepeated && this.#shown.has(id)) return;
    this.#shown.add(id);
    dropOldest(this.#shown, SHOWN_MAX);
    const command = this.#loaded().userConfig.settings.channel === "page" ? "page" : "approve";
    this.#show(noticeOf(pending, command)).catch((error) =>
      this.#log.debug(`Cannot show a notification: ${messageOf(error)}`)
    );
  }

  async #show(notice: Notice): Promise<void> {
    const loaded = this.#loaded();
    const program = notifyingProgram(notice, busOf(loaded));
    const file = program && findOutside(loaded, program.name);
    if (program === undefined || file === undefined) return;
    if (!await this.#takeTurn()) return;
    const env = { ...outsideEnvironment(loaded), ...program.env };
    const command = { file, args: program.args, cwd: dirname(file), env };
    const child = startProcess(command, { hasOutputs: false });
    child.stdin.close().catch(() => {}); // it has ended already
    const timer = setTimeout(() => killGroup(child.pid), PROGRAM_MS);
    Deno.unrefTimer(timer);
    child.unref();
    await child.status;
    clearTimeout(timer);
  }

  /**
   * Returns whether a notification may be shown now: no process of this PML home has shown one within
   * the pause. Records the time if so.
   */
  async #takeTurn(): Promise<boolean> {
    const file = join(this.#home, "notified.json");
    return await withLock(join(this.#home, "notified.lock"), () => {
      const now = Date.now();
      const age = now - Number(readCache(file) ?? 0);
      // A time in the future is from a clock that was wrong, and does not count.
      const isTurn = !(age >= 0 && age < PAUSE_MS);
      if (isTurn) writeCache(file, now);
      return Promise.resolve(isTurn);
    });
  }
}

/** Returns the texts about a pending approval: without arguments, and safe to show. */
export function noticeOf(
  { subjects }: Pick<PendingApproval, "subjects">,
  command: "approve" | "page" = "approve",
): Notice {
  const tools = [...new Set(subjects.map(({ tool }) => tool))];
  const names = tools.slice(0, TOOLS_MAX).map((tool) => visible(tool, NAME_MAX)).join(", ");
  const more = tools.length > TOOLS_MAX ? `, and ${tools.length - TOOLS_MAX} more` : "";
  const workspace = visible(subjects[0]?.workspace ?? "", PATH_MAX);
  const waits = tools.length === 1 ? "waits" : "wait";
  return {
    title: `PML: ${names}${more} ${waits} for you`,
    text: `In ${workspace}. Answer with: pml ${command}`,
  };
}

/**
 * Returns the program that shows a notification on a system; undefined if there is no desktop.
 * `bus` is the address of the session bus of Linux.
 */
export function notifyingProgram(
  { title, text }: Notice,
  bus: string | undefined,
  os: typeof Deno.build.os = Deno.build.os,
): NotifyingProgram | undefined {
  switch (os) {
    case "darwin":
      return { name: "osascript", args: [...OSASCRIPT, title, text] };
    case "windows":
      return {
        name: "powershell.exe",
        args: [
          ...["-NoProfile", "-NonInteractive", "-WindowStyle", "Hidden", "-EncodedCommand"],
          Buffer.from(POWERSHELL, "utf16le").toString("base64"),
        ],
        env: { PML_NOTICE_TITLE: title, PML_NOTICE_TEXT: text },
      };
    default: {
      if (bus === undefined) return undefined;
      // Desktops read tags in the text, but not in the title. `notify-send` before 0.7.10 has no
      // option for the name of the program.
      const args = ["--", title, withoutTags(text)];
      return { name: "notify-send", args, env: { DBUS_SESSION_BUS_ADDRESS: bus } };
    }
  }
}

function withoutTags(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * Returns the address of the user's session bus on Linux. Many clients start servers without the
 * variable that has it.
 */
function busOf({ environment }: LoadedConfig): string | undefined {
  const address = environment.get("DBUS_SESSION_BUS_ADDRESS");
  if (address === NO_BUS || Deno.build.os === "windows") return undefined;
  if (address) return address;
  const socket = join(environment.get("XDG_RUNTIME_DIR") || `/run/user/${Deno.uid()}`, "bus");
  return stampAt(socket) === undefined ? undefined : `unix:path=${socket}`;
}
