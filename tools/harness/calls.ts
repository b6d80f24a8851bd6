/** Calls from the harness to a process it started, over Node's IPC channel. */
export interface CallMessage {
  readonly signalboxCall: string
  readonly id: number
  readonly args: unknown
}

export interface AnswerMessage {
  readonly signalboxAnswer: number
  readonly result?: unknown
  readonly error?: string
}

/** What a measured process can be asked, by name. Arguments and results are plain data. */
export type CallTable = Readonly<Record<string, (args: never) => unknown>>

function isCall(message: unknown): message is CallMessage {
  return typeof message === 'object' && message !== null && 'signalboxCall' in message
}

export function isAnswer(message: unknown): message is AnswerMessage {
  return typeof message === 'object' && message !== null && 'signalboxAnswer' in message
}

/** Answers the calls named in `table`, and leaves others to whoever else listens. */
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

/** As {@link answerCalls}, for a process that lives by its calls: it stays until it is told to end. */
export function serveCalls(table: CallTable): void {
  answerCalls(table)
  process.channel?.ref()
}
