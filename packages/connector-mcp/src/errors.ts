/** The reason for which a tool call ended without a result. */
export type CallEndReason = 'cancelled' | 'disconnected' | 'shutdown' | 'timeout'

const MESSAGES: Readonly<Record<CallEndReason, string>> = {
  cancelled: 'the client cancelled the call',
  disconnected: 'the client disconnected',
  shutdown: 'the server is shutting down; try again',
  timeout: 'the tool exceeded its time limit',
}

/** The `reason` of a tool call's abort signal. Clients never see it. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: CallEndReason

  constructor(reason: CallEndReason) {
    super(MESSAGES[reason])
    this.reason = reason
  }
}
