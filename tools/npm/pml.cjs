#!/usr/bin/env node
/*
 * Starts PML with the Deno that npm installed beside it: with the permissions that
 * the install line of the README gives, and with the packages that npm installed.
 */
"use strict";

const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { isatty } = require("node:tty");

/*
 * V8's first optimizing compiler starts after 50 calls of a function, in place of 400: a small call
 * among the first 300 takes 0.35 ms in place of 0.50. V8 collects old objects when they have grown by
 * 40%: under load, PML takes 17 MB less. The install line of the README has no such flags, because
 * another version of Deno, which may not know them, would not start.
 */
const EARLY = "--invocation-count-for-maglev=50,--minimum-invocations-after-ic-update=50";
const MEMORY = "--heap-growing-percent=40";
const OWN = [
  "--unstable-lazy-dynamic-imports",
  `--v8-flags=--max-semi-space-size=4,${EARLY},${MEMORY}`,
];
const FLAGS = ["run", "--allow-all", "--no-config", "--node-modules-dir=manual", ...OWN];
const PROGRAM = join(__dirname, "..", "lib", "mod.js");
const SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"];

/** Returns the command that runs Deno. */
function denoCommand() {
  const deno = dirname(require.resolve("deno/package.json"));
  const { platform, arch } = process;
  const name = `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}/package.json`;
  try {
    const folder = dirname(require.resolve(name, { paths: [deno] }));
    const file = join(folder, platform === "win32" ? "deno.exe" : "deno");
    if (existsSync(file)) return [file];
  } catch {
    // Deno's own script says what is missing.
  }
  return [process.execPath, join(deno, "bin.cjs")];
}

/** Runs the program below this process, for a Node that cannot replace itself. */
function runBelow([file, ...args]) {
  const child = spawn(file, args, { stdio: "inherit" });
  // A terminal sends its signals to both processes, and a second one would end PML at once.
  const isOnTerminal = process.platform === "win32" || [0, 1, 2].some(isatty);
  for (const name of SIGNALS) {
    const passesOn = name === "SIGTERM" || !isOnTerminal;
    process.on(name, () => passesOn && child.kill(name));
  }
  child.on("error", ({ message }) => {
    console.error(`Cannot start PML: ${message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    if (signal === null) return process.exit(code);
    SIGNALS.forEach((name) => process.removeAllListeners(name));
    process.kill(process.pid, signal);
  });
}

const command = [...denoCommand(), ...FLAGS, PROGRAM, ...process.argv.slice(2)];
const canReplace = process.platform !== "win32" && typeof process.execve === "function";
if (canReplace) process.execve(command[0], command, process.env);
else runBelow(command);
