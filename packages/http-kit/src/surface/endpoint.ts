import type { Buffer } from 'node:buffer'

import type { Broker, BrokerHandle, Caller } from '@signalbox/broker-core'

import { AdmissionControl, ANONYMOUS_ACCOUNT } from '../admission/admission-control.ts'
import type { Account } from '../admission/admission-control.ts'
import { Refusal } from '../admission/refusal.ts'
import { HeldBytes, RequestHold } from '../admission/request-hold.ts'
import { forwardedAddressOf, networkOf } from '../admission/trusted-proxies.ts'
import type { TrustedProxies } from '../admission/trusted-proxies.ts'
import type { Authenticator, Identity } from '../authentication/authenticator.ts'
import { AuthenticationError } from '../errors.ts'
import { readBody } from './body.ts'
import { fairTurns } from './fair-turns.ts'
import { STALLED_MS } from './http-exchange.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { HttpConnection, HttpRequest } from './http-message.ts'
import { WebPolicy } from './web-policy.ts'
import type { AllowedHosts, TrustedOrigins } from './web-policy.ts'

/** The parts that the endpoints of one process share: limits, trusted proxies, the host names of the server. */
export interface FrontDoor {
  /** Counts the requests, bytes and streams of callers. @default a separate one with the default limits */
  readonly admission?: AdmissionControl
  /** The proxies whose forwarding headers name the client. @default none */
  readonly trustedProxies?: TrustedProxies
  /** The hosts that a Host header may name while every caller is anonymous. @default ['*'] */
  readonly allowedHosts?: AllowedHosts
  /** The host of the server's public URL, which `auto` allows in a Host header. @default none */
  readonly publicHost?: string
  /** Time without reading after which a reader's connection is closed, in ms; above 0. @default 30000 */
  readonly stalledReaderMs?: number
}

/** Options of {@link Endpoint}. */
export interface EndpointOptions {
  readonly authenticator: Authenticator
  readonly trustedOrigins: TrustedOrigins
  /** If `true`, `auto` trusts only the origin under which a request reaches the server. @default false */
  readonly ownOriginOnly?: boolean
  /** The setting of `trustedOrigins`, for the text of a refusal. @default trustedOrigins */
  readonly originsSetting?: string
  readonly bindHost?: string | undefined
  /** Hosts that `auto` trusts in an Origin header, in addition to the local hosts. @default none */
  readonly alsoLocal?: readonly string[]
  readonly frontDoor?: FrontDoor | undefined
  /** Reports a failure that no client sees, such as a bug, with the request if it is known. */
  readonly failed: (error: unknown, request?: HttpRequest) => void
}

/** The handler of an admitted request. A promise that rejects is answered like a thrown error. */
export type Admitted<E extends HttpExchange> = (exchange: E, caller: ConnectionCaller) => void | Promise<void>

/** Parsing a larger body can take milliseconds, and many may arrive at the same time, in bytes. */
export const LARGE_BODY_BYTES = 65_536

/** Larger bodies are read in turns, in bytes: 64 KiB of short keys or brackets take milliseconds, and 50 may come at once. */
const TURN_BYTES = 16_384

const REFUSED_AT_SHUTDOWN = new Refusal('shutting_down', 'the server is shutting down; try again')

/**
 * The path of every request from its head to its handler: web policy, caller, limits, body, containment of errors.
 * The surface checks paths and methods before it, and dispatches after it. The endpoint answers through the exchange,
 * in the surface's protocol.
 */
export class Endpoint {
  readonly #authenticator: Authenticator
  readonly #anonymous: boolean
  readonly #admission: AdmissionControl
  readonly #proxies: TrustedProxies | undefined
  readonly #web: WebPolicy
  readonly #stalledMs: number
  readonly #failed: (error: unknown, request?: HttpRequest) => void
  #closing = false

