/**
 * The questions that wait for the user. The buttons of a question are inactive for a second after it
 * appears or moves, so that no click or key that was meant for something else answers it.
 *
 * @module
 */

import type { RefObject, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerRequest, Done, OfferedReply, Waiting } from "../src/control/api.ts";
import { Entry } from "./entry.tsx";
import { ApiError, sendAction } from "./http.ts";
import { Caller } from "./parts.tsx";
import { announce, announceError, isConnected, keyOf, state, waiting } from "./store.ts";
import { Block, counted, External, plain, Time } from "./text.tsx";

/** How long the buttons of a question are inactive, in milliseconds. */
const STILL_MS = 1_000;
/** A description with more characters than this is shown below its button, not next to it. */
const LONG_REACH = 240;

/** The reasons why the buttons of a question are inactive. */
const MOVED = "the question just appeared or moved";
const TO_FRONT = "this window just came to the front";
const BUSY = "another answer is on its way";
const CLOSED = "the page has lost its connection to `pml page`";

/** Returns why an element has not been visible at one place for a second; undefined if it has. */
function useMoveReason(box: RefObject<HTMLElement | null>): string | undefined {
  const [moveReason, setMoveReason] = useState<string | undefined>(MOVED);
  useEffect(() => {
    let [position, since, frame] = ["", 0, 0];
    let reason = MOVED;
    const look = () => {
      const rect = box.current?.getBoundingClientRect();
      // Scrolling does not count as a move.
      const now = rect === undefined
        ? ""
        : [rect.left + scrollX, rect.top + scrollY, rect.width, rect.height].map(Math.round).join(
          " ",
        );
      if (now !== position) {
        if (position !== "") reason = MOVED;
        [position, since] = [now, performance.now()];
      }
      setMoveReason(performance.now() - since >= STILL_MS ? undefined : reason);
      frame = requestAnimationFrame(look);
    };
    const restart = () => {
      [position, reason] = ["", TO_FRONT];
      setMoveReason(reason);
    };
    look();
    document.addEventListener("visibilitychange", restart);
    // The click that brings the window to the front must not answer.
    addEventListener("focus", restart);
    return () => {
      cancelAnimationFrame(frame);
      document.removeEventListener("visibilitychange", restart);
      removeEventListener("focus", restart);
    };
  }, []);
  return moveReason;
}

/** Shows all questions, or that there are none. */
export function WaitingSection(): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const questions = waiting.value;
  return (
    <section class="waiting" aria-labelledby="waiting">
      <h1 id="waiting" tabIndex={-1} ref={heading}>
        {questions.length === 0 ? "Nothing waits" : `Waiting (${questions.length})`}
      </h1>
      {questions.length === 0
        ? <p class="calm">Calls that need your approval appear here.</p>
        : questions.map((question) => (
          <Question
            key={keyOf(question)}
            question={question}
            onAnswered={() => heading.current?.focus()}
          />
        ))}
    </section>
  );
}

/** Shows one question with its answers. */
export function Question(
  { question, onAnswered }: {
    readonly question: Waiting;
    readonly onAnswered?: () => void;
  },
): VNode {
  const box = useRef<HTMLElement>(null);
  const moveReason = useMoveReason(box);
  const [isBusy, setBusy] = useState(false);
  const { server, tool, text, replies, whyOnce } = question;
  const [title = "", ...rest] = text.split("\n");
  const why = !isConnected.value ? CLOSED : isBusy ? BUSY : moveReason;
  const answer = (reply: OfferedReply, word: string) => {
    const missingWord = reply.word !== undefined && word !== reply.word
      ? `the word ${plain(reply.word)} is missing`
      : undefined;
    const offReason = why ?? missingWord;
    // The user must see why a click has no effect.
    if (offReason !== undefined) {
      return announce(`Not answered: ${offReason}. Click again when the button is active`);
    }
    setBusy(true);
    sendAnswer(question, reply, word).then((done) => done && onAnswered?.())
      .catch(announceError).finally(() => setBusy(false));
  };
  return (
    <article class="question" ref={box} aria-label={plain(`Question: ${server}:${tool}`)}>
      <h2>
        <External text={title} />
      </h2>
      <QuestionFacts question={question} />
      {!hasProcess(question) && (
        <p class="warning">
          No PML runs in this workspace now. Your answer counts when the call is made again.
        </p>
      )}
      <Block text={withoutIndent(rest.join("\n"))} label="The whole question" />
      <ul class="replies">
        {replies.map((reply) => (
          <Reply
            key={reply.reply}
            reply={reply}
            isReady={why === undefined}
            answer={(word) => answer(reply, word)}
          />
        ))}
      </ul>
      {whyOnce !== undefined && (
        <p class="calm">
          Only for this call: <External text={whyOnce} />.
        </p>
      )}
      <p class="calm ready" aria-hidden="true">
        {why === undefined ? "" : `Buttons off: ${why}.`}
      </p>
    </article>
  );
}

