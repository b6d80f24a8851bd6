import { OrderedSet } from '@signalbox/broker-core/internal'
import type { Entry } from '@signalbox/broker-core/internal'
import { InFlight } from '@signalbox/http-kit'

import type { CeRouteCall } from './routes/route.ts'

/** Why a call was ended before it had a result: the `reason` of its signal. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: 'disconnected' | 'shutdown'

  constructor(reason: 'disconnected' | 'shutdown') {
    super(reason === 'disconnected' ? 'the client went away' : 'the server is shutting down; try again')
    this.reason = reason
  }
}

/** One call under way. Its signal is made when somebody asks for it: most calls are over before anybody would. */
export class RunningCall implements CeRouteCall {
  readonly broker: CeRouteCall['broker']
  readonly identity: CeRouteCall['identity']
  readonly account: CeRouteCall['account']
  readonly events: CeRouteCall['events']
  readonly exchange: CeRouteCall['exchange']
  readonly environment: CeRouteCall['environment']
  /** Whether it ends at once when the server shuts down: a long poll does, others may finish within the drain time. */
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

  /** Aborted with a CallEnded when nobody waits for the result any more. */
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

  /** The call has its result: its signal is not aborted any more. */
  finish(): void {
    this.#finished = true
    if (this.#onClose !== undefined) this.exchange.response.off('close', this.#onClose)
  }
}

/** What a call that was told to end is given to say so. */
const LAST_MS = 1_000

/** The calls under way, for an orderly end. */
export class Calls {
  readonly #running = new OrderedSet<RunningCall>()
  readonly #inFlight = new InFlight()

  /** What it returns is for {@link finish}. */
  begin(call: RunningCall): Entry {
    this.#inFlight.begin()
    return this.#running.add(call)
  }

  finish(entry: Entry): void {
    if (entry.remove()) this.#inFlight.finish()
  }

  /** Ends long polls at once, gives the other calls `graceMs` to finish, then ends those as well. */
  async close(graceMs: number): Promise<void> {
    for (const call of this.#running.members()) if (call.endsAtShutdown) call.end('shutdown')
    if (await this.#inFlight.idleWithin(graceMs)) return
    for (const call of this.#running.members()) call.end('shutdown')
    await this.#inFlight.idleWithin(LAST_MS)
  }
}
