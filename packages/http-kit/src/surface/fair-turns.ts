import { tickWork } from '@signalbox/broker-core/internal'
import { Buffer } from 'node:buffer'
import process from 'node:process'

/** A piece of dear work longer than this is followed by a rest of its account, in ms. */
const FREE_MS = 5

/** The longest rest of an account, in ms. */
const MAX_REST_MS = 1_000

/** The least and the most rest of an account for a megabyte that is read into memory, in ms. */
const LEAST_MEMORY_REST_MS = 16
const MOST_MEMORY_REST_MS = 64

/** The factor between that rest and the time that a megabyte of new memory takes. */
const MEMORY_REST = 20

const MEGABYTE = 2 ** 20

let memoryRestMs: number | undefined

/**
 * Returns the rest for each byte that is read into memory, in ms. A megabyte of new memory takes 0.2 ms on most machines,
 * and 4 on some virtual ones.
 */
function memoryRestPerByte(): number {
  if (memoryRestMs === undefined) {
    const begin = performance.now()
    Buffer.allocUnsafeSlow(MEGABYTE).fill(1)
    const rest = MEMORY_REST * (performance.now() - begin)
    memoryRestMs = Math.min(Math.max(rest, LEAST_MEMORY_REST_MS), MOST_MEMORY_REST_MS)
  }
  return memoryRestMs / MEGABYTE
}

/** Time without requests of others after which an account is alone, in ms. */
const ALONE_MS = 1_000

/** The time for which dear work waits after each request, in ms: most are answered by then. */
const GIVE_WAY_MS = 2

/** The longest time for which requests hold up a piece of dear work, in ms. */
const MAX_GIVE_WAY_MS = 10

/** The waiting work of one account. */
interface Line {
  readonly works: (() => void)[]
  /** The time until which the account rests, as of `performance.now()`. */
  restsUntil: number
}

/** Dear work that pauses after each piece. The value of the generator is the result. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Does all pieces of the work at once. */
export function allSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/**
 * Runs dear work, such as parsing a large body or building a large answer, at most one piece in each tick of the event
 * loop, so that other requests run between the pieces. Accounts take turns: one account's work waits for its own and
 * for one piece of each other account. An account that blocked the loop for long then rests: for the same time if it is
 * alone on the server, and otherwise for longer the longer it took, so that few requests of others meet a long piece: 50 ms
 * after 10, 200 after 20, 800 after 40. A request that has just arrived goes first.
 */
export class FairTurns {
  /** The lines by account, in the order of their turns. */
  readonly #lines = new Map<string, Line>()
  /** The time until which requests go first, and the end of the last piece, as of `performance.now()`. */
  #givesWayUntil = 0
  #lastEnd = 0
  /** The account of the latest request, and the time of the latest one that followed a request of another account. */
  #latest: string | undefined
  #changedAt = Number.NEGATIVE_INFINITY
  #immediate: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * Runs a piece of work in a later tick. Long work is several pieces, each of which asks for the next. Bound what
   * waits: count the bytes of the work, and its request, until it has run.
   * @param account The key of the caller's account
   */
  run(account: string, work: () => void): void {
    this.#lineOf(account).works.push(work)
    this.#schedule()
  }

  /**
   * Lets the account rest after these bytes were read into memory. Memory for new megabytes, and its collection, block
   * the event loop, and belong to no piece of work that could be measured.
   */
  restAfter(account: string, bytes: number): void {
    if (this.#isAlone(account)) return
    const now = performance.now()
    const line = this.#lineOf(account)
    line.restsUntil = Math.min(Math.max(line.restsUntil, now) + bytes * memoryRestPerByte(), now + MAX_REST_MS)
  }

  /** Resolves when it is the account's turn; `undefined` if the account has no dear work, and does not rest. */
  turnAfterOthers(account: string): Promise<void> | undefined {
    const line = this.#lines.get(account)
    if (line === undefined || (line.works.length === 0 && line.restsUntil <= performance.now())) return undefined
    return this.turn(account, () => {})
  }

  #lineOf(account: string): Line {
    const known = this.#lines.get(account)
    if (known !== undefined) return known
    const line: Line = { works: [], restsUntil: 0 }
    this.#lines.set(account, line)
    return line
  }

  /** Lets a request that has arrived go before the next piece of work. */
  giveWay(): void {
    if (this.#lines.size > 0) this.#givesWayUntil = performance.now() + GIVE_WAY_MS
  }

  /** Records a request of an account: an account that is alone on the server need not rest. */
  arrived(account: string): void {
    if (account !== this.#latest) {
      this.#changedAt = performance.now()
      tickWork.share()
    }
    this.#latest = account
  }

  /** Runs a piece of work as {@link run} does, and returns its result. */
  turn<T>(account: string, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.run(account, () => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Does each piece of the work in a later tick. */
  async steps<T>(account: string, steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = await this.turn(account, () => steps.next())
      if (step.done === true) return step.value
    }
  }

  #isAlone(account: string): boolean {
    return account === this.#latest && performance.now() - this.#changedAt > ALONE_MS
  }

  #schedule(): void {
    if (this.#immediate !== undefined) return
    clearTimeout(this.#timer)
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const [account, { works, restsUntil }] of this.#lines) {
      if (works.length > 0) next = Math.min(next, restsUntil)
      else if (restsUntil <= now) this.#lines.delete(account)
    }
    if (next <= now) this.#immediate = setImmediate(this.#turn)
    else if (next < Number.POSITIVE_INFINITY) this.#timer = setTimeout(this.#turn, next - now)
  }

  readonly #turn = (): void => {
    this.#immediate = undefined
    const begin = performance.now()
    const givesWayUntil = Math.min(this.#givesWayUntil, this.#lastEnd + MAX_GIVE_WAY_MS)
    if (begin < givesWayUntil) {
      this.#timer = setTimeout(this.#turn, givesWayUntil - begin)
      return
    }
    for (const [account, line] of this.#lines) {
      if (line.restsUntil > begin || line.works.length === 0) continue
      const work = line.works.shift()
      // The account moves behind all others.
      this.#lines.delete(account)
      this.#lines.set(account, line)
      try {
        work?.()
      } finally {
        // After the promises that the work has resolved were handled: their time counts too.
        queueMicrotask(() => process.nextTick(() => this.#done(account, begin)))
      }
      return
    }
    this.#schedule()
  }

  #done(account: string, begin: number): void {
    const end = performance.now()
    this.#lastEnd = end
    const ms = end - begin
    const rest = this.#isAlone(account) ? ms : ms ** 2 / 2
    if (ms > FREE_MS) {
      const line = this.#lineOf(account)
      line.restsUntil = Math.max(line.restsUntil, end + Math.min(rest, MAX_REST_MS))
    }
    this.#schedule()
  }
}

/** The turns of this process: an event loop has one order of turns. */
export const fairTurns = new FairTurns()
