/**
 * A fake of docker and podman, with a folder as the daemon: a container is a file in it, which
 * outlives the program that requested it unless that program ends by itself.
 *
 * @module
 */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * `DOCKER_HOST` and `--context` select the daemon; the name of an image is the command that it
 * runs.
 */
const SCRIPT = `#!/bin/sh
context=default
while :; do
  case $1 in
    --context) context=$2; shift 2;;
    --debug) shift;;
    *) break;;
  esac
done
[ "$1" != container ] || shift
daemon=$DOCKER_HOST/$context
mkdir -p "$daemon/running" "$daemon/exited"
what=$1; shift
[ ! -e "$daemon/hangs" ] || [ "$what" = run ] || exec sleep 600
# A daemon that is far takes its time.
[ "$context" = default ] || [ "$what" = run ] || sleep 0.8
case $what in
  run)
    labels="" removed=""
    while :; do
      case $1 in
        -i) shift;;
        --rm) removed=1; shift;;
        --label) labels="$labels$2 "; shift 2;;
        --name) shift 2;;
        *) break;;
      esac
    done
    shift
    echo "$labels" >"$daemon/running/$$"
    "$@"
    code=$?
    mv "$daemon/running/$$" "$daemon/exited/$$"
    [ -z "$removed" ] || rm "$daemon/exited/$$"
    exit "$code";;
  ps)
    cd "$daemon"
    case $1 in -aq) all=exited/*;; *) all="";; esac
    grep -lsF "\${3#label=} " running/* $all | sed "s|.*/||";;
  kill)
    for id; do mv "$daemon/running/$id" "$daemon/exited/$id"; done;;
  rm)
    shift
    for id; do rm -f "$daemon/running/$id" "$daemon/exited/$id"; done;;
esac
`;

/** The programs and their daemons. */
export class FakeDocker {
  /** The folder of `docker` and `podman`. */
  readonly bin: string;
  /** The value for `DOCKER_HOST`. */
  readonly host: string;

  private constructor(folder: string) {
    this.bin = join(folder, "bin");
    this.host = join(folder, "daemons");
  }

  /** Creates the programs in a new folder. */
  static async make(): Promise<FakeDocker> {
    const docker = new FakeDocker(await Deno.makeTempDir());
    await mkdir(docker.bin);
    for (const name of ["docker", "podman"]) {
      await writeFile(join(docker.bin, name), SCRIPT, { mode: 0o755 });
    }
    return docker;
  }

  /** Returns the containers of a daemon, by their ids, with their labels. */
  async containers(
    state: "running" | "exited",
    context = "default",
  ): Promise<Readonly<Record<string, string>>> {
    const folder = join(this.host, context, state);
    const ids = await readdir(folder).catch(() => []);
    const labels = ids.map(async (id) =>
      [id, await readFile(join(folder, id), "utf8").catch(() => "")] as const
    );
    return Object.fromEntries(await Promise.all(labels));
  }

  /** Runs a container of another program. */
  async runOther(context = "default"): Promise<string> {
    const folder = join(this.host, context, "running");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "other"), "pml=other \n");
    return "other";
  }

  /** Makes a daemon hang. */
  async hang(context = "default"): Promise<void> {
    await writeFile(join(this.host, context, "hangs"), "");
  }
}