  /** @throws RangeError for an invalid trusted origin */
  constructor(options: EndpointOptions) {
    const { authenticator, trustedOrigins, originsSetting, bindHost, alsoLocal, frontDoor = {}, failed } = options
    this.#authenticator = authenticator
    this.#anonymous = authenticator.anonymous === true
    this.#admission = frontDoor.admission ?? new AdmissionControl()
    this.#proxies = frontDoor.trustedProxies
    const { allowedHosts, publicHost } = frontDoor
    this.#stalledMs = frontDoor.stalledReaderMs ?? STALLED_MS
    this.#web = new WebPolicy({
      trustedOrigins,
      ownOriginOnly: options.ownOriginOnly,
      trustedProxies: this.#proxies,
      originsSetting,
      bindHost,
      alsoLocal,
      allowedHosts,
      publicHost,
      anonymous: this.#anonymous,
    })
    this.#failed = failed
  }

  /**
   * Returns a count of bytes that work for a caller holds apart from its requests.
   * @param account The caller's key: `client:{ClientID}` or `address:{network}`
   */
  heldBytes(account: string): HeldBytes {
    return new HeldBytes(this.#admission, account)
  }

  /** Refuses every request from now on, except those admitted with `whileClosing`. */
  close(): void {
    this.#closing = true
  }

  /**
   * Admits or refuses a request whose path and method are known, without reading the body.
   * @param whileClosing Admits the request during a shutdown too
   */
  admit<E extends HttpExchange>(exchange: E, admitted: Admitted<E>, whileClosing = false): void {
    try {
      const { request } = exchange
      this.#proxies?.locate(request)
      const refusal = this.#web.refusal(request)
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
   * Reads the body of an admitted request, within the budgets of its caller and of the process. `read` is not called
   * if the body is refused or the client disconnects first.
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
        else if (body.byteLength <= TURN_BYTES) this.contain(exchange, read, body)
        else this.#readInTurn(exchange, read, body)
      },
      hold,
    )
  }

  /** Reads a large body in order with other work of its caller. The body counts while it waits, also after the client has gone. */
  #readInTurn<E extends HttpExchange>(
    exchange: E,
    read: (exchange: E, body: Buffer) => void | Promise<void>,
    body: Buffer,
  ): void {
    const { hold } = exchange
    hold?.retain()
    fairTurns.run(hold?.account.key ?? '', () => {
      this.contain(exchange, read, body)
      hold?.release()
    })
  }

  /** Runs a step of a request, and answers its error or rejection. */
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

  /**
   * Answers an error of a request in the surface's protocol. Reports one that the protocol does not know, and answers
   * it with the internal error. Never throws.
   */
  fail(exchange: HttpExchange, error: unknown): void {
    const { answered, request, response } = exchange
    try {
      exchange.answerThrown(error)
    } catch (unknown) {
      this.report(unknown, request)
      try {
        exchange.crash(unknown)
        // The client would wait for the rest of an answer that failed while it was written.
        if (answered && !response.writableEnded) response.destroy()
      } catch (second) {
        this.report(second, request)
        response.destroy()
      }
    }
  }

  /** Reports a failure that no client sees. Never throws. */
  report(error: unknown, request?: HttpRequest): void {
    try {
      this.#failed(error, request)
    } catch {}
  }
}

function refuse(exchange: HttpExchange, refusal: Refusal): void {
  exchange.refuse(refusal)
}

const CALLER = Symbol('caller')

/** The caller is stored on the connection, because clients make many requests on one connection as the same caller. */
interface Connection extends HttpConnection {
  [CALLER]?: ConnectionCaller
}

/** The caller of a request, with its account for the limits and its Broker handle. */
export class ConnectionCaller {
  readonly identity: Identity
  /** The client's address as a trusted proxy reports it; `undefined` without such a report. */
  readonly forwarded: string | undefined
  readonly address: string | undefined
  /** The key that limits count by: `client:{ClientID}`, or `address:{network}` while callers are anonymous. */
  readonly account: string
  readonly #anonymous: boolean
  #broker: Broker | undefined
  #handle: BrokerHandle | undefined
  #admission: AdmissionControl | undefined
  #counted: Account | undefined

  constructor(identity: Identity, peer: string | undefined, forwarded: string | undefined, anonymous: boolean) {
    const address = forwarded ?? peer
    this.identity = identity
    this.forwarded = forwarded
    this.address = address
    this.#anonymous = anonymous
    this.account = anonymous ? `${ANONYMOUS_ACCOUNT}${networkOf(address)}` : `client:${identity.clientId}`
  }

  /** Returns the account that counts this caller's requests, bytes and streams. */
  accountIn(admission: AdmissionControl): Account {
    if (this.#counted === undefined || this.#counted.forgotten || this.#admission !== admission) {
      this.#admission = admission
      this.#counted = admission.account(this.account, this.#anonymous)
    }
    return this.#counted
  }

  /** Returns the Broker handle of this caller. */
  handle(broker: Broker): BrokerHandle {
    if (this.#handle !== undefined && this.#broker === broker) return this.#handle
    const { clientId, actions, roles } = this.identity
    const { account, address } = this
    const caller: Caller & Pick<Identity, 'roles'> = {
      clientId,
      account,
      ...(roles === undefined ? {} : { roles }),
      ...(address === undefined ? {} : { address }),
      ...(actions === undefined ? {} : { actions }),
    }
    this.#broker = broker
    this.#handle = broker.as(caller)
    return this.#handle
  }
}

/** Returns the caller of a request, and stores it on the connection for the next request. */
function callerOn(request: HttpRequest, identity: Identity, anonymous: boolean): ConnectionCaller {
  const connection: Connection = request.socket
  const known = connection[CALLER]
  const forwarded = forwardedAddressOf(request)
  if (known !== undefined && known.identity === identity && known.forwarded === forwarded) return known
  const caller = new ConnectionCaller(identity, connection.remoteAddress, forwarded, anonymous)
  connection[CALLER] = caller
  return caller
}
