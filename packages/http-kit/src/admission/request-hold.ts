import type { Account, AdmissionControl } from './admission-control.ts'
import type { Refusal } from './refusal.ts'

/**
 * The resources that one admitted request holds of its caller's limits, until its response is closed and no work for
 * it remains.
 */
export class RequestHold {
  readonly account: Account
  readonly #control: AdmissionControl
  /** The response, and each {@link retain}. */
  #holders = 1
  #bodyBytes = 0
  #unreadBytes = 0
  #isStream = false
  #over = false

  /** Takes over a request that `control.enter` has counted. */
  constructor(control: AdmissionControl, account: Account) {
    this.#control = control
    this.account = account
  }

  /** Keeps the request counted until {@link release}, for work that continues after the client disconnected. */
  retain(): void {
    this.#holders++
  }

  release(): void {
    // Work that starts after the response was closed is not counted.
    if (--this.#holders > 0 || this.#over) return
    this.#over = true
    const control = this.#control
    const { account } = this
    if (this.#isStream) control.closeStream(account)
    else control.leave(account)
    if (this.#bodyBytes > 0) control.discharge(account, this.#bodyBytes)
    if (this.#unreadBytes !== 0) control.addUnread(account, -this.#unreadBytes)
    this.#bodyBytes = 0
    this.#unreadBytes = 0
  }

  /**
   * Counts bytes that the request causes the process to hold: of its body, of a reply, of an answer that is being built.
   * They count until {@link discharge} or the release. Returns the refusal if a limit is reached; then nothing is
   * counted.
   */
  charge(bytes: number): Refusal | undefined {
    if (this.#over) return undefined
    const refusal = this.#control.charge(this.account, bytes)
    if (refusal === undefined) this.#bodyBytes += bytes
    return refusal
  }

  /** Subtracts bytes that {@link charge} counted. */
  discharge(bytes: number): void {
    // The release has subtracted everything.
    if (this.#over) return
    this.#bodyBytes -= bytes
    this.#control.discharge(this.account, bytes)
  }

  /** Returns the refusal of a body of this size if memory is short. */
  refusesBody(bytes: number): Refusal | undefined {
    return this.#control.refusesBody(this.account, bytes)
  }

  /** Turns the request into a stream, which has a separate limit. Call this before you start work for the stream. */
  toStream(): Refusal | undefined {
    if (this.#isStream || this.#over) return undefined
    const refusal = this.#control.openStream(this.account)
    if (refusal !== undefined) return refusal
    this.#control.leave(this.account)
    this.#isStream = true
    return undefined
  }

  /** Sets the number of unread bytes. Returns `false` if the caller or the process holds too many. */
  setUnread(bytes: number): boolean {
    if (this.#over) return true
    const change = bytes - this.#unreadBytes
    this.#unreadBytes = bytes
    return change === 0 || this.#control.addUnread(this.account, change)
  }
}

/** Counts bytes in the budgets of a caller and of the process. */
export interface ByteBudget {
  /** Counts bytes until they are discharged or released. Returns the refusal if a limit is reached. */
  charge(bytes: number): Refusal | undefined
  /** Subtracts bytes that {@link charge} counted. */
  discharge(bytes: number): void
}

/**
 * The bytes that work for a caller holds apart from the caller's requests: the work runs on another node, or it
 * continues after the request was answered.
 */
export class HeldBytes implements ByteBudget {
  readonly #control: AdmissionControl
  readonly #key: string
  #account: Account | undefined
  #bytes = 0

  /** @param key The caller's key: `client:{ClientID}` or `address:{network}` */
  constructor(control: AdmissionControl, key: string) {
    this.#control = control
    this.#key = key
  }

  get bytes(): number {
    return this.#bytes
  }

  charge(bytes: number): Refusal | undefined {
    const account = this.account
    const refusal = this.#control.charge(account, bytes)
    if (refusal === undefined) this.#bytes += bytes
    return refusal
  }

  discharge(bytes: number): void {
    this.#bytes -= bytes
    this.#control.discharge(this.account, bytes)
  }

  /** Returns the refusal of a reply of this size if memory is short. */
  refusesBody(bytes: number): Refusal | undefined {
    return this.#control.refusesBody(this.account, bytes)
  }

  /** Subtracts all bytes. */
  release(): void {
    if (this.#bytes > 0) this.discharge(this.#bytes)
  }

  /** An account that holds nothing may have been dropped; one that holds bytes is kept. */
  get account(): Account {
    if (this.#account === undefined || this.#account.forgotten) this.#account = this.#control.accountOf(this.#key)
    return this.#account
  }
}
