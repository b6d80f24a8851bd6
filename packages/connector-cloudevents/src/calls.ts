import { InFlight } from '@signalbox/http-kit'

/** Why a call was ended before it had a result: the `reason` of its signal. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: 'disconnected' | 'shutdown'

  constructor(reason: 'disconnected' | 'shutdown') {
    super(reason === 'disconnected' ? 'the client went away' : 'the server is shutting down; try again')
    this.reason = reason
  }
}

export interface RunningCall {
  /** Whether it ends at once when the server shuts down: a long poll does, others may finish within the drain time. */
  readonly endsAtShutdown: boolean
  readonly controller: AbortController
}

/** What a call that was told to end is given to say so. */
const LAST_MS = 1_000

/** The calls under way, for an orderly end. */
export class Calls {
  readonly #running = new Set<RunningCall>()
  readonly #inFlight = new InFlight()

  begin(call: RunningCall): void {
    this.#running.add(call)
    this.#inFlight.begin()
  }

  finish(call: RunningCall): void {
    if (this.#running.delete(call)) this.#inFlight.finish()
  }

  /** Ends long polls at once, gives the other calls `graceMs` to finish, then ends those as well. */
  async close(graceMs: number): Promise<void> {
    for (const { endsAtShutdown, controller } of this.#running) {
      if (endsAtShutdown) controller.abort(new CallEnded('shutdown'))
    }
    if (await this.#inFlight.idleWithin(graceMs)) return
    for (const { controller } of this.#running) controller.abort(new CallEnded('shutdown'))
    await this.#inFlight.idleWithin(LAST_MS)
  }
}
