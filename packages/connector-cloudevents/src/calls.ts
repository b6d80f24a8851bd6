import { Roster } from '@signalbox/broker-core'
import type { Place } from '@signalbox/broker-core'
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
  readonly #running = new Roster<RunningCall>()
  readonly #inFlight = new InFlight()

  /** What it returns is for {@link finish}. */
  begin(call: RunningCall): Place {
    this.#inFlight.begin()
    return this.#running.enter(call)
  }

  finish(place: Place): void {
    if (place.leave()) this.#inFlight.finish()
  }

  /** Ends long polls at once, gives the other calls `graceMs` to finish, then ends those as well. */
  async close(graceMs: number): Promise<void> {
    for (const { endsAtShutdown, controller } of this.#running.members()) {
      if (endsAtShutdown) controller.abort(new CallEnded('shutdown'))
    }
    if (await this.#inFlight.idleWithin(graceMs)) return
    for (const { controller } of this.#running.members()) controller.abort(new CallEnded('shutdown'))
    await this.#inFlight.idleWithin(LAST_MS)
  }
}
