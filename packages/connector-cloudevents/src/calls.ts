import { OrderedSet } from '@signalbox/broker-core/internal'
import type { Entry } from '@signalbox/broker-core/internal'
import { InFlight } from '@signalbox/http-kit'

import type { CeRouteCall } from './routes/route.ts'

/** The `reason` of an aborted signal: the call ended before it had a result. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: 'disconnected' | 'shutdown'

  constructor(reason: 'disconnected' | 'shutdown') {
    super(reason === 'disconnected' ? 'the client disconnected' : 'the server is shutting down; try again')
    this.reason = reason
  }
}

/** One running call. Its signal is created on first use, because most calls finish without it. */
export class RunningCall implements CeRouteCall {
  readonly broker: CeRouteCall['broker']
  readonly identity: CeRouteCall['identity']
  readonly account: CeRouteCall['account']
  readonly events: CeRouteCall['events']
  readonly exchange: CeRouteCall['exchange']
  readonly environment: CeRouteCall['environment']
  /**
   * `true` if the call ends at once when the server shuts down, as a long poll does. Other calls may finish within
   * the drain time.
   */
  readonly endsAtShutdown: boolean
  #onClose: (() => void) | undefined
  #controller: AbortController | undefined
  #ended: CallEnded['reason'] | undefined
  #finished = false

  constructor(
    { broker, identity, account, events, exchange, environment }: Omit<CeRouteCall, 'signal'>,
    endsAtShutdown: boolean,
  ) {
    this.broker = broker
    this.identity = identity
    this.account = account
    this.events = events
    this.exchange = exchange
    this.environment = environment
    this.endsAtShutdown = endsAtShutdown
  }

  /** Aborted with a CallEnded when the result is not needed any more. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.exchange.response.destroyed) this.#ended ??= 'disconnected'
      if (this.#ended !== undefined) this.#controller.abort(new CallEnded(this.#ended))
      else if (!this.#finished) {
        this.#onClose = () => this.end('disconnected')
        this.exchange.response.once('close', this.#onClose)
      }
    }
    return this.#controller.signal
  }

  end(reason: CallEnded['reason']): void {
    if (this.#finished) return
    this.#ended ??= reason
    this.#controller?.abort(new CallEnded(reason))
  }

  /** Marks the call as finished. Its signal is not aborted any more. */
  finish(): void {
    this.#finished = true
    if (this.#onClose !== undefined) this.exchange.response.off('close', this.#onClose)
  }
}

/** Time for an ended call to answer, in ms. */
const LAST_MS = 1_000

/** The running calls, which an orderly shutdown waits for. */
export class Calls {
  readonly #running = new OrderedSet<RunningCall>()
  readonly #inFlight = new InFlight()

  /** Adds a call. Pass the returned entry to {@link finish}. */
  begin(call: RunningCall): Entry {
    this.#inFlight.begin()
    return this.#running.add(call)
  }

  finish(entry: Entry): void {
    if (entry.remove()) this.#inFlight.finish()
  }

  /** Ends long polls at once. Gives the other calls `graceMs` to finish, and then ends them. */
  async close(graceMs: number): Promise<void> {
    for (const call of this.#running.members()) if (call.endsAtShutdown) call.end('shutdown')
    if (await this.#inFlight.idleWithin(graceMs)) return
    for (const call of this.#running.members()) call.end('shutdown')
    await this.#inFlight.idleWithin(LAST_MS)
  }
}
