import { AdmissionControl } from '../admission/admission-control.ts'
import { Refusal } from '../admission/refusal.ts'
import { HeldBytes, RequestHold } from '../admission/request-hold.ts'
import type { TrustedProxies } from '../admission/trusted-proxies.ts'
import type { Authenticator, Identity } from '../authentication/authenticator.ts'
import { AuthenticationError } from '../errors.ts'
import { callerOn } from './caller.ts'
import type { ConnectionCaller } from './caller.ts'
import { fairTurns } from './fair-turns.ts'
import { STALLED_MS } from './http-exchange.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { HttpRequest } from './http-message.ts'
import { WebPolicy } from './web-policy.ts'
import type { AllowedHosts, TrustedOrigins } from './web-policy.ts'

/** The parts that the surfaces of one process share: limits, trusted proxies, the host names of the server. */
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

/** Options of {@link Gate}. */
export interface GateOptions {
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
}

const REFUSED_AT_SHUTDOWN = new Refusal('shutting_down', 'the server is shutting down; try again')

/** Decides about requests by their heads: web policy, caller, limits. */
export class Gate {
  readonly #authenticator: Authenticator
  readonly #anonymous: boolean
  readonly #admission: AdmissionControl
  readonly #proxies: TrustedProxies | undefined
  readonly #web: WebPolicy
  readonly #stalledMs: number
  #closing = false

  /** @throws RangeError for an invalid trusted origin */
  constructor(options: GateOptions) {
    const { authenticator, trustedOrigins, originsSetting, bindHost, alsoLocal, frontDoor = {} } = options
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
   * Refuses a request, or calls `admitted` with its caller: at once, if the authenticator answers at once.
   * @param whileClosing Admits the request during a shutdown too
   * @throws the error of an authenticator that breaks, or of `admitted`; the promise rejects with it
   */
  admit(
    exchange: HttpExchange,
    whileClosing: boolean,
    admitted: (caller: ConnectionCaller) => void,
  ): void | Promise<void> {
    const { request } = exchange
    this.#proxies?.locate(request)
    const refusal = this.#web.refusal(request)
    if (refusal !== undefined) exchange.refuse(refusal)
    else if (this.#closing && !whileClosing) {
      exchange.response.shouldKeepAlive = false
      exchange.refuse(REFUSED_AT_SHUTDOWN)
    } else return this.#authenticate(exchange, admitted)
  }

  #isFromProxy({ socket: { remoteAddress = '' } }: HttpRequest): boolean {
    return this.#proxies?.includes(remoteAddress) === true
  }

  #authenticate(exchange: HttpExchange, admitted: (caller: ConnectionCaller) => void): void | Promise<void> {
    let identity: Identity | Promise<Identity>
    try {
      identity = this.#authenticator.authenticate(exchange.request)
    } catch (error) {
      unauthenticated(exchange, error)
      return
    }
    if (!(identity instanceof Promise)) this.#enter(exchange, identity, admitted)
    else {
      return identity.then(
        (verified) => this.#enter(exchange, verified, admitted),
        (error: unknown) => unauthenticated(exchange, error),
      )
    }
  }

  #enter(exchange: HttpExchange, identity: Identity, admitted: (caller: ConnectionCaller) => void): void {
    const caller = callerOn(exchange.request, identity, this.#anonymous)
    const account = caller.accountIn(this.#admission)
    const refusal = this.#admission.enter(account)
    if (refusal !== undefined) {
      exchange.refuse(refusal)
      return
    }
    fairTurns.arrived(account.key)
    if (exchange.tracing !== undefined) exchange.isTrusted = !this.#anonymous || this.#isFromProxy(exchange.request)
    exchange.admit(new RequestHold(this.#admission, account), this.#stalledMs)
    admitted(caller)
  }
}

function unauthenticated(exchange: HttpExchange, cause: unknown): void {
  if (!(cause instanceof AuthenticationError)) throw cause
  exchange.refuse(new Refusal('unauthenticated', 'Authentication failed', { cause }))
}
