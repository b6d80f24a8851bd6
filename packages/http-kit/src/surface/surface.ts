import type { Buffer } from 'node:buffer'

import type { Tracing } from '@signalbox/broker-core'
import { OrderedSet, tickWork } from '@signalbox/broker-core/internal'

import { RefusedError } from '../errors.ts'
import { isFlood } from '../admission/connection-floods.ts'
import type { Refusal } from '../admission/refusal.ts'
import type { HeldBytes } from '../admission/request-hold.ts'
import { readBody } from './body.ts'
import type { ConnectionCaller } from './caller.ts'
import { failureHook } from './connector.ts'
import type { FailureHooks } from './connector.ts'
import { allSteps, fairTurns } from './fair-turns.ts'
import type { Steps } from './fair-turns.ts'
import { Gate } from './gate.ts'
import type { GateOptions } from './gate.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { HttpRequest } from './http-message.ts'
import { InFlight } from './in-flight.ts'
import { Settlements } from './settlements.ts'

/**
 * One operation of a surface. The surface runs its steps in this order, and answers what a step throws through
 * {@link HttpExchange.answerThrown}. A step that answers the request ends it.
 */
export interface Route<E extends HttpExchange, Input = unknown> {
  /** If `true`, requests are admitted during a shutdown too, because they help others to finish. @default never */
  whileClosing?(): boolean
  /** `true` if the call ends at once when the surface closes, and after it has, as a long poll does. @default false */
  readonly endsAtShutdown?: boolean
  /**
   * Checks the head of an admitted request. Returns the most bytes that its body may have; `undefined` discards the
   * body, and {@link run} gets no input.
   */
  accept?(call: Call<E>): number | undefined
  /** Parses the body: a large one in turns with the bodies of other callers. @default no body is read */
  read?(call: Call<E>, body: Buffer): Steps<Input>
  /**
   * Executes the call, and answers it. A call counts as running until the returned promise is settled.
   * @param input The parsed body; `undefined` for a request without one
   */
  run(call: Call<E>, input: Input | undefined): void | Promise<unknown>
}

/** The options of a {@link Surface}, which connectors take from their own. */
export interface SurfaceOptions extends GateOptions {
  readonly hooks: FailureHooks
  /** Time between an answer with leased messages and their settlement, in ms. @default 0 */
  readonly settleGraceMs?: number
  /** Records requests as spans. @default none */
  readonly tracing?: Tracing | undefined
  /** Ends the work of the connector that is not a call of {@link Surface.serve}, as the calls are ended. */
  drain?(graceMs: number): Promise<unknown>
  /** Releases the parts of the connector after its last call, within the rest of the time of {@link Surface.close}. */
  finish?(graceMs: number): Promise<void>
}

/** Reads a body as it is, for a {@link Route} that parses nothing. */
// oxlint-disable-next-line require-yield -- there is nothing to parse in steps
export function* wholeBody(_call: Call, body: Buffer): Steps<Buffer> {
  return body
}

/** Parsing a larger body can take milliseconds, and many may arrive at the same time, in bytes. */
export const LARGE_BODY_BYTES = 65_536

/** Larger bodies are read in turns, in bytes: 64 KiB of short keys or brackets take milliseconds, and 50 may come at once. */
const TURN_BYTES = 16_384

/** Time for an ended call to answer, in ms. */
const LAST_MS = 1_000

/** Time for unwritten answers with leased messages when the surface closes, in ms. */
const LAST_ANSWERS_MS = 1_000

/**
 * An HTTP surface: owns each request from its head to its answer, counts the running calls, and ends them in order.
 * A connector is its routes, and an exchange that answers in its protocol.
 */
export class Surface {
  /** The leased messages of written answers. */
  readonly settlements: Settlements
  readonly #options: SurfaceOptions
  readonly #gate: Gate
  readonly #report: (error: unknown, request?: HttpRequest) => void
  readonly #running = new OrderedSet<Call>()
  readonly #inFlight = new InFlight()
  #closed: Promise<void> | undefined

