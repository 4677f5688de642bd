/**
 * Finds commands that load code or settings from the folder that they start in.
 *
 * @module
 */

import { isAbsolute } from "node:path";
import { plainCommand } from "../../core/plain_command.ts";
import { packageIfAny, programName, type WrittenCommand } from "./_package_command.ts";

/** Programs that read settings or code in their folder, also where another program starts them. */
const RUNNERS =
  /^(?:np[mx]|pnp[mx]|pnx?|yarn|bunx?|deno|dx|tsx|ts-node|uvx?|pipx?|poetry|pdm|cargo|go|dotnet|dnx|make|mise|compose)$/i;
/** Programs that do the same, unless the command names a file by its absolute path. */
const INTERPRETERS = /^(?:node|(?:python|pypy)w?[\d.]*|ruby|perl|php|java)$/i;
/** Programs that only start others. */
const STARTERS = /^(?:\w*sh|cmd|powershell|env|sudo|doas)$/i;

/** Other programs that can run any code, by their names without a version. */
const HOSTS_OF_CODE = new RegExp(
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
  return [name, plain].some((one) => runsAnything(one) || HOSTS_OF_CODE.test(one));
}

/** Returns whether a program runs code of other authors. */
export function runsAnything(program: string): boolean {
  const name = programName(program);
  return RUNNERS.test(name) || INTERPRETERS.test(name) || STARTERS.test(name);
}

/** Returns whether other files in its folder could change the code that a command runs. */
export function takesFromFolder(written: WrittenCommand): boolean {
  const { command, args } = plainCommand(written);
  const named = packageIfAny(written);
  const all = named ? [named.bin ?? named.name, ...named.args] : [command, ...args];
  const words = all.join(" ").split(/[\s"'`;&|()=]+/);
  const isInside = /[\\/]/.test(command) && !isAbsolute(command);
  return isInside ||
    words.map(programName).some((name, at) =>
      RUNNERS.test(name) || INTERPRETERS.test(name) && !isAbsolute(words[at + 1] ?? "")
    );
}
