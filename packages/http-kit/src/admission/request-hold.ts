import type { Account } from './account.ts'
import type { AdmissionControl } from './admission-control.ts'
import type { Refusal } from './refusal.ts'

/** What one admitted request holds of its caller's limits, until its response is closed and nothing works on it any more. */
export class RequestHold {
  readonly account: Account
  readonly #control: AdmissionControl
  /** The response, and whatever else {@link retain}s it. */
  #holders = 1
  #bodyBytes = 0
  #unreadBytes = 0
  #isStream = false
  #over = false

  /** The request was counted by `control.enter`. */
  constructor(control: AdmissionControl, account: Account) {
    this.#control = control
    this.account = account
  }

  /** Keeps the request counted until {@link release}: for work that goes on when its client has gone. */
  retain(): void {
    this.#holders++
  }

  release(): void {
    // What begins after the response is closed is not counted: there is nothing left to tie it to.
    if (--this.#holders > 0 || this.#over) return
    this.#over = true
    const control = this.#control
    const { account } = this
    if (this.#isStream) control.closeStream(account)
    else control.leave(account)
    if (this.#bodyBytes > 0) control.dropBody(account, this.#bodyBytes)
    if (this.#unreadBytes !== 0) control.addUnread(account, -this.#unreadBytes)
    this.#bodyBytes = 0
    this.#unreadBytes = 0
  }

  /** Counts bytes of the body. */
  takeBody(bytes: number): Refusal | undefined {
    if (this.#over) return undefined
    const refusal = this.#control.takeBody(this.account, bytes)
    if (refusal === undefined) this.#bodyBytes += bytes
    return refusal
  }

  /** Whether a body of this size is refused because memory is short. */
  refusesBody(bytes: number): Refusal | undefined {
    return this.#control.refusesBody(this.account, bytes)
  }

  /** Turns the request into a stream, which has a limit of its own. Ask before anything is begun for it. */
  toStream(): Refusal | undefined {
    if (this.#isStream || this.#over) return undefined
    const refusal = this.#control.openStream(this.account)
    if (refusal !== undefined) return refusal
    this.#control.leave(this.account)
    this.#isStream = true
    return undefined
  }

  /** Sets the bytes that were written and that the reader has not taken; false when the caller holds too many. */
  setUnread(bytes: number): boolean {
    if (this.#over) return true
    const change = bytes - this.#unreadBytes
    this.#unreadBytes = bytes
    return change === 0 || this.#control.addUnread(this.account, change)
  }
}