  /** @throws RangeError for an invalid trusted origin */
  constructor(options: SurfaceOptions) {
    this.#options = options
    this.#gate = new Gate(options)
    this.#report = failureHook(options.hooks)
    this.settlements = new Settlements(options.settleGraceMs ?? 0, this.failed)
  }

  /** Reports a failure that no client sees, with the request if it is known. Never throws. */
  readonly failed = (error: unknown, request?: HttpRequest): void => {
    try {
      this.#report(error, request)
    } catch {}
  }

  /**
   * Returns a count of bytes that work for a caller holds apart from its requests.
   * @param account The caller's key: `client:{ClientID}` or `address:{network}`
   */
  heldBytes(account: string): HeldBytes {
    return this.#gate.heldBytes(account)
  }

  /**
   * Serves a request.
   * @param found The route; the methods of the path if it has no route for the request's; `undefined` for an unknown path
   */
  serve<E extends HttpExchange, Input>(exchange: E, found: Route<E, Input> | readonly string[] | undefined): void {
    if (isFlood(exchange.request, exchange.response)) return
    fairTurns.giveWay()
    if (this.#options.tracing !== undefined) exchange.tracing = this.#options.tracing
    if (this.settlements.size > 0) this.settlements.nextRequest(exchange.request.socket)
    if (found === undefined) exchange.notFound()
    else if ('run' in found) this.#contain(exchange, () => this.#admit(exchange, found))
    else exchange.refuseMethod(found)
  }

  #admit<E extends HttpExchange, Input>(exchange: E, route: Route<E, Input>): void | Promise<void> {
    const whileClosing = route.whileClosing?.() === true
    return this.#gate.admit(exchange, whileClosing, (caller) => this.#begin(new Call(exchange, caller, route)))
  }

