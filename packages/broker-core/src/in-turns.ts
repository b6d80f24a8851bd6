import { setImmediate as nextTick, setTimeout as pause } from 'node:timers/promises'

/** The time that the tasks of a pace take of a tick, in ms, unless the pace has another one. */
const TURN_MS = 4

/** The time for which passes over long lists block the event loop, in ms, and the time between two turns. */
const LIST_TURN_MS = 2

/** The items between two looks at the clock: a long name against a long pattern takes a quarter of a millisecond. */
const STRIDE = 16

/**
 * Limits the time that several tasks together take of an event-loop tick. Before each piece of work a task waits while
 * the pace is over: `while (pace.isOver) await pace.rest()`. One piece is never interrupted.
 */
export class Pace {
  readonly #turnMs: number
  readonly #pause: () => Promise<void>
  #usedMs = 0
  #rest: Promise<void> | undefined

  /** @param pause The pause between two turns */
  constructor(turnMs = TURN_MS, pause: () => Promise<void> = nextTick) {
    this.#turnMs = turnMs
    this.#pause = pause
  }

  get isOver(): boolean {
    return this.#usedMs >= this.#turnMs
  }

  /** Runs a piece of work and counts its time. */
  run<Result>(work: () => Result): Result {
    const begin = performance.now()
    try {
      return work()
    } finally {
      this.#usedMs += performance.now() - begin
    }
  }

  /** Resolves after the pause. Another task that waited too may use up the next round first. */
  rest(): Promise<void> {
    this.#rest ??= this.#pause().then(() => {
      this.#usedMs = 0
      this.#rest = undefined
    })
    return this.#rest
  }
}

/** The time for which a tick of the event loop begins short work, in ms. */
const TICK_MS = 2
/**
 * Pieces of work that a tick begins in any case. Time also passes while other processes use the processor, and a tick
 * with a few pieces costs more than these.
 */
const MIN_PIECES = 32
/** As many while several callers have requests: one of them may come with 32 at a time, and the others wait for that tick. */
const MIN_SHARED_PIECES = 8
/** The time for which ticks are shared after a request of another caller, in ms. */
const SHARED_MS = 1_000
/** Pieces of work between two looks at the clock. */
const STEP_PIECES = 4
/** The number of finished pieces that the list of waiting work may keep. */
const MAX_FINISHED = 256

/** The work of one account that waits, and the place of its next piece. */
interface Line {
  readonly account: string
  readonly works: (() => void)[]
  next: number
}

/**
 * Begins short pieces of work for {@link TICK_MS} in each tick of the event loop. Requests that arrive at the same time,
 * and calls that end with the same commit, would otherwise share one long tick, in which no timer fires and no socket is
 * read. The accounts whose work waits begin one piece each, in rotation; the work of one account keeps its order.
 */
export class TickWork {
  readonly #byAccount = new Map<string, Line>()
  /** The same lines, in rotation. */
  readonly #lines: Line[] = []
  /** The place of the line that is next. */
  #at = 0
  /** `true` while a step is scheduled. */
  #scheduled = false
  /** The pieces that this tick has begun, and the time of the first one as of `performance.now()`. */
  #pieces = 0
  #began = 0
  #sharedUntil = Number.NEGATIVE_INFINITY

  /** Notes that several callers have requests. */
  share(): void {
    this.#sharedUntil = performance.now() + SHARED_MS
  }

  /**
   * Runs the work now if nothing waits and the tick has time left, otherwise in a later tick.
   * @param account The key of the account that the work is for
   */
  run(work: () => void, account = ''): void {
    if (this.#lines.length > 0 || !this.#hasTime()) {
      // The promise keeps the asynchronous context of the caller.
      void new Promise<void>((resolve) => this.soon(resolve, account)).then(work)
    } else {
      this.#pieces++
      work()
    }
  }

  /** Runs the work after the current callback, in this tick if it has time left. */
  soon(work: () => void, account = ''): void {
    const line = this.#byAccount.get(account)
    if (line === undefined) this.#addLine({ account, works: [work], next: 0 })
    else line.works.push(work)
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(this.#step)
  }

  #addLine(line: Line): void {
    this.#byAccount.set(line.account, line)
    this.#lines.push(line)
  }

