/** Calls from the harness to a process that it started, over Node's IPC channel. */
export interface CallMessage {
  readonly signalboxCall: string
  readonly id: number
  readonly args: unknown
}

interface AnswerMessage {
  readonly signalboxAnswer: number
  readonly result?: unknown
  readonly error?: string
}

/** The calls that a measured process answers, by name. Arguments and results are plain data. */
type CallTable = Readonly<Record<string, (args: never) => unknown>>

function isCall(message: unknown): message is CallMessage {
  return typeof message === 'object' && message !== null && 'signalboxCall' in message
}

export function isAnswer(message: unknown): message is AnswerMessage {
  return typeof message === 'object' && message !== null && 'signalboxAnswer' in message
}

/** Answers the calls named in `table`, and leaves others to other listeners. */
export function answerCalls(table: CallTable): void {
  process.on('message', (message) => {
    if (!isCall(message)) return
    const call = table[message.signalboxCall]
    if (call === undefined) return
    void (async () => {
      try {
        const result = await call(message.args as never)
        process.send?.({ signalboxAnswer: message.id, result } satisfies AnswerMessage)
      } catch (error) {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
        process.send?.({ signalboxAnswer: message.id, error: text } satisfies AnswerMessage)
      }
    })()
  })
}

/** Like {@link answerCalls}, for a process that exists for its calls: it runs until the harness ends it. */
export function serveCalls(table: CallTable): void {
  answerCalls(table)
  process.channel?.ref()
}
