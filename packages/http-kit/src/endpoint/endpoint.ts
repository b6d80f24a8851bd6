import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

import { AdmissionControl } from '../admission/admission-control.ts'
import { Refusal } from '../admission/refusal.ts'
import { RequestHold } from '../admission/request-hold.ts'
import type { TrustedProxies } from '../admission/trusted-proxies.ts'
import type { Authenticator, Identity } from '../authenticator.ts'
import { readBody } from '../body.ts'
import { AuthenticationError } from '../errors.ts'
import type { TrustedOrigins } from '../origin.ts'
import type { ConnectionCaller } from './connection-caller.ts'
import { callerOn } from './connection-caller.ts'
import { STALLED_MS } from './http-exchange.ts'
import type { HttpExchange } from './http-exchange.ts'
import { oneATurn } from './one-a-turn.ts'
import type { AllowedHosts } from './web-policy.ts'
import { WebPolicy } from './web-policy.ts'

/** What the front doors of one process share: limits, trusted proxies, the names the server is reached by. */
export interface FrontDoor {
  /** Counts what callers hold. @default one of the endpoint's own, with the default limits */
  readonly admission?: AdmissionControl
  /** Whose forwarding headers name the client. @default none */
  readonly trustedProxies?: TrustedProxies
  /** Which hosts a Host header may name while every caller is anonymous. @default ['*'] */
  readonly allowedHosts?: AllowedHosts
  /** The host of the server's public URL, which `auto` allows in a Host header. @default none */
  readonly publicHost?: string
  /** How long a reader may take nothing of an answer before it is cut off, in milliseconds; above 0. @default 30000 */
  readonly stalledReaderMs?: number
}

export interface EndpointOptions {
  readonly authenticator: Authenticator
  readonly trustedOrigins: TrustedOrigins
  readonly bindHost?: string | undefined
  /** What `auto` trusts as an Origin beside the local hosts. */
  readonly alsoLocal?: readonly string[]
  readonly frontDoor?: FrontDoor | undefined
  /** Reports a failure that no client sees, such as a bug, with the request where it is known. */
  readonly failed: (error: unknown, request?: IncomingMessage) => void
}

/** What a request is admitted to do: the rest of its way. A promise that rejects is answered like a thrown error. */
export type Admitted<E extends HttpExchange> = (exchange: E, caller: ConnectionCaller) => void | Promise<void>

/** To parse a body of this size takes milliseconds. */
const LARGE_BODY_BYTES = 1_048_576

const REFUSED_AT_SHUTDOWN = new Refusal('shutting_down', 'the server is shutting down; try again')

/**
 * The one way from a request's head to its handler: web page or not, who, limits, body, containment. Paths and methods
 * are the surface's, before; dispatch is the surface's, after. It answers through the exchange, in the surface's words.
 */
export class Endpoint {
  readonly #authenticator: Authenticator
  readonly #anonymous: boolean
  readonly #admission: AdmissionControl
  readonly #proxies: TrustedProxies | undefined
  readonly #web: WebPolicy
  readonly #stalledMs: number
  readonly #failed: (error: unknown, request?: IncomingMessage) => void
  #closing = false