  /** Removes the next piece of work from the line that is next; `undefined` if nothing waits. */
  #take(): (() => void) | undefined {
    if (this.#at >= this.#lines.length) this.#at = 0
    const line = this.#lines[this.#at]
    if (line === undefined) return undefined
    const work = line.works[line.next++]
    if (line.next === line.works.length) {
      this.#lines.splice(this.#at, 1)
      this.#byAccount.delete(line.account)
      return work
    }
    if (line.next >= MAX_FINISHED) {
      line.works.splice(0, line.next)
      line.next = 0
    }
    this.#at++
    return work
  }

  #hasTime(): boolean {
    if (this.#pieces === 0) {
      this.#began = performance.now()
      setImmediate(this.#endTick)
    }
    const least = this.#began < this.#sharedUntil ? MIN_SHARED_PIECES : MIN_PIECES
    return this.#pieces < least || performance.now() < this.#began + TICK_MS
  }

  readonly #endTick = (): void => {
    this.#pieces = 0
  }

  readonly #step = (): void => {
    if (!this.#hasTime()) {
      setImmediate(this.#step)
      return
    }
    try {
      for (let piece = 0; piece < STEP_PIECES; piece++) {
        const work = this.#take()
        if (work === undefined) break
        this.#pieces++
        work()
      }
    } finally {
      if (this.#lines.length > 0) queueMicrotask(this.#afterPieces)
      else this.#scheduled = false
    }
  }

  /** Continues after the promises that the pieces have resolved were handled, so that their time counts too. */
  readonly #afterPieces = (): void => process.nextTick(this.#step)
}

/** The work of this process: an event loop has one order of ticks. */
export const tickWork = new TickWork()

/** Runs the tasks of each key one after the other. */
export class SerialTasks {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const running = before.catch(() => {}).then(task)
    this.#last.set(key, running)
    try {
      return await running
    } finally {
      if (this.#last.get(key) === running) this.#last.delete(key)
    }
  }
}

/** All passes over long lists, and copies of long bodies, together. */
const LISTS = new Pace(LIST_TURN_MS, () => pause(LIST_TURN_MS))

/**
 * Calls a function with each item of a long list, for 2 ms at a time. The pauses are as long: a call of another client
 * passes through several ticks, and would wait in each.
 */
export async function inTurns<Item>(items: readonly Item[], visit: (item: Item) => void): Promise<void> {
  for (let at = 0; at < items.length; at += STRIDE) {
    if (LISTS.isOver) await LISTS.rest()
    LISTS.run(() => {
      for (const item of items.slice(at, at + STRIDE)) visit(item)
    })
  }
}

/** The bytes that are copied between two looks at the clock. */
const COPIED_BYTES = 65_536

/** Copies bytes, and yields to the event loop every few milliseconds: the first use of much memory takes long. */
export async function copyInTurns(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = new Uint8Array(bytes.byteLength)
  for (let at = 0; at < bytes.byteLength; at += COPIED_BYTES) {
    if (LISTS.isOver) await LISTS.rest()
    LISTS.run(() => copy.set(bytes.subarray(at, at + COPIED_BYTES), at))
  }
  return copy
}

/** The names that are sorted at once: a millisecond or two. */
const RUN = 2_048

/** The names of one list that are merged between two looks at the clock. */
const MERGED = 64

/** Sorts names by their UTF-16 units. Sorting many yields to the event loop every few milliseconds. */
export async function sortInTurns(names: readonly string[]): Promise<string[]> {
  if (names.length <= RUN) return names.toSorted()
  let runs: string[][] = []
  for (let at = 0; at < names.length; at += RUN) {
    if (LISTS.isOver) await LISTS.rest()
    runs.push(LISTS.run(() => names.slice(at, at + RUN).toSorted()))
  }
  while (runs.length > 1) {
    const merged: string[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? []))
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function merge(left: readonly string[], right: readonly string[]): Promise<string[]> {
  const merged: string[] = []
  let at = 0
  const mergeUntil = (name: string): void => {
    for (let next = left[at]; next !== undefined && next <= name; next = left[++at]) merged.push(next)
    merged.push(name)
  }
  for (let from = 0; from < right.length; from += MERGED) {
    if (LISTS.isOver) await LISTS.rest()
    LISTS.run(() => {
      for (const name of right.slice(from, from + MERGED)) mergeUntil(name)
    })
  }
  for (; at < left.length; at++) merged.push(left[at] ?? '')
  return merged
}
