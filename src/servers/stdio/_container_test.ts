import assert from "node:assert/strict";
import { containerRun } from "./_container.ts";

function labelled(line: string): string | undefined {
  // A tilde represents a space within one argument.
  const [file = "", ...args] = line.split(" ").map((word) => word.replaceAll("~", " "));
  const run = containerRun({ file, args });
  if (run === undefined) return undefined;
  const { label, client: [, ...options], isRemovedAtEnd: isRemoved } = run;
  const text = run.args.join(" ").replace(label, "L");
  return [text, options.join(" "), isRemoved ? "removed" : "kept"].join(" | ");
}

Deno.test("containerRun() labels every way to run a container, and keeps where its daemon is", () => {
  const cases: Readonly<Record<string, string | undefined>> = {
    "/bin/docker run -i image": "run --label L -i image |  | kept",
    "/bin/docker run --rm=true image": "run --label L --rm=true image |  | removed",
    "/bin/podman container run --rm -i image --x":
      "container run --label L --rm -i image --x |  | removed",
    "/bin/docker -H tcp://h --tls -D --context=far run image":
      "-H tcp://h --tls -D --context=far run --label L image | -H tcp://h --tls -D --context=far | kept",
    "/bin/docker -Htcp://h run image": "-Htcp://h run --label L image | -Htcp://h | kept",
    "/bin/nerdctl --namespace run run image":
      "--namespace run run --label L image | --namespace run | kept",
    "env DOCKER_HOST=h docker run -i image":
      "DOCKER_HOST=h docker run --label L -i image |  | kept",
    "/bin/sh -c docker~run~--rm~-i~image": "-c docker run --label L --rm -i image |  | removed",
    "env bash -lc exec~/bin/docker~--context~run~'run'~image":
      "bash -lc exec /bin/docker --context run 'run' --label L image | --context run | kept",
    "sh -c sh~-c~'docker~run~image'": "-c sh -c 'docker run --label L image' |  | kept",
    "/bin/sh -c docker~run~image~&&~true": undefined,
    "/bin/sh -c docker~run~$IMAGE": undefined,
    "env -i docker run image": undefined,
    "/bin/sh -c docker~ps": undefined,
    "/bin/docker ps": undefined,
    "/bin/docker --context run": undefined,
    "/bin/docker compose run image": undefined,
    "/bin/node run image": undefined,
    "/bin/docker": undefined,
  };
  for (const [line, want] of Object.entries(cases)) assert.equal(labelled(line), want, line);
});