  #begin<E extends HttpExchange, Input>(call: Call<E, Input>): void {
    const { exchange, route } = call
    const limit = route.accept?.(call)
    if (exchange.answered) return
    if (limit !== undefined) this.#readBody(call, limit)
    else {
      exchange.request.resume()
      this.#run(call, undefined)
    }
  }

  /** Reads the body, within the budgets of the caller and of the process, unless the client disconnects first. */
  #readBody<E extends HttpExchange, Input>(call: Call<E, Input>, limit: number): void {
    const { exchange } = call
    const { hold, request } = exchange
    const parse = (body: Buffer): void => this.#contain(exchange, () => this.#parse(call, body))
    const done = (refusal: Refusal | undefined, body: Buffer): void => {
      if (refusal !== undefined) this.#contain(exchange, () => exchange.refuse(refusal))
      else {
        // The body counts while it waits for its turn, also after the client has gone.
        hold?.retain()
        const begin = (): void => {
          parse(body)
          hold?.release()
        }
        const account = hold?.account.key ?? ''
        if (body.byteLength <= TURN_BYTES) tickWork.run(begin, account)
        else fairTurns.run(account, begin)
      }
    }
    readBody(request, limit, done, hold)
  }

  #parse<E extends HttpExchange, Input>(call: Call<E, Input>, body: Buffer): void | Promise<void> {
    const steps = call.route.read?.(call, body)
    if (steps === undefined) return
    if (body.byteLength <= LARGE_BODY_BYTES) this.#run(call, allSteps(steps))
    else return call.exchange.inTurns(steps).then((input) => this.#run(call, input))
  }

  #run<E extends HttpExchange, Input>(call: Call<E, Input>, input: Input | undefined): void {
    const { exchange, route } = call
    if (exchange.answered) return
    if (route.endsAtShutdown === true && this.#closed !== undefined) call.end('shutdown')
    const running = route.run(call, input)
    if (!(running instanceof Promise)) return
    this.#inFlight.begin()
    exchange.hold?.retain()
    const entry = this.#running.add(call)
    const finish = (): void => {
      call.finish()
      entry.remove()
      this.#inFlight.finish()
      exchange.hold?.release()
    }
    running.then(finish, (error: unknown) => {
      this.#fail(exchange, error)
      finish()
    })
  }

  /** Runs a step of a request, and answers its error or rejection. */
  #contain(exchange: HttpExchange, step: () => void | Promise<void>): void {
    try {
      step()?.catch((error: unknown) => this.#fail(exchange, error))
    } catch (error) {
      this.#fail(exchange, error)
    }
  }

  /**
   * Answers an error of a request in the surface's protocol. Reports one that the protocol does not know, and answers
   * it with the internal error. Never throws.
   */
  #fail(exchange: HttpExchange, error: unknown): void {
    const { answered, request, response } = exchange
    try {
      if (error instanceof RefusedError && !answered) exchange.refuse(error.refusal)
      else exchange.answerThrown(error)
    } catch (unknown) {
      this.failed(unknown, request)
      try {
        exchange.crash(unknown)
        // The client would wait for the rest of an answer that failed while it was written.
        if (answered && !response.writableEnded) response.destroy()
      } catch (second) {
        this.failed(second, request)
        response.destroy()
      }
    }
  }

  /**
   * Refuses new requests. Ends long polls at once, gives the other calls `graceMs` to finish, and then ends them.
   * Idempotent: later calls wait for the first.
   */
  close(graceMs: number): Promise<void> {
    this.#gate.close()
    this.#closed ??= this.#shutDown(graceMs)
    return this.#closed
  }

  async #shutDown(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs
    await Promise.all([this.#endCalls(graceMs), this.#options.drain?.(graceMs)])
    await this.#options.finish?.(Math.max(deadline - performance.now(), 0))
    await this.settlements.close(LAST_ANSWERS_MS)
  }

  async #endCalls(graceMs: number): Promise<void> {
    for (const call of this.#running.members()) if (call.route.endsAtShutdown === true) call.end('shutdown')
    if (await this.#inFlight.idleWithin(graceMs)) return
    const ended = this.#running.members().filter((call) => call.end('shutdown'))
    if (ended.length > 0) await this.#inFlight.idleWithin(LAST_MS)
  }
}

/** The `reason` of an aborted signal: the call ended before it had a result. */
export class CallEnded extends Error {
  override readonly name = 'CallEnded'
  readonly reason: 'disconnected' | 'shutdown'

  constructor(reason: 'disconnected' | 'shutdown') {
    super(reason === 'disconnected' ? 'the client disconnected' : 'the server is shutting down; try again')
    this.reason = reason
  }
}

/** An admitted request and its caller. */
export class Call<E extends HttpExchange = HttpExchange, Input = unknown> {
  readonly exchange: E
  readonly caller: ConnectionCaller
  readonly route: Route<E, Input>
  #controller: AbortController | undefined
  #onClose: (() => void) | undefined
  #ended: CallEnded['reason'] | undefined
  #finished = false

  constructor(exchange: E, caller: ConnectionCaller, route: Route<E, Input>) {
    this.exchange = exchange
    this.caller = caller
    this.route = route
  }

  /**
   * Aborted with a CallEnded when the result is not needed any more. Created on first use, because most calls finish
   * without it.
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const { response } = this.exchange
      this.#controller = new AbortController()
      if (response.destroyed) this.#ended ??= 'disconnected'
      if (this.#ended !== undefined) this.#controller.abort(new CallEnded(this.#ended))
      else if (!this.#finished) {
        this.#onClose = () => void this.end('disconnected')
        response.once('close', this.#onClose)
      }
    }
    return this.#controller.signal
  }

  /** Aborts the signal. Returns `false` if the call does not use it, and so cannot end early. */
  end(reason: CallEnded['reason']): boolean {
    if (this.#finished) return false
    this.#ended ??= reason
    this.#controller?.abort(new CallEnded(reason))
    return this.#controller !== undefined
  }

  /** Marks the call as finished. Its signal is not aborted any more. */
  finish(): void {
    this.#finished = true
    if (this.#onClose !== undefined) this.exchange.response.off('close', this.#onClose)
  }
}