function QuestionFacts({ question }: { readonly question: Waiting }): VNode {
  const { workspace, askedAt, expires, where } = question;
  return (
    <p class="facts">
      <span>
        <External text={workspace} />
      </span>
      <Caller of={question} />
      <span>
        asked <Time at={askedAt} />
      </span>
      <span>
        until <Time at={expires} />
      </span>
      {where === "client" && <span>also open in the client</span>}
    </p>
  );
}

/** Returns whether a PML runs in the workspace of a question, so that a client can repeat the call. */
function hasProcess({ workspace }: Waiting): boolean {
  const { processes = [], hidden = [] } = state.value ?? {};
  return [...processes, ...hidden].some((one) => one.workspace === workspace);
}

/** Removes the empty lines around a text, and the spaces that all of its lines begin with. */
function withoutIndent(text: string): string {
  const lines = text.replace(/^\n+|\s+$/g, "").split("\n");
  const indents = lines.filter((line) => line !== "").map((line) => /^ */.exec(line)?.[0].length);
  const common = Math.min(...indents.map((one) => one ?? 0));
  return lines.map((line) => line.slice(common)).join("\n");
}

function Reply(
  { reply, isReady, answer }: {
    readonly reply: OfferedReply;
    readonly isReady: boolean;
    readonly answer: (word: string) => void;
  },
): VNode {
  const [word, setWord] = useState("");
  const isOff = !isReady || (reply.word !== undefined && word !== reply.word);
  const kind = reply.reply === "once" ? "main" : "quiet";
  return (
    <li>
      {reply.word !== undefined && (
        <Entry name="word" value={word} onValue={setWord}>
          Type <code>{plain(reply.word)}</code> first
        </Entry>
      )}
      <button
        type="button"
        class={kind}
        aria-disabled={isOff}
        onClick={() => answer(word)}
        // The repeated key of a held Enter must not answer.
        onKeyDown={(event) => event.repeat && event.preventDefault()}
      >
        <External text={reply.label} />
      </button>
      {reply.reach !== undefined && (
        <span class={reply.reach.length > LONG_REACH ? "reach long" : "reach"}>
          <External text={reply.reach} />
        </span>
      )}
    </li>
  );
}

async function sendAnswer(
  question: Waiting,
  { reply, word: wanted }: OfferedReply,
  word: string,
): Promise<boolean> {
  const { id, where, workspace, process } = question;
  const body: AnswerRequest = {
    ...{ id, where, workspace, reply },
    ...process !== undefined && { process },
    ...wanted !== undefined && { word },
  };
  const { done, text, undo } = await sendAction<Done>("/api/answer", body);
  announce(text, { isError: !done, undo });
  if (done) waiting.value = waiting.peek().filter((one) => keyOf(one) !== keyOf(question));
  return done;
}

/** Announces a change of the number of questions, and shows it in the title of the tab. */
export function WaitingAnnouncer(): VNode {
  const count = waiting.value.length;
  const newest = waiting.value.at(-1);
  useEffect(() => {
    document.title = count === 0 ? "PML" : `(${count}) PML`;
  }, [count]);
  const text = state.value === undefined
    ? ""
    : count === 0
    ? "Nothing waits"
    : `${counted(count, "question")} ${count === 1 ? "waits" : "wait"}. ` +
      `The newest is about ${newest?.server}:${newest?.tool}`;
  return <div class="unseen" role="status" aria-live="polite">{text}</div>;
}

/** Returns the word for which an error asks; undefined if the error does not ask for a word. */
export function wantedWord(error: unknown): string | undefined {
  return error instanceof ApiError && error.code === "WORD_NEEDED" ? error.hint : undefined;
}
