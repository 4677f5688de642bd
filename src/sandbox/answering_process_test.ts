import assert from "node:assert/strict";
import { until } from "../../tests/kit/wait.ts";
import { AnsweringProcess } from "./answering_process.ts";
import { killsOf } from "./_kills_test.ts";

Deno.test({
  name: "AnsweringProcess sends no signal to the id of a process that has ended",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const running = new AnsweringProcess(
      { file: "/bin/sh", args: ["-c", "exit 3"], cwd: "/", env: {} },
      { add() {}, remove() {} },
      {
        readAnswers: (stdout) => stdout.pipeTo(new WritableStream()),
        readErrors: (stderr) => stderr.pipeTo(new WritableStream()),
        endError: (how) => new Error(how),
      },
    );
    await until(() => running.isOver);
    const kills = await killsOf(() => running.close(new Error("the end")));
    assert.deepEqual(kills, []);
    await assert.rejects(running.answer(1), /exit code 3/);
  },
});