  /** @throws RangeError for a trusted origin that is none */
  constructor({ authenticator, trustedOrigins, bindHost, alsoLocal, frontDoor = {}, failed }: EndpointOptions) {
    this.#authenticator = authenticator
    this.#anonymous = authenticator.anonymous === true
    this.#admission = frontDoor.admission ?? new AdmissionControl()
    this.#proxies = frontDoor.trustedProxies
    const { allowedHosts, publicHost } = frontDoor
    this.#stalledMs = frontDoor.stalledReaderMs ?? STALLED_MS
    this.#web = new WebPolicy({
      trustedOrigins,
      bindHost,
      alsoLocal,
      allowedHosts,
      publicHost,
      anonymous: this.#anonymous,
    })
    this.#failed = failed
  }

  /** From now on every request is refused, but those that are admitted in spite of it. */
  close(): void {
    this.#closing = true
  }

  /**
   * Admits a request whose path and method are known, or refuses it. Nothing of the body is read.
   * @param whileClosing Admits it during a shutdown as well
   */
  admit<E extends HttpExchange>(exchange: E, admitted: Admitted<E>, whileClosing = false): void {
    try {
      const { request } = exchange
      this.#proxies?.locate(request)
      const refusal = this.#web.refusal(request.headers)
      if (refusal !== undefined) exchange.refuse(refusal)
      else if (this.#closing && !whileClosing) {
        exchange.response.shouldKeepAlive = false
        exchange.refuse(REFUSED_AT_SHUTDOWN)
      } else this.#authenticate(exchange, admitted)
    } catch (error) {
      this.fail(exchange, error)
    }
  }

  #authenticate<E extends HttpExchange>(exchange: E, admitted: Admitted<E>): void {
    let identity: Identity | Promise<Identity>
    try {
      identity = this.#authenticator.authenticate(exchange.request)
    } catch (error) {
      this.#unauthenticated(exchange, error)
      return
    }
    if (!(identity instanceof Promise)) {
      this.#enter(exchange, identity, admitted)
      return
    }
    identity
      .then(
        (verified) => this.#enter(exchange, verified, admitted),
        (error: unknown) => this.#unauthenticated(exchange, error),
      )
      .catch((error: unknown) => this.fail(exchange, error))
  }

  #unauthenticated(exchange: HttpExchange, cause: unknown): void {
    if (!(cause instanceof AuthenticationError)) throw cause
    exchange.refuse(new Refusal('unauthenticated', 'Authentication failed', { cause }))
  }

  #enter<E extends HttpExchange>(exchange: E, identity: Identity, admitted: Admitted<E>): void {
    const caller = callerOn(exchange.request, identity, this.#anonymous)
    const account = caller.accountIn(this.#admission)
    const refusal = this.#admission.enter(account)
    if (refusal !== undefined) {
      exchange.refuse(refusal)
      return
    }
    exchange.admit(new RequestHold(this.#admission, account), this.#stalledMs)
    this.contain(exchange, admitted, caller)
  }

  /**
   * Reads the body of an admitted request, within the budgets for its caller and for the process. `read` is not called
   * when the body is refused or the client goes away first.
   * @param limit The most bytes that the body may have
   */
  readBody<E extends HttpExchange>(
    exchange: E,
    limit: number,
    read: (exchange: E, body: Buffer) => void | Promise<void>,
  ): void {
    const { hold, request } = exchange
    readBody(
      request,
      limit,
      (refusal, body) => {
        if (refusal !== undefined) this.contain(exchange, refuse, refusal)
        else if (body.byteLength <= LARGE_BODY_BYTES) this.contain(exchange, read, body)
        else oneATurn(() => this.contain(exchange, read, body))
      },
      hold,
    )
  }

  /** Runs a part of a request's way. Whatever it throws or rejects with becomes the surface's internal error. */
  contain<E extends HttpExchange, T>(
    exchange: E,
    part: (exchange: E, given: T) => void | Promise<void>,
    given: T,
  ): void {
    try {
      const result = part(exchange, given)
      if (result instanceof Promise) result.catch((error: unknown) => this.fail(exchange, error))
    } catch (error) {
      this.fail(exchange, error)
    }
  }

  /** Reports what a request failed with, and answers with the surface's internal error; never throws. */
  fail(exchange: HttpExchange, error: unknown): void {
    this.report(error, exchange.request)
    try {
      exchange.crash(error)
    } catch (second) {
      this.report(second, exchange.request)
      exchange.response.destroy()
    }
  }

  /** Reports a failure that no client sees; never throws. */
  report(error: unknown, request?: IncomingMessage): void {
    try {
      this.#failed(error, request)
    } catch {}
  }
}

function refuse(exchange: HttpExchange, refusal: Refusal): void {
  exchange.refuse(refusal)
}
