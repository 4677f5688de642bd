/**
 * Finds commands that load code or settings from the folder in which they start.
 *
 * @module
 */

import { isAbsolute } from "node:path";
import { plainCommand } from "../../core/plain_command.ts";
import { packageIfAny, programName, type WrittenCommand } from "./_package_command.ts";

/**
 * Programs that read settings or code from the folder in which they start, also if another program
 * starts them.
 */
const RUNNERS =
  /^(?:np[mx]|pnp[mx]|pnx?|yarn|bunx?|deno|dx|tsx|ts-node|uvx?|pipx?|poetry|pdm|cargo|go|dotnet|dnx|make|mise|compose)$/i;
/**
 * Programs that read code from the folder in which they start, unless the command contains the
 * absolute path of a file.
 */
const INTERPRETERS = /^(?:node|(?:python|pypy)w?[\d.]*|ruby|perl|php|java)$/i;
/** Programs that only start other programs. */
const STARTERS = /^(?:\w*sh|cmd|powershell|env|sudo|doas)$/i;

/** Matches other programs that can run any code, by their names without a version. */
const OTHER_RUNNERS = new RegExp(
  "^(?:busybox|toybox|[gmn]?awk|find|xargs|parallel|nohup|timeout|setsid|nice|ionice|stdbuf|time|watch|" +
    "script|flock|expect|su|runuser|pkexec|chroot|unshare|nsenter|bwrap|firejail|setpriv|systemd-run|" +
    "at|batch|crontab|docker|podman|nerdctl|lxc|gdb|lldb|[sl]trace|ld|ld-linux.*|ld-musl.*|[gn]?vim?|" +
    "view|emacs|ed|lua|luajit|r|rscript|julia|osascript|nodejs|electron|[gb]make|ninja|cmake|just|ant|" +
    "gradlew?|mvnw?|rake|bundler?|composer|corepack|asdf|direnv|fnm|nvm|volta|conda|u?mamba|" +
    "micromamba|pixi|hatch|rye|nix.*|guix)$",
  "i",
);

/** Returns whether a program can run any code, because of its arguments or its settings. */
export function canRunAnything(program: string): boolean {
  const name = programName(program);
  const plain = name.replace(/[-.]?\d[\w.-]*$/, "");
  return [name, plain].some((program) => isRunner(program) || OTHER_RUNNERS.test(program));
}

/** Returns whether a program starts other programs, or runs code that its arguments name. */
export function isRunner(program: string): boolean {
  const name = programName(program);
  return RUNNERS.test(name) || INTERPRETERS.test(name) || STARTERS.test(name);
}

/**
 * Returns whether files in the folder in which a command starts can change the code that it runs.
 */
export function loadsCodeFromFolder(written: WrittenCommand): boolean {
  const { command, args } = plainCommand(written);
  const ofPackage = packageIfAny(written);
  const all = ofPackage ? [ofPackage.bin ?? ofPackage.name, ...ofPackage.args] : [command, ...args];
  const words = all.join(" ").split(/[\s"'`;&|()=]+/);
  const isRelativePath = /[\\/]/.test(command) && !isAbsolute(command);
  return isRelativePath ||
    words.map(programName).some((name, index) =>
      RUNNERS.test(name) || INTERPRETERS.test(name) && !isAbsolute(words[index + 1] ?? "")
    );
}
