/** Why a tool call ended before it had a result. */
export type CallEndReason = 'cancelled' | 'disconnected' | 'shutdown' | 'timeout'

const MESSAGES: Readonly<Record<CallEndReason, string>> = {
  cancelled: 'the client cancelled the call',
  disconnected: 'the client went away',
  shutdown: 'the server is shutting down; try again',
  timeout: 'the tool ran into its time limit',
}

/** The `reason` of the abort signal that a tool call is given. It never reaches a client as it is. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: CallEndReason

  constructor(reason: CallEndReason) {
    super(MESSAGES[reason])
    this.reason = reason
  }
}
