/**
 * The story of one call: its arguments, checks, approvals and result, and the calls that it made as
 * bars over time.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { CallRow, CallStory, Done } from "../src/control/api.ts";
import { read, sendAction } from "./http.ts";
import { ActionButton, Caller, CallState, LoadedView, useLoaded } from "./parts.tsx";
import { addressOf, announce, onCall } from "./store.ts";
import { duration, External, Json, size, Time } from "./text.tsx";

/** Shows the story of a call, and follows it while it runs. */
export function Story({ id, root }: { readonly id: string; readonly root: string }): VNode {
  const [loaded, reload] = useLoaded(
    `${root} ${id}`,
    () => read<CallStory>("/api/call", { workspace: root, id }),
  );
  const parent = loaded.kind === "value" ? loaded.value.call.parent : undefined;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = onCall((row) => {
      const isNear = row.parent !== undefined && [id, parent].includes(row.parent);
      if (row.id !== id && !isNear) return;
      clearTimeout(timer);
      timer = setTimeout(reload, 200);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [id, parent]);
  return (
    <section class="detail" aria-label="The story of a call">
      <header>
        <h2>Story</h2>
        <a href={addressOf("activity")}>Close</a>
      </header>
      <LoadedView loaded={loaded}>
        {(story) => <StoryContent story={story} root={root} />}
      </LoadedView>
    </section>
  );
}

function StoryContent(
  { story, root }: { readonly story: CallStory; readonly root: string },
): VNode {
  const { call, steps, children } = story;
  const { id, process, server, tool } = call;
  const cancel = async () => {
    const { done, text } = await sendAction<Done>("/api/cancel", { process, call: id });
    announce(text, { isError: !done });
  };
  const isOpen = call.state === "running" || call.state === "asking";
  return (
    <>
      <h3>
        <External text={server === "" ? tool : `${server}:${tool}`} />
      </h3>
      <CallFacts story={story} />
      {isOpen && process !== undefined && (
        <p class="actions">
          <ActionButton action={cancel}>Cancel this call</ActionButton>
        </p>
      )}
      {children.length > 0 && <StepBars call={call} others={children} root={root} />}
      <ol class="steps">
        {steps.map(({ at, what, text }, index) => (
          <li key={index}>
            <Time at={at} />{" "}
            <strong>
              <External text={what} />
            </strong>{" "}
            <External text={text} />
          </li>
        ))}
      </ol>
      {story.arguments !== undefined && (
        <>
          <h4>Arguments</h4>
          <Json value={story.arguments} label="Arguments" />
        </>
      )}
      {story.result !== undefined && (
        <>
          <h4>Result</h4>
          <Json value={story.result} label="Result" />
        </>
      )}
    </>
  );
}

function CallFacts({ story: { call, parent } }: { readonly story: CallStory }): VNode {
  const { at, workspace, ms, resultBytes, code } = call;
  return (
    <p class="facts">
      <span>
        <CallState call={call} />
      </span>
      <span>
        <Time at={at} />
      </span>
      {ms !== undefined && <span>{duration(ms)}</span>}
      {resultBytes !== undefined && <span>result {size(resultBytes)}</span>}
      <Caller of={call} />
      {code !== undefined && (
        <span>
          <External text={code} />
        </span>
      )}
      {call.parent !== undefined && (
        <span>
          a step of {parent === undefined
            ? "a plan or code"
            : (
              <a href={addressOf("activity", { workspace, call: parent.id })}>
                <External text={parent.tool} />
              </a>
            )}
        </span>
      )}
    </p>
  );
}

/**
 * Shows calls as bars over time: the steps that a call made, or all steps of its plan or code if the
 * call is a step itself.
 */
function StepBars(
  { call, others, root }: {
    readonly call: CallRow;
    readonly others: readonly CallRow[];
    readonly root: string;
  },
): VNode {
  const isStep = others.some(({ parent }) => parent === call.parent);
  const all = [...others, call].sort((one, other) => one.at - other.at);
  const steps = isStep ? all : all.filter((one) => one !== call);
  const start = Math.min(...all.map(({ at }) => at));
  const end = Math.max(...all.map(({ at, ms = 0 }) => at + ms), start + 1);
  const share = (ms: number) => `${(100 * ms / (end - start)).toFixed(2)}%`;
  return (
    <>
      <h4>{isStep ? "All steps" : "Its steps"} over {duration(end - start)}</h4>
      <ol class="picture">
        {steps.map((step) => (
          <li key={step.id}>
            <a
              href={addressOf("activity", { workspace: root, call: step.id })}
              aria-current={step === call ? "true" : undefined}
            >
              <External text={`${step.server}:${step.tool}`} />
            </a>
            <span class="bar" aria-hidden="true">
              <span
                class={step.state}
                style={{
                  marginLeft: share(step.at - start),
                  width: share(step.ms ?? end - step.at),
                }}
              />
            </span>
            <span class="how">
              <CallState call={step} /> {step.ms === undefined ? "" : duration(step.ms)}
            </span>
            <span class="unseen">
              begins after {duration(step.at - start)}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
